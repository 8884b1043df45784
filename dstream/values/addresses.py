"""Addresses of servers, as users give them."""

from __future__ import annotations

from typing import Any

__all__ = ["checked_address"]

_PORTS = 65_535


def checked_address(host: Any, port: Any) -> tuple[str, int]:
    """Return the host and the port of a server.

    Raises:
        TypeError: the host is no str, or the port no int.
        ValueError: the host is empty, or there is no such port.
    """
    if not isinstance(host, str):
        raise TypeError(f"host must be a str, not {type(host).__name__}")
    if not host:
        raise ValueError("host must not be empty")
    if not isinstance(port, int) or isinstance(port, bool):
        raise TypeError(f"port must be an int, not {type(port).__name__}")
    if not 1 <= port <= _PORTS:
        raise ValueError(f"port must be between 1 and {_PORTS:,}, not {port:,}")
    return host, port
