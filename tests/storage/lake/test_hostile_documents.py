"""A few changes of `tests.soak.hostile`, in which more of them stand."""

from __future__ import annotations

from tests.soak.hostile import violations


def test_changed_documents_are_read_or_refused():
    """Each gives what stands there or an error that names the collection, at once, and touches nothing outside."""
    assert list(violations(15, seed=3)) == []
