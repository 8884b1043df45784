"""Names that a stream does not have: what is meant by them."""

from __future__ import annotations

import difflib
import re
from typing import Any

__all__ = ["no_such_name"]

_ELSEWHERE = {
    # PySpark
    "aggregateByKey": "collect(grouping_by(key, ...))",
    "collectAsMap": "collect(to_map(key, value))",
    "countByKey": "collect(grouping_by(key, counting()))",
    "countByValue": "collect(frequencies())",
    "dropDuplicates": "distinct(key=...)",
    "fold": "reduce(identity, op)",
    "foreach": "for_each(action)",
    "foreachPartition": "for_each_partition(action)",
    "groupBy": "collect(grouping_by(key))",
    "groupByKey": "collect(grouping_by(key))",
    "mapPartitions": "map(fn), flat_map(fn)",
    "orderBy": "sorted(key=...)",
    "persist": "to_list(), or a reducer such as to_ilist(name)",
    "reduceByKey": "collect(to_map(key, value, merge))",
    "repartition": "parallel(n)",
    "select": "map(fn)",
    "sortBy": "sorted(key=...)",
    "take": "limit(n).to_list()",
    "takeOrdered": "sorted(key=...).limit(n).to_list()",
    "toLocalIterator": "iter(stream)",
    "where": "filter(predicate)",
    "withColumn": "map(fn)",
    # Python and its libraries
    "append": "stream + Stream.of(item)",
    "compute": "to_list()",
    "first": "find_first()",
    "group_by": "collect(grouping_by(key))",
    "groupby": "collect(grouping_by(key))",
    "list": "to_list()",
    "map_partitions": "map(fn), flat_map(fn)",
    "sort": "sorted(key=...)",
    "sum": "map_to_int(fn).sum(), map_to_double(fn).sum()",
    "average": "map_to_double(fn).average()",
    "mean": "map_to_double(fn).average()",
    "to_set": "collect(to_set())",
    "to_dict": "collect(to_map(key, value))",
}
"""What people call elsewhere what a stream can do."""


def no_such_name(cls: type[Any], name: str) -> str:
    """Say that streams have no attribute of this name, and which one is probably meant."""
    article = "an" if cls.__name__[0] in "AEIO" else "a"
    message = f"{article} {cls.__name__} has no {name!r}"
    meant = _ELSEWHERE.get(name) or _similar(cls, name)
    return f"{message}; use {meant}" if meant else message


def _similar(cls: type[Any], name: str) -> str:
    """Return the public name that is most like `name`, or nothing; `flatMap` is `flat_map`."""
    if name.startswith("_"):
        return ""
    snake_case = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    names = [known for known in dir(cls) if not known.startswith("_")]
    return "".join(difflib.get_close_matches(snake_case, names, n=1))
