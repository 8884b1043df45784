"""`AnyStage`: what every stage of a pipeline has, whatever flows through it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Self

from dstream.errors import IllegalStateError, SerializationError
from dstream.pipeline.stage_record import StageRecord
from dstream.plan import describe
from dstream.stream.stream_arguments import kind_of, whole

if TYPE_CHECKING:
    from dstream.pipeline.pipeline import Pipeline

__all__ = ["AnyStage", "placed"]


class AnyStage:
    """A stage of a pipeline: a handle by which it is named, changed, and read by later stages. Nothing runs."""

    __slots__ = ("_pipeline", "_record")

    def __init__(self, pipeline: Pipeline, record: StageRecord) -> None:
        self._pipeline = pipeline
        self._record = record

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline that it is a stage of."""
        return self._pipeline

    @property
    def name(self) -> str:
        """Its name, unique in the pipeline: the one that was set, or that of its method, with `-2`, `-3` behind it."""
        return self._pipeline._name_of(self._record)

    def set_name(self, name: str) -> Self:
        """Give the stage a name, under which plans, metrics and failures speak of it; return the same stage.

        It also says which state belongs to it when a job is changed.

        Raises:
            IllegalStateError: another stage of the pipeline was given that name.
            ValueError: the name is empty.
        """
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {kind_of(name)}")
        if not name.strip():
            raise ValueError("name must not be empty")
        self._pipeline._rename(self._record, name)
        return self

    def set_local_parallelism(self, n: int) -> Self:
        """Say in how many partitions the stage runs; return the same stage.

        A source is asked for so many parts, and may have its own idea of them; other stages have their items
        spread first, which costs a shuffle. The local engine has one partition.

        Args:
            n: how many; -1 leaves it to the data and the cores.

        Raises:
            ValueError: `n` is neither -1 nor at least 1.
        """
        number = whole(n, "n")
        if number != -1 and number < 1:
            raise ValueError(f"n must be at least 1, or -1 for the default: {number}")
        self._record.step.parallelism = number
        return self

    def _check_same_pipeline(self, other: AnyStage, call: str) -> None:
        """Refuse a stage of another pipeline.

        Raises:
            IllegalStateError: it is one.
        """
        if other._pipeline is not self._pipeline:
            raise IllegalStateError(
                f"{call}() takes stages of one pipeline: {placed(self.name, self._record)} and "
                f"{placed(other.name, other._record)} belong to two; build both from one Pipeline()"
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {describe(self._record.node)}>"

    def _stays_in_the_driver(self) -> str:
        """Say why a function that runs on the workers cannot take this along, and what to do instead."""
        return (
            "cannot be used inside a function that runs on the workers; join the stages, or let the function capture "
            "plain values"
        )

    def __reduce__(self) -> NoReturn:
        raise SerializationError(
            f"a stage {self._stays_in_the_driver()}: {self!r}; what travels as a whole is its pipeline"
        )

    if not TYPE_CHECKING:  # A type checker would take it for every name.

        def __getattr__(self, name: str) -> NoReturn:
            from dstream.pipeline.stage_names import no_such_name  # here: only who mistakes a name needs it

            raise AttributeError(no_such_name(type(self), name))


def placed(name: str, record: StageRecord) -> str:
    """Return how a message speaks of a stage: its name and the place of the call that made it."""
    return f"the stage {name!r}" + (f" at {record.where}" if record.where else "")
