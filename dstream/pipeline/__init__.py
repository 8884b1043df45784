"""Pipelines: stages that fork, join and end in several sinks, as a value that any context runs."""
