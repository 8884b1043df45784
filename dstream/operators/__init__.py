"""Operators: the steps whose state outlives an epoch, each a `StateOperator` of `dstream.spi.state_operator`."""
