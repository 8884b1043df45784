"""Expressions as syntax of generated loops, and their forms without constants, which share one loop.

Python evaluates an expression as it would in the user's function: the same operators on the same operands, in the same
order. A constant of the user's code remains an object that is passed to the loop, so that one loop fits all constants.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any

from dstream.expressions.effects import KNOWN
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
    numbers_bound,
    rewritten,
    with_parts,
)
from dstream.operators.rows.forms import (
    Compared,
    Form,
    FormattedBy,
    Invoked,
    Made,
    TriedFor,
    are_in_order,
    is_one_comparison,
)
from dstream.values.entries import Entry

__all__ = ["FUNCTIONS", "form_of", "syntax_of", "with_syntax"]


def form_of(expression: Expression) -> tuple[Form, list[Any]]:
    """Return an expression without its constants, and these."""
    constants: list[Any] = []
    form = _without_constants(expression, constants)
    return Form(form, len(constants)), constants


def _without_constants(each: Expression, constants: list[Any]) -> Expression:
    def inner(part: Expression) -> Expression:
        return _without_constants(part, constants)

    def held(value: Any) -> Argument:
        constants.append(value)
        return Argument(len(constants))

    def all_of(parts: Sequence[Expression]) -> tuple[Expression, ...]:
        return tuple(map(inner, parts))

    match each:
        case Constant(value):
            return held(value)
        case Applied("and", operands) if is_one_comparison(operands):
            comparisons = [operand for operand in operands if isinstance(operand, Applied)]
            compared = [comparisons[0].operands[0], *(comparison.operands[1] for comparison in comparisons)]
            return Compared(tuple(comparison.operator for comparison in comparisons), all_of(compared))
        case Built(kind, names, values) if kind is not dict and kind is not list:
            return Made(held(kind), () if are_in_order(kind, names) else names, all_of(values))
        case Formatted(of, conversion, spec):
            return FormattedBy(inner(of), conversion, held(spec) if spec else None)
        case Tried(value, number, within, kinds, otherwise):
            tried = Tried(inner(value), number, inner(within), (), all_of(otherwise))
            return TriedFor(tried, tuple(map(held, kinds)))
        case Routine():
            run, given = _function_of(each)
            return Invoked(held(run), all_of(given))
    return with_parts(each, inner)


def _function_of(routine: Routine) -> tuple[Callable[..., Any], tuple[Expression, ...]]:
    """Return a routine as a function, and the variables and arguments around it that it takes."""
    own = set(numbers_bound(routine))
    leaves = dict.fromkeys(each for each in routine.walk() if isinstance(each, Argument | Local))
    free = tuple(each for each in leaves if isinstance(each, Argument) or each.number not in own)
    first = 1 + max(own, default=0)
    given: dict[Expression, Expression] = {each: Local(first + place) for place, each in enumerate(free)}
    form, constants = form_of(rewritten(routine.block, given.get))
    return _maker(form, first, len(free))(*constants), free


@functools.lru_cache(maxsize=512)
def _maker(form: Form, first: int, size: int) -> Callable[..., Callable[..., Any]]:
    """Compile a routine to a function of its constants that returns the routine; `exec` sees no string of a user's."""
    constants = [f"c{number}" for number in range(form.constants)]
    parameters = ", ".join(f"l{number}" for number in range(first, first + size))
    tree = ast.parse(f"def make({', '.join(constants)}):\n def run({parameters}): pass\n return run")
    run = next(each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == "run")
    run.body = _Writing(["", *constants]).statements(form.expression)
    namespace: dict[str, Any] = {"__name__": __name__, **FUNCTIONS}
    exec(compile(ast.fix_missing_locations(tree), "<dstream routine>", "exec"), namespace)
    make: Callable[..., Callable[..., Any]] = namespace["make"]
    return make


FUNCTIONS: dict[str, Callable[..., Any]] = {
    name.replace(".", "_of_"): function for name, function in KNOWN.items() if "." in name
} | {"Entry": Entry}
"""The functions of modules and classes, by the names that loops have for them."""


def with_syntax(source: str, values: dict[str, tuple[ast.expr, bool]]) -> ast.Module:
    """Parse a loop, with expressions in the place of calls.

    Args:
        source: the loop.
        values: by the name of a function, the replacement of its only call, and whether only its truth is tested.
    """
    tree = ast.parse(source)
    _Replacing(values).visit(tree)
    return tree


class _Replacing(ast.NodeTransformer):
    def __init__(self, values: dict[str, tuple[ast.expr, bool]]) -> None:
        self._values = values

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id not in self._values:
            return node
        value, is_tested = self._values[node.func.id]
        if is_tested and any(map(_asks_for_truth, ast.walk(value))):
            # Python would test `a` of `a and b` once, where the function evaluates `a`, and the caller tests the result
            # again.
            value = ast.NamedExpr(ast.Name("r", ast.Store()), value)
        # The line of the call is retained: by it a failure is attributed to its step.
        return _located(value, node)


def _located(value: ast.expr, at: ast.expr) -> ast.expr:
    """Set missing locations in an expression, as `ast.fix_missing_locations` does in a module."""
    where = {name: getattr(at, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")}
    for each in ast.walk(value):
        if "lineno" in each._attributes and not hasattr(each, "lineno"):
            vars(each).update(where)
    return value


def _asks_for_truth(node: ast.AST) -> bool:
    return isinstance(node, ast.BoolOp) or (isinstance(node, ast.Compare) and len(node.ops) > 1)


def syntax_of(form: Form, function: str, names: Sequence[str]) -> ast.expr:
    """Return the syntax of a form.

    Args:
        form: the form of the expression.
        function: the name of the variable of the function that the expression replaces.
        names: the names of the variables of its arguments and constants.
    """
    writing = _Writing(names)
    match form.expression:
        case ForTuples(size, within):
            called = ast.Call(_name(function), [_name(names[0])], [])
            return ast.IfExp(_is_tuple(names[0], size), writing.syntax(within), called)
    return writing.syntax(form.expression)


def _is_tuple(name: str, size: int) -> ast.expr:
    # By exact type: a named tuple or a subclass may have code of its own, so the function is called with it.
    kind = f"type({name}) is "
    of_size = f"{kind}tuple and len({name}) == {size}"
    return ast.parse(f"{kind}Entry or {of_size}" if size == 2 else of_size, mode="eval").body


_BINARY: dict[str, ast.operator] = {
    "+": ast.Add(),
    "-": ast.Sub(),
    "*": ast.Mult(),
    "/": ast.Div(),
    "//": ast.FloorDiv(),
    "%": ast.Mod(),
    "**": ast.Pow(),
    "<<": ast.LShift(),
    ">>": ast.RShift(),
    "&": ast.BitAnd(),
    "|": ast.BitOr(),
    "^": ast.BitXor(),
}
_UNARY: dict[str, ast.unaryop] = {"neg": ast.USub(), "pos": ast.UAdd(), "invert": ast.Invert(), "not": ast.Not()}
_COMPARISON_NODES: dict[str, ast.cmpop] = {
    "==": ast.Eq(),
    "!=": ast.NotEq(),
    "<": ast.Lt(),
    "<=": ast.LtE(),
    ">": ast.Gt(),
    ">=": ast.GtE(),
    "in": ast.In(),
    "not in": ast.NotIn(),
    "is": ast.Is(),
    "is not": ast.IsNot(),
}


class _Writing:
    """Writes expressions in which variables have names."""

    def __init__(self, names: Sequence[str], *, assigns: bool = True) -> None:
        self._names, self._assigns = names, assigns

    def syntax(self, each: Expression) -> ast.expr:
        match each:
            case Argument(place):
                return _name(self._names[place])
            case Local(number):
                return _name(f"l{number}")
            case Let(value, number, within) if not self._assigns:
                return ast.Call(_function(self.syntax(within), f"l{number}"), [self.syntax(value)], [])
            case Let(value, number, within):
                # An expression has no statements: the first member of a tuple assigns, the second one is the result.
                given = ast.NamedExpr(ast.Name(f"l{number}", ast.Store()), self.syntax(value))
                return _indexed(_together([given, self.syntax(within)]), ast.Constant(1))
            case Applied(operator, operands):
                return self._applied(operator, self._all(operands))
            case Compared(operators, operands):
                left, *others = self._all(operands)
                return ast.Compare(left, [_COMPARISON_NODES[operator] for operator in operators], others)
            case Choice(condition, chosen, otherwise):
                return ast.IfExp(self.syntax(condition), self.syntax(chosen), self.syntax(otherwise))
            case Indexed(of, Called("slice", (_, _, _) as bounds)):
                return _indexed(self.syntax(of), ast.Slice(*self._all(bounds)))
            case Indexed(of, index):
                return _indexed(self.syntax(of), self.syntax(index))
            case Attribute(of, name):
                return ast.Attribute(self.syntax(of), name, ast.Load())
            case Called(function, arguments):
                return self._call(_name(function.replace(".", "_of_")), arguments)
            case Method(of, name, arguments, keywords):
                written, by_place = self._all(arguments), len(arguments) - len(keywords)
                method = ast.Attribute(self.syntax(of), name, ast.Load())
                return ast.Call(method, written[:by_place], _keywords(keywords, written[by_place:]))
            case Built(kind, names, values):
                return self._display(kind, names, self._all(values))
            case Changed(of, "dict", names, values):
                keys: list[ast.expr | None] = [None, *map(ast.Constant, names)]
                return ast.Dict(keys, [self.syntax(of), *self._all(values)])
            case Changed(of, _, names, values):
                return ast.Call(_name(_REPLACE), [self.syntax(of)], _keywords(names, self._all(values)))
            case Made(kind, ("*",), (of,)):
                return ast.Call(self.syntax(kind), [ast.Starred(self.syntax(of), ast.Load())], [])
            case Made(kind, ("**",), (of,)):
                return ast.Call(self.syntax(kind), [], [ast.keyword(None, self.syntax(of))])
            case Made(kind, (), values):
                return ast.Call(self.syntax(kind), self._all(values), [])
            case Made(kind, names, values):
                return ast.Call(self.syntax(kind), [], _keywords(names, self._all(values)))
            case Together(members):
                return _together(self._all(members))
            case Text(members):
                return ast.JoinedStr([self._formatted(member) for member in members])
            case Comprehension(kind, loops, members):
                return _COMPREHENSIONS[kind](*self._all(members), generators=list(map(self._loop, loops)))
            case Display(kind, members):
                return self._dict(members) if kind == "dict" else _DISPLAYS[kind](list(map(self._member, members)))
            case Function(number, within):
                return _function(self.syntax(within), f"l{number}")
            case TriedFor(Tried(value, number, within, _, otherwise), kinds):
                handlers = (
                    _together([kind, _function(each)])
                    for kind, each in zip(self._all(kinds), self._all(otherwise), strict=True)
                )
                parts = [_function(self.syntax(value)), _function(self.syntax(within), f"l{number}"), *handlers]
                return ast.Call(_name("dstream_of_tried"), parts, [])
            case Invoked(function, arguments):
                return ast.Call(self.syntax(function), self._all(arguments), [])
        raise AssertionError(f"no loop can evaluate {each!r}")

    def statements(self, each: Expression) -> list[ast.stmt]:
        """Return the statements of a block."""
        assert isinstance(each, Statement)
        match each:
            case Statement("block", inner):
                return [written for one in inner for written in self.statements(one)] or [ast.Pass()]
            case Statement("assign" | "unpack", (value,), numbers):
                return [ast.Assign([_target(numbers, is_unpacked=each.kind == "unpack")], self.syntax(value))]
            case Statement("store", (of, key, value)):
                return [ast.Assign([self._member_of(of, key)], self.syntax(value))]
            case Statement("change", (of, key, value), _, sign):
                return [ast.AugAssign(self._member_of(of, key), _BINARY[sign], self.syntax(value))]
            case Statement("do", (value,)):
                return [ast.Expr(self.syntax(value))]
            case Statement("return", (value,)):
                return [ast.Return(self.syntax(value))]
            case Statement("if", (test, then, otherwise)):
                return [ast.If(self.syntax(test), self.statements(then), self.statements(otherwise))]
            case Statement("for", (of, then, otherwise), numbers, text):
                target = _target(numbers, is_unpacked=text == "unpacked")
                return [ast.For(target, self.syntax(of), self.statements(then), self.statements(otherwise))]
            case Statement("try", (tried, otherwise, finally_, *handlers)):
                rest = self.statements(otherwise) if otherwise.parts() else []
                # Without a handler, Python wants a `finally` that does nothing, too.
                last = self.statements(finally_) if finally_.parts() or not handlers else []
                return [ast.Try(self.statements(tried), list(map(self._handler, handlers)), rest, last)]
            case Statement("match", (of, *cases)):
                return [ast.Match(self.syntax(of), list(map(self._case, cases)))]
        return [_JUMPS[each.kind]()]

    def _member_of(self, of: Expression, key: Expression) -> ast.Subscript:
        return ast.Subscript(self.syntax(of), self.syntax(key), ast.Store())

    def _handler(self, each: Expression) -> ast.ExceptHandler:
        assert isinstance(each, Statement)
        kinds, block = each.inner
        name = f"l{each.numbers[0]}" if each.numbers else None
        return ast.ExceptHandler(self.syntax(kinds), name, self.statements(block))

    def _case(self, each: Expression) -> ast.match_case:
        assert isinstance(each, Statement)
        *guards, block = each.inner
        parsed = ast.parse(f"match x:\n case {each.text}: pass").body[0]
        assert isinstance(parsed, ast.Match), "it was written so"
        guard = self.syntax(guards[0]) if guards else None
        return ast.match_case(parsed.cases[0].pattern, guard, self.statements(block))

    def _call(self, function: ast.expr, arguments: Sequence[Expression]) -> ast.expr:
        by_name = [each for each in arguments if isinstance(each, Keyword)]
        by_place = self._all(arguments[: len(arguments) - len(by_name)])
        return ast.Call(function, by_place, [ast.keyword(each.name, self.syntax(each.value)) for each in by_name])

    def _loop(self, loop: Loop) -> ast.comprehension:
        target = _target(loop.numbers, is_unpacked=loop.is_unpacked)
        # Python refuses assignments in the iterable of a comprehension, also inside of a lambda.
        of = _Writing(self._names, assigns=False).syntax(loop.of)
        return ast.comprehension(target, of, self._all(loop.conditions), 0)

    def _member(self, each: Expression) -> ast.expr:
        return ast.Starred(self.syntax(each.of), ast.Load()) if isinstance(each, Spread) else self.syntax(each)

    def _dict(self, members: Sequence[Expression]) -> ast.expr:
        keys: list[ast.expr | None] = []
        values: list[ast.expr] = []
        parts = iter(members)
        for each in parts:
            keys.append(None if isinstance(each, Spread) else self.syntax(each))
            values.append(self.syntax(each.of if isinstance(each, Spread) else next(parts)))
        return ast.Dict(keys, values)

    def _display(self, kind: type, names: Sequence[str], values: list[ast.expr]) -> ast.expr:
        return ast.List(values, ast.Load()) if kind is list else ast.Dict([*map(ast.Constant, names)], values)

    def _all(self, expressions: Sequence[Expression]) -> list[ast.expr]:
        return [self.syntax(each) for each in expressions]

    def _applied(self, operator: str, operands: list[ast.expr]) -> ast.expr:
        if operator in ("and", "or"):
            return ast.BoolOp(ast.And() if operator == "and" else ast.Or(), operands)
        if operator in _UNARY:
            return ast.UnaryOp(_UNARY[operator], *operands)
        left, right = operands
        if operator in _COMPARISON_NODES:
            return ast.Compare(left, [_COMPARISON_NODES[operator]], [right])
        return ast.BinOp(left, _BINARY[operator], right)

    def _formatted(self, member: Expression) -> ast.FormattedValue:
        if not isinstance(member, FormattedBy):  # It is a string between braces.
            return ast.FormattedValue(self.syntax(member), -1, None)
        conversion = ord(member.conversion) if member.conversion else -1
        spec = None if member.spec is None else ast.JoinedStr([ast.FormattedValue(self.syntax(member.spec), -1, None)])
        return ast.FormattedValue(self.syntax(member.of), conversion, spec)


_JUMPS: dict[str, Callable[[], ast.stmt]] = {"break": ast.Break, "continue": ast.Continue, "raise": ast.Raise}


def _target(numbers: Sequence[int], *, is_unpacked: bool) -> ast.expr:
    names: list[ast.expr] = [ast.Name(f"l{number}", ast.Store()) for number in numbers]
    return ast.Tuple(names, ast.Store()) if is_unpacked else names[0]


_REPLACE = "dataclasses_of_replace"
assert _REPLACE in FUNCTIONS, "loops have it under this name"


_COMPREHENSIONS: dict[str, Callable[..., ast.expr]] = {
    "list": ast.ListComp,
    "set": ast.SetComp,
    "dict": ast.DictComp,
    "generator": ast.GeneratorExp,
}
_DISPLAYS: dict[str, Callable[[list[ast.expr]], ast.expr]] = {
    "list": lambda members: ast.List(members, ast.Load()),
    "set": ast.Set,
    "tuple": lambda members: ast.Tuple(members, ast.Load()),
}


def _function(body: ast.expr, *names: str) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, []), body)


def _keywords(names: Sequence[str], values: Sequence[ast.expr]) -> list[ast.keyword]:
    return [ast.keyword(name, value) for name, value in zip(names, values, strict=True)]


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _together(members: list[ast.expr]) -> ast.Tuple:
    return ast.Tuple(members, ast.Load())


def _indexed(of: ast.expr, index: ast.expr) -> ast.Subscript:
    return ast.Subscript(of, index, ast.Load())
