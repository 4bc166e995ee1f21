"""What is looked at before an event on one host is made, or started: clock, deadline, port."""

from __future__ import annotations

import errno
import re
import socket
from datetime import UTC, datetime

from datacollect.bistro.http.clocks import is_synchronised
from datacollect.errors import ProblemError
from datacollect.files.clock import Clock, local_instant, parsed, zone_of
from datacollect.files.kinds import shown
from datacollect.net.names import host_port_text

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
# Where nobody else is reached either; no packet leaves.
_NOWHERE = ("192.0.2.1", 9)


def deadline_of(text: str, timezone: str, now_s: float) -> datetime:
    """Return the instant of a deadline as people say it; a day alone is that day's end.

    Parameters
    ----------
    text : str
        As ``2027-01-31 18:00``.
    timezone : str
        Whose clocks that is.
    now_s : float
        By the clock of this host.

    Raises
    ------
    ProblemError
        There is no such time or zone, or it has passed.
    """
    zone = zone_of(timezone)
    written = f"{text} 23:59:59" if _DAY.fullmatch(text) else text
    instant = parsed(written, "--deadline")
    if instant.tzinfo is None:
        instant = local_instant(instant, zone, "--deadline")
    instant = instant.astimezone(zone)
    if instant.timestamp() <= now_s:
        now = Clock(datetime(1970, 1, 1, tzinfo=UTC), zone).text(now_s)
        raise ProblemError(
            f"--deadline must lie in the future, got {shown(text)}, but this host's clock shows "
            f"{now}; give a later deadline, or set the clock"
        )
    return instant


def require_clock(*, is_trusted: bool) -> None:
    """Raise `ProblemError` where nobody vouches for the clock of this host."""
    if not is_trusted and not is_synchronised():
        raise ProblemError(
            "the clock of this host must be synchronised, for its times decide who was late, and "
            "its kernel does not say so; `sudo timedatectl set-ntp true` synchronises it, or "
            "vouch for it yourself by --trust-clock"
        )


def require_free_port(listen: tuple[str, int]) -> None:
    """Raise `ProblemError` where this host cannot be listened at, with what helps."""
    host, port = listen
    where = f"--listen: {host_port_text(host, port)}"
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
            tried.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            remedy = (
                f"another program listens there (`ss -ltnp 'sport = :{port}'` says which): stop "
                "it, or choose another port by --listen and --address, as HOST:8443"
            )
        elif error.errno == errno.EACCES:
            remedy = (
                "ports below 1024 need root; run it as root, allow them by `sudo sysctl "
                f"net.ipv4.ip_unprivileged_port_start={port}`, or choose another port by --listen "
                "and --address, as HOST:8443"
            )
        else:
            remedy = "write an address of this host"
        raise ProblemError(f"{where}: {error.strerror}; {remedy}") from None


def own_address() -> str:
    """Return the address by which this host reaches others, else the one that only it reaches."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        try:
            tried.connect(_NOWHERE)
        except OSError:
            return "127.0.0.1"
        return str(tried.getsockname()[0])


def free_ports(n: int) -> list[int]:
    """Return ports of the loopback that nobody listens at now."""
    tried = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [each.getsockname()[1] for each in tried]
    for each in tried:
        each.close()
    return ports
