"""The session: `connect()` and `Context`, the one place where streams, engines and storage meet."""

from dstream.session.connecting import connect, default_context, set_default_context
from dstream.session.context import CollectionName, Context

__all__ = ["CollectionName", "Context", "connect", "default_context", "set_default_context"]
