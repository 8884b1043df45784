"""Assignments inside of expressions, `(name := value)`, as statements before the one that has them."""

from __future__ import annotations

import ast
import copy

__all__ = ["without_leading_walrus"]


def without_leading_walrus(statement: ast.stmt) -> ast.stmt | tuple[ast.Assign, ast.stmt]:
    """Return a statement, and before it the assignment inside of it that Python evaluates before all else."""
    field = "test" if isinstance(statement, ast.If) else "value"
    whole = getattr(statement, field, None)
    if not isinstance(statement, ast.If | ast.Return | ast.Assign | ast.AnnAssign) or whole is None:
        return statement
    found = _leading_walrus(whole)
    if found is None:
        return statement
    name = ast.copy_location(ast.Name(found.target.id, ast.Load()), found)
    made = copy.copy(statement)
    setattr(made, field, _with_first(whole, name))
    return ast.copy_location(ast.Assign([found.target], found.value), found), made


def _leading_walrus(syntax: ast.AST) -> ast.NamedExpr | None:
    while not isinstance(syntax, ast.NamedExpr):
        inner = _evaluated_first(syntax)
        if inner is None:
            return None
        syntax = inner[1]
    return syntax


def _with_first(syntax: ast.expr, name: ast.Name) -> ast.expr:
    """Return an expression with a name in the place of the assignment that is evaluated first."""
    if isinstance(syntax, ast.NamedExpr):
        return name
    found = _evaluated_first(syntax)
    assert found is not None, "the assignment is inside of it"
    field, inner = found
    made, value = copy.copy(syntax), _with_first(inner, name)
    held = getattr(syntax, field)
    setattr(made, field, [value, *held[1:]] if isinstance(held, list) else value)
    return made


def _evaluated_first(syntax: ast.AST) -> tuple[str, ast.expr] | None:
    """Return the part of an expression that Python evaluates before all others, and before anything is done."""
    match syntax:
        case ast.BoolOp(values=[first, *_]):
            return "values", first
        case ast.Compare(left=first) | ast.BinOp(left=first):
            return "left", first
        case ast.IfExp(test=first):
            return "test", first
        case ast.UnaryOp(operand=first):
            return "operand", first
        case ast.Attribute(value=first) | ast.Subscript(value=first):
            return "value", first
        case ast.Call(func=ast.Attribute() as first):
            return "func", first
    return None
