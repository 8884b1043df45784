"""Codecs of keys and values: bytes and columns.

`codec.Codec` is what a store uses; `codec_keys` says which keys are one key, `types` what a typed column holds,
`values` how anything else becomes bytes, and `pickles` which classes may be loaded.
"""

from __future__ import annotations
