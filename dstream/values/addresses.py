"""Addresses of servers, as users give them, and connections to them."""

from __future__ import annotations

import socket
from typing import Any

__all__ = ["checked_address", "connected_to"]

_PORTS = 65_535
_PATIENCE = 10.0
"""Seconds for which a server may take to answer at all."""

_ASKING = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}
"""A server that has said nothing for a minute is asked whether it is there, for a minute. macOS has the second name."""


def connected_to(host: str, port: int) -> socket.socket:
    """Connect to a server, and notice when it is gone: a host that loses its power cuts no connection.

    Raises:
        OSError: nobody listens there.
    """
    connection = socket.create_connection((host, port), _PATIENCE)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _ASKING.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return connection


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
