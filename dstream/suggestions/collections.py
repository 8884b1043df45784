"""Hints for unknown names of collections.

Keys are names without underscores in lower case. What has no counterpart is left out.
"""

from __future__ import annotations

from typing import Any

from dstream.stream.objects import Stream
from dstream.suggestions.libraries import ELSEWHERE
from dstream.suggestions.streams import meant_by, plain

__all__ = ["no_such_name"]


_COLLECTION = {
    "asiterator": "iter(collection)",
    "containsall": "all(each in collection for each in others)",
    "equals": "collection == other",
    "foreach": "stream().for_each(action)",
    "getname": "name",
    "iterator": "iter(collection)",
    "length": "len(collection)",
    "parallelstream": "stream()",
    "spliterator": "iter(collection)",
    "todict": "copy()",
    "tostring": "str(collection)",
}
_COMPUTED = "execute_on_key(key, lambda entry: entry.set_value(...))"
_MAP = {
    "addentrylistener": "watch()",
    "addlistener": "watch()",
    "addlocalentrylistener": "watch()",
    "aggregate": "stream().collect(collector)",
    "contains": "key in collection",
    "containskey": "key in collection",
    "containsvalue": "value in collection.values()",
    "copyof": "copy()",
    "delete": "remove(key), del collection[key]",
    "elements": "values()",
    "entries": "entry_set(), items()",
    "entryiterator": "iter(collection.items())",
    "evict": "remove(key)",
    "evictall": "clear()",
    "executeonkeys": "execute_on_key(key, fn) for each key, execute_on_entries(fn, predicate)",
    "foreachentry": "stream().for_each(action)",
    "foreachkey": "stream().for_each(lambda entry: action(entry.key))",
    "foreachvalue": "stream().for_each(lambda entry: action(entry.value))",
    "fromkeys": "put_all((key, value) for key in keys)",
    "getallasync": "get_all(keys)",
    "getandput": "put(key, value)",
    "getandremove": "remove(key)",
    "getandreplace": "replace(key, value)",
    "getasync": "get(key)",
    "getentryview": "execute_on_key(key, fn)",
    "getordefault": "get(key, default)",
    "has": "key in collection",
    "haskey": "key in collection",
    "invoke": "execute_on_key(key, fn)",
    "invokeall": "execute_on_entries(fn, predicate)",
    "iteritems": "items()",
    "iterkeys": "keys()",
    "itervalues": "values()",
    "keyset": "key_set()",
    "localkeyset": "key_set()",
    "lock": _COMPUTED,
    "mappingcount": "len(collection)",
    "project": "select(predicate, projection)",
    "putallasync": "put_all(entries)",
    "putasync": "put(key, value)",
    "putifabsentasync": "put_if_absent(key, value)",
    "puttransient": "put(key, value)",
    "reduce": "stream().reduce(op)",
    "reduceentries": "stream().reduce(op)",
    "reducekeys": "stream().map(lambda entry: entry.key).reduce(op)",
    "reducevalues": "stream().map(lambda entry: entry.value).reduce(op)",
    "removeall": "execute_on_entries(lambda entry: entry.set_value(None), predicate)",
    "removeasync": "remove(key)",
    "removeif": "execute_on_entries(lambda entry: entry.set_value(None), predicate)",
    "search": "stream(predicate).find_any()",
    "searchentries": "stream(predicate).find_any()",
    "searchkeys": "stream(predicate).find_any()",
    "searchvalues": "stream(predicate).find_any()",
    "set": "put(key, value), collection[key] = value",
    "setall": "put_all(entries)",
    "setallasync": "put_all(entries)",
    "setasync": "put(key, value)",
    "setttl": "ctx.get_cache(name, ttl=...)",
    "submittokey": "execute_on_key(key, fn)",
    "trylock": _COMPUTED,
    "tryput": "put(key, value)",
    "tryremove": "remove(key)",
    "tomap": "copy()",
    "unlock": _COMPUTED,
    "viewvalues": "values()",
}
_KEPT = "collection[:] = [item for item in collection if ...]"
_LIST = {
    "additemlistener": "stream()",
    "addfirst": "insert(0, item)",
    "addlast": "append(item)",
    "aslist": "copy()",
    "contains": "item in collection",
    "copyof": "copy()",
    "getfirst": "collection[0]",
    "getlast": "collection[-1]",
    "first": "collection[0]",
    "last": "collection[-1]",
    "indexof": "index(item)",
    "lastindexof": "copy(), a list",
    "listiterator": "iter(collection)",
    "peek": "collection[0], stream().peek(action)",
    "poll": "pop(0)",
    "push": "append(item)",
    "removeat": "pop(index)",
    "removeall": _KEPT,
    "removeif": _KEPT,
    "replaceall": "collection[:] = [fn(item) for item in collection]",
    "retainall": _KEPT,
    "removefirst": "pop(0)",
    "removelast": "pop()",
    "reversed": "reversed(collection)",
    "sublist": "collection[start:stop]",
    "toarray": "copy()",
    "tolist": "copy()",
}

_SET = {
    "addall": "update(items)",
    "contains": "item in collection",
    "difference": "collection - other",
    "extend": "update(items)",
    "intersection": "collection & other",
    "issubset": "collection <= other",
    "issuperset": "collection >= other",
    "removeall": "collection -= others",
    "retainall": "collection &= others",
    "symmetricdifference": "collection ^ other",
    "toset": "copy()",
    "union": "collection | other",
}
_QUEUE = {
    "add": "put(item)",
    "addall": "put_all(items)",
    "append": "put(item)",
    "dequeue": "take()",
    "empty": "is_empty()",
    "enqueue": "put(item)",
    "extend": "put_all(items)",
    "get": "take(), lease(seconds)",
    "getnowait": "take(timeout=0)",
    "length": "len(collection)",
    "offer": "put(item)",
    "peek": "head(1)",
    "poll": "take(timeout=0)",
    "pop": "take()",
    "popleft": "take()",
    "push": "put(item)",
    "putnowait": "put(item)",
    "qsize": "len(collection)",
    "remove": "take()",
    "taskdone": "lease(seconds)",
}
_COUNTER = {
    "addandget": "add(n)",
    "decrement": "add(-1)",
    "decrementandget": "add(-1)",
    "getandadd": "add(n) - n",
    "inc": "add(1)",
    "increment": "add(1)",
    "incrementandget": "add(1)",
    "intvalue": "get()",
    "longvalue": "get()",
    "reset": "destroy()",
    "value": "get()",
}
_OWN = {"list": _LIST, "set": _SET, "queue": _QUEUE, "counter": _COUNTER}


def no_such_name(cls: type[Any], name: str, kind: str) -> str:
    """Return the message for a missing attribute of a collection, with the name that is probably meant.

    Args:
        cls: the class of the collection.
        name: what it was asked for.
        kind: what kind it is, such as `"map"`.
    """
    message = f"an {cls.__name__} has no {name!r}"
    meant = "" if name.startswith("_") else _meant(cls, name, kind)
    return f"{message}; use {meant}" if meant else message


def _meant(cls: type[Any], name: str, kind: str) -> str:
    own = _OWN.get(kind, _MAP)
    # Counters and queues have no streams.
    elsewhere = {**_of_streams(), **_COLLECTION, **own} if hasattr(cls, "stream") else own
    if kind == "cache":
        elsewhere |= {"purgeall": "purge()", "evictexpired": "purge()"}
    return meant_by(cls, name, elsewhere)


def _of_streams() -> dict[str, str]:
    """Return names behind `stream()`: the operations of a stream, and the names of other libraries for them."""
    names = [name for name in dir(Stream) if not name.startswith("_") and name not in _NOT_OF_COLLECTIONS]
    own = {plain(name): f"stream().{name}(...)" for name in names}
    return {name: f"stream().{call}" for name, call in ELSEWHERE.items() if call.partition("(")[0] in names} | own


_NOT_OF_COLLECTIONS = {
    "builder",
    "close",
    "concat",
    "empty",
    "from_iterable",
    "generate",
    "iterate",
    "of",
    "of_nullable",
}
"""What makes streams, and what ends them."""
