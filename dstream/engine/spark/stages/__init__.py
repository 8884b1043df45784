"""Which stages, shuffles and jobs a plan will run as on Spark. `drawing` has the walk; each other module, its nodes."""

from dstream.engine.spark.stages import calling as calling  # each registers its nodes
from dstream.engine.spark.stages import gathering as gathering
from dstream.engine.spark.stages import joining as joining
from dstream.engine.spark.stages import keeping as keeping
from dstream.engine.spark.stages import streams as streams
from dstream.engine.spark.stages.drawing import stages

__all__ = ["stages"]
