"""`SubplanEstimate`: the cardinality and the cost of a plan up to one operation, in this process and on Spark."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dstream.engine.auto.cost_model import Costs, FormatCost
from dstream.plan.operations.streams import Read
from dstream.spi.columns import SourceTraits
from dstream.spi.source import InputSize, input_size

__all__ = ["SubplanEstimate", "combined_estimates", "empty_estimate", "estimate_of_source"]


_ITEMS_OF_TASK = 10_000
"""Items for which another task of Spark is worth its start."""
_BYTES_OF_TASK = 1 << 20
_GAIN = 0.7
"""The part of each further core that shortens a run."""
_SCALARS = (int, float, str, bool, type(None))
_KEPT_BY_FILTER = 0.5
_MADE_BY_FLAT_MAP = 4.0
_BYTES_OF_WORD = 6.0


@dataclass(slots=True)
class SubplanEstimate:
    """The number of items that an operation emits, with the cost of each and of all of them.

    Attributes:
        items: their number; `math.inf` if it is unknown.
        here: seconds in this process before the first item.
        each_here: seconds in this process for each item.
        there: like `here`, on Spark.
        each_shared: seconds of Spark's tasks for each item, which they share.
        each_there: seconds of the driver for each item, on Spark.
        tasks: the speed-up of Spark's cores over one core, as far as they have tasks.
        ratio: the number of output items per input item of the stage.
        pickled: seconds to pickle an item and load it again.
        made: seconds to make an object of an item in columns.
        text_bytes: the bytes of an item that is a line of text, otherwise 0.
        is_columnar: the items are in columns.
        is_text: the items are lines of text, or words of lines.
        is_even: each item of the source becomes one, so that a limit bounds what is read.
        is_sure: the number of items follows from known sizes of sources.
        is_of_spark: only Spark can read them.
        why: the largest input, in words.
        weight: the part of the cost that `why` accounts for.
    """

    items: float = 0.0
    here: float = 0.0
    each_here: float = 0.0
    there: float = 0.0
    each_shared: float = 0.0
    each_there: float = 0.0
    tasks: float = 1.0
    ratio: float = 1.0
    pickled: float = 0.0
    made: float = 0.0
    text_bytes: float = 0.0
    is_columnar: bool = False
    is_text: bool = False
    is_even: bool = True
    is_sure: bool = True
    is_of_spark: bool = False
    why: str = ""
    weight: float = -1.0

    def spend(self, seconds: float) -> None:
        """Add the cost of a step for each item."""
        self.each_here += seconds
        self.each_shared += seconds

    def leave_columns(self) -> None:
        """Make objects of items in columns."""
        if self.is_columnar:
            self.spend(self.made)
            self.is_columnar = False

    def multiply(self, factor: float) -> None:
        """Multiply the items by `factor`, for the same cost together."""
        self.items *= factor
        self.ratio *= factor
        self.each_here /= factor
        self.each_shared /= factor
        self.each_there /= factor
        self.is_even = False

    def filter(self) -> None:
        """Reduce the items as a `filter` does."""
        self.multiply(_KEPT_BY_FILTER)

    def flatten(self) -> None:
        """Multiply the items as a `flat_map` does: a line of text becomes its words."""
        self.multiply(max(2.0, self.text_bytes / _BYTES_OF_WORD) if self.text_bytes else _MADE_BY_FLAT_MAP)
        self.text_bytes = 0.0

    def limit(self, count: float) -> None:
        """Take only the first items; later ones are not computed."""
        if self.items <= count:
            return
        # After a filter it is unknown how far the source has to be read.
        self.is_sure = self.is_even
        self.items = float(count)
        # On Spark the first partitions run alone.
        self.tasks = 1.0
        if self.weight > 0:
            self.why, self.weight = f"the first {count:,} items of {self.why.partition(' of ')[2]}", count

    def finish(self, items: float, assumed: float) -> None:
        """Compute all items before the next step, which continues with `items` others."""
        if self.items == math.inf:
            self.items, items = assumed, min(items, assumed)
        self.here += self.items * self.each_here
        self.there += self.items * (self.each_there + self.each_shared / self.tasks)
        self.each_here = self.each_shared = self.each_there = 0.0
        self.items, self.ratio, self.is_even = items, 1.0, True

    def spread(self, cores: int) -> None:
        """Divide the items among tasks, as a shuffle does."""
        self.tasks = _tasks(self.items, _ITEMS_OF_TASK, cores)


def empty_estimate() -> SubplanEstimate:
    """Return the estimate of no items."""
    return SubplanEstimate()


def estimate_of_source(read: Read, costs: Costs, cores: int, in_columns: bool) -> SubplanEstimate:
    """Return the estimate of a source, which emits columns only with `in_columns`."""
    size, source = input_size(read.source), read.source
    if size.stored_bytes is not None:
        return _of_stored(read, size, size.stored_bytes, costs, cores, in_columns)
    if size.is_held:
        return _of_items_in_memory(read, size, costs, cores, in_columns)
    items = math.inf if size.items is None else float(size.items)
    subplan = SubplanEstimate(
        items, pickled=costs.pickled_object, is_sure=items < math.inf, tasks=_tasks(items, _ITEMS_OF_TASK, cores)
    )
    subplan.why, subplan.weight = f"{_count(size)} of {_name(source, read)}", items
    subplan.spend(costs.formats[""].item)
    return subplan


def _of_items_in_memory(read: Read, size: InputSize, costs: Costs, cores: int, in_columns: bool) -> SubplanEstimate:
    source, traits = read.source, SourceTraits(read.source)
    items = math.inf if size.items is None else _as_float(size.items)
    first = _first(traits)
    is_free = traits.is_free_to_read or isinstance(traits.iterable, range)
    is_scalar = is_free or isinstance(first, _SCALARS)
    subplan = SubplanEstimate(items, is_sure=items < math.inf, tasks=_tasks(items, _ITEMS_OF_TASK, cores))
    subplan.pickled = costs.pickled_scalar if is_scalar else costs.pickled_object
    has_columns = traits.has_columns or is_free or isinstance(first, int | float)
    subplan.is_columnar = in_columns and has_columns
    subplan.made = costs.item if is_scalar else costs.pickled_object
    # Mutable items, other than those of a range, are copied in this process, and pickled for Spark.
    if not is_free:
        subplan.each_here += costs.item if is_scalar else costs.copied
        subplan.each_there += subplan.pickled + costs.returned
    subplan.why, subplan.weight = f"{_count(size)} of {_name(source, read)}", items * subplan.pickled
    return subplan


def _of_stored(read: Read, size: InputSize, stored: int, costs: Costs, cores: int, in_columns: bool) -> SubplanEstimate:
    source, traits = read.source, SourceTraits(read.source)
    cost = _format(traits, costs)
    known = size.items
    items = max(1.0, stored / cost.item_bytes) if known is None else float(known)
    bytes_of_item = stored / max(items, 1.0)
    subplan = SubplanEstimate(items, pickled=cost.pickled, made=cost.item, tasks=_tasks(stored, _BYTES_OF_TASK, cores))
    subplan.is_text = traits.gives_texts
    subplan.text_bytes = cost.item_bytes if subplan.is_text else 0.0
    subplan.is_columnar = in_columns and (subplan.is_text or traits.has_columns)
    if subplan.is_columnar:
        subplan.spend(cost.column_byte * bytes_of_item)
        subplan.made += (cost.byte - cost.column_byte) * bytes_of_item
    else:
        subplan.spend(cost.byte * bytes_of_item + cost.item)
    subplan.why, subplan.weight = f"{_bytes(stored)} of {_name(source, read)}", stored * cost.byte + items * cost.item
    return subplan


def _format(traits: SourceTraits, costs: Costs) -> FormatCost:
    maker = traits.maker
    if not maker and traits.has_columns:
        maker = "parquet_rows"
    if not maker and traits.has_whole_files:
        maker = "files"
    return costs.formats.get(maker) or costs.formats[""]


def _first(traits: SourceTraits) -> object:
    """Return the first item of a list or tuple of the caller's, by which the others are judged; nothing is read."""
    items = traits.iterable
    return items[0] if type(items) in (list, tuple) and items else _NO_ITEM


_NO_ITEM = object()


def _tasks(amount: float, of_task: float, cores: int) -> float:
    return _shared_by(min(float(cores), amount / of_task))


def _shared_by(cores: float) -> float:
    """Return the speed-up of `cores` over one core: the driver and Spark's Java use a part of each."""
    return 1.0 + _GAIN * max(0.0, cores - 1.0)


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # A range may be longer than any float.
        return math.inf


def _name(source: object, read: Read) -> str:
    paths = SourceTraits(source).paths
    if len(paths) == 1:
        return repr(paths[0].rstrip("/").rpartition("/")[2] or paths[0])
    return f"{len(paths)} paths" if paths else read.label().removeprefix(".") or type(source).__name__


def _count(size: InputSize) -> str:
    if size.items is None:
        return "an unknown number of items"
    return "items without an end" if size.items == math.inf else f"{int(size.items):,} items"


def _bytes(size: float) -> str:
    for unit, amount in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= amount:
            return f"{size / amount:.1f} {unit}"
    return f"{int(size):,} bytes"


def combined_estimates(subplans: Iterable[SubplanEstimate]) -> SubplanEstimate:
    """Return the estimate of the items of several subplans, one after another."""
    subplans = list(subplans)
    if len(subplans) <= 1:
        return replace(subplans[0]) if subplans else empty_estimate()
    sizes = [min(subplan.items, _ENDLESS) for subplan in subplans]
    total = sum(sizes)
    shares = [size / total if total else 1.0 / len(subplans) for size in sizes]
    largest = max(subplans, key=lambda subplan: subplan.weight)
    together = SubplanEstimate(
        sum(subplan.items for subplan in subplans),
        here=sum(subplan.here for subplan in subplans),
        there=sum(subplan.there for subplan in subplans),
        tasks=max(subplan.tasks for subplan in subplans),
        is_columnar=all(subplan.is_columnar for subplan in subplans),
        is_text=any(subplan.is_text for subplan in subplans),
        is_even=all(subplan.is_even for subplan in subplans),
        is_sure=all(subplan.is_sure for subplan in subplans),
        is_of_spark=any(subplan.is_of_spark for subplan in subplans),
        why=largest.why,
        weight=largest.weight,
    )
    for name in ("each_here", "each_shared", "each_there", "ratio", "pickled", "made", "text_bytes"):
        average = sum(getattr(subplan, name) * share for subplan, share in zip(subplans, shares, strict=True))
        setattr(together, name, average)
    return together


_ENDLESS = 1e15
"""The number that replaces an unknown one where averages are taken."""
