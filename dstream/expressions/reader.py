"""`read`: from a user function to its expression, or to the reason against one.

What is read is what the function's syntax says, with what its names stand for now. So it has to be asked when a plan is
compiled, close before its functions are pickled (decision 60).
"""

from __future__ import annotations

import ast
import enum
import functools
import operator
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, starmap, zip_longest
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

from dstream.base.functions import is_watched
from dstream.base.records import record
from dstream.base.showing import near
from dstream.expressions.callables import known_call, member_function, object_read
from dstream.expressions.effects import asks_for_truth, is_evaluated_first, name_of
from dstream.expressions.resolution import (
    NameLookup,
    Names,
    Namespaces,
    UnreadableName,
    constant_of,
    is_as_imported,
    is_by_reference,
    is_same_constant_everywhere,
    value_of_name,
)
from dstream.expressions.routines import read_routine
from dstream.expressions.source import LocalFunction, MissingSource, found_source, stamp_of_source, typed
from dstream.expressions.statements import read_block
from dstream.expressions.syntax import Body
from dstream.expressions.tree import (
    Argument,
    Attribute,
    Called,
    Choice,
    Constant,
    Expression,
    Let,
    Local,
    is_leaf,
    replaced,
)
from dstream.failures.attribution import is_installed
from dstream.values.fields import field_names

__all__ = ["Unreadable", "may_travel", "name_of_callable", "read"]


@record
class Unreadable:
    """Why a function is not known as an expression.

    Attributes:
        reason: the unsupported action, such as `"calls json.loads"`.
        where: the source location, such as `orders.py:12`; empty if there is none.
        advice: the code to write instead, where that is easy.
    """

    reason: str
    where: str = ""
    advice: str = ""


def read(fn: Callable[..., Any], arguments: int = 1, namespaces: Namespaces | None = None) -> Expression | Unreadable:
    """Return the result of `fn` for some arguments, as an expression, or the reason why it cannot be known.

    Where a debugger, a profiler or a measurement of coverage wants to see calls, nothing is read.

    Args:
        fn: any callable.
        arguments: the number of its arguments, all by position.
        namespaces: the known globals, for functions that are read one after another.

    Example:
        >>> from operator import itemgetter
        >>> read(itemgetter(1))
        Indexed(of=Argument(place=0), index=Constant(value=1))
        >>> read(print).reason
        'calls print'
    """
    # Code that is evaluated in columns or inside of a loop would not be seen by the tool.
    if is_watched():
        return Unreadable("is watched by a debugger, a profiler or a measurement of coverage")
    namespaces = Namespaces() if namespaces is None else namespaces
    if type(fn) is FunctionType and name_of(fn) is None:
        return _remembered(fn, arguments, namespaces)
    if type(fn) is functools.partial:
        return _read(fn, arguments, namespaces)
    found = object_read(fn, arguments)
    return Unreadable(f"calls {name_of_callable(fn)}") if found is None else found


def may_travel(expression: Expression) -> bool:
    """Return whether an expression is not too large, nor has too many levels to be pickled."""
    size, depth = expression.extent()
    return size <= _MOST_VALUES and depth <= _DEEPEST_VALUE


def name_of_callable(fn: Any) -> str:
    """Return how a callable is written that is no Python function."""
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    module = getattr(fn, "__module__", None)
    return f"{module}.{name}" if module not in (None, "builtins", "__main__") else str(name)


@record(slots=False)
class _Known:
    """The syntax of a function's code, and the values of its names then.

    Attributes:
        called: the functions among these, with their code and defaults then: reloading a module changes them.
    """

    looked_up: tuple[NameLookup, ...]
    called: tuple[tuple[FunctionType, tuple[object, ...]], ...]
    result: Expression | Unreadable


_Key: TypeAlias = tuple[CodeType, str, tuple[object, ...], int, bool, tuple[type, ...]]
_MOST = 1024
_known: OrderedDict[_Key, _Known] = OrderedDict()


def _remembered(fn: FunctionType, arguments: int, namespaces: Namespaces) -> Expression | Unreadable:
    """Read a function, unless one of the same code was read whose names had the same objects."""
    # Functions of one code, such as lambdas that a loop makes, may differ in their defaults.
    if fn.__defaults__ or fn.__kwdefaults__:
        return _read(fn, arguments, namespaces)
    code = fn.__code__
    classes = tuple(namespaces.classes)
    key = code, code.co_filename, stamp_of_source(code), arguments, is_by_reference(fn), classes
    known = _known.pop(key, None)
    if known is not None and _stand_for_the_same(fn, known, namespaces):
        _known[key] = known  # At the end: the entry that was used longest ago is dropped first.
        return known.result
    looked_up: list[NameLookup] = []
    result = _read(fn, arguments, namespaces, looked_up)
    if all(_may_be_held(each.value) for each in looked_up):
        called = tuple((each, _code_and_defaults(each)) for _, _, each, _ in looked_up if type(each) is FunctionType)
        _known[key] = _Known(tuple(looked_up), called, result)
        if len(_known) > _MOST:
            _known.popitem(last=False)
    return result


def _code_and_defaults(fn: FunctionType) -> tuple[object, ...]:
    return fn.__code__, fn.__defaults__, *chain.from_iterable((fn.__kwdefaults__ or {}).items())


def _may_be_held(value: object) -> bool:
    """Return whether a reference to a value retains no memory that would be released otherwise."""
    if type(value) is FunctionType:
        return value.__closure__ is None
    return isinstance(value, type | ModuleType | BuiltinFunctionType) or (
        is_same_constant_everywhere(value) and sys.getsizeof(value) < _FEW_BYTES and type(value) is not tuple
    )


_FEW_BYTES = 1024


def _stand_for_the_same(fn: FunctionType, known: _Known, namespaces: Namespaces) -> bool:
    pairs = (pair for each, before in known.called for pair in zip_longest(_code_and_defaults(each), before))
    try:
        return all(starmap(operator.is_, pairs)) and all(
            _value_now(fn, each, namespaces) is each.value for each in known.looked_up
        )
    except UnreadableName:
        return False


def _value_now(fn: FunctionType, lookup: NameLookup, namespaces: Namespaces) -> object:
    """Return the value of a name that was looked up for an earlier reading.

    Raises:
        UnreadableName: it may have another value when the function runs.
    """
    if isinstance(lookup.of, type):
        return member_function(lookup.of, lookup.name, is_property=lookup.is_property)
    return value_of_name(fn if lookup.of is None else lookup.of, lookup.name, namespaces)


def _read(
    fn: Callable[..., Any], arguments: int, namespaces: Namespaces, looked_up: list[NameLookup] | None = None
) -> Expression | Unreadable:
    reading = _Reading(namespaces, [] if looked_up is None else looked_up)
    try:
        return reading.of(fn, tuple(map(Argument, range(arguments))))
    except UnreadableName as problem:
        # The name of a function of an installed library is a better message than the reason why its body is not read.
        if isinstance(fn, FunctionType) and is_by_reference(fn) and is_installed(fn.__code__.co_filename):
            return Unreadable(f"calls {name_of_callable(fn)}")
        return Unreadable(problem.reason, _place(fn, problem.line), problem.advice)
    except Exception as error:  # A method of the user's class may raise anything.
        return Unreadable(f"cannot be read: {type(error).__name__}", _place(fn, None))


def _place(fn: Any, line: int | None) -> str:
    code = getattr(fn, "__code__", None)
    return "" if code is None else near(code.co_filename, line or code.co_firstlineno)


# Flags of code: generator, coroutine, iterable coroutine, asynchronous generator.
_GENERATOR = 0x20 | 0x80 | 0x100 | 0x200
_DEEPEST = 4
"""The most functions that may be inside of each other: one that calls itself is read as often, and is called then."""


@dataclass
class _Reading:
    """One reading of a function and of those that it calls."""

    namespaces: Namespaces
    looked_up: list[NameLookup]
    variables: int = 0
    size: int = 0
    statements: int = 0
    inside: list[FunctionType] = field(default_factory=list)

    def of(self, fn: Any, arguments: Sequence[Expression], keywords: Sequence[str] = ()) -> Expression:
        """Return the result of a Python function, or a partial of one, for arguments."""
        if type(fn) is functools.partial:
            given = [constant_of(value) for value in (*fn.args, *fn.keywords.values())]
            constants = [each for each in given if each is not None]
            if len(constants) < len(given) or set(fn.keywords) & set(keywords):
                raise UnreadableName("is a partial with an argument that is no constant")
            count = len(fn.args)
            return self.called(
                fn.func,
                getattr(fn.func, "__qualname__", "a function"),
                (*constants[:count], *arguments, *constants[count:]),
                (*keywords, *fn.keywords),
            )
        return self._of_function(fn, arguments, keywords)

    def _of_function(self, fn: FunctionType, arguments: Sequence[Expression], keywords: Sequence[str]) -> Expression:
        found = found_source(fn.__code__)
        if isinstance(found, MissingSource):
            raise UnreadableName(found.reason, found.advice)
        if isinstance(found.syntax, ast.AsyncFunctionDef) or fn.__code__.co_flags & _GENERATOR:
            raise UnreadableName("is no plain function: it yields or awaits")
        has_few_ways = _has_few_ways(found.syntax)
        code = fn.__code__
        given = _bound(fn, arguments, keywords, _literal_defaults(found.syntax))
        if is_by_reference(fn) and not is_as_imported(fn):
            raise UnreadableName("has the name of another function, which every worker imports anew")
        names = Names(fn, found.rebound, fn if self.inside else None, self.namespaces, self.looked_up)
        syntax = found.syntax
        statements = [ast.Return(syntax.body)] if isinstance(syntax, ast.Lambda) else syntax.body

        def result_of(variables: Sequence[Expression]) -> Expression:
            own = frozenset((*code.co_varnames, *code.co_cellvars))
            body = Body(names, dict(zip(given, variables, strict=True)), own, self)
            return self._read(statements, body, has_few_ways=has_few_ways)

        self.inside.append(fn)
        result = self._with_variables(tuple(given.values()), result_of)
        # Without `finally`, since an exception ends the whole reading.
        self.inside.pop()
        size, depth = result.extent()
        self.size += size
        if self.size > _MOST_VALUES or depth > _DEEPEST_VALUE:
            raise UnreadableName("is long")
        return self._returned(result)

    def _read(self, statements: Sequence[ast.stmt], body: Body, *, has_few_ways: bool) -> Expression:
        """Return the result of statements: as an expression, or as a routine that Python runs if they are none."""
        inside = len(self.inside)
        is_expression = isinstance(statements[0], ast.Return)
        if is_expression and not has_few_ways:
            raise UnreadableName("is long")
        try:
            if has_few_ways:
                return read_block(statements, body)
        except UnreadableName:
            if is_expression:
                raise
            del self.inside[inside:]
        return read_routine(statements, body)

    def called(
        self, fn: Any, written: str, arguments: Sequence[Expression], keywords: Sequence[str] = ()
    ) -> Expression:
        known = known_call(fn, written, arguments, keywords)
        if known is not None:
            return known
        if type(fn) is FunctionType and len(self.inside) < _DEEPEST:
            return self.of(fn, arguments, keywords)
        if type(fn) is functools.partial:
            return self.of(fn, arguments, keywords)
        raise UnreadableName(f"calls {written}")

    def attribute(self, of: Expression, name: str) -> Expression:
        """Return an attribute of an object, which may be a property of one of the plan's classes."""
        return self.member(of, name, None, (), lambda local: Attribute(local, name)) or Attribute(of, name)

    def member(
        self,
        of: Expression,
        name: str,
        arguments: Sequence[Expression] | None,
        keywords: Sequence[str],
        otherwise: Callable[[Expression], Expression],
    ) -> Expression | None:
        """Return the result of a method or a property of the plan's classes; None if none of them has one to be read.

        Args:
            of: the object.
            name: that of the method or property.
            arguments: of a method, of which the last ones are keywords; None: it is a property.
            keywords: the names of these.
            otherwise: returns the result for an object of another class.
        """
        only, is_property = _enumeration_of(of), arguments is None
        kinds = self.namespaces.classes if only is None else (only,)
        known = {kind: member_function(kind, name, is_property=is_property) for kind in kinds}
        # A class may get another method, with which the function is read anew; a field of it stays one.
        self.looked_up += [
            NameLookup(kind, name, fn, is_property)
            for kind, fn in known.items()
            if fn is not None or name not in field_names(kind)
        ]
        functions = {kind: fn for kind, fn in known.items() if fn is not None}
        if not functions:
            return None
        local, number = self.named(of)
        results = {kind: self._result(fn, (local, *(arguments or ())), keywords) for kind, fn in functions.items()}
        if not any(results.values()):
            return None
        result = otherwise(local)
        for kind, given in results.items():
            is_of = Called("dstream.is_of", (local, Constant(kind)))
            here = given or (Attribute(local, name) if is_property else Called("dstream.failed", ()))
            result = here if only is not None else Choice(is_of, here, result)
        return result if number is None else Let(of, number, result)

    def _result(self, fn: Any, arguments: Sequence[Expression], keywords: Sequence[str]) -> Expression | None:
        """Return the result of a method; None if it cannot be read."""
        # Another class may have a method of the same name: the ways through all of them may be very many.
        if any(each.__name__ == fn.__name__ for each in self.inside):
            return None
        inside, size, statements = len(self.inside), self.size, self.statements
        try:
            return self.called(fn, fn.__name__, arguments, keywords)
        except UnreadableName:
            del self.inside[inside:]
            self.size, self.statements = size, statements
            return None

    def defined(self, function: LocalFunction, arguments: Sequence[Expression], body: Body) -> Expression:
        """Return the result of a function that is defined inside of the one that is read."""
        if len(arguments) != len(function.parameters):
            raise UnreadableName(f"calls {function.name} with another number of arguments than it takes")
        if function.captured & body.shadowed:
            raise UnreadableName(f"calls {function.name} where a variable has a name that it captures")
        # A captured variable has its value at the call. The function changes no container of these: its additions would
        # not be known outside.
        inner = replace(body.inside({*function.own, function.name}), fresh=frozenset())

        def result_of(variables: Sequence[Expression]) -> Expression:
            inside = inner
            for name, value in zip(function.parameters, variables, strict=True):
                inside = inside.with_variable(name, value)
            self.count()
            return self._returned(self._read(function.statements, inside, has_few_ways=True))

        return self._with_variables(arguments, result_of)

    def _with_variables(
        self, values: Sequence[Expression], read: Callable[[Sequence[Expression]], Expression]
    ) -> Expression:
        """Return the result of a read where variables replace values, which are evaluated before, in order."""
        named = [self.named(value) for value in values]
        result = read([variable for variable, _ in named])
        for value, (_, number) in reversed(list(zip(values, named, strict=True))):
            result = self.within(value, number, result)
        return result

    def named(self, value: Expression) -> tuple[Expression, int | None]:
        if is_leaf(value):
            return value, None
        number = self.variable()
        return Local(number), number

    def variable(self) -> int:
        self.variables += 1
        return self.variables

    def count(self, ways: int = 1) -> None:
        self.statements += 1
        if self.statements > _MOST_STATEMENTS * ways:
            raise UnreadableName("is long")

    def within(self, value: Expression, number: int | None, result: Expression) -> Expression:
        if number is None:
            return result
        local = Local(number)
        is_used_once = sum(each == local for each in result.walk()) == 1
        # Otherwise a value in the place of its variable would be evaluated more often, later, or not at all.
        if is_used_once and is_evaluated_first(local, result) and not asks_for_truth(value):
            return replaced(local, value, result)
        return Let(value, number, result)

    def _returned(self, result: Expression) -> Expression:
        """Return the result of a call whose function returns `result`."""
        if not self.inside or not asks_for_truth(result):
            return result
        local, number = self.named(result)
        return result if number is None else Let(result, number, local)


def _enumeration_of(value: Expression) -> type | None:
    """Return the enumeration of which a value is a member; None if it may be something else."""
    match value:
        case Called("dstream.member" | "dstream.member_named", (Constant(type() as kind), _)):
            # A flag may be a number that is no member.
            return None if issubclass(kind, enum.Flag) else kind
    return None


def _has_few_ways(syntax: ast.AST) -> bool:
    """Return whether code is short, so that each path through its branches may be written down.

    Raises:
        UnreadableName: it is long.
    """
    parts = list(ast.walk(syntax))
    if len(parts) > _LONGEST:
        raise UnreadableName("is long")
    return len(parts) <= _MOST_PARTS and sum(isinstance(each, ast.If) for each in parts) <= _MOST_CHOICES


_LONGEST = 2_000
_MOST_PARTS = 400
_MOST_STATEMENTS = 2_000
"""With each way through branches, and each round of loops over constants, written out."""
_MOST_VALUES = 10_000
"""The size of several functions that call each other, with each way through them written out."""
_DEEPEST_VALUE = 64
"""Pickle fails on one of 370 levels, also at the top of the call stack (CPython 3.11)."""
_MOST_CHOICES = 8


def _literal_defaults(syntax: ast.Lambda | ast.FunctionDef) -> dict[str, object]:
    """Return the defaults that are literals, by parameter: they are the same wherever the function is defined."""
    given = syntax.args
    by_place = zip(reversed([*given.posonlyargs, *given.args]), reversed(given.defaults), strict=False)
    by_name = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return {each.arg: default.value for each, default in (*by_place, *by_name) if isinstance(default, ast.Constant)}


def _bound(
    fn: FunctionType, arguments: Sequence[Expression], keywords: Sequence[str], literals: dict[str, object]
) -> dict[str, Expression]:
    """Return the arguments by the names of the parameters, in the order in which they are evaluated."""
    code = fn.__code__
    # The flags of `*args` and `**kwargs`.
    if code.co_flags & 0x0C:
        raise UnreadableName("takes *args or **kwargs")
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if len(arguments) - len(keywords) > code.co_argcount:
        raise UnreadableName(f"takes {code.co_argcount} arguments by place where more are given")
    by_place = len(arguments) - len(keywords)
    names = (*parameters[:by_place], *keywords)
    if len(names) != len(arguments) or len(set(names)) < len(names) or not set(names) <= set(parameters):
        raise UnreadableName(f"takes {len(parameters)} arguments where {len(arguments)} are given")
    if set(keywords) & set(code.co_varnames[: code.co_posonlyargcount]):
        raise UnreadableName("takes arguments by place only")
    given = dict(zip(names, arguments, strict=True))
    by_place_or_name = reversed(parameters[: code.co_argcount])
    defaults = {
        **dict(zip(by_place_or_name, reversed(fn.__defaults__ or ()), strict=False)),
        **(fn.__kwdefaults__ or {}),
    }
    for name in parameters:
        if name not in given:
            given[name] = _default(fn, name, defaults, literals)
    return given


def _default(fn: FunctionType, name: str, defaults: dict[str, Any], literals: dict[str, object]) -> Expression:
    if name not in defaults:
        raise UnreadableName(f"takes an argument {name} that is not given")
    is_literal = name in literals and typed(literals[name]) == typed(defaults[name])
    if is_by_reference(fn) and not is_literal:
        raise UnreadableName(f"has a default for {name}, which every worker computes anew")
    constant = constant_of(defaults[name])
    if constant is None:
        raise UnreadableName(f"captures {name}, a {type(defaults[name]).__name__}")
    return constant
