"""Translation of statements that are no expression to a `Routine`, which Python runs for each row."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence

from dstream.expressions.calls import function_read, used_up
from dstream.expressions.effects import IN_PLACE, KNOWN
from dstream.expressions.resolution import UnreadableName
from dstream.expressions.source import names_bound
from dstream.expressions.statements import (
    STATEMENTS,
    asserted,
    changed,
    check_known,
    check_names,
    default_dict,
    defined,
    kinds_of_exceptions,
    names_behind,
    names_of_target,
    raised,
    taken_apart,
    without_leading_walrus,
)
from dstream.expressions.syntax import BINARY, Body, all_read, object_named, read_syntax
from dstream.expressions.tree import (
    Applied,
    Built,
    Called,
    Changed,
    Choice,
    Comprehension,
    Constant,
    Display,
    Expression,
    Formatted,
    Let,
    Local,
    Method,
    Routine,
    Statement,
    Text,
    Together,
)

__all__ = ["read_routine"]


def read_routine(statements: Sequence[ast.stmt], body: Body) -> Routine:
    """Return the routine of statements that change variables, and containers which they have made themselves.

    Raises:
        UnreadableName: they may change something else, or a variable may have no value where it is used.
    """
    check_names(statements, body)
    bound = names_bound(statements)
    arguments = sorted(bound.keys() & body.variables.keys())
    # A container that is shared at any place of the function is changed at none: so the statements are read again.
    shared, mixed = frozenset[str](), frozenset[str]()
    while True:
        reading = _Routine(shared, mixed)
        first: list[Statement] = []
        inner = body
        for name in arguments:
            inner = reading.assigned(name, body.variables[name], inner, first)
        block, _ = reading.block(statements, inner)
        if reading.shared == shared and reading.mixed == mixed:
            return Routine(Statement("block", (*first, *block.inner)))
        shared, mixed = frozenset(reading.shared), frozenset(reading.mixed)


class _Routine:
    """One reading of statements.

    Args:
        shared: variables whose container may be that of an item, or a captured one.
        mixed: variables whose container may have such containers as members.
    """

    def __init__(self, shared: Iterable[str], mixed: Iterable[str]) -> None:
        self.shared, self.mixed = set(shared), set(mixed)
        self._numbers: dict[str, int] = {}

    def block(self, statements: Sequence[ast.stmt], body: Body) -> tuple[Statement, Body | None]:
        """Return a block, and the names behind it; None if no statement behind it is reached."""
        made: list[Statement] = []
        behind: Body | None = body
        for each in statements:
            if behind is not None:
                behind = self._read(each, behind, made)
        return Statement("block", tuple(made)), behind

    def assigned(self, name: str, value: Expression, body: Body, made: list[Statement]) -> Body:
        """Add an assignment, and return the names behind it."""
        inner = self._stored(name, value, body)
        made.append(Statement("assign", (value,), (self._number(name, body),)))
        return inner

    def _stored(self, name: str, value: Expression, body: Body) -> Body:
        """Return the names behind an assignment."""
        if not self._is_new(value):
            self.shared.add(name)
        if not self._has_new_members(value):
            self.mixed.add(name)
        if self._hold(value) and isinstance(value, Choice | Let | Local):
            self.mixed.add(name)  # Two names of one container: an addition by one of them is a member of the other's.
        return body.with_variable(name, Local(self._number(name, body)), is_fresh=name not in self.shared)

    def _hold(self, value: Expression) -> set[str]:
        """Record the variables whose containers get a second name or place, by which members may be added."""
        held = self._held(value)
        self.mixed |= held
        return held

    def _held(self, value: Expression) -> set[str]:
        """Return the variables whose containers are a value, or members of it."""
        match value:
            case Local():
                return set(self._named(value))
            case Built(_, _, parts) | Display(_, parts) | Comprehension(_, _, parts):
                pass
            case Choice() | Let():
                parts = value.parts()
            case _:
                return set()
        return {name for each in parts for name in self._held(each)}

    def _number(self, name: str, body: Body) -> int:
        if name not in self._numbers:
            self._numbers[name] = body.callee.variable()
        return self._numbers[name]

    def _named(self, local: Local) -> list[str]:
        return [name for name, number in self._numbers.items() if number == local.number]

    def _taken(self, names: Sequence[str], body: Body) -> tuple[Body, tuple[int, ...]]:
        """Return the names behind an assignment of members to variables."""
        self.shared.update(names)
        self.mixed.update(names)
        numbers = tuple(self._number(name, body) for name in names)
        for name, number in zip(names, numbers, strict=True):
            body = body.with_variable(name, Local(number))
        return body, numbers

    def _read(self, statement: ast.stmt, body: Body, made: list[Statement]) -> Body | None:
        """Add a statement, and return the names behind it."""
        body.callee.count(_WAYS)
        first = without_leading_walrus(statement)
        match first:
            case (ast.Assign() as before, ast.stmt() as then):
                inner = self._read(before, body, made)
                return None if inner is None else self._read(then, inner, made)
            case ast.Return(value=value):
                made.append(Statement("return", (Constant(None) if value is None else read_syntax(value, body),)))
                return None
            case ast.Assign(targets=targets, value=value):
                return self._assign(targets, value, body, made)
            case ast.AnnAssign(target=ast.Name() as target, value=value):
                return body if value is None else self._assign([target], value, body, made)
            case ast.AugAssign():
                return self._change(first, body, made)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return body
            case ast.Expr(value=value):
                made.append(Statement("do", (self._mutation(value, body) or read_syntax(value, body),)))
                return body
            case ast.FunctionDef():
                return defined(first, body)
            case ast.If(test=test, body=then, orelse=otherwise):
                return self._branches(read_syntax(test, body), then, otherwise, body, made)
            case ast.Assert() if __debug__:
                return self._asserted(first, body, made)
            case ast.For():
                return self._loop(first, body, made)
            case ast.Try():
                return self._tried(first, body, made)
            case ast.Raise(exc=None):
                made.append(Statement("raise"))
                return None
            case ast.Raise():
                made.append(Statement("do", (raised(first, body),)))
                return None
            case ast.Break() | ast.Continue():
                made.append(Statement("break" if isinstance(first, ast.Break) else "continue"))
                return None
            case ast.Match():
                return self._matched(first, body, made)
        raise _refused(statement)

    def _assign(self, targets: Sequence[ast.expr], syntax: ast.expr, body: Body, made: list[Statement]) -> Body:
        is_unpacked = isinstance(targets[0], ast.Tuple)
        value = default_dict(syntax, body) or (taken_apart if is_unpacked else read_syntax)(syntax, body)
        for target in targets:
            match target:
                case ast.Name(id=name):
                    body = self.assigned(name, value, body, made)
                    value = Local(self._numbers[name]) if len(targets) > 1 else value
                case ast.Tuple() if len(targets) == 1:
                    body = self._unpacked(names_of_target(target), value, body, made)
                case ast.Subscript(value=ast.Name() as of, slice=key) if len(targets) == 1:
                    container = self._own(of, body)
                    self._keep(of.id, [value])
                    made.append(Statement("store", (container, read_syntax(key, body), value)))
                case _:
                    raise UnreadableName(STATEMENTS[ast.Assign], line=target.lineno)
        return body

    def _unpacked(self, names: Sequence[str], value: Expression, body: Body, made: list[Statement]) -> Body:
        members = _members(value)
        inner = self._taken(names, body)[0] if len(members) != len(names) else body
        for name, member in zip(names, members, strict=False) if inner is body else ():
            inner = self._stored(name, member, inner)
        numbers = tuple(self._number(name, body) for name in names)
        made.append(Statement("unpack", (value,), numbers))
        return inner

    def _own(self, name: ast.Name, body: Body) -> Expression:
        """Return a variable that has a container which these statements have made."""
        if name.id not in body.fresh:
            raise UnreadableName(f"changes {name.id}, which may be a part of an item", line=name.lineno)
        return read_syntax(name, body)

    def _keep(self, name: str, values: Sequence[Expression], *, are_used_up: bool = False) -> None:
        """Take down that a variable's container gets members."""
        if not all(map(self._has_new_members if are_used_up else self._is_new, values)):
            self.mixed.add(name)
        for each in values:
            self._hold(each)

    def _change(self, statement: ast.AugAssign, body: Body, made: list[Statement]) -> Body:
        sign = BINARY.get(type(statement.op))
        match statement.target:
            case ast.Name(id=name) if sign in IN_PLACE:
                value = changed(name, statement.op, statement.value, body)
                if name not in body.fresh:
                    value = Called(f"dstream.value_{IN_PLACE[sign]}", value.parts())
                return self.assigned(name, value, body, made)
            case ast.Subscript(value=ast.Name() as of, slice=key) if sign in IN_PLACE:
                container, index, value = (
                    self._own(of, body),
                    read_syntax(key, body),
                    read_syntax(statement.value, body),
                )
                if of.id in self.mixed and not (sign in ("+", "-") and _is_number(value)):
                    raise UnreadableName(f"changes what {of.id} contains", line=statement.lineno)
                made.append(Statement("change", (container, index, value), (), sign))
                return body
        raise UnreadableName(STATEMENTS[ast.AugAssign], line=statement.lineno)

    def _mutation(self, syntax: ast.expr, body: Body) -> Expression | None:
        """Return a call that changes a container which these statements have made; None if it is another call."""
        match syntax:
            case ast.Call(ast.Attribute(ast.Name() as of, method), arguments, keywords) if (
                method in _MUTATING and of.id in body.own
            ):
                container = self._own(of, body)
                if method == "sort":
                    return Method(container, method, *_sorting(keywords, body))
                if keywords:
                    raise UnreadableName(f"calls .{method}() with a keyword", line=syntax.lineno)
                is_used_up = method in ("extend", "update")
                given = tuple(used_up(each, body) if is_used_up else read_syntax(each, body) for each in arguments)
                self._keep(of.id, given, are_used_up=is_used_up)
                return Method(container, method, given)
            case ast.Call(ast.Attribute(member, method), arguments, []) if method in _ADDING:
                found = self._member_mutated(member, body)
                return None if found is None else Method(found, method, all_read(arguments, body))
        return None

    def _member_mutated(self, syntax: ast.expr, body: Body) -> Expression | None:
        """Return `of[key]` or `of.setdefault(key, new)` if all members are new."""
        match syntax:
            case ast.Subscript(value=ast.Name() as of) if of.id in body.own:
                container, found = self._own(of, body), read_syntax(syntax, body)
            case ast.Call(ast.Attribute(ast.Name() as of, "setdefault"), [key, value], []) if of.id in body.own:
                container, start = self._own(of, body), read_syntax(value, body)
                self._keep(of.id, [start])
                found = Method(container, "setdefault", (read_syntax(key, body), start))
            case _:
                return None
        if of.id in self.mixed:
            raise UnreadableName(f"changes what {of.id} contains", line=syntax.lineno)
        return found

    def _branches(
        self,
        test: Expression,
        then: Sequence[ast.stmt],
        otherwise: Sequence[ast.stmt],
        body: Body,
        made: list[Statement],
    ) -> Body | None:
        (chosen, first), (other, second) = self.block(then, body), self.block(otherwise, body)
        made.append(Statement("if", (test, chosen, other)))
        return names_behind([first, second])

    def _asserted(self, statement: ast.Assert, body: Body, made: list[Statement]) -> Body:
        test, error = asserted(statement, body)
        made.append(Statement("if", (test, Statement("block"), Statement("block", (Statement("do", (error,)),)))))
        return body

    def _loop(self, loop: ast.For, body: Body, made: list[Statement]) -> Body:
        of = used_up(loop.iter, body)
        is_unpacked = isinstance(loop.target, ast.Tuple)
        inside, numbers = self._taken(names_of_target(loop.target), body)
        block, _ = self.block(loop.body, inside)
        otherwise, _ = self.block(loop.orelse, body)
        made.append(Statement("for", (of, block, otherwise), numbers, "unpacked" if is_unpacked else ""))
        # It may have no round at all, so that its variables have no value.
        return body

    def _tried(self, statement: ast.Try, body: Body, made: list[Statement]) -> Body | None:
        tried, inner = self.block(statement.body, body)
        check_known(tried, statement.lineno)
        otherwise, behind = self.block(statement.orelse, inner) if inner is not None else (Statement("block"), None)
        ends = [behind]
        handlers: list[Statement] = []
        for each in statement.handlers:
            handler, end = self._handler(each, body)
            handlers.append(handler)
            ends.append(end)
        last, end = self.block(statement.finalbody, body)
        if statement.finalbody and any(map(_may_change_in_place, (tried, otherwise, *handlers))):
            # A jump or an exception at the end would take the place of `ChangedInPlace`.
            raise UnreadableName("changes a variable inside of a try with finally", line=statement.lineno)
        made.append(Statement("try", (tried, otherwise, last, *handlers)))
        behind = None if end is None else names_behind(ends)
        if behind is None or end is None:
            return None
        # A variable that it assigns at the end has no certain value where it begins.
        return behind.without(names_bound(statement.finalbody).keys() - end.variables.keys())

    def _handler(self, handler: ast.ExceptHandler, body: Body) -> tuple[Statement, Body | None]:
        if handler.type is None:
            raise UnreadableName("catches all exceptions", "except Exception can be read", handler.lineno)
        kinds = Constant(kinds_of_exceptions(handler.type, body))
        if handler.name is None:
            block, behind = self.block(handler.body, body)
            return Statement("handler", (kinds, block)), behind
        if handler.name in body.variables:  # The inner one of two handlers takes the value of the outer one away.
            raise UnreadableName(f"gives {handler.name} another value than an exception", line=handler.lineno)
        number = body.callee.variable()
        block, behind = self.block(handler.body, body.with_variable(handler.name, Local(number)))
        if not _is_shown_alone(Local(number), block):
            raise UnreadableName("does more with an exception than to show it", line=handler.lineno)
        return Statement("handler", (kinds, block), (number,)), behind and behind.without([handler.name])

    def _matched(self, statement: ast.Match, body: Body, made: list[Statement]) -> Body | None:
        of = read_syntax(statement.subject, body)
        cases: list[Statement] = []
        ends: list[Body | None] = []
        for each in statement.cases:
            pattern = copy.deepcopy(each.pattern)
            inside, numbers = self._captured(pattern, body)
            guard = () if each.guard is None else (read_syntax(each.guard, inside),)
            block, end = self.block(each.body, inside)
            cases.append(Statement("case", (*guard, block), numbers, ast.unparse(pattern)))
            ends.append(end)
        last = statement.cases[-1]
        is_complete = last.guard is None and isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
        made.append(Statement("match", (of, *cases)))
        # A case that fails may have assigned variables before.
        return names_behind(ends if is_complete else [*ends, body])

    def _captured(self, pattern: ast.pattern, body: Body) -> tuple[Body, tuple[int, ...]]:
        """Return the names inside of a case; variables of its pattern get their names in the case."""
        names: list[str] = []
        for each in ast.walk(pattern):
            match each:
                case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    names.append(name)
                    each.name = f"l{self._number(name, body)}"
                case ast.MatchMapping(rest=str(name)):
                    names.append(name)
                    each.rest = f"l{self._number(name, body)}"
                case ast.MatchClass(cls=ast.Name() as kind) if (found := object_named(kind, body)) in _MATCHED:
                    kind.id = found.__name__  # The user may have another name for it.
                case ast.MatchClass() | ast.Attribute():
                    raise UnreadableName("matches a class", "the builtin types can be read", pattern.lineno)
        return self._taken(names, body)

    def _is_new(self, value: Expression) -> bool:
        """Return whether a value cannot be changed, or is a container that the function makes."""
        match value:
            case Local():
                return bool(self._named(value)) and not self.shared.intersection(self._named(value))
            case Constant(of):
                return not isinstance(of, dict | list | set)
            case Applied(sign, _):
                return sign not in ("and", "or", "pos")
            case Called(function, _):
                return function in _MAKING
            case Method(_, name, _):
                return name == "copy" or name in _METHODS_MAKING_ALL
            case Choice(_, chosen, otherwise):
                return self._is_new(chosen) and self._is_new(otherwise)
            case Let(_, _, within):
                return self._is_new(within)
        return isinstance(value, Text | Formatted | Built | Changed | Comprehension | Display)

    def _has_new_members(self, value: Expression) -> bool:
        """Return whether no member of a container is one of an item."""
        match value:
            case Built(_, ("*",) | ("**",), _):
                return False
            case Built(_, _, members) | Display(_, members):
                return all(map(self._is_new, members))
            case Comprehension(_, _, (*_, member)):  # A key of a dict is never a member that is looked up.
                return self._is_new(member)
            case Called("list" | "dict" | "set" | "collections.Counter", ()) | Called("collections.defaultdict", _):
                return True
            case Constant() | Text():
                return self._is_new(value)
            case Method(_, name, _):
                return name in _METHODS_MAKING_ALL
            case Called(function, _):
                return function in _OF_NUMBERS or function in ("dataclasses.asdict", "json.loads")
        return False


def _refused(statement: ast.stmt) -> UnreadableName:
    return UnreadableName(STATEMENTS.get(type(statement), "does more than to return a value"), line=statement.lineno)


_WAYS = 3
"""As expressions, and then some times until the shared containers are known."""


def _members(value: Expression) -> Sequence[Expression]:
    match value:
        case Together(members):
            return members
        case Constant(tuple() as values):
            return tuple(map(Constant, values))
    return ()


def _sorting(keywords: Sequence[ast.keyword], body: Body) -> tuple[tuple[Expression, ...], tuple[str, ...]]:
    """Return the arguments of `sort`, and their names."""
    names = tuple(each.arg or "" for each in keywords)
    if not set(names) <= {"key", "reverse"}:
        raise UnreadableName("calls .sort() with a keyword")
    values = (
        function_read(each.value, body) if each.arg == "key" else read_syntax(each.value, body) for each in keywords
    )
    return tuple(values), names


def _is_number(value: Expression) -> bool:
    """Return whether a value is a number, which no `+=` adds to a container."""
    match value:
        case Constant(of):
            return type(of) in (int, float)
        case Called(function, _):
            return function in _OF_NUMBERS
    return False


_OF_NUMBERS = frozenset({"float", "int", "len", "ord"})
_MAKING = _OF_NUMBERS | frozenset(
    {
        *("str", "list", "dict", "set", "sorted", "tuple", "frozenset", "round", "bool", "json.loads", "re.findall"),
        *("dataclasses.asdict", "divmod"),
        *("collections.Counter", "collections.defaultdict", "re.split"),
        *(name for name in KNOWN if name.startswith(("operator.i", "dstream.value_i"))),
    }
)
"""Functions whose results are new, or cannot be changed."""

_METHODS_MAKING_ALL = frozenset({"findall", "groupdict", "most_common", "rsplit", "split", "splitlines"})
"""Methods whose results are new, as are all members of these."""
_MUTATING = frozenset(
    {
        *("add", "append", "clear", "discard", "extend", "insert", "remove", "reverse", "setdefault", "sort", "update"),
    }
)
_ADDING = frozenset({"add", "append"})
_MATCHED = (bool, bytes, dict, float, int, list, str, tuple)


def _may_change_in_place(statement: Statement) -> bool:
    return any(isinstance(each, Called) and each.function.startswith("dstream.value_") for each in statement.walk())


def _is_shown_alone(error: Local, block: Statement) -> bool:
    """Return whether an exception is only converted to a string, or its class read."""
    shown = 0
    for each in block.walk():
        match each:
            case Called("str" | "repr" | "type", (of,)) | Formatted(of, _, _):
                shown += of == error
    return shown == sum(each == error for each in block.walk())
