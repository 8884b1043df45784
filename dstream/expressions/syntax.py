"""Translation of a function body from syntax to an expression."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import datetime
import decimal
import enum
import functools
import math
import operator
import re
from collections.abc import Sequence
from types import BuiltinFunctionType, ModuleType
from typing import Any, Protocol

from dstream.base.by_value import is_importable
from dstream.expressions.effects import CHANGING_NOTHING, KNOWN, name_of
from dstream.expressions.resolution import Names, UnreadableName, constant_of, container_of
from dstream.expressions.resolution import is_same_constant_everywhere as is_constant
from dstream.expressions.tree import (
    Applied,
    Attribute,
    Built,
    Called,
    Changed,
    Choice,
    Constant,
    Expression,
    Formatted,
    Indexed,
    Method,
    Operator,
    Text,
    Together,
)
from dstream.expressions.walrus import without_leading_walrus
from dstream.values.entries import Entry

__all__ = ["Body", "Callee", "read_block", "read_syntax"]


class Callee(Protocol):
    """Reader of the results of calls, and of the values of variables."""

    def called(
        self, fn: Any, written: str, arguments: Sequence[Expression], keywords: Sequence[str] = ()
    ) -> Expression:
        """Return the result of a function for arguments, of which the last ones are keywords."""
        ...

    def named(self, value: Expression) -> tuple[Expression, int | None]:
        """Return the expression for `value` where its variable is used, and its number."""
        ...

    def within(self, value: Expression, number: int | None, result: Expression) -> Expression:
        """Return `result`, in which the variable of that number stands for `value`."""
        ...


@dataclasses.dataclass(frozen=True)
class Body:
    """The meanings of names in a function's body.

    Attributes:
        variables: what those variables have that have a value.
        own: the names of all variables.
    """

    names: Names
    variables: dict[str, Expression]
    own: frozenset[str]
    callee: Callee

    def with_variable(self, name: str, value: Expression) -> Body:
        """Return the body's names after an assignment."""
        return Body(self.names, {**self.variables, name: value}, self.own, self.callee)


def read_block(statements: Sequence[ast.stmt], body: Body) -> Expression:
    """Return the result of statements.

    Raises:
        CannotRead: they do more than that.
    """
    if not statements:
        return Constant(None)
    first, rest = without_leading_walrus(statements[0]), statements[1:]
    match first:
        case (ast.Assign() as before, ast.stmt() as statement):
            return read_block([before, statement, *rest], body)
        case ast.Return(value=None):
            return Constant(None)
        case ast.Return(value=ast.expr() as value):
            return read_syntax(value, body)
        case ast.If(test=test, body=then, orelse=otherwise):
            # An expression has no statements: what follows the `if` is written at the end of both of its branches.
            condition = read_syntax(test, body)
            return Choice(condition, read_block([*then, *rest], body), read_block([*otherwise, *rest], body))
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            return _assigned(name, value, rest, body) if value is not None else read_block(rest, body)
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value) if all(map(_is_name, targets)):
            return _unpacked([each.id for each in targets if isinstance(each, ast.Name)], value, rest, body)
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return read_block(rest, body)
    assert isinstance(first, ast.stmt), "what is before it was taken away"
    raise UnreadableName(_STATEMENTS.get(type(first), "does more than to return a value"), line=first.lineno)


def _is_name(syntax: ast.expr) -> bool:
    return isinstance(syntax, ast.Name)


def _unpacked(names: Sequence[str], value: ast.expr, rest: Sequence[ast.stmt], body: Body) -> Expression:
    members = Called("dstream.unpacked", (read_syntax(value, body), Constant(len(names))))
    stands_for, number = body.callee.named(members)
    for place, name in enumerate(names):
        body = body.with_variable(name, Indexed(stands_for, Constant(place)))
    return body.callee.within(members, number, read_block(rest, body))


def _assigned(name: str, value: ast.expr, rest: Sequence[ast.stmt], body: Body) -> Expression:
    read = read_syntax(value, body)
    stands_for, number = body.callee.named(read)
    return body.callee.within(read, number, read_block(rest, body.with_variable(name, stands_for)))


_STATEMENTS: dict[type[ast.stmt], str] = {
    ast.For: "has a loop",
    ast.While: "has a loop",
    ast.Try: "catches exceptions",
    ast.With: "has a with statement",
    ast.Raise: "raises an exception",
    ast.Assert: "has an assert statement",
    ast.AugAssign: "changes a variable",
    ast.Assign: "assigns to more than a variable",
    ast.FunctionDef: "makes a function",
    ast.Import: "imports",
    ast.ImportFrom: "imports",
}


@functools.singledispatch
def read_syntax(syntax: ast.AST, body: Body) -> Expression:
    """Return an expression of Python's as one of ours.

    Raises:
        CannotRead: there is none.
    """
    line = getattr(syntax, "lineno", None)
    raise UnreadableName(*_OTHERS.get(type(syntax), (f"has a {type(syntax).__name__} expression", "")), line=line)


_OTHERS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Set: ("makes a set", "a tuple can be read"),
    ast.ListComp: ("has a comprehension", ""),
    ast.SetComp: ("has a comprehension", ""),
    ast.DictComp: ("has a comprehension", ""),
    ast.GeneratorExp: ("has a generator expression", ""),
    ast.Lambda: ("makes a function", ""),
    ast.NamedExpr: ("assigns inside of an expression", "assign in a line of its own"),
    ast.Starred: ("unpacks with *", ""),
    ast.Await: ("awaits", ""),
    ast.Yield: ("is a generator", ""),
    ast.YieldFrom: ("is a generator", ""),
}


@read_syntax.register
def _(syntax: ast.Constant, body: Body) -> Expression:
    constant = constant_of(syntax.value)
    if constant is None:
        raise UnreadableName(f"has a constant of {type(syntax.value).__name__}", line=syntax.lineno)
    return constant


@read_syntax.register
def _(syntax: ast.Name, body: Body) -> Expression:
    if syntax.id in body.variables:
        return body.variables[syntax.id]
    return _captured(_object(syntax, body), syntax.id, syntax.lineno)


def _captured(value: object, name: str, line: int) -> Expression:
    constant = constant_of(value)
    if constant is None:
        raise UnreadableName(f"captures {name}, a {type(value).__name__}", _ADVICE.get(type(value), ""), line)
    return constant


_ADVICE: dict[type, str] = {set: "a frozenset can be read", list: "a tuple can be read"}


def _object(syntax: ast.expr, body: Body) -> Any:
    """Return the object that a name, or an attribute of a module or of `str`, stands for."""
    match syntax:
        case ast.Name(id=name) if name in body.own:
            raise UnreadableName(f"uses {name} before it has a value", line=syntax.lineno)
        case ast.Name(id=name):
            return body.names.found(name)
        case ast.Attribute(value=of, attr=name):
            owner = _object(of, body)
            if isinstance(owner, ModuleType) and owner.__name__ in _MODULES and name in vars(owner):
                return _of_module(owner, name, syntax)
            if isinstance(owner, ModuleType) and owner.__name__ == "dstream" and getattr(owner, name, None) is Entry:
                return Entry
            if owner is str and name in vars(str):
                return getattr(str, name)
            if any(owner is each for each in _OF_TIMES) and is_constant(getattr(owner, name, owner)):
                return getattr(owner, name)  # timezone.utc, date.max
            if isinstance(owner, type) and name_of(owner) is not None:
                known = KNOWN.get(f"{name_of(owner)}.{name}")
                if known is not None:
                    return known
            raise UnreadableName(f"looks at {ast.unparse(syntax)}", line=syntax.lineno)
    raise UnreadableName("calls what an expression gives", line=syntax.lineno)


def _of_module(module: ModuleType, name: str, syntax: ast.expr) -> Any:
    """Return the member of a module of the standard library, unless somebody has replaced it."""
    value = vars(module)[name]
    is_known = (
        name_of(value) is not None
        or value is datetime.timezone
        or isinstance(value, BuiltinFunctionType)
        or constant_of(value) is not None
    )
    # A test may have replaced a function of `math` or `re` in this process, which no worker would see.
    if not is_known or value is not _FIRST[module.__name__].get(name):
        raise UnreadableName(f"looks at {ast.unparse(syntax)}", line=syntax.lineno)
    return value


_FIRST = {module.__name__: dict(vars(module)) for module in (dataclasses, datetime, decimal, math, operator, re)}
"""The contents of modules when this one was loaded; on a worker they have these when functions arrive."""
_MODULES = frozenset(_FIRST)
_OF_TIMES = (datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone)


def _is_of_the_item(syntax: ast.expr, body: Body) -> bool:
    """Return whether the operand of a dot is a value, and no module or class."""
    if isinstance(syntax, ast.Attribute):
        return _is_of_the_item(syntax.value, body)
    if not isinstance(syntax, ast.Name) or syntax.id in body.own:
        return True
    return constant_of(body.names.found(syntax.id)) is not None


@read_syntax.register
def _(syntax: ast.Attribute, body: Body) -> Expression:
    member = _of_enum(syntax, body)
    if member is not None:
        return member
    if _is_of_the_item(syntax.value, body):
        return Attribute(read_syntax(syntax.value, body), syntax.attr)
    return _captured(_object(syntax, body), ast.unparse(syntax), syntax.lineno)


def _of_enum(syntax: ast.Attribute, body: Body) -> Constant | None:
    """Return the name or the value of a member of an enumeration that travels with the function; None of others."""
    match syntax:
        case ast.Attribute(ast.Attribute(ast.Name(of), name), ("name" | "value") as part) if of not in body.own:
            kind = body.names.found(of)
            if type(kind) is enum.EnumMeta and not is_importable(kind) and name in kind.__members__:
                # A class that it is made of may have a property of this name.
                owner = next(each for each in kind.__mro__ if part in vars(each))
                return constant_of(getattr(kind[name], part)) if owner is enum.Enum else None
    return None


@read_syntax.register
def _(syntax: ast.Call, body: Body) -> Expression:
    if any(isinstance(each, ast.Starred) for each in syntax.args):
        raise UnreadableName("unpacks arguments with *", line=syntax.lineno)
    fn = syntax.func
    if isinstance(fn, ast.Attribute) and fn.attr in _LOOKING and not syntax.keywords:
        container = _container(fn.value, body)
        if container is not None:
            return Method(container, fn.attr, _all(syntax.args, body))
    if isinstance(fn, ast.Attribute) and _is_of_the_item(fn.value, body):
        return _method(fn, syntax, body)
    written = ast.unparse(fn)
    if written == "isinstance" and len(syntax.args) == 2 and not syntax.keywords:
        return _instance(syntax, body)
    if isinstance(fn, ast.Name) and fn.id in body.own:
        raise UnreadableName(f"calls its variable {written}", line=syntax.lineno)
    return _called_by_name(_callee(fn, written, body), written, syntax, body)


def _method(fn: ast.Attribute, syntax: ast.Call, body: Body) -> Expression:
    keywords = tuple(each.arg for each in syntax.keywords if each.arg is not None)
    has_known_keywords = len(keywords) == len(syntax.keywords) and (not keywords or fn.attr in _WITH_KEYWORDS)
    if not has_known_keywords or fn.attr not in CHANGING_NOTHING:
        raise UnreadableName(f"calls .{fn.attr}(){' with a keyword' if syntax.keywords else ''}", line=syntax.lineno)
    arguments = _all([*syntax.args, *(each.value for each in syntax.keywords)], body)
    return Method(read_syntax(fn.value, body), fn.attr, arguments, keywords)


_WITH_KEYWORDS = frozenset({"isoformat", "quantize", "replace"})


def _instance(syntax: ast.Call, body: Body) -> Expression:
    if _object(syntax.func, body) is not builtins.isinstance:
        raise UnreadableName("calls isinstance", line=syntax.lineno)
    of, among = syntax.args
    members = among.elts if isinstance(among, ast.Tuple) else [among]
    kinds = tuple(_object(each, body) for each in members)
    if not all(kind in _PLAIN_TYPES for kind in kinds):
        raise UnreadableName("calls isinstance", "the builtin types can be read", syntax.lineno)
    return Called("isinstance", (read_syntax(of, body), Constant(kinds)))


_PLAIN_TYPES = (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)


_LOOKING = ("count", "get", "index", "isdisjoint", "issuperset")
"""Methods of lists, dicts and sets that return no part of them but members."""


def _container(syntax: ast.expr, body: Body) -> Constant | None:
    """Return the list, dict or set of constants that a name stands for; None if it stands for something else."""
    if not isinstance(syntax, ast.Name) or syntax.id in body.own:
        return None
    return container_of(body.names.found(syntax.id), body.names.namespaces)


def _callee(fn: ast.expr, written: str, body: Body) -> Any:
    try:
        return _object(fn, body)
    except UnreadableName as problem:
        if problem.reason.startswith("looks at") and isinstance(fn, ast.Attribute):
            raise UnreadableName(f"calls {written}", line=fn.lineno) from None
        raise


def _called_by_name(fn: Any, written: str, syntax: ast.Call, body: Body) -> Expression:
    keywords = tuple(each.arg for each in syntax.keywords if each.arg is not None)
    if len(keywords) < len(syntax.keywords):
        raise UnreadableName("unpacks arguments with **", line=syntax.lineno)
    arguments = _all([*syntax.args, *(each.value for each in syntax.keywords)], body)
    try:
        return body.callee.called(fn, written, arguments, keywords)
    except UnreadableName as problem:
        # The function that is called may be in another file: the line is that of the call.
        raise UnreadableName(problem.reason, problem.advice, syntax.lineno) from None


def _all(syntaxes: Sequence[ast.expr], body: Body) -> tuple[Expression, ...]:
    return tuple(read_syntax(each, body) for each in syntaxes)


_BINARY: dict[type[ast.operator], Operator] = {
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
_UNARY: dict[type[ast.unaryop], Operator] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not"}
_COMPARISONS: dict[type[ast.cmpop], Operator] = {
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


@read_syntax.register
def _(syntax: ast.BinOp, body: Body) -> Expression:
    if type(syntax.op) not in _BINARY:
        raise UnreadableName("multiplies with @", line=syntax.lineno)
    return Applied(_BINARY[type(syntax.op)], _all((syntax.left, syntax.right), body))


@read_syntax.register
def _(syntax: ast.UnaryOp, body: Body) -> Expression:
    operand = read_syntax(syntax.operand, body)
    if isinstance(syntax.op, ast.USub) and isinstance(operand, Constant) and type(operand.value) in (int, float):
        # As Python's compiler does: `-1` is a constant, of which columns need no evaluation.
        return Constant(-operand.value)
    return Applied(_UNARY[type(syntax.op)], (operand,))


@read_syntax.register
def _(syntax: ast.BoolOp, body: Body) -> Expression:
    return Applied("and" if isinstance(syntax.op, ast.And) else "or", _all(syntax.values, body))


@read_syntax.register
def _(syntax: ast.Compare, body: Body) -> Expression:
    left = read_syntax(syntax.left, body)
    compared: list[Expression] = []
    for kind, right in zip(syntax.ops, syntax.comparators, strict=True):
        operator = _COMPARISONS[type(kind)]
        is_looked_into = operator in ("in", "not in") and right is syntax.comparators[-1]
        read = _looked_into(right, body) if is_looked_into else read_syntax(right, body)
        # Of other values a worker has copies, whose identity differs.
        if operator in ("is", "is not") and read != Constant(None):
            raise UnreadableName("compares with is", "== can be read", syntax.lineno)
        compared.append(Applied(operator, (left, read)))
        # This very object is the left operand of the next comparison: by its identity it is evaluated once.
        left = read
    return compared[0] if len(compared) == 1 else Applied("and", tuple(compared))


def _looked_into(syntax: ast.expr, body: Body) -> Expression:
    """Return the container of the last `in`: Python makes a constant of a list or a set of constants there."""
    if isinstance(syntax, ast.List | ast.Set):
        members = _all(syntax.elts, body) if not any(isinstance(each, ast.Starred) for each in syntax.elts) else ()
        are_literals = all(map(_is_literal, syntax.elts))
        if members and are_literals and all(isinstance(each, Constant) for each in members):
            values = tuple(each.value for each in members if isinstance(each, Constant))
            return Constant(values if isinstance(syntax, ast.List) else frozenset(values))
    return _container(syntax, body) or read_syntax(syntax, body)


def _is_literal(syntax: ast.expr) -> bool:
    """Say whether the compiler sees a constant, so that making the list or the set cannot fail."""
    match syntax:
        case ast.Constant() | ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return True
        case ast.Tuple(elts=members):
            return all(map(_is_literal, members))
    return False


@read_syntax.register
def _(syntax: ast.IfExp, body: Body) -> Expression:
    return Choice(*_all((syntax.test, syntax.body, syntax.orelse), body))


@read_syntax.register
def _(syntax: ast.Subscript, body: Body) -> Expression:
    of = _container(syntax.value, body) or read_syntax(syntax.value, body)
    if isinstance(syntax.slice, ast.Slice):
        bounds = (syntax.slice.lower, syntax.slice.upper, syntax.slice.step)
        return Indexed(of, Called("slice", tuple(read_syntax(each or ast.Constant(None), body) for each in bounds)))
    return Indexed(of, read_syntax(syntax.slice, body))


@read_syntax.register
def _(syntax: ast.Tuple, body: Body) -> Expression:
    members = _all(syntax.elts, body)
    if all(isinstance(each, Constant) for each in members):
        return Constant(tuple(each.value for each in members if isinstance(each, Constant)))
    return Together(members)


@read_syntax.register
def _(syntax: ast.List, body: Body) -> Expression:
    return Built(list, (), _all(syntax.elts, body))


@read_syntax.register
def _(syntax: ast.Dict, body: Body) -> Expression:
    keys, values = syntax.keys, syntax.values
    copied = bool(keys) and keys[0] is None
    names = [each.value for each in keys[copied:] if isinstance(each, ast.Constant) and type(each.value) is str]
    if len(names) < len(keys) - copied:
        raise UnreadableName("makes a dict with keys that are no constant strings", line=syntax.lineno)
    if len(set(names)) < len(names):
        raise UnreadableName("makes a dict that has a key twice", line=syntax.lineno)
    given = _all(values, body)
    return Changed(given[0], "dict", tuple(names), given[1:]) if copied else Built(dict, tuple(names), given)


@read_syntax.register
def _(syntax: ast.JoinedStr, body: Body) -> Expression:
    members = tuple(read_syntax(each, body) for each in syntax.values)
    if all(isinstance(each, Constant) for each in members):
        return Constant("".join(each.value for each in members if isinstance(each, Constant)))
    return Text(members)


@read_syntax.register
def _(syntax: ast.FormattedValue, body: Body) -> Expression:
    spec = Constant("") if syntax.format_spec is None else read_syntax(syntax.format_spec, body)
    if not isinstance(spec, Constant):
        # Its text is a part of the expression, and so the same for all items.
        raise UnreadableName("formats in a way that is not the same for all items", line=syntax.lineno)
    conversion = "" if syntax.conversion < 0 else chr(syntax.conversion)
    return Formatted(read_syntax(syntax.value, body), conversion, spec.value)
