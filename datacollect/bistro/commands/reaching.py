"""Options of commands that set a host up: until when, for whom, how others reach it."""

from __future__ import annotations

from typing import Annotated

import typer

Deadline = Annotated[
    str | None,
    typer.Option("--deadline", metavar="TIME", help='Until when, as "2027-01-31 18:00".'),
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
    typer.Option("--name", metavar="NAME", help="Of the event. Default: the folder's."),
]
Timezone = Annotated[
    str | None,
    typer.Option(
        "--timezone", metavar="ZONE", help="Such as Europe/Zurich. Default: this machine's."
    ),
]
Most = Annotated[str, typer.Option("--most", metavar="SIZE", help="Largest file that is accepted.")]
HostAddress = Annotated[
    str | None,
    typer.Option("--address", metavar="HOST[:PORT]", help="How others reach this host; port 443."),
]
Certificate = Annotated[
    str | None,
    typer.Option("--certificate", metavar="PEM", help="Certificate of that host, with its chain."),
]
CertificateKey = Annotated[
    str | None, typer.Option("--certificate-key", metavar="PEM", help="Its private key.")
]
Acme = Annotated[
    str | None,
    typer.Option(
        "--acme", metavar="MAIL", help="Have certbot get a certificate; your mail address."
    ),
]
ListenAt = Annotated[
    str | None,
    typer.Option(
        "--listen",
        metavar="HOST:PORT",
        help="If not the port that others see. Default: 0.0.0.0:PORT.",
    ),
]
TrustClock = Annotated[
    bool,
    typer.Option("--trust-clock", help="You vouch for this host's clock, not the kernel."),
]
