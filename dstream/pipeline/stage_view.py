"""`StageView`: a stage looked at by keys or by windows, on the way to what happens to each of these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, Self

from dstream.plan import Node
from dstream.stream.stream_arguments import kind_of

if TYPE_CHECKING:
    from dstream.pipeline.any_stage import AnyStage
    from dstream.pipeline.pipeline import Pipeline

__all__ = ["StageView"]


class StageView:
    """What `grouping_key` and `window` return. It is no stage: it has no name, and nothing runs for it."""

    __slots__ = ("_stage",)

    def __init__(self, stage: Any) -> None:
        self._stage = stage

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline of its stage."""
        pipeline: Pipeline = self._stage.pipeline
        return pipeline

    @property
    def _node(self) -> Node:
        node: Node = self._stage._record.node
        return node

    def _step(self, kind: str, node: Node, others: Iterable[AnyStage] = ()) -> Any:
        return self._stage._step(kind, node, others)

    def _other(self, other: Any, call: str) -> Self:
        """Return what stands beside this one in an operation.

        Raises:
            IllegalStateError: it belongs to another pipeline.
            TypeError: it is looked at in another way.
        """
        if not isinstance(other, type(self)):
            raise TypeError(f"{call}() of {self._called_by()}, not {kind_of(other)}")
        self._stage._check_same_pipeline(other._stage, call)
        return other

    def _called_by(self) -> str:
        """Say what takes others of its kind, and which these are."""
        return f"a {type(self).__name__} takes others of this kind"

    def _stays_in_the_driver(self) -> str:
        """Say why a function that runs on the workers cannot take this along, and what to do instead."""
        stays: str = self._stage._stays_in_the_driver()
        return stays

    def __reduce__(self) -> NoReturn:
        self._stage.__reduce__()
        raise AssertionError("a stage refuses to be pickled")

    if not TYPE_CHECKING:  # A type checker would take it for every name.

        def __getattr__(self, name: str) -> NoReturn:
            from dstream.pipeline.stage_names import no_such_name  # here: only who mistakes a name needs it

            raise AttributeError(no_such_name(type(self), name))
