"""What a pure function gives, as a value that others than Python's interpreter can evaluate."""

from dstream.expressions.expression import (
    Applied,
    Argument,
    Attribute,
    Built,
    Called,
    Choice,
    Constant,
    Expression,
    Formatted,
    ForTuples,
    Indexed,
    Let,
    Local,
    Method,
    Text,
    Together,
)

__all__ = [
    "Applied",
    "Argument",
    "Attribute",
    "Built",
    "Called",
    "Choice",
    "Constant",
    "Expression",
    "ForTuples",
    "Formatted",
    "Indexed",
    "Let",
    "Local",
    "Method",
    "Text",
    "Together",
]
