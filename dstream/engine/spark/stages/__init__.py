"""Which stages and jobs a plan runs as on Spark. `plans` has the whole, `drawing` the walk; each other, its nodes."""

from dstream.engine.spark.stages import calling as calling  # each registers its nodes
from dstream.engine.spark.stages import gathering as gathering
from dstream.engine.spark.stages import joining as joining
from dstream.engine.spark.stages import keeping as keeping
from dstream.engine.spark.stages import streams as streams
from dstream.engine.spark.stages.plans import stages

__all__ = ["stages"]
