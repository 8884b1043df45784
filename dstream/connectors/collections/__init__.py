"""Distributed collections as sources and sinks: entries, items, and journals of changes.

`sources` reads maps, caches and lists by name and follows their journals; `sinks` writes maps, caches, lists and sets.
"""
