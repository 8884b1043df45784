"""Codecs of keys and values: bytes and columns.

`Codec` of `collection` is used by stores, with the typed columns; `description` makes it of its description. `keys`
encodes keys so that equal ones give equal bytes, `values` encodes anything else, and `pickles` decides which classes
may be loaded, `plain_classes` those that need no permission. The names of our own classes are those of
`dstream.base.registry`.
"""

from __future__ import annotations
