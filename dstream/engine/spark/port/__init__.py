"""The port: all that the engine asks of Spark, of a classic session and of one of Spark Connect."""
