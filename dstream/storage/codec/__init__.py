"""Codecs of keys and values: bytes and columns.

`Codec` of `collection` is what a store uses; `keys` encodes keys so that equal ones give equal bytes, `columns` has the
typed columns, `values` encodes anything else, and `pickles` decides which classes may be loaded. The names of our own
classes come from `dstream.base.registry`.
"""

from __future__ import annotations
