"""The choice of the engine of each plan, by an estimate of its work."""

from __future__ import annotations
