"""Constants of a module: variables to which its text gives one value, as every import of it does."""

from __future__ import annotations

import ast
from types import FunctionType

from dstream.expressions.source_of_function import assigned_once, told

__all__ = ["is_constant_of_module"]


def is_constant_of_module(fn: FunctionType, name: str, value: object) -> bool:
    """Say whether the text of the module that a function stands in gives a global this value, whoever imports it.

    One statement alone binds the name, outside of all blocks, to an expression that holds nothing but literals. A
    value that was put into the module of this process in its place is another one.
    """
    file = fn.__code__.co_filename
    if fn.__globals__.get("__file__") != file:
        return False
    expression = assigned_once(file).get(name)
    if expression is None or not all(isinstance(each, _OF_LITERALS) for each in ast.walk(expression)):
        return False
    try:
        written = eval(compile(ast.Expression(expression), file, "eval"), {"__builtins__": {}})
    except Exception:  # The file has changed since it was imported.
        return False
    return told(value) == told(written)


_OF_LITERALS = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator, ast.Load)
