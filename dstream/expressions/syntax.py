"""Translation of a function body from syntax to an expression."""

from __future__ import annotations

import ast
import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import json
import math
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from types import BuiltinFunctionType, ModuleType
from typing import Any, Protocol

from dstream.base.by_value import is_importable
from dstream.expressions.effects import KNOWN, name_of
from dstream.expressions.resolution import (
    Names,
    UnreadableName,
    constant_of,
    container_of,
    is_plain_enumeration,
    member_of_module,
    part_of_member,
)
from dstream.expressions.resolution import is_same_constant_everywhere as is_constant
from dstream.expressions.source import LocalFunction
from dstream.expressions.tree import (
    Applied,
    Attribute,
    Built,
    Called,
    Changed,
    Choice,
    Constant,
    Display,
    Expression,
    Formatted,
    Indexed,
    Operator,
    Spread,
    Text,
    Together,
)
from dstream.values.entries import Entry

__all__ = [
    "BINARY",
    "Body",
    "Callee",
    "all_read",
    "container_named",
    "is_of_the_item",
    "object_named",
    "read_syntax",
]


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
        """Return `result`, in which the variable of that number replaces `value`."""
        ...

    def variable(self) -> int:
        """Return the number of a further variable."""
        ...

    def attribute(self, of: Expression, name: str) -> Expression:
        """Return an attribute of an object."""
        ...

    def member(
        self,
        of: Expression,
        name: str,
        arguments: Sequence[Expression] | None,
        keywords: Sequence[str],
        otherwise: Callable[[Expression], Expression],
    ) -> Expression | None:
        """Return the result of a method of one of the plan's classes; None if none of them has it."""
        ...

    def defined(self, function: LocalFunction, arguments: Sequence[Expression], body: Body) -> Expression:
        """Return the result of a function that is defined inside of another one, for arguments by place."""
        ...

    def count(self, ways: int = 1) -> None:
        """Count a statement that is read, of some ways to read it.

        Raises:
            UnreadableName: they are too many, with each way through branches and loops written out.
        """
        ...


@dataclasses.dataclass(frozen=True)
class Body:
    """The meanings of names in a function's body.

    Attributes:
        variables: the values of the variables that have one.
        own: the names of all variables.
        fresh: those of variables with a number, a string or the like, which `+=` does not change for others.
        functions: those that the function has defined inside of itself.
        shadowed: names of variables of comprehensions and functions around, which such a function does not capture.
    """

    names: Names
    variables: dict[str, Expression]
    own: frozenset[str]
    callee: Callee
    fresh: frozenset[str] = frozenset()
    functions: Mapping[str, LocalFunction] = dataclasses.field(default_factory=dict)
    shadowed: frozenset[str] = frozenset()

    def with_function(self, function: LocalFunction) -> Body:
        """Return the body's names after the definition of a function."""
        inner = self.without([function.name])
        return dataclasses.replace(inner, functions={**self.functions, function.name: function})

    def with_variable(self, name: str, value: Expression, *, is_fresh: bool = False) -> Body:
        """Return the body's names after an assignment."""
        fresh = self.fresh | {name} if is_fresh else self.fresh - {name}
        functions = {each: function for each, function in self.functions.items() if each != name}
        variables = {**self.variables, name: value}
        return dataclasses.replace(self, variables=variables, fresh=fresh, functions=functions)

    def without(self, names: Collection[str]) -> Body:
        """Return the names of a body where some of its variables have no value yet."""
        variables = {name: value for name, value in self.variables.items() if name not in names}
        functions = {name: function for name, function in self.functions.items() if name not in names}
        own, fresh = self.own | frozenset(names), self.fresh - frozenset(names)
        return dataclasses.replace(self, variables=variables, own=own, fresh=fresh, functions=functions)

    def inside(self, names: Collection[str]) -> Body:
        """Return the names inside of a comprehension or function that has variables of its own."""
        return dataclasses.replace(self.without(names), shadowed=self.shadowed | frozenset(names))


@functools.singledispatch
def read_syntax(syntax: ast.AST, body: Body) -> Expression:
    """Return an expression of Python's as one of ours.

    Raises:
        UnreadableName: there is none.
    """
    line = getattr(syntax, "lineno", None)
    raise UnreadableName(*_OTHERS.get(type(syntax), (f"has a {type(syntax).__name__} expression", "")), line=line)


_OTHERS: dict[type[ast.AST], tuple[str, str]] = {
    ast.GeneratorExp: ("has a generator expression that no call uses up", "a list comprehension can be read"),
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
    return _captured(object_named(syntax, body), syntax.id, syntax.lineno)


def _captured(value: object, name: str, line: int) -> Expression:
    constant = constant_of(value)
    if constant is None:
        raise UnreadableName(f"captures {name}, a {type(value).__name__}", _ADVICE.get(type(value), ""), line)
    return constant


_ADVICE: dict[type, str] = {set: "a frozenset can be read", list: "a tuple can be read"}


def object_named(syntax: ast.expr, body: Body) -> Any:
    """Return the object of a name, or of an attribute of a module or of `str`."""
    match syntax:
        case ast.Name(id=name) if name in body.own:
            raise UnreadableName(f"uses {name} before it has a value", line=syntax.lineno)
        case ast.Name(id=name):
            return body.names.found(name)
        case ast.Attribute(value=of, attr=name):
            owner = object_named(of, body)
            if isinstance(owner, ModuleType) and owner.__name__ in _MODULES and name in vars(owner):
                return _of_module(owner, name, syntax, body.names)
            if isinstance(owner, ModuleType) and owner.__name__ == "dstream" and getattr(owner, name, None) is Entry:
                return Entry
            if owner is str and name in vars(str):
                return getattr(str, name)
            if isinstance(owner, ModuleType):
                return member_of_module(owner, name, body.names)
            if is_plain_enumeration(owner) and name in owner.__members__:  # pyright: ignore[reportAttributeAccessIssue]
                return owner[name]  # pyright: ignore[reportInvalidTypeArguments]
            if any(owner is each for each in _OF_TIMES) and is_constant(getattr(owner, name, owner)):
                return getattr(owner, name)  # timezone.utc, date.max
            if isinstance(owner, type) and name_of(owner) is not None:
                known = KNOWN.get(f"{name_of(owner)}.{name}")
                if known is not None:
                    return known
            raise UnreadableName(f"looks at {ast.unparse(syntax)}", line=syntax.lineno)
    raise UnreadableName("calls what an expression gives", line=syntax.lineno)


def _of_module(module: ModuleType, name: str, syntax: ast.expr, names: Names) -> Any:
    """Return the member of a module of the standard library, unless it has been replaced."""
    value = names.recorded(module, name, vars(module)[name])
    is_known = (
        name_of(value) is not None
        or value in (collections.defaultdict, datetime.timezone, operator.attrgetter, operator.itemgetter)
        or isinstance(value, BuiltinFunctionType)
        or constant_of(value) is not None
        or (isinstance(value, type) and issubclass(value, Exception))
    )
    # A test may have replaced a function of `math` or `re` in this process, which no worker would see.
    if not is_known or value is not _FIRST[module.__name__].get(name):
        raise UnreadableName(f"looks at {ast.unparse(syntax)}", line=syntax.lineno)
    return value


_FIRST = {
    module.__name__: dict(vars(module))
    for module in (collections, dataclasses, datetime, decimal, json, math, operator, re)
}
"""The contents of modules when this one was loaded; on a worker they have these when functions arrive."""
_MODULES = frozenset(_FIRST)
_OF_TIMES = (datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone)


def is_of_the_item(syntax: ast.expr, body: Body) -> bool:
    """Return whether the operand of a dot is a value, and no module or class."""
    if isinstance(syntax, ast.Attribute):
        return is_of_the_item(syntax.value, body)
    if not isinstance(syntax, ast.Name) or syntax.id in body.own:
        return True
    return constant_of(body.names.found(syntax.id)) is not None


@read_syntax.register
def _(syntax: ast.Attribute, body: Body) -> Expression:
    member = _of_enum(syntax, body)
    if member is not None:
        return member
    if syntax.attr == "__name__" and (of_type := _type_of(syntax.value, body)) is not None:
        return Attribute(of_type, syntax.attr)
    if is_of_the_item(syntax.value, body):
        return body.callee.attribute(read_syntax(syntax.value, body), syntax.attr)
    return _captured(object_named(syntax, body), ast.unparse(syntax), syntax.lineno)


def _of_enum(syntax: ast.Attribute, body: Body) -> Expression | None:
    """Return the name or the value of a member of an enumeration; None of other objects."""
    match syntax:
        case ast.Attribute(ast.Attribute(ast.Name(of), name), ("name" | "value") as part) if of not in body.own:
            kind: Any = body.names.found(of)
            if type(kind) is enum.EnumMeta and name in kind.__members__:
                member: Any = kind[name]
                value = body.names.recorded(member, part, part_of_member(member, part))
                if not is_importable(kind):
                    return constant_of(value)
                # Its value is that of the class which a worker imports.
                return Attribute(Constant(kind[name]), part) if is_plain_enumeration(kind) else None
    return None


def container_named(syntax: ast.expr, body: Body) -> Constant | None:
    """Return the list, dict or set of constants that a name has; None if it has another value."""
    if not isinstance(syntax, ast.Name) or syntax.id in body.own:
        return None
    return container_of(body.names.found(syntax.id), body.names.namespaces)


def all_read(syntaxes: Sequence[ast.expr], body: Body) -> tuple[Expression, ...]:
    """Return expressions of Python's as ours, in order."""
    return tuple(read_syntax(each, body) for each in syntaxes)


BINARY: dict[type[ast.operator], Operator] = {
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
    if type(syntax.op) not in BINARY:
        raise UnreadableName("multiplies with @", line=syntax.lineno)
    return Applied(BINARY[type(syntax.op)], all_read((syntax.left, syntax.right), body))


@read_syntax.register
def _(syntax: ast.UnaryOp, body: Body) -> Expression:
    operand = read_syntax(syntax.operand, body)
    if isinstance(syntax.op, ast.USub) and isinstance(operand, Constant) and type(operand.value) in (int, float):
        # As Python's compiler does: `-1` is a constant, of which columns need no evaluation.
        return Constant(-operand.value)
    return Applied(_UNARY[type(syntax.op)], (operand,))


@read_syntax.register
def _(syntax: ast.BoolOp, body: Body) -> Expression:
    return Applied("and" if isinstance(syntax.op, ast.And) else "or", all_read(syntax.values, body))


@read_syntax.register
def _(syntax: ast.Compare, body: Body) -> Expression:
    of_type = _type_of(syntax.left, body)
    if of_type is not None:
        return _type_compared(of_type, syntax, body)
    left = read_syntax(syntax.left, body)
    compared: list[Expression] = []
    for kind, right in zip(syntax.ops, syntax.comparators, strict=True):
        operator = _COMPARISONS[type(kind)]
        is_looked_into = operator in ("in", "not in") and right is syntax.comparators[-1]
        read = _looked_into(right, body) if is_looked_into else read_syntax(right, body)
        # Of other values a worker has copies, whose identity differs.
        is_same_everywhere = isinstance(read, Constant) and (read.value is None or isinstance(read.value, enum.Enum))
        if operator in ("is", "is not") and not is_same_everywhere:
            raise UnreadableName("compares with is", "== can be read", syntax.lineno)
        compared.append(Applied(operator, (left, read)))
        # This very object is the left operand of the next comparison: by its identity it is evaluated once.
        left = read
    return compared[0] if len(compared) == 1 else Applied("and", tuple(compared))


def _type_of(syntax: ast.expr, body: Body) -> Expression | None:
    """Return `type(value)`; None of other expressions."""
    match syntax:
        case ast.Call(ast.Name("type") as name, [value], []) if "type" not in body.own:
            return Called("type", (read_syntax(value, body),)) if object_named(name, body) is type else None
    return None


def _type_compared(of_type: Expression, syntax: ast.Compare, body: Body) -> Expression:
    """Return the comparison of a type with builtin ones."""
    sign, other = _COMPARISONS[type(syntax.ops[0])], syntax.comparators[0]
    if len(syntax.ops) > 1 or sign not in ("is", "is not", "==", "!=", "in", "not in"):
        raise UnreadableName("compares a type with more than another one", line=syntax.lineno)
    has_several = sign in ("in", "not in") and isinstance(other, ast.Tuple)
    members = other.elts if isinstance(other, ast.Tuple) and has_several else [other]
    kinds = tuple(object_named(each, body) for each in members)
    if has_several != (sign in ("in", "not in")) or not all(kind in PLAIN_TYPES for kind in kinds):
        raise UnreadableName("compares a type", "the builtin types can be read", syntax.lineno)
    return Applied(sign, (of_type, Constant(kinds if has_several else kinds[0])))


PLAIN_TYPES = (
    *(bool, bytes, dict, float, frozenset, int, list, set, str, tuple),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, decimal.Decimal),
)


def _looked_into(syntax: ast.expr, body: Body) -> Expression:
    """Return the container of the last `in`: Python makes a constant of a list or a set of constants there."""
    if isinstance(syntax, ast.List | ast.Set) and syntax.elts and all(map(_is_literal, syntax.elts)):
        members = all_read(syntax.elts, body)
        if all(isinstance(each, Constant) for each in members):
            values = tuple(each.value for each in members if isinstance(each, Constant))
            return Constant(values if isinstance(syntax, ast.List) else frozenset(values))
    return container_named(syntax, body) or read_syntax(syntax, body)


def _is_literal(syntax: ast.expr) -> bool:
    """Return whether the compiler sees a constant, so that making the list or the set cannot fail."""
    match syntax:
        case ast.Constant() | ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return True
        case ast.Tuple(elts=members):
            return all(map(_is_literal, members))
    return False


@read_syntax.register
def _(syntax: ast.IfExp, body: Body) -> Expression:
    return Choice(*all_read((syntax.test, syntax.body, syntax.orelse), body))


@read_syntax.register
def _(syntax: ast.Subscript, body: Body) -> Expression:
    of = container_named(syntax.value, body) or read_syntax(syntax.value, body)
    if isinstance(syntax.slice, ast.Slice):
        bounds = (syntax.slice.lower, syntax.slice.upper, syntax.slice.step)
        return Indexed(of, Called("slice", tuple(read_syntax(each or ast.Constant(None), body) for each in bounds)))
    return Indexed(of, read_syntax(syntax.slice, body))


@read_syntax.register
def _(syntax: ast.Tuple, body: Body) -> Expression:
    members = _members(syntax.elts, body)
    if any(isinstance(each, Spread) for each in members):
        return Display("tuple", members)
    if all(isinstance(each, Constant) for each in members):
        return Constant(tuple(each.value for each in members if isinstance(each, Constant)))
    return Together(members)


@read_syntax.register
def _(syntax: ast.List, body: Body) -> Expression:
    members = _members(syntax.elts, body)
    return Display("list", members) if any(isinstance(each, Spread) for each in members) else Built(list, (), members)


@read_syntax.register
def _(syntax: ast.Set, body: Body) -> Expression:
    return Display("set", _members(syntax.elts, body))


def _members(syntaxes: Sequence[ast.expr], body: Body) -> tuple[Expression, ...]:
    return tuple(
        Spread(read_syntax(each.value, body)) if isinstance(each, ast.Starred) else read_syntax(each, body)
        for each in syntaxes
    )


@read_syntax.register
def _(syntax: ast.Dict, body: Body) -> Expression:
    keys, values = syntax.keys, syntax.values
    copied = bool(keys) and keys[0] is None
    names = [each.value for each in keys[copied:] if isinstance(each, ast.Constant) and type(each.value) is str]
    if len(names) < len(keys) - copied or len(set(names)) < len(names):
        return _dict_of_pairs(syntax, body)
    given = all_read(values, body)
    return Changed(given[0], "dict", tuple(names), given[1:]) if copied else Built(dict, tuple(names), given)


def _dict_of_pairs(syntax: ast.Dict, body: Body) -> Expression:
    members: list[Expression] = []
    for key, value in zip(syntax.keys, syntax.values, strict=True):
        read = read_syntax(value, body)
        members += [Spread(read)] if key is None else [read_syntax(key, body), read]
    return Display("dict", tuple(members))


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
        # The string is a part of the expression, and so the same for all items.
        raise UnreadableName("formats in a way that is not the same for all items", line=syntax.lineno)
    conversion = "" if syntax.conversion < 0 else chr(syntax.conversion)
    return Formatted(read_syntax(syntax.value, body), conversion, spec.value)
