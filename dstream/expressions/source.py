"""Source of a function: a syntax tree that provably belongs to its code.

A file may have changed since it was loaded, and a line may contain several lambdas. So a tree counts only if
compiling it again results in the same instructions, constants and names, each at the same line and column.
"""

from __future__ import annotations

import ast
import dis
import functools
import linecache
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import TypeAlias

from dstream.base.records import record
from dstream.base.threads import RenewedLock

__all__ = [
    "ALL_GLOBALS",
    "FunctionSource",
    "LocalFunction",
    "MissingSource",
    "assigned_once",
    "found_source",
    "globals_stored",
    "names_bound",
    "stamp_of_source",
    "typed",
]


Syntax: TypeAlias = ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef


@record(slots=False)
class FunctionSource:
    """The syntax tree of a function.

    Attributes:
        rebound: names to which `global` or `nonlocal` statements of the same file may assign; `ALL_GLOBALS`
            if it has other ways to do so.
    """

    syntax: Syntax
    rebound: frozenset[str]


@record(slots=False)
class LocalFunction:
    """A function that is defined inside of another one, which calls it.

    Attributes:
        own: the names of its variables.
        captured: other names.
    """

    name: str
    parameters: tuple[str, ...]
    statements: tuple[ast.stmt, ...]
    own: frozenset[str]
    captured: frozenset[str]


@record(slots=False)
class MissingSource:
    """The reason why a function has no syntax tree, as a predicate of "it", and the remedy."""

    reason: str
    advice: str


def found_source(code: CodeType) -> FunctionSource | MissingSource:
    """Return the syntax tree of a function's code, or the reason why there is none."""
    return _found(code, code.co_filename, stamp_of_source(code))


def stamp_of_source(code: CodeType) -> tuple[object, ...]:
    """Return a stamp that changes with the file of a function: its size and time as Python's `linecache` has them."""
    linecache.checkcache(code.co_filename)
    # `checkcache` only drops a stale entry: this loads the file again.
    linecache.getlines(code.co_filename)
    held = linecache.cache.get(code.co_filename, ())
    return (held[0], held[1]) if len(held) > 1 else ()


@functools.lru_cache(maxsize=1024)
def _found(code: CodeType, file: str, stamp: tuple[object, ...]) -> FunctionSource | MissingSource:
    """Return the syntax tree of code in a version of a file; equal code may be in several of each."""
    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Its author was warned when the source was compiled before.
        return _looked_up(code, file)


_one_at_a_time = RenewedLock()
"""Threads that leave `catch_warnings` in another order than they entered it would leave all warnings ignored."""


def assigned_once(file: str) -> Mapping[str, ast.expr]:
    """Return the values of a module's variables that one statement alone binds, outside of blocks.

    A name that is also bound inside of a function or a class is left out, and all are where a name may be bound unseen:
    by `from module import *`, or through the dictionary of the module.
    """
    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = _parsed("".join(linecache.getlines(file)))
    return {} if source is None else source.assigned_once


def _looked_up(code: CodeType, file: str) -> FunctionSource | MissingSource:
    lines = linecache.getlines(file)
    if not lines:
        return _NOT_AT_HAND
    source = _parsed("".join(lines))
    if source is None:
        return MissingSource("has a source that cannot be parsed", "")
    imported = sorted(source.imported.intersection(code.co_names))
    candidates = [each for each in source.by_line.get(code.co_firstlineno, ()) if _gives(each, imported, code)]
    if not candidates and file == _TEXT_OF_EVAL:
        return _NOT_AT_HAND
    if not candidates and code.co_name in code.co_names:  # It is no variable of a function around it.
        return MissingSource("calls itself", "")
    if not candidates:
        return MissingSource("has a source that changed after it was loaded", "load it again")
    # CPython 3.12 does not store all columns: each of several candidates in one line compiles to this very code.
    return FunctionSource(candidates[0], source.rebound)


_NOT_AT_HAND = MissingSource("has no readable source", "write it in a file, or in a cell of a notebook")
_TEXT_OF_EVAL = "<string>"
"""The file of all that `eval` and `exec` compile, and of `python -c`, whose source is available from Python 3.13 on."""


@record(slots=False)
class _Source:
    """A file.

    Attributes:
        by_line: functions by the line in which their code begins.
        rebound: names in `global` and `nonlocal` statements; `ALL_GLOBALS` for other ways to do so.
        imported: names that are imported outside of functions and classes: a call of such a name is looked up in its
            own way by CPython (3.11 to 3.13).
        assigned_once: the result of `assigned_once`.
    """

    by_line: dict[int, list[Syntax]]
    rebound: frozenset[str]
    imported: frozenset[str]
    assigned_once: Mapping[str, ast.expr]


@functools.lru_cache(maxsize=32)
def _parsed(text: str) -> _Source | None:
    if len(text) > _LONGEST:
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    by_line: dict[int, list[Syntax]] = defaultdict(list)
    rebound: set[str] = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            # The code of a decorated function begins at its first decorator (CPython 3.11).
            decorators = [] if isinstance(each, ast.Lambda) else each.decorator_list
            by_line[min([each.lineno, *(decorator.lineno for decorator in decorators)])].append(each)
        elif isinstance(each, ast.Global | ast.Nonlocal):
            rebound.update(each.names)
    if _reaching_globals(tree):
        rebound.add(ALL_GLOBALS)
    return _Source(dict(by_line), frozenset(rebound), frozenset(_imported(tree)), _assigned_once(tree))


def _reaching_globals(tree: ast.Module) -> bool:
    """Return whether some code may assign any global: by `globals()`, or by a string that it executes."""
    others = {id(each.func) for each in ast.walk(tree) if isinstance(each, ast.Call) and _has_own_names(each)}
    for each in ast.walk(tree):
        match each:
            case ast.Attribute(attr="__globals__") | ast.Name(id="globals"):
                return True
            case ast.Name(id="exec" | "eval") if id(each) not in others:
                return True
    return False


def _has_own_names(call: ast.Call) -> bool:
    """Return whether `exec` or `eval` gets names in the place of its globals."""
    return len(call.args) > 1 and not any(isinstance(each, ast.Starred) for each in call.args)


ALL_GLOBALS = "*"
"""Every global, among names that may be assigned."""


@functools.lru_cache(maxsize=4096)
def globals_stored(code: CodeType) -> frozenset[str]:
    """Return the globals that a function may assign, itself or in functions inside of it."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    stored = {each.argval for each in dis.get_instructions(code) if each.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")}
    by_text = frozenset[str]() if _CALLED.isdisjoint(code.co_names) else _by_text(code)
    return frozenset(stored).union(by_text, *map(globals_stored, inner))


def _by_text(code: CodeType) -> frozenset[str]:
    """Return the variables that code may change which looks at its globals or executes a string."""
    source = _parsed("".join(linecache.getlines(code.co_filename)))
    return frozenset({ALL_GLOBALS}) if source is None or not source.by_line else source.rebound & {ALL_GLOBALS}


_CALLED = frozenset({"globals", "__globals__", "exec", "eval"})


def _imported(module: ast.Module) -> Iterator[str]:
    left: list[ast.AST] = [module]
    while left:
        each = left.pop()
        if isinstance(each, ast.Import | ast.ImportFrom):
            yield from (name.asname or name.name.partition(".")[0] for name in each.names)
        elif not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            left.extend(ast.iter_child_nodes(each))


def _assigned_once(module: ast.Module) -> dict[str, ast.expr]:
    counts = names_bound([module])
    if _UNSEEN in counts or any(map(_binds_unseen, ast.walk(module))):
        return {}
    found = {}
    for each in module.body:
        match each:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                if counts[name] == 1:
                    found[name] = value
    return found


def _binds_unseen(node: ast.AST) -> bool:
    """Return whether a node may bind any name of the module."""
    match node:
        case ast.Name("vars" | "locals", _) | ast.Attribute(_, "modules" | "__dict__", _):
            return True
    return False


def names_bound(nodes: Iterable[ast.AST]) -> Counter[str]:
    """Count how often each name is bound or unbound inside of nodes, also in their functions and comprehensions."""
    return Counter(name for one in nodes for each in ast.walk(one) for name in _bound(each))


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds or unbinds itself."""
    match node:
        case ast.Name(name, ast.Store() | ast.Del()):
            yield name
        case ast.alias(name, asname):
            yield asname or name.partition(".")[0]  # `*` is `_UNSEEN`.
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.ExceptHandler(_, str(name)) | ast.MatchAs(_, str(name)) | ast.MatchStar(str(name)):
            yield name
        case ast.MatchMapping(_, _, str(name)):
            yield name


_UNSEEN = "*"
_LONGEST = 2**20
"""Files of more characters are not written by hand; parsing one would take seconds."""


def _gives(syntax: Syntax, imported: Sequence[str], code: CodeType) -> bool:
    """Return whether compiling `syntax` results in `code`; a function may have lambdas in its decorators."""
    if isinstance(syntax, ast.Lambda) != (code.co_name == "<lambda>"):
        return False
    try:
        # `dont_inherit`: the future imports of this module are none of the user's.
        compiled = compile(
            _alone(syntax, imported, code.co_freevars), code.co_filename, "exec", _flags(code), dont_inherit=True
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    essence = _essence(code)
    return any(_essence(each) == essence for around in _functions(compiled) for each in _functions(around))


def _alone(syntax: Syntax, imported: Sequence[str], captured: Sequence[str]) -> ast.Module:
    """Return a module that imports and contains one function, inside of one with the variables that it captures."""
    names: list[ast.expr] = [ast.Name(name, ast.Store()) for name in captured]
    # Without a function around it that assigns them, captured variables would be compiled as globals.
    body: list[ast.stmt] = [ast.Assign(names, ast.Constant(None))] if names else []
    body.append(ast.Expr(syntax) if isinstance(syntax, ast.Lambda) else syntax)
    module = ast.parse("def around(): pass")
    (around,) = module.body
    assert isinstance(around, ast.FunctionDef), "it was written so"
    around.body = body
    # Only for names that the code uses as imported: see `_Source.imported`.
    module.body += [ast.Import([ast.alias(name)]) for name in imported]
    return ast.fix_missing_locations(module)


def _flags(code: CodeType) -> int:
    return code.co_flags & _FUTURE_ANNOTATIONS


_FUTURE_ANNOTATIONS = 0x1000000
_OF_THE_CODE = 0x01 | 0x02 | 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200
"""Flags of the variables and arguments of a function, and whether it is a generator or a coroutine."""


def _functions(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of the functions in a module or a function, without those that are inside of these."""
    return (each for each in code.co_consts if isinstance(each, CodeType))


def _essence(code: CodeType) -> tuple[object, ...]:
    """Return all of a function's code but its position among others."""
    return (
        *(code.co_code, tuple(map(typed, code.co_consts)), code.co_names, code.co_varnames),
        *(code.co_freevars, code.co_cellvars, code.co_flags & _OF_THE_CODE, code.co_exceptiontable),
        *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        *(code.co_firstlineno, tuple(code.co_positions())),
    )


def typed(constant: object) -> tuple[object, ...]:
    """Return a constant so that `1`, `1.0` and `True` differ, as do `0.0` and `-0.0`."""
    if isinstance(constant, CodeType):
        return CodeType, *_essence(constant)
    if type(constant) is tuple:
        return tuple, *map(typed, constant)
    if type(constant) is frozenset or type(constant) is set:
        return type(constant), frozenset(map(typed, constant))
    if type(constant) is list:
        return list, *map(typed, constant)
    if type(constant) is dict:
        return dict, *(typed(each) for each in constant.items())
    return type(constant), repr(constant)
