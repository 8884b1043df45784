"""Translation of calls and comprehensions, of arguments that they use up, and of functions that builtins call."""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import operator
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from dstream.expressions.callables import object_read, stores_its_fields
from dstream.expressions.effects import CHANGING_NOTHING, KEYWORDS, KNOWN, LAZY, USING_UP, name_of
from dstream.expressions.resolution import UnreadableName, constant_of
from dstream.expressions.syntax import (
    PLAIN_TYPES,
    Body,
    all_read,
    container_named,
    is_of_the_item,
    object_named,
    read_syntax,
)
from dstream.expressions.tree import (
    Applied,
    Argument,
    Built,
    Called,
    Choice,
    Comprehension,
    Constant,
    Expression,
    Function,
    Keyword,
    Local,
    Loop,
    Method,
    Together,
    is_leaf,
    rewritten,
    substituted,
)

__all__ = ["constants_of", "function_read", "read_rounds", "used_up", "without_walrus"]


@read_syntax.register
def _(syntax: ast.Call, body: Body) -> Expression:
    spread = _made_of_members(syntax, body)
    if spread is not None:
        return spread
    if any(isinstance(each, ast.Starred) for each in syntax.args):
        raise UnreadableName("unpacks arguments with *", line=syntax.lineno)
    fn = syntax.func
    if isinstance(fn, ast.Attribute) and fn.attr in _LOOKING and not syntax.keywords:
        container = container_named(fn.value, body)
        if container is not None:
            return Method(container, fn.attr, all_read(syntax.args, body))
    if isinstance(fn, ast.Attribute) and is_of_the_item(fn.value, body):
        return _method(fn, syntax, body)
    if isinstance(fn, ast.Lambda):
        raise UnreadableName("calls a lambda where it is made", line=syntax.lineno)
    written = ast.unparse(fn)
    if written == "next" and len(syntax.args) == 2 and isinstance(syntax.args[0], ast.GeneratorExp):
        return _first(syntax, body)
    if written == "getattr" and len(syntax.args) == 2 and object_named(fn, body) is builtins.getattr:
        return _attribute(syntax, body)
    if written == "isinstance" and len(syntax.args) == 2 and not syntax.keywords:
        return _instance(syntax, body)
    if isinstance(fn, ast.Name) and fn.id in body.functions and not syntax.keywords:
        return body.callee.defined(body.functions[fn.id], all_read(syntax.args, body), body)
    if isinstance(fn, ast.Name) and fn.id in body.own:
        raise UnreadableName(f"calls its variable {written}", line=syntax.lineno)
    callee = _callee(fn, written, body)
    if any(callee is each for each in LAZY.values()):
        raise UnreadableName(
            f"calls {written}, whose result no call uses up", "a list of it can be read", syntax.lineno
        )
    return _called_by_name(callee, written, syntax, body)


def _made_of_members(syntax: ast.Call, body: Body) -> Expression | None:
    """Return `Sale(**row)` or `Sale(*parts)` of a class with plain fields; None of another call."""
    match syntax:
        case ast.Call(ast.Name(name) as fn, [ast.Starred(of)], []) if name not in body.own:
            sign = "*"
        case ast.Call(ast.Name(name) as fn, [], [ast.keyword(None, of)]) if name not in body.own:
            sign = "**"
        case _:
            return None
    kind = object_named(fn, body)
    return Built(kind, (sign,), (read_syntax(of, body),)) if stores_its_fields(kind) else None


def _method(fn: ast.Attribute, syntax: ast.Call, body: Body) -> Expression:
    name, keywords = fn.attr, tuple(each.arg for each in syntax.keywords if each.arg is not None)
    is_builtin = name in CHANGING_NOTHING and (not keywords or name in _WITH_KEYWORDS)
    refused = UnreadableName(f"calls .{name}(){' with a keyword' if syntax.keywords else ''}", line=syntax.lineno)
    if len(keywords) < len(syntax.keywords):
        raise refused
    # The object and the arguments are read once for all classes: each may be a chain of calls of any length.
    of = read_syntax(fn.value, body)
    has_own = not isinstance(of, Constant) and (not is_builtin or body.names.namespaces.has_member(name))
    if not has_own and not is_builtin:
        raise refused
    given = None if has_own else _given_to_builtin(of, name, syntax, body)
    given = given or all_read([*syntax.args, *(each.value for each in syntax.keywords)], body)
    # An item as a whole is an object of its class, or a string.
    is_known = is_builtin and (not isinstance(of, Argument) or name in vars(str))

    def otherwise(local: Expression) -> Expression:
        return Method(local, name, given, keywords) if is_known else Called("dstream.failed", ())

    own = body.callee.member(of, name, given, keywords, otherwise) if has_own else None
    if own is None and not is_builtin:
        raise refused
    return own or Method(of, name, given, keywords)


def _given_to_builtin(of: Expression, name: str, syntax: ast.Call, body: Body) -> tuple[Expression, ...] | None:
    """Return the arguments of a builtin type's method that takes more than values; None of any other."""
    match name, syntax.args:
        case "join", [iterable] if isinstance(of, Constant) and not syntax.keywords:
            return (used_up(iterable, body),)
        case "translate", [table] if not syntax.keywords:
            return (container_named(table, body) or read_syntax(table, body),)
        case "sub", [by, string] if isinstance(of, Constant) and not syntax.keywords:
            return _replacement(by, body), read_syntax(string, body)
    return None


_WITH_KEYWORDS = frozenset(
    {"_replace", "encode", "format", "isoformat", "quantize", "replace", "rsplit", "split", "splitlines"}
)


def _replacement(syntax: ast.expr, body: Body) -> Expression:
    """Return the replacement of a match: a string, or a function of the match."""
    is_named = isinstance(syntax, ast.Name | ast.Attribute) and not is_of_the_item(syntax, body)
    return function_read(syntax, body) if is_named or isinstance(syntax, ast.Lambda) else read_syntax(syntax, body)


def _instance(syntax: ast.Call, body: Body) -> Expression:
    if object_named(syntax.func, body) is not builtins.isinstance:
        raise UnreadableName("calls isinstance", line=syntax.lineno)
    of, among = syntax.args
    members = among.elts if isinstance(among, ast.Tuple) else [among]
    kinds = tuple(object_named(each, body) for each in members)
    if not all(kind in PLAIN_TYPES for kind in kinds):
        raise UnreadableName("calls isinstance", "the builtin types can be read", syntax.lineno)
    return Called("isinstance", (read_syntax(of, body), Constant(kinds)))


def _attribute(syntax: ast.Call, body: Body) -> Expression:
    """Return `getattr(item, "name")`."""
    of, name = syntax.args
    if not isinstance(name, ast.Constant) or type(name.value) is not str or not name.value.isidentifier():
        raise UnreadableName("calls getattr with a name that is not the same for all items", line=syntax.lineno)
    return read_syntax(ast.copy_location(ast.Attribute(of, name.value, ast.Load()), syntax), body)


_LOOKING = ("count", "get", "index", "isdisjoint", "issuperset")
"""Methods of lists, dicts and sets that return no part of them but members."""


def _callee(fn: ast.expr, written: str, body: Body) -> Any:
    try:
        return object_named(fn, body)
    except UnreadableName as problem:
        if problem.reason.startswith("looks at") and isinstance(fn, ast.Attribute):
            raise UnreadableName(f"calls {written}", line=fn.lineno) from None
        raise


def _called_by_name(fn: Any, written: str, syntax: ast.Call, body: Body) -> Expression:
    keywords = tuple(each.arg for each in syntax.keywords if each.arg is not None)
    if len(keywords) < len(syntax.keywords):
        raise UnreadableName("unpacks arguments with **", line=syntax.lineno)
    arguments = _arguments(name_of(fn), syntax, body)
    try:
        found = body.callee.called(fn, written, arguments, keywords)
    except UnreadableName as problem:
        # The function that is called may be in another file: the line is that of the call.
        raise UnreadableName(problem.reason, problem.advice, syntax.lineno) from None
    return _written_out(found) or found


def _arguments(name: str | None, syntax: ast.Call, body: Body) -> tuple[Expression, ...]:
    """Return the arguments of a call; those by name are the last ones."""
    first = tuple(used_up(each, body) for each in syntax.args[:1]) if name in USING_UP else ()
    if name == "len":
        first = tuple(container_named(each, body) or read_syntax(each, body) for each in syntax.args[:1])
    rest = syntax.args[len(syntax.args[:1]) if name in (*USING_UP, "len") else 0 :]
    if name == "re.sub" and len(rest) == 3:
        first, rest = (read_syntax(rest[0], body), _replacement(rest[1], body)), rest[2:]
    by_place = (*first, *all_read(rest, body))
    has_key = name in ("max", "min", "sorted")
    by_name = (
        function_read(each.value, body) if has_key and each.arg == "key" else read_syntax(each.value, body)
        for each in syntax.keywords
    )
    return (*by_place, *by_name)


def used_up(syntax: ast.expr, body: Body) -> Expression:
    """Return the iterable of a loop: also a generator expression, or a captured container."""
    if isinstance(syntax, ast.GeneratorExp):
        return read_rounds("generator", (syntax.elt,), syntax.generators, body)
    if isinstance(syntax, ast.Call) and not any(isinstance(each, ast.Starred) for each in syntax.args):
        found = _view(syntax, body) or _lazy(syntax, body) or _matches(syntax, body)
        if found is not None:
            return found
    return container_named(syntax, body) or read_syntax(syntax, body)


def _view(syntax: ast.Call, body: Body) -> Expression | None:
    """Return the keys, values or items of a captured dict."""
    match syntax:
        case ast.Call(ast.Attribute(of, "items" | "keys" | "values" as name), [], []):
            container = container_named(of, body)
            is_dict = container is not None and isinstance(container.value, dict)
            return Method(container, name, ()) if container is not None and is_dict else None
    return None


def _matches(syntax: ast.Call, body: Body) -> Expression | None:
    """Return the matches of a constant pattern, one after another."""
    match syntax:
        case ast.Call(ast.Attribute(of, "finditer"), arguments, []):
            # Only a constant pattern has a name: the arguments of anything else would be read in vain.
            is_item = is_of_the_item(of, body)
            if is_item and not (isinstance(of, ast.Name) and isinstance(read_syntax(of, body), Constant)):
                return None
            # Both take the same arguments, and the lists of the other one are read anywhere.
            listed = ast.Call(ast.copy_location(ast.Attribute(of, "findall", ast.Load()), syntax), arguments, [])
            found = read_syntax(ast.copy_location(listed, syntax), body)
            if isinstance(found, Method) and isinstance(found.of, Constant):
                return Method(found.of, "finditer", found.arguments)
    return None


def _lazy(syntax: ast.Call, body: Body) -> Expression | None:
    """Return the result of `enumerate`, `filter`, `map`, `reversed` or `zip`; None of another call."""
    fn, arguments = syntax.func, syntax.args
    if not isinstance(fn, ast.Name) or fn.id in body.own or fn.id not in LAZY:
        return None
    if object_named(fn, body) is not LAZY[fn.id]:
        return None
    if fn.id in ("filter", "map") and len(arguments) == 2 and not syntax.keywords:
        return _mapped(fn.id, arguments[0], used_up(arguments[1], body), body)
    if fn.id in ("filter", "map"):
        raise UnreadableName(f"calls {fn.id} with several iterables", line=syntax.lineno)
    among = tuple(used_up(each, body) for each in arguments[: len(arguments) if fn.id == "zip" else 1])
    by_name = (Keyword(each.arg or "", read_syntax(each.value, body)) for each in syntax.keywords)
    found = Called(fn.id, (*among, *all_read(arguments[len(among) :], body), *by_name))
    if not {each.arg for each in syntax.keywords} <= KEYWORDS.get(fn.id, frozenset()):
        raise UnreadableName(f"calls {fn.id} with a keyword", line=syntax.lineno)
    return found


def _mapped(name: str, fn: ast.expr, of: Expression, body: Body) -> Expression:
    """Return a generator of the results of a function for each member, or of the members that pass it."""
    if isinstance(fn, ast.Constant) and fn.value is None:
        number = body.callee.variable()
        given = Function(number, Local(number))
    else:
        given = function_read(fn, body)
    loop = Loop(of, (given.number,), False, () if name == "map" else (given.within,))
    return Comprehension("generator", (loop,), (given.within if name == "map" else Local(given.number),))


def function_read(syntax: ast.expr, body: Body) -> Any:
    """Return a function of one argument that a builtin calls; `key=None` as it is."""
    if isinstance(syntax, ast.Constant) and syntax.value is None:
        return Constant(None)
    number = body.callee.variable()
    item = Local(number)
    match syntax:
        case ast.Lambda(ast.arguments([], [ast.arg(name)], None, [], [], None, []), within):
            own = {name, *(each.target.id for each in _walruses([within]))}
            inside = body.inside(own).with_variable(name, item)
            return Function(number, read_syntax(within, inside))
        case ast.Attribute(of, "get" | "index" | "count" as name) if (found := container_named(of, body)) is not None:
            return Function(number, Method(found, name, (item,)))
        case ast.Call(fn, arguments, []) if object_named(fn, body) in (operator.itemgetter, operator.attrgetter):
            given = all_read(arguments, body)
            values = [each.value for each in given if isinstance(each, Constant)]
            getter = object_named(fn, body)(*values) if len(values) == len(given) else None
            read = None if getter is None else object_read(getter, 1)
            if read is not None:
                return Function(number, substituted(read, {0: item}))
    if isinstance(syntax, ast.Name) and syntax.id in body.functions:
        return Function(number, body.callee.defined(body.functions[syntax.id], (item,), body))
    written = ast.unparse(syntax)
    return Function(number, body.callee.called(object_named(syntax, body), written, (item,)))


def read_rounds(
    kind: Literal["list", "set", "dict", "generator"],
    members: Sequence[ast.expr],
    generators: Sequence[ast.comprehension],
    body: Body,
) -> Comprehension:
    """Return a comprehension.

    Args:
        kind: as of `Comprehension`.
        members: the result of each round.
        generators: its loops.
        body: the names around it.

    Raises:
        UnreadableName: a part of it cannot be read.
    """
    first = used_up(generators[0].iter, body)
    if {each.target.id for each in _walruses([*members, *generators])} & {*body.variables, *body.functions}:
        raise UnreadableName("assigns a variable of the function inside of a loop", line=members[0].lineno)
    inside = body.inside({name for each in generators for name in _assigned_in(each)})
    loops: list[Loop] = []
    for place, each in enumerate(generators):
        if each.is_async:
            raise UnreadableName("has an asynchronous comprehension")
        of = used_up(each.iter, inside) if place else first
        inside = _read_loop(each, of, inside, loops)
    return Comprehension(kind, tuple(loops), all_read(members, inside))


def _walruses(syntaxes: Sequence[ast.AST]) -> Iterator[ast.NamedExpr]:
    """Yield each `(name := value)`, whose variable is that of the function around a comprehension."""
    for syntax in syntaxes:
        yield from (each for each in ast.walk(syntax) if isinstance(each, ast.NamedExpr))


def _assigned_in(each: ast.comprehension) -> Iterator[str]:
    for target in (each.target, *_walruses(each.ifs)):
        yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))


def _read_loop(each: ast.comprehension, of: Expression, body: Body, loops: list[Loop]) -> Body:
    """Add a loop, and one of a single round for each `(name := value)` at the beginning of a condition."""
    targets = each.target.elts if isinstance(each.target, ast.Tuple) else [each.target]
    names = [one.id for one in targets if isinstance(one, ast.Name)]
    if len(names) < len(targets) or len(set(names)) < len(names):
        raise UnreadableName("has a comprehension that takes its members apart", line=each.target.lineno)
    numbers = tuple(body.callee.variable() for _ in names)
    for name, number in zip(names, numbers, strict=True):
        body = body.with_variable(name, Local(number))
    conditions: list[Expression] = []
    for test in each.ifs:
        before, condition = without_walrus(test)
        if before is not None:
            loops.append(Loop(of, numbers, isinstance(each.target, ast.Tuple), tuple(conditions)))
            of, numbers, conditions = Together((read_syntax(before.value, body),)), (body.callee.variable(),), []
            body = body.with_variable(before.target.id, Local(*numbers))
            each = ast.comprehension(before.target, each.iter, [], 0)
        conditions.append(read_syntax(condition, body))
    loops.append(Loop(of, numbers, isinstance(each.target, ast.Tuple), tuple(conditions)))
    return body


@read_syntax.register(ast.ListComp)
@read_syntax.register(ast.SetComp)
def _(syntax: ast.ListComp | ast.SetComp, body: Body) -> Expression:
    return read_rounds("list" if isinstance(syntax, ast.ListComp) else "set", (syntax.elt,), syntax.generators, body)


@read_syntax.register
def _(syntax: ast.DictComp, body: Body) -> Expression:
    return read_rounds("dict", (syntax.key, syntax.value), syntax.generators, body)


def _first(syntax: ast.Call, body: Body) -> Expression:
    """Return `next(... for ..., default)`."""
    if syntax.keywords or object_named(syntax.func, body) is not builtins.next:
        raise UnreadableName("calls next", line=syntax.lineno)
    found = Called("dstream.first", (used_up(syntax.args[0], body), read_syntax(syntax.args[1], body)))
    return _written_out(found) or found


def _written_out(call: Expression) -> Expression | None:
    """Return `any`, `all` or `next` over few constants as choices, which columns take one after another."""
    name: str
    found: Expression
    match call:
        case Called("any" | "all" as name, (Comprehension("generator", (loop,), (member,)),)):
            constants = _few(loop)
            found, end = Constant(name == "any"), Constant(name == "all")
        case Called("dstream.first", (Comprehension("generator", (loop,), (member,)), end)) if is_leaf(end):
            constants, name, found = _few(loop), "first", end
        case _:
            return None
    if constants is None:
        return None
    result: Expression = end
    for constant in reversed(constants):
        values = dict(zip(loop.numbers, constant.value if loop.is_unpacked else (constant.value,), strict=True))
        conditions = [_with_constants(each, values) for each in loop.conditions]
        value = _with_constants(member, values)
        if name != "first":
            conditions.append(value if name == "any" else Applied("not", (value,)))
        condition = conditions[0] if len(conditions) == 1 else Applied("and", tuple(conditions))
        # The first member that passes, or the end of `any` and `all`.
        chosen = value if name == "first" else found
        result = Choice(condition, chosen, result) if conditions else chosen
    return result


def _few(loop: Loop) -> list[Constant] | None:
    """Return the constants that a loop runs over, if they are few and are taken apart as its variables are."""
    constants = _constants(loop.of)
    if constants is None or len(constants) > _FEW:
        return None
    are_apart = all(type(each.value) is tuple and len(each.value) == len(loop.numbers) for each in constants)
    return constants if not loop.is_unpacked or are_apart else None


_FEW = 12
_MOST_ROUNDS = 32


def _with_constants(expression: Expression, values: dict[int, Any]) -> Expression:
    def other(each: Expression) -> Expression | None:
        return Constant(values[each.number]) if isinstance(each, Local) and each.number in values else None

    return rewritten(expression, other)


def constants_of(syntax: ast.expr, body: Body) -> list[Constant] | None:
    """Return the constants that a loop runs over, in order; None if it runs over something else."""
    return _constants(used_up(syntax, body))


def _constants(of: Expression) -> list[Constant] | None:
    values: Any = None
    match of:
        case Constant(tuple() | list() | dict() as values):
            pass
        case Built(kind, _, members) if kind is list and all(isinstance(each, Constant) for each in members):
            values = [each.value for each in members if isinstance(each, Constant)]
        case Method(Constant(dict() as held), "items" | "keys" | "values" as name, ()):
            values = getattr(held, name)()
        case Called("range" | "enumerate" | "zip" | "reversed" as name, arguments) if arguments:
            with contextlib.suppress(Exception):  # It raises for each item that is reached.
                given = [each.value for each in arguments if isinstance(each, Constant)]
                values = {**KNOWN, **LAZY}[name](*given) if len(given) == len(arguments) else None
                values = None if isinstance(values, range) and len(values) > _MOST_ROUNDS else values
    if values is None:
        return None
    found = [constant_of(each) for _, each in zip(range(_MOST_ROUNDS + 1), values, strict=False)]
    constants = [each for each in found if each is not None]
    return constants if len(constants) == len(found) <= _MOST_ROUNDS else None


def without_walrus(syntax: ast.expr) -> tuple[ast.NamedExpr | None, ast.expr]:
    """Return the `(name := value)` that an expression evaluates before all else, and the rest with its name there."""
    found = _leading_walrus(syntax)
    if found is None:
        return None, syntax
    return found, _with_first(syntax, ast.copy_location(ast.Name(found.target.id, ast.Load()), found))


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
