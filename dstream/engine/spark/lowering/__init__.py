"""Lowering: what each core node of a plan becomes on Spark. `registry` has the walk; each other module, its nodes."""

from dstream.engine.spark.lowering import calling as calling  # each registers its nodes
from dstream.engine.spark.lowering import gathering as gathering
from dstream.engine.spark.lowering import joining as joining
from dstream.engine.spark.lowering import keeping as keeping
from dstream.engine.spark.lowering import streams as streams
from dstream.engine.spark.lowering.gathering import reduced, reduced_apart
from dstream.engine.spark.lowering.registry import Lowering
from dstream.engine.spark.lowering.streams import reads_only

__all__ = ["Lowering", "reads_only", "reduced", "reduced_apart"]
