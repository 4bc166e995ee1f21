"""Names of hosts, and host:port: one rule for each, in every file."""

from __future__ import annotations

import re

from datacollect.errors import ProblemError
from datacollect.files.kinds import shown, wrong

# Names become names of folders, and travel in requests to connect, where other characters mean
# something: no separators, nothing in front that a shell or a file system treats in its own way.
HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
HOST_NAME_RULE = (
    "must be a name of ASCII letters, digits, '.', '-' and '_', at most 100, that begins with a "
    "letter or digit"
)

HOST_PORT = re.compile(r"(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([^\s:/@?#\[\]]+)):([0-9]{1,5})")
PORT_STOP = 2**16


def require_host_name(name: str, place: str) -> None:
    """Raise `ProblemError` unless a name can be a host's.

    >>> require_host_name("_lab", "name")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: name must be a name of ASCII letters, ..., got '_lab'...
    """
    if not HOST_NAME.fullmatch(name):
        raise wrong(
            place,
            HOST_NAME_RULE,
            name,
            "it becomes a folder's name, and stands in requests: choose another",
        )


def host_and_port(
    text: str, *, least_port: int = 1, default_port: int | None = None
) -> tuple[str, int]:
    """Split ``host:port``, or ``host`` where there is a default; IPv6 addresses stand in brackets.

    >>> host_and_port("s2.example:7443"), host_and_port("[::1]", default_port=443)
    (('s2.example', 7443), ('::1', 443))
    """
    if default_port is not None and (":" not in text or text.endswith("]")):
        text = f"{text}:{default_port}"
    found = HOST_PORT.fullmatch(text)
    if not found or not least_port <= int(found[3]) < PORT_STOP:
        raise ProblemError(
            f"must be HOST:PORT with a port of {least_port} to {PORT_STOP - 1}, got "
            f'{shown(text)}; such as "s2.example:7443" or "[::1]:7443"'
        )
    return found[1] or found[2], int(found[3])


def host_port_text(host: str, port: int) -> str:
    """Return ``host:port``, with IPv6 addresses in brackets.

    >>> host_port_text("::1", 7443)
    '[::1]:7443'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
