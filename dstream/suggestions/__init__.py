"""Suggestions for unknown names: the names of other libraries, and those of dstream in their place.

`libraries` is the dictionary of other libraries; `streams`, `stages`, `collections`, `contexts` and `packages` find the
suggestion for an unknown attribute of an object of each kind.
"""
