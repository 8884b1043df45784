"""`OfItems`: how a type checker sees collectors whose result is made of the items themselves, whatever these are."""

from __future__ import annotations

__all__ = ["OfItems"]


class OfItems:
    """The type of the containers of such a collector, for type checkers; nobody looks into a container by it.

    `to_list()` may take any item. Below `mapping(fn, ...)` mypy settles what it takes before it has looked into `fn`,
    and settles on nothing: `Collector[Never, OfItems, list[Never]]`. That type tells `mapping` that the result is a
    list of what `fn` gives. `quantiles`, whose lists hold floats for any item, has another one.
    """
