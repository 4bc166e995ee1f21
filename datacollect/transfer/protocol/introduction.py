"""Introduction of an agent to a collector: one line, carried from host to host by people."""

from __future__ import annotations

from dataclasses import dataclass

from datacollect.errors import ProblemError
from datacollect.files.kinds import shown

FORM = "NAME https://HOST:PORT sha256:FINGERPRINT"
N_WORDS = 3


@dataclass(frozen=True)
class Introduction:
    """Facts of an agent that a collector has to know: no part of it is secret.

    Attributes
    ----------
    name : str
    url : str
    fingerprint : str

    Examples
    --------
    >>> str(Introduction("S1", "https://s1.example:7443", "sha256:9f86"))
    'S1 https://s1.example:7443 sha256:9f86'
    """

    name: str
    url: str
    fingerprint: str

    def __str__(self) -> str:
        return f"{self.name} {self.url} {self.fingerprint}"


def introductions_of(text: str) -> tuple[Introduction, ...]:
    """Return the agents that lines introduce; their words are looked at by whoever uses them.

    >>> [each.name for each in introductions_of("S1 https://a:1 sha256:0 S2 https://b:1 sha256:1")]
    ['S1', 'S2']
    """
    words = text.split()
    if not words or len(words) % N_WORDS:
        raise ProblemError(
            f"the line must be {FORM}, got {shown(text)}; copy what `datacollect agent init` "
            "prints on the agent's host"
        )
    rows = zip(*(words[k::N_WORDS] for k in range(N_WORDS)), strict=True)
    return tuple(Introduction(*row) for row in rows)
