"""The modules of the house in figures: their sizes, their names, their docstrings, and the circles of their imports."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

__all__ = ["Source", "circles", "figures", "sources"]

_HOME = Path(__file__).parents[2]
_PACKAGES = ("collectors", "dstream", "reducers", "sources")
_NAMED_FOR_USERS = {("dstream.values.optional", "dstream.stream")}
"""Rooms that a module below them names for type checkers alone: `Optional.stream()` is a `Stream`, as in Java."""

_OPERATIONS = ("HashJoin", "OverEpochs", "Sorted")
"""Operations that many modules could know; what is known of one is a method of it (decision 99)."""

_FEW_LINES = 60
_MANY_LINES = 500


@dataclass(frozen=True)
class Source:
    """A module as text and as a syntax tree."""

    name: str
    text: str
    is_package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of its syntax."""
        return list(ast.walk(self.tree))

    @cached_property
    def lines(self) -> int:
        """The number of its lines."""
        return len(self.text.splitlines())

    @property
    def package(self) -> str:
        """The package that it is in."""
        return self.name.rpartition(".")[0]

    @property
    def room(self) -> str:
        """The package of ours below the top, or the top package that is a face: the unit of the layout."""
        top, *inner = self.name.split(".")
        return ".".join([top, *inner[:1]]) if top == "dstream" else top

    @property
    def head(self) -> int:
        """The number of lines down to the last import, or to `__all__`."""
        last = 0
        for node in self.tree.body:
            if _is_of_the_head(node):
                last = node.end_lineno or last
        return last

    @property
    def repeats_its_package(self) -> bool:
        """Whether a word of its package stands in its name again."""
        words = set(self.name.rpartition(".")[2].split("_"))
        package = self.package.rpartition(".")[2]
        return not self.is_package and "." in self.package and bool({package, package.removesuffix("s")} & words)

    @cached_property
    def names(self) -> set[str]:
        """The names in its code, of what it defines, imports or uses."""
        found = set()
        for node in self.nodes:
            match node:
                case ast.Name(id=name) | ast.alias(name=name) | ast.ClassDef(name=name) | ast.Attribute(attr=name):
                    found.add(name)
        return found

    @property
    def public_classes(self) -> list[str]:
        """The names of its classes."""
        return [node.name for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]

    @property
    def comments(self) -> int:
        """The number of lines that are comments, or that end in one."""
        return sum(
            "# " in line and "noqa" not in line and "type: ignore" not in line for line in self.text.splitlines()
        )

    @property
    def docstrings(self) -> list[str]:
        """The first lines of all docstrings."""
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        texts = (ast.get_docstring(node) for node in self.nodes if isinstance(node, kinds))
        return [text.partition("\n")[0] for text in texts if text]

    def imported(self, names: frozenset[str]) -> set[str]:
        """Return the modules of ours that it imports as a whole, also those that only type checkers see."""
        found: set[str] = set()
        for node in _statements(self.tree.body):
            if isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{each.name}" for each in node.names}
                found |= (inner & names) | ({node.module} if inner - names else set())
        return found & names - {self.name}


def _is_of_the_head(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "__all__"
    return isinstance(node, ast.Import | ast.ImportFrom) or _is_for_types(node)


def _is_for_types(node: ast.stmt) -> bool:
    """Say whether a statement imports for type checkers; one that defines a class for them is no part of the head."""
    is_guard = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    return is_guard and not any(isinstance(each, ast.ClassDef) for each in node.body)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from _statements(node.body)
        yield node


def sources() -> list[Source]:
    """Read all modules of the four packages."""
    return [_source(path) for package in _PACKAGES for path in sorted((_HOME / package).rglob("*.py"))]


def _source(path: Path) -> Source:
    parts = path.relative_to(_HOME).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    return Source(".".join(parts[:-1] if is_package else parts), path.read_text("utf-8"), is_package)


def figures(house: list[Source]) -> Iterator[tuple[str, str]]:
    """Give each figure with its name."""
    lines = sum(each.lines for each in house)
    yield "modules", f"{len(house):,}"
    yield "lines", f"{lines:,}"
    yield "heads of modules: docstrings and imports", f"{sum(each.head for each in house) / lines:.0%}"
    small = [each for each in house if each.lines < _FEW_LINES and not each.is_package]
    yield f"modules below {_FEW_LINES} lines, without packages", f"{len(small)}"
    long = [f"{each.name} {each.lines}" for each in house if each.lines > _MANY_LINES]
    yield f"modules above {_MANY_LINES} lines", ", ".join(long) or "none"
    yield "modules that repeat their package", f"{sum(each.repeats_its_package for each in house)}"
    yield (
        "public classes; those that share a name",
        "{:,}; {:,}".format(*_shared([c for e in house for c in e.public_classes])),
    )
    yield "public classes that share a name in their room", f"{_shared_in_rooms(house)}"
    yield from _circles(house)
    docstrings = [line for each in house for line in each.docstrings]
    yield (
        "first lines of docstrings with 'what'",
        f"{sum('what' in line.lower() for line in docstrings) / len(docstrings):.0%}",
    )
    yield "comments per 100 lines", f"{100 * sum(each.comments for each in house) / lines:.2f}"
    for name in _OPERATIONS:
        yield f"modules that name {name}", f"{sum(name in each.names for each in house)}"
    yield "signatures that say Any", _signatures_with_any(house)


def _shared(names: list[str]) -> tuple[int, int]:
    counts = Counter(names)
    return len(names), sum(count for count in counts.values() if count > 1)


def _shared_in_rooms(house: list[Source]) -> int:
    rooms = defaultdict(list)
    for each in house:
        rooms[each.room] += each.public_classes
    return sum(_shared(names)[1] for names in rooms.values())


def _circles(house: list[Source]) -> Iterator[tuple[str, str]]:
    names = frozenset(each.name for each in house)
    rooms = {each.name: each.room for each in house}
    modules = {each.name: each.imported(names) for each in house}
    between: dict[str, set[str]] = defaultdict(set)
    for name, found in modules.items():
        rest = {rooms[each] for each in found} - {rooms[name], "dstream", "dstream.suggestions"}
        between[rooms[name]] |= {room for room in rest if (name, room) not in _NAMED_FOR_USERS}
    yield "largest circle of imports, those for types too", f"{max(map(len, circles(modules)), default=0)} modules"
    yield "largest circle of rooms", f"{max(map(len, circles(between)), default=0)} rooms"


def circles(imported: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the sets of modules that reach each other, by Tarjan's algorithm (1972) with a stack of its own."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[set[str]] = []
    for root in imported:
        work = [(root, iter(imported[root]))] if root not in order else []
        while work:
            name, rest = work[-1]
            if name not in order:
                order[name] = lowest[name] = len(order)
                path.append(name)
            after = next((each for each in rest if each not in order or each in path), None)
            if after is None:
                work.pop()
                if work:
                    above = work[-1][0]
                    lowest[above] = min(lowest[above], lowest[name])
                if lowest[name] == order[name]:
                    at = path.index(name)
                    found.append(set(path[at:]))
                    del path[at:]
            elif after in order:
                lowest[name] = min(lowest[name], order[after])
            else:
                work.append((after, iter(imported.get(after, ()))))
    return [each for each in found if len(each) > 1]


def _signatures_with_any(house: list[Source]) -> str:
    signatures = with_any = anys = 0
    for each in house:
        for node in each.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                hints = [argument.annotation for argument in ast.walk(node.args) if isinstance(argument, ast.arg)]
                found = sum(_anys(hint) for hint in (*hints, node.returns) if hint is not None)
                signatures, with_any, anys = signatures + 1, with_any + (found > 0), anys + found
    return f"{with_any:,} of {signatures:,}, {anys:,} times"


def _anys(hint: ast.expr) -> int:
    return sum(isinstance(each, ast.Name) and each.id == "Any" for each in ast.walk(hint))
