"""What a graph will run as, said before it runs.

`outlook` follows the decisions of a graph through every report that may come, and counts; `picture` draws where the
most work would be done; `spark_stages` makes the graph that the Spark engine would run, and puts both together. Nothing
runs.
"""
