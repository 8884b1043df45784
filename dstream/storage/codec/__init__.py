"""Codecs of keys and values: bytes and columns.

`Codec` of `collection` is used by stores, with the typed columns; `description` makes it of its description. `keys`
encodes equal keys as equal bytes, `values` encodes any other value, and `pickles` decides which classes may be loaded,
`plain_classes` which need no permission. The names of the library's classes are defined by `dstream.base.registry`.
"""

from __future__ import annotations
