"""Options of commands that set a host up: until when, for whom, how others reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from datacollect.bistro.one_host.quickstart import Request
    from datacollect.bistro.one_host.ways import Ways

Deadline = Annotated[
    str | None,
    typer.Option("--deadline", metavar="TIME", help='Deadline, such as "2027-01-31 18:00".'),
]
People = Annotated[
    str | None,
    typer.Option(
        "--people",
        metavar="CSV",
        help="Table of names: a column person, or first and last names as schools export them.",
    ),
]
EventName = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Name of the event. Default: that of the folder."),
]
Timezone = Annotated[
    str | None,
    typer.Option(
        "--timezone", metavar="ZONE", help="Time zone, as Europe/Zurich. Default: this machine's."
    ),
]
Most = Annotated[str, typer.Option("--most", metavar="SIZE", help="Largest file that is accepted.")]
HostAddress = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST[:PORT]",
        help="Address at which others reach this host. Default port: 443.",
    ),
]
Certificate = Annotated[
    str | None,
    typer.Option("--certificate", metavar="PEM", help="This host's certificate, with its chain."),
]
CertificateKey = Annotated[
    str | None,
    typer.Option("--certificate-key", metavar="PEM", help="Private key of that certificate."),
]
Acme = Annotated[
    str | None,
    typer.Option(
        "--acme", metavar="MAIL", help="Your mail address: certbot gets a certificate with it."
    ),
]
ListenAt = Annotated[
    str | None,
    typer.Option(
        "--listen",
        metavar="HOST:PORT",
        help="Where to listen, if not at the port that others use. Default: 0.0.0.0:PORT.",
    ),
]
TrustClock = Annotated[
    bool,
    typer.Option(
        "--trust-clock", help="You vouch for this host's clock, so the kernel is not asked."
    ),
]


def request_of(folder: str, timezone: str | None, most: str, ways: Ways, **asked: Any) -> Request:
    """Return what an organiser asks for, of an event that is begun, in a folder of its own.

    Parameters
    ----------
    folder : str
    timezone : str or None
        None: this machine's.
    most : str
        Of a file, with its unit.
    ways : Ways
    **asked
        The rest, as `Request` takes it.
    """
    from datacollect.bistro.one_host.quickstart import Request
    from datacollect.files.kinds import Whole

    return Request(
        folder=folder,
        timezone=timezone or machines_zone(),
        is_timezone_given=timezone is not None,
        most_bytes=Whole("bytes", minimum=1).read(most, "--most"),
        ways=ways,
        **asked,
    )


def machines_zone() -> str:
    """Return the name of the time zone of this machine."""
    from datacollect.commands.instants import local_zone

    zone = local_zone()
    return str(getattr(zone, "key", None) or "UTC")
