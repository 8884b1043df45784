"""The errors of dstream, and the built-in that each of them is."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream import errors


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("IllegalStateError", RuntimeError),
        ("CollectionDestroyedError", errors.IllegalStateError),
        ("NullElementError", TypeError),
        ("UnstableKeyError", TypeError),
        ("NoSuchElementError", LookupError),
        ("CacheNotExistsError", LookupError),
        ("SerializationError", TypeError),
        ("UnsupportedError", NotImplementedError),
        ("SourceError", OSError),
    ],
)
def test_each_error_is_the_builtin_that_users_expect(name, builtin):
    """Each class stands below `DStreamError` and below a built-in."""
    assert issubclass(getattr(errors, name), (errors.DStreamError))
    assert issubclass(getattr(errors, name), builtin)


def test_names_live_where_the_contract_says():
    """What users need stands in `dstream` itself."""
    functions = {"connect", "set_default_context", "failure"}
    classes = {"Context", "Stream", "IntStream", "LongStream", "DoubleStream", "Optional", "Entry", "Collector"}

    assert functions | classes | {"errors"} <= set(dir(ds))


def test_local_context_has_no_spark_session(local_context):
    """What an engine does not have is an `UnsupportedError` that names the engine."""
    with pytest.raises(errors.UnsupportedError, match="local"):
        _ = local_context.spark
