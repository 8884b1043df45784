"""Expressions: results of pure functions as values that other evaluators than Python can run.

`reader` reads a function: `source` finds its syntax tree, `resolution` resolves its names. `syntax` translates
expressions, `calls` calls and comprehensions, `callables` those of the standard library and of classes, `statements`
statements that are one expression together, `routines` others, which Python runs for each row.
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
    Comprehension,
    Constant,
    Display,
    Expression,
    Formatted,
    ForTuples,
    Function,
    Indexed,
    Keyword,
    Let,
    Local,
    Loop,
    Method,
    Routine,
    Spread,
    Statement,
    Text,
    Together,
    Tried,
)

__all__ = [
    "Applied",
    "Argument",
    "Attribute",
    "Built",
    "Called",
    "Changed",
    "Choice",
    "Comprehension",
    "Constant",
    "Display",
    "Expression",
    "ForTuples",
    "Formatted",
    "Function",
    "Indexed",
    "Keyword",
    "Let",
    "Local",
    "Loop",
    "Method",
    "Routine",
    "Spread",
    "Statement",
    "Text",
    "Together",
    "Tried",
]
