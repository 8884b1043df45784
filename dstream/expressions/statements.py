"""Translation of the statements of a function to an expression."""

from __future__ import annotations

import ast
import collections
import copy
import dataclasses
from collections.abc import Sequence

from dstream.expressions.calls import constants_of, read_rounds, used_up, without_walrus
from dstream.expressions.effects import IN_PLACE, KNOWN
from dstream.expressions.resolution import UnreadableName
from dstream.expressions.source import LocalFunction, names_bound
from dstream.expressions.syntax import BINARY, Body, all_read, is_of_the_item, object_named, read_syntax
from dstream.expressions.tree import (
    Applied,
    Called,
    Choice,
    Constant,
    Expression,
    Indexed,
    Let,
    Local,
    Text,
    Tried,
)

__all__ = [
    "STATEMENTS",
    "asserted",
    "changed",
    "check_known",
    "check_names",
    "default_dict",
    "defined",
    "kinds_of_exceptions",
    "names_behind",
    "names_of_target",
    "raised",
    "read_block",
    "taken_apart",
    "without_leading_walrus",
]


def read_block(statements: Sequence[ast.stmt], body: Body) -> Expression:
    """Return the result of statements.

    Raises:
        UnreadableName: they do more than that.
    """
    body.callee.count()
    if not statements:
        return Constant(None)
    first, rest = without_leading_walrus(statements[0]), statements[1:]
    if isinstance(first, ast.Assign) and rest and isinstance(rest[0], ast.For):
        found = _appended(first, rest[0], body)
        if found is not None:
            return _stored(*found, rest[1:], body)
    match first:
        case (ast.Assign() as before, ast.stmt() as statement):
            return read_block([before, statement, *rest], body)
        case ast.Return(value=None):
            return Constant(None)
        case ast.Return(value=ast.expr() as value):
            return read_syntax(value, body)
        case ast.If(test=test, body=then, orelse=otherwise):
            # An expression has no statements: those behind the `if` are added to the end of both of its branches.
            condition = read_syntax(test, body)
            return Choice(condition, read_block([*then, *rest], body), read_block([*otherwise, *rest], body))
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            return _assigned(name, value, rest, body) if value is not None else read_block(rest, body)
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value) if all(map(_is_name, targets)):
            return _unpacked([each.id for each in targets if isinstance(each, ast.Name)], value, rest, body)
        case ast.AugAssign(target=ast.Name(id=name), op=sign, value=value) if name in body.fresh:
            return _stored(name, changed(name, sign, value, body), rest, body)
        case ast.For():
            return _loop(first, rest, body)
        case ast.Try(finalbody=[]):
            return _tried(first, rest, body)
        case ast.Raise():
            return raised(first, body)
        case ast.Assert() if __debug__:
            asked, error = asserted(first, body)
            return Choice(asked, read_block(rest, body), error)
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return read_block(rest, body)
        case ast.FunctionDef():
            return read_block(rest, defined(first, body))
        case _Behind():
            return read_block([*first.otherwise, *rest], body)
        case ast.Continue() | ast.Break():
            return read_block(_behind(rest, is_whole=isinstance(first, ast.Break)), body)
        case _Round():
            return read_block(rest, first.begun(body))
    assert isinstance(first, ast.stmt), "what is before it was taken away"
    raise UnreadableName(STATEMENTS.get(type(first), "does more than to return a value"), line=first.lineno)


def _is_name(syntax: ast.expr) -> bool:
    return isinstance(syntax, ast.Name)


def _unpacked(names: Sequence[str], value: ast.expr, rest: Sequence[ast.stmt], body: Body) -> Expression:
    members = Called("dstream.unpacked", (taken_apart(value, body), Constant(len(names))))
    reference, number = body.callee.named(members)
    for place, name in enumerate(names):
        body = body.with_variable(name, Indexed(reference, Constant(place)))
    return body.callee.within(members, number, read_block(rest, body))


def taken_apart(syntax: ast.expr, body: Body) -> Expression:
    """Return a value that is taken apart at once, such as `map(int, parts)`."""
    return used_up(syntax, body) if isinstance(syntax, ast.Call | ast.GeneratorExp) else read_syntax(syntax, body)


def _assigned(name: str, value: ast.expr, rest: Sequence[ast.stmt], body: Body) -> Expression:
    return _stored(name, read_syntax(value, body), rest, body)


def _stored(name: str, value: Expression, rest: Sequence[ast.stmt], body: Body) -> Expression:
    reference, number = body.callee.named(value)
    stored = body.with_variable(name, reference, is_fresh=_is_fresh(value))
    return body.callee.within(value, number, read_block(rest, stored))


def _is_fresh(value: Expression) -> bool:
    """Return whether a value is a number, a string, or made by an operator, so that `+=` changes no item."""
    match value:
        case Constant(of):
            return not isinstance(of, dict | list | set)
        case Applied(sign, _):
            return sign not in ("and", "or", "pos")
        case Called(function, _):
            return function in _FRESH
        case Choice(_, chosen, otherwise):
            return _is_fresh(chosen) and _is_fresh(otherwise)
        case Let(_, _, within):
            return _is_fresh(within)
    return isinstance(value, Text)


_FRESH = frozenset({"len", "int", "float", "str", *(name for name in KNOWN if name.startswith("operator.i"))})


def changed(name: str, sign: ast.operator, value: ast.expr, body: Body) -> Expression:
    """Return the value of a variable after `name += value`."""
    before = ast.copy_location(ast.Name(name, ast.Load()), value)
    return Called(f"operator.{_in_place(sign, value)}", (read_syntax(before, body), read_syntax(value, body)))


def _in_place(sign: ast.operator, value: ast.expr) -> str:
    symbol = BINARY.get(type(sign))
    if symbol not in IN_PLACE:
        raise UnreadableName(STATEMENTS[ast.AugAssign], line=value.lineno)
    return IN_PLACE[symbol]


STATEMENTS: dict[type[ast.stmt], str] = {
    ast.For: "has a loop",
    ast.While: "has a loop",
    ast.Try: "catches exceptions",
    ast.With: "has a with statement",
    ast.Assert: "has an assert statement",
    ast.AugAssign: "changes a variable",
    ast.Assign: "assigns to more than a variable",
    ast.FunctionDef: "makes a function",
    ast.Import: "imports",
    ast.ImportFrom: "imports",
}


class _Round(ast.stmt):
    """The beginning of a round of a loop over constants.

    Attributes:
        names: of the variables.
        values: theirs.
    """

    names: tuple[str, ...]
    values: tuple[Constant, ...]

    def begun(self, body: Body) -> Body:
        """Return the names of the body in this round."""
        for name, value in zip(self.names, self.values, strict=True):
            body = body.with_variable(name, value, is_fresh=True)
        return body


class _Behind(ast.stmt):
    """The place behind a round, or behind a whole loop.

    Attributes:
        is_whole: whether it is behind a loop.
        otherwise: the statements of `else`; a `break` in them ends the loop around this one.
    """

    is_whole: bool
    otherwise: Sequence[ast.stmt]


def _behind(statements: Sequence[ast.stmt], *, is_whole: bool) -> Sequence[ast.stmt]:
    """Return those behind the round, or the loop, that a `continue` or `break` ends."""
    place = next(
        (place for place, each in enumerate(statements) if isinstance(each, _Behind) and each.is_whole == is_whole),
        len(statements),  # In a `try` of several statements, which are read in another way.
    )
    return statements[place + 1 :]


def _loop(loop: ast.For, rest: Sequence[ast.stmt], body: Body) -> Expression:
    """Return the result of a loop over constants, which are few, or of one that makes a sum or a container."""
    constants = constants_of(loop.iter, body)
    if constants is None:
        return _collected(loop, rest, body)
    names = names_of_target(loop.target)
    statements: list[ast.stmt] = []
    for constant in constants:
        statements += [_round(names, constant, loop), *loop.body, _end(is_whole=False)]
    return read_block([*statements, _end(loop.orelse, is_whole=True), *rest], body)


def names_of_target(target: ast.expr) -> tuple[str, ...]:
    """Return the names of the variables of a loop; a single one for each member as a whole."""
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    if not all(map(_is_name, targets)):
        raise UnreadableName(STATEMENTS[ast.For], line=target.lineno)
    return tuple(each.id for each in targets if isinstance(each, ast.Name))


def _round(names: tuple[str, ...], constant: Constant, loop: ast.For) -> _Round:
    members = tuple(map(Constant, constant.value)) if isinstance(loop.target, ast.Tuple) else (constant,)
    if len(members) != len(names):
        raise UnreadableName(STATEMENTS[ast.For], line=loop.lineno)
    begun = _Round()
    begun.names, begun.values = names, members
    return begun


def _end(otherwise: Sequence[ast.stmt] = (), *, is_whole: bool) -> _Behind:
    end = _Behind()
    end.is_whole, end.otherwise = is_whole, otherwise
    return end


def _collected(loop: ast.For, rest: Sequence[ast.stmt], body: Body) -> Expression:
    """Return the result of a loop that adds each value to a variable, which nothing else looks at meanwhile."""
    inner, conditions = _inside(loop)
    match inner:
        case [ast.AugAssign(target=ast.Name(id=name), op=sign, value=value)] if name in body.fresh:
            pass
        case _:
            raise UnreadableName(STATEMENTS[ast.For], line=loop.lineno)
    names = names_of_target(loop.target)
    if name in (*_names_in([value, *conditions]), *names) or loop.orelse:
        raise UnreadableName(STATEMENTS[ast.For], line=loop.lineno)
    rounds = [ast.comprehension(loop.target, loop.iter, conditions, 0)]
    members = read_rounds("generator", (value,), rounds, body)
    start = read_syntax(ast.copy_location(ast.Name(name, ast.Load()), loop), body)
    total = Called(f"dstream.folded_{_in_place(sign, value)}", (members, start))
    return _stored(name, total, rest, body.without(names))


def _inside(loop: ast.For) -> tuple[list[ast.stmt], list[ast.expr]]:
    """Return the statements of a loop, and the conditions on them all."""
    inner, conditions = loop.body, list[ast.expr]()
    while len(inner) == 1 and isinstance(inner[0], ast.If) and not inner[0].orelse:
        conditions.append(inner[0].test)
        inner = inner[0].body
    return inner, conditions


def _names_in(syntaxes: Sequence[ast.AST]) -> set[str]:
    return {each.id for one in syntaxes for each in ast.walk(one) if isinstance(each, ast.Name)}


def _appended(before: ast.Assign, loop: ast.For, body: Body) -> tuple[str, Expression] | None:
    """Return the name of a list that is empty before a loop, and the value that is appended; None of other loops."""
    inner, conditions = _inside(loop)
    match before, inner:
        case (
            ast.Assign([ast.Name(name)], ast.List([])),
            [ast.Expr(ast.Call(ast.Attribute(ast.Name(of), "append"), [value], []))],
        ) if of == name and not loop.orelse:
            inside = _names_in([value, loop.iter, *conditions])
            # A variable that the loop assigns has another value behind it, which a comprehension does not return.
            if (
                name in (*inside, *_names_in([loop.target]))
                or set(names_of_target(loop.target)) & body.variables.keys()
            ):
                return None
            rounds = [ast.comprehension(loop.target, loop.iter, conditions, 0)]
            return name, read_rounds("list", (value,), rounds, body)
    return None


def _tried(statement: ast.Try, rest: Sequence[ast.stmt], body: Body) -> Expression:
    """Return the result of a `try` with one expression inside, which is returned or assigned to a variable."""
    if len(statement.body) != 1:
        raise UnreadableName(STATEMENTS[ast.Try], line=statement.lineno)
    if any(each.name is not None or each.type is None for each in statement.handlers):
        raise UnreadableName("looks at an exception that it catches", line=statement.lineno)
    kinds = tuple(kinds_of_exceptions(each.type, body) for each in statement.handlers if each.type is not None)
    number = body.callee.variable()
    match statement.body[0]:
        case ast.Return(value=ast.expr() as value):
            within: Expression = Local(number)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            within = read_block([*statement.orelse, *rest], body.with_variable(name, Local(number)))
        case _:
            raise UnreadableName(STATEMENTS[ast.Try], line=statement.lineno)
    tried = read_syntax(value, body)
    check_known(tried, statement.lineno)
    otherwise = tuple(read_block([*each.body, *rest], body) for each in statement.handlers)
    return Tried(tried, number, within, kinds, otherwise)


def raised(statement: ast.Raise, body: Body) -> Expression:
    """Return a call that raises an exception: any other than one of the standard library is made by the function."""
    try:
        return _raised(statement, body)
    except UnreadableName:
        return Called("dstream.failed", ())


def check_known(tried: Expression, line: int) -> None:
    """Check that it is known which exceptions an expression raises inside of a `try`.

    Raises:
        UnreadableName: it may raise one that a handler takes, or takes not.
    """
    if any(each == Called("dstream.failed", ()) for each in tried.walk()):
        raise UnreadableName("raises an exception of its own inside of a try", line=line)


def _raised(statement: ast.Raise, body: Body) -> Expression:
    raised = statement.exc
    call = raised if isinstance(raised, ast.Call) else ast.Call(raised, [], []) if raised is not None else None
    # A cause is seen in the traceback alone, which is that of the function itself.
    is_alone = statement.cause is None or isinstance(statement.cause, ast.Constant | ast.Name)
    if call is None or not is_alone or call.keywords or not isinstance(call.func, ast.Name | ast.Attribute):
        raise UnreadableName("raises an exception", line=statement.lineno)
    (kind,) = kinds_of_exceptions(call.func, body)
    return Called("dstream.raised", (Constant(kind), *all_read(call.args, body)))


def defined(statement: ast.FunctionDef, body: Body) -> Body:
    """Return the names behind the definition of a function.

    Raises:
        UnreadableName: it has a decorator or defaults, is a generator, or assigns a variable of another one.
    """
    given = statement.args
    inside = [each for one in statement.body for each in ast.walk(one)]
    has_more = given.posonlyargs or given.vararg or given.kwonlyargs or given.kwarg or given.defaults
    if has_more or statement.decorator_list or any(isinstance(each, _BEYOND) for each in inside):
        raise UnreadableName("makes a function", line=statement.lineno)
    parameters = tuple(each.arg for each in given.args)
    own = frozenset({*parameters, *names_bound(statement.body)})
    captured = frozenset(_names_in(statement.body) - own)
    return body.with_function(LocalFunction(statement.name, parameters, tuple(statement.body), own, captured))


_BEYOND = (
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.Global,
    ast.Nonlocal,
    ast.FunctionDef,
    ast.ClassDef,
    ast.ExceptHandler,
)


def asserted(statement: ast.Assert, body: Body) -> tuple[Expression, Expression]:
    """Return the condition of an `assert`, and the call that raises if it is not met."""
    messages = [] if statement.msg is None else [statement.msg]
    error = Called("dstream.raised", (Constant(AssertionError), *all_read(messages, body)))
    return read_syntax(statement.test, body), error


def without_leading_walrus(statement: ast.stmt) -> ast.stmt | tuple[ast.Assign, ast.stmt]:
    """Return a statement, and before it the assignment inside of it that Python evaluates before all else."""
    field = "test" if isinstance(statement, ast.If) else "value"
    whole = getattr(statement, field, None)
    if not isinstance(statement, ast.If | ast.Return | ast.Assign | ast.AnnAssign) or whole is None:
        return statement
    before, value = without_walrus(whole)
    if before is None:
        return statement
    made = copy.copy(statement)
    setattr(made, field, value)
    return ast.copy_location(ast.Assign([before.target], before.value), before), made


def default_dict(syntax: ast.expr, body: Body) -> Expression | None:
    """Return `defaultdict(int)`, or the like, which makes members where it is looked into; None of other calls."""
    match syntax:
        case ast.Call(ast.Name() | ast.Attribute() as fn, [ast.Name() as kind], []) if (
            not is_of_the_item(fn, body) and object_named(fn, body) is collections.defaultdict
        ):
            made = object_named(kind, body)
            return Called("collections.defaultdict", (Constant(made),)) if made in _MADE_BY_DEFAULT else None
    return None


_MADE_BY_DEFAULT = (dict, float, int, list, set, str)


def names_behind(ends: Sequence[Body | None]) -> Body | None:
    """Return the names where several branches join, of which some may end before."""
    reached = [each for each in ends if each is not None]
    if not reached:
        return None
    names = set.intersection(*(set(each.variables) for each in reached))
    fresh = frozenset.intersection(*(each.fresh for each in reached))
    variables = {name: reached[0].variables[name] for name in names}
    found = [each.functions for each in reached]
    functions = {name: each for name, each in found[0].items() if all(one.get(name) is each for one in found)}
    return dataclasses.replace(reached[0], variables=variables, fresh=fresh, functions=functions)


def check_names(statements: Sequence[ast.stmt], body: Body) -> None:
    """Check that the names of functions and exceptions have no other values, which a loop would remove, or retain.

    Raises:
        UnreadableName: they have.
    """
    inside = [each for one in statements for each in ast.walk(one)]
    hidden = names_bound(each.target for each in inside if isinstance(each, ast.comprehension))
    bound = names_bound(statements) - hidden
    handled = collections.Counter(each.name for each in inside if isinstance(each, ast.ExceptHandler))
    for each in inside:
        match each:
            case ast.FunctionDef(name) if bound[name] > 1 or name in body.variables:
                raise UnreadableName(f"gives {name} another value than a function", line=each.lineno)
            case ast.ExceptHandler(_, str(name)) if bound[name] > handled[name] or name in body.variables:
                raise UnreadableName(f"gives {name} another value than an exception", line=each.lineno)


def kinds_of_exceptions(syntax: ast.expr, body: Body) -> tuple[type[Exception], ...]:
    """Return the exceptions that an expression names: one, or a tuple of them.

    Raises:
        UnreadableName: they are not of the standard library, so that they may have code of their own.
    """
    named = syntax.elts if isinstance(syntax, ast.Tuple) else [syntax]
    kinds = tuple(object_named(each, body) for each in named)
    if not all(
        isinstance(each, type) and issubclass(each, Exception) and each.__module__ in _STANDARD for each in kinds
    ):
        raise UnreadableName("has exceptions of classes of its own", line=syntax.lineno)
    return kinds


_STANDARD = ("builtins", "decimal", "json.decoder")
