"""What the source text of a function gives, as an `Expression`: for tests that write functions as text."""

from __future__ import annotations

import ast
from typing import Any

from dstream.expressions import (
    Applied,
    Argument,
    Attribute,
    Built,
    Called,
    Changed,
    Choice,
    Constant,
    Expression,
    Indexed,
    Method,
    Together,
)
from tests.differential.random_functions import BUILT, function_of

__all__ = ["expression_of"]

_BINARY: dict[type, Any] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
_UNARY: dict[type, Any] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not"}
_COMPARED: dict[type, Any] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}


def expression_of(source: str) -> Expression:
    """Return what a lambda of one argument gives, written as `lambda x: ...`."""
    parsed = ast.parse(source, mode="eval").body
    assert isinstance(parsed, ast.Lambda)
    return _read(parsed.body)


def _read(node: ast.expr) -> Expression:
    match node:
        case ast.Call(ast.Name("date" | "datetime" | "timedelta")) | ast.Attribute(ast.Name("date")):
            return Constant(function_of(f"lambda: {ast.unparse(node)}")())
        case ast.Subscript(value, ast.Slice(None, stop, None)):
            return Indexed(
                _read(value), Called("slice", (Constant(None), _read(stop or ast.Constant(None)), Constant(None)))
            )
        case ast.Name("x"):
            return Argument(0)
        case ast.Constant(value):
            return Constant(value)
        case ast.UnaryOp(op, operand):
            return Applied(_UNARY[type(op)], (_read(operand),))
        case ast.BinOp(left, op, right):
            return Applied(_BINARY[type(op)], (_read(left), _read(right)))
        case ast.BoolOp(op, values):
            return Applied("and" if isinstance(op, ast.And) else "or", tuple(map(_read, values)))
        case ast.Compare(left, ops, comparators):
            operands = [_read(each) for each in (left, *comparators)]
            pairs = zip(ops, operands, operands[1:], strict=False)
            found = tuple(Applied(_COMPARED[type(op)], (one, other)) for op, one, other in pairs)
            return found[0] if len(found) == 1 else Applied("and", found)
        case ast.IfExp(test, body, orelse):
            return Choice(_read(test), _read(body), _read(orelse))
        case ast.Subscript(value, index):
            return Indexed(_read(value), _read(index))
        case ast.Attribute(value, name):
            return Attribute(_read(value), name)
        case ast.Tuple(members):
            return Together(tuple(map(_read, members)))
        case ast.List(members):
            return Built(list, (), tuple(map(_read, members)))
        case ast.Dict([None, *keys], [of, *values]):
            return Changed(_read(of), "dict", tuple(map(_text, keys)), tuple(map(_read, values)))
        case ast.Dict(keys, values):
            return Built(dict, tuple(map(_text, keys)), tuple(map(_read, values)))
        case ast.Call(ast.Attribute(ast.Name("dataclasses"), "asdict"), [of], []):
            return Called("dataclasses.asdict", (_read(of),))
        case ast.Call(ast.Name(name), [], [ast.keyword(None, of)]) if name in BUILT:
            return Built(BUILT[name], ("**",), (_read(of),))
        case ast.Call(ast.Attribute(ast.Name("dataclasses")), [of], keywords):
            names = tuple(str(each.arg) for each in keywords)
            return Changed(_read(of), "dataclass", names, tuple(_read(each.value) for each in keywords))
        case ast.Call(ast.Name(name), arguments, keywords) if name in BUILT:
            names = (*("a", "b")[: len(arguments)], *(str(each.arg) for each in keywords))
            values = (*arguments, *(each.value for each in keywords))
            return Built(BUILT[name], names, tuple(map(_read, values)))
        case ast.Call(ast.Attribute(of, name), arguments, keywords):
            names = tuple(str(each.arg) for each in keywords)
            return Method(_read(of), name, tuple(map(_read, (*arguments, *(each.value for each in keywords)))), names)
        case ast.Call(ast.Name(function), arguments, []):
            return Called(function, tuple(map(_read, arguments)))
    raise AssertionError(ast.dump(node))


def _text(node: ast.expr | None) -> str:
    assert isinstance(node, ast.Constant), "keys are texts"
    return str(node.value)
