"""Keys: valid grouping keys, their equality, and their routing.

Equality follows a Python dict (`1`, `1.0` and `True` are one key), with one difference: every NaN
is the same key, since a dict's identity rule cannot survive a process border. A key whose hash
is its identity, or that has no hash, is refused on every engine.

`canonical` checks and converts one key, `hashing` has the hashes and the functions on batches of keys.
"""

from __future__ import annotations

from dstream.keys.canonical import NAN, FieldNan, canonical, compared_fields, has_generated_eq, has_generated_hash
from dstream.keys.hashing import (
    are_canonical,
    canonical_all,
    canonical_keys,
    check_hash_seed,
    stable_hash,
    stable_hashes,
)

__all__ = [
    "NAN",
    "FieldNan",
    "are_canonical",
    "canonical",
    "canonical_all",
    "canonical_keys",
    "check_hash_seed",
    "compared_fields",
    "has_generated_eq",
    "has_generated_hash",
    "stable_hash",
    "stable_hashes",
]
