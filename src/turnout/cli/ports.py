"""Ports of this machine."""

import socket

from turnout.cli import exits


def free_port(host: str = "127.0.0.1") -> int:
    """A port nothing listens on at the moment."""
    with _socket(host) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def require_free(host: str, port: int) -> None:
    """Raise CommandError when the gateway could not listen there."""
    try:
        with _socket(host) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        reason = error.strerror or str(error)
        raise exits.CommandError(
            f"cannot listen on {host}:{port}: {reason}", step="choose another --port or --host"
        ) from None


def _socket(host: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
