"""The port: all that the engine asks of Spark, classic or Connect, and the code that it sends."""
