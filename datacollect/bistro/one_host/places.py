"""Files of an event that one host keeps, by their names in its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# What the paths to each server begin with, at the address of all.
SERVICE, VERDICTS, WITNESS = "log", "verdicts", "witness"


@dataclass(frozen=True)
class Places:
    """Where things are, below the event's folder."""

    folder: Path

    def key(self, name: str) -> Path:
        """Return the file of a private key."""
        return self.folder / f"{name}.key"

    @property
    def event(self) -> Path:
        """The event's file: once it is there, the event is made."""
        return self.folder / "event.toml"

    @property
    def draft(self) -> Path:
        """What the event's file was made from."""
        return self.folder / "draft.toml"

    @property
    def identity(self) -> Path:
        """By which the destination opens."""
        return self.folder / "destination.identity"

    @property
    def offline_identity(self) -> Path:
        """By which all can be opened, too; to be kept elsewhere."""
        return self.folder / "kept-offline.identity"

    @property
    def people(self) -> Path:
        """A copy of the roster."""
        return self.folder / "people.csv"

    @property
    def tickets(self) -> Path:
        """The folder of tickets and links."""
        return self.folder / "tickets"

    @property
    def sheet(self) -> Path:
        """Cards to print."""
        return self.folder / "cards.html"

    @property
    def page(self) -> Path:
        """The folder of the page."""
        return self.folder / "page"

    @property
    def stamps(self) -> Path:
        """What outside authorities have stamped, for everybody to read, beside the page."""
        return self.page / "stamps.jsonl"

    @property
    def own_certificate(self) -> tuple[Path, Path]:
        """A certificate that this host has made for a trial, and its key."""
        return self.folder / "try.cert.pem", self.folder / "try.tls.pem"

    @property
    def trusted(self) -> Path:
        """Whom servers of a trial trust: whom the host does, and its own certificate."""
        return self.folder / "try.trusted.pem"

    @property
    def acme(self) -> Path:
        """The folder of certbot, where that has got the certificate."""
        return self.folder / "acme"

    @property
    def front_file(self) -> Path:
        """The agent's file, of the bistro and all that answers at the one address."""
        return self.folder / "bistro.toml"

    @property
    def witness_file(self) -> Path:
        """The witness's file."""
        return self.folder / "witness.toml"

    @property
    def service_file(self) -> Path:
        """The service's file."""
        return self.folder / "service.toml"

    @property
    def destination_file(self) -> Path:
        """The destination's file."""
        return self.folder / "destination.toml"

    @property
    def logs(self) -> Path:
        """The folder of what servers have written to standard error."""
        return self.folder / "logs"

    @property
    def lock(self) -> Path:
        """Held by the process that runs the event."""
        return self.folder / ".at-work"
