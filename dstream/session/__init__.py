"""The session: `connect()` and `Context`, the meeting point of streams, engines and storage.

- `connection`: makes a `Context` of its configuration.
- `context`: `Context`, with the methods that users call.
- `contexts`: the open contexts of a process.
- `configuration`: arguments, environment and files of settings.
- `job_config`: the configuration of all jobs of a context.
- `dataframes`: the arguments of `from_df` and `from_streaming_df`.
- `streaming`: `StreamingFrame`, a DataFrame of Structured Streaming.
- `warmup`: the start of an engine in the background.
- `class_archive`: the archive of classes with which Java starts faster.
"""

from __future__ import annotations

from dstream.session.connection import connect, default_context, set_default_context
from dstream.session.context import CollectionName, Context

__all__ = ["CollectionName", "Context", "connect", "default_context", "set_default_context"]
