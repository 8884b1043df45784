"""The port: the calls of the engine to Spark, classic or Connect, and the code that it ships.

`protocols` is the contract, `classic` and `connect` are its two implementations, `errors` translates failures of Spark,
and `code` brings the user's modules to workers.
"""

from __future__ import annotations
