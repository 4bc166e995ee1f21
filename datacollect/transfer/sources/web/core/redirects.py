"""Redirects that are followed, and those that are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datacollect.transfer.sources.web.core.urls import Origin


@dataclass(frozen=True)
class RedirectRule:
    """Rule for redirects: within a server always, elsewhere as its entry says.

    Attributes
    ----------
    to : tuple of str
        Names of hosts; ``*.example`` stands for all names that end so.
    plain_http : bool
        Whether they may lead to a server without TLS.
    is_relayed : bool
        Whether the server is reached over relays, which lead to it alone.
    """

    to: tuple[str, ...] = ()
    plain_http: bool = False
    is_relayed: bool = False

    def why_not(self, here: Origin, there: Origin) -> str | None:
        """Return why an answer is not followed; None where it is.

        >>> from datacollect.transfer.sources.web.core.urls import Origin
        >>> here, there = Origin("https", "x", 443), Origin("https", "a.cdn", 443)
        >>> RedirectRule(("*.cdn",)).why_not(here, there) is None
        True
        >>> RedirectRule().why_not(here, there)
        "the server redirects to 'a.cdn'; add that host to redirects_to if it is meant"
        """
        if here == there:
            return None
        if self.is_relayed:
            return f"the server redirects to {there.host!r}, to which its relays do not connect"
        if there.scheme != "https" and not self.plain_http:
            return f"the server redirects to {there.host!r} without TLS"
        if not any(_fits(there.host, pattern.lower()) for pattern in self.to):
            return (
                f"the server redirects to {there.host!r}; add that host to redirects_to if it is "
                "meant"
            )
        return None


def _fits(host: str, pattern: str) -> bool:
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern
