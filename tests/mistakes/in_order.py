"""Mistakes in what comes when: closed things, endless things, things that are not there."""

from __future__ import annotations

import dstream as ds
from dstream import Stream
from dstream.errors import CacheNotExistsError, CollectionDestroyedError, IllegalStateError, UnsupportedError
from tests.mistakes.mistake import LOCAL, mistake


@mistake(IllegalStateError, r"stream has already been closed", r"make it again")
def a_closed_stream(desk):
    """A stream is used after its end."""
    stream = desk.ctx.stream([1])
    stream.close()
    stream.to_list()  # here


@mistake(IllegalStateError, r"context is closed", r"connect\(\) again", engines=LOCAL)
def a_closed_context(desk):
    """A context is used after its end."""
    with ds.connect(engine="local") as ctx:
        stream = ctx.stream([1])
    stream.to_list()  # here


@mistake(IllegalStateError, r"infinite", r"limit\(\)")
def an_endless_list(desk):
    """All items of an infinite stream are asked for."""
    endless = desk.ctx.stream([0]) + Stream.iterate(0, lambda n: n + 1)
    endless.to_list()  # here


@mistake(IllegalStateError, r"infinite stream cannot be sorted", r"limit\(\)")
def an_endless_stream_that_is_sorted(desk):
    """An infinite stream is sorted."""
    endless = desk.ctx.stream([0]) + Stream.iterate(0, lambda n: n + 1)
    endless.sorted().limit(3).to_list()  # here


@mistake(CollectionDestroyedError, r"destroyed", r"get_map|again")
def a_map_that_was_destroyed(desk):
    """A map is used after its end."""
    ages = desk.ctx.get_map("ages")
    ages.destroy()
    ages["Ada"] = 36  # here


@mistake(KeyError, r"Grace", r"Grace")
def a_key_that_is_not_there(desk):
    """As a dict, a map has a `KeyError`."""
    desk.ctx.get_map("ages")["Grace"]  # here


@mistake(CacheNotExistsError, r"cache 'sessions' was never configured", r"ttl=")
def a_cache_that_was_never_configured(desk):
    """A cache is asked for that nobody made."""
    desk.ctx.get_cache("sessions")  # here


@mistake(ValueError, r"exists.*16|buckets", r"buckets")
def a_map_with_other_options(desk):
    """A map is asked for with other options than it was made with."""
    desk.ctx.get_map("orders", buckets=16)
    desk.ctx.get_map("orders", buckets=8)  # here


@mistake(TypeError, r"int.*str|str.*int", r"strict|type")
def a_value_of_another_type(desk):
    """A strict map refuses what is not of its type."""
    ages = desk.ctx.get_map("strict ages", key_type=str, value_type=int, strict=True)
    ages["Ada"] = "old"  # here


@mistake(UnsupportedError, r"local engine has no Spark session", r"connect\(engine='spark'\)", engines=LOCAL)
def a_spark_session_of_the_local_engine(desk):
    """There is no Spark where none was asked for."""
    desk.ctx.spark  # noqa: B018  # here
