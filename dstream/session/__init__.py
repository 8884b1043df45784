"""The session: `connect()` and `Context`, the meeting point of streams, engines and storage.

`connection` makes a `Context` of its `configuration`; `context` has what users call, `contexts` the open contexts of a
process.
"""

from __future__ import annotations

from dstream.session.connection import connect, default_context, set_default_context
from dstream.session.context import CollectionName, Context

__all__ = ["CollectionName", "Context", "connect", "default_context", "set_default_context"]
