"""Keys: which values may be grouped by, which of them are one key, and where each one is routed.

Equality follows a Python dict (`1`, `1.0` and `True` are one key), with one difference: every NaN
is the same key, since a dict's identity rule cannot survive a process border. A key whose hash
comes from its identity, or that has no hash, is refused on every engine.

`canonical` and `stable_hash` say what holds for one key; `key_batches` does the same for many at once.
"""

from dstream.keys.canonical import canonical
from dstream.keys.forms import compared_fields, has_generated_eq, has_generated_hash
from dstream.keys.hashing import check_hash_seed, stable_hash
from dstream.keys.key_batches import are_canonical, canonical_all, canonical_keys, stable_hashes
from dstream.keys.nan import NAN, FieldNan

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
