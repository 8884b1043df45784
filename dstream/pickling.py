"""Pickling of what a user hands in: by value where it holds a class or function that only this process knows."""

from __future__ import annotations

import pickle
from typing import Any

import cloudpickle

__all__ = ["dumps"]


def dumps(value: Any) -> bytes:
    """Pickle `value`, by value where it holds a class or function that only this process knows."""
    try:
        data = pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        data = cloudpickle.dumps(value, protocol=5)
    else:
        if b"__main__" in data:
            data = cloudpickle.dumps(value, protocol=5)
    return bytes(data)
