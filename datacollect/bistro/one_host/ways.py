"""How a host is reached, and by which certificate it is trusted, as somebody says it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.one_host.certificates import (
    Certificate,
    certbots_certificate,
    host_of,
    own_certificate,
    require_host,
)
from datacollect.bistro.one_host.checks import own_address, require_clock, require_free_port
from datacollect.errors import ProblemError, naming
from datacollect.net.names import host_and_port

if TYPE_CHECKING:
    from datacollect.bistro.one_host.places import Places

TRIAL_PORT, HTTPS = 8443, 443
EVERYWHERE = "0.0.0.0"


@dataclass(frozen=True)
class Ways:
    """Ways to a host; None where nothing is said.

    Attributes
    ----------
    address : str or None
        ``HOST`` or ``HOST:PORT``, as others reach it.
    listen : str or None
        ``HOST:PORT``.
    certificate, certificate_key : str or None
        Files.
    acme : str or None
        Address of mail, for the authority that certbot asks.
    is_trial : bool
        Whether this host makes the certificate itself.
    vouches : bool
        Whether somebody vouches for the clock.
    """

    address: str | None = None
    listen: str | None = None
    certificate: str | None = None
    certificate_key: str | None = None
    acme: str | None = None
    is_trial: bool = False
    vouches: bool = False

    @property
    def is_clock_trusted(self) -> bool:
        """Whether the clock counts, whatever the kernel says: nothing is proved by a trial."""
        return self.vouches or self.is_trial

    def require(self) -> None:
        """Look at all of it, and at this host, before anything is written.

        Raises
        ------
        ProblemError
            Something does not fit; the message says what helps.
        """
        self.require_certificate()
        require_clock(is_trusted=self.is_clock_trusted)
        host, _ = self.reached
        require_free_port(self.listening)
        if self.certificate is not None:
            require_host(self._given, host)

    def require_certificate(self) -> None:
        """Raise `ProblemError` unless one way to a certificate is given."""
        ways = [self.certificate is not None, self.acme is not None, self.is_trial]
        if sum(ways) != 1:
            said = "several ways" if sum(ways) else "none"
            raise ProblemError(
                f"browsers must trust this host: one way to a certificate is needed, got {said}; "
                "give --certificate and --certificate-key, --acme MAIL for one by certbot, or for "
                "`event quickstart` --try for a trial, of which browsers warn"
            )
        if (self.certificate is None) != (self.certificate_key is None):
            raise ProblemError("--certificate and --certificate-key belong together; give both")
        if self.acme is not None and self.address is None:
            raise ProblemError(
                "--address must say for which name the certificate is made; add --address HOST"
            )

    @property
    def reached(self) -> tuple[str, int]:
        """Host and port by which others reach this host."""
        default = TRIAL_PORT if self.is_trial else HTTPS
        if self.address is not None:
            with naming("--address"):
                return host_and_port(self.address, default_port=default)
        if self.is_trial:
            return own_address(), default
        return host_of(self._given), default

    @property
    def listening(self) -> tuple[str, int]:
        """Where this host listens."""
        if self.listen is None:
            return EVERYWHERE, self.reached[1]
        with naming("--listen"):
            return host_and_port(self.listen)

    def certificate_for(self, places: Places, host: str) -> Certificate:
        """Return the certificate, which is made, or got, where it is not there."""
        if self.is_trial:
            return own_certificate(places, host)
        if self.acme is not None:
            return certbots_certificate(places, host, self.acme)
        return self._given

    @property
    def _given(self) -> Certificate:
        assert self.certificate is not None
        assert self.certificate_key is not None
        chain, key = Path(self.certificate).resolve(), Path(self.certificate_key).resolve()
        return Certificate(chain, key)
