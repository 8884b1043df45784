"""Expressions: results of pure functions as values that other evaluators than Python can run.

`reader` reads a function: `source` finds its syntax tree, `syntax` translates that, `resolution` resolves its names.
`tree` contains the expressions, `effects` the functions without side effects.
"""

from __future__ import annotations

from dstream.expressions.tree import (
    Applied,
    Argument,
    Attribute,
    Built,
    Called,
    Changed,
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
    "Changed",
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
