"""Statement of a host that joins: its role, its address, the public halves of its keys."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from datacollect.bistro.formats.event.kinds import WITNESS_KEY, Recipient, Url
from datacollect.errors import ProblemError
from datacollect.files.kinds import shown
from datacollect.net.kinds import HostName, PublicKey

WITNESS, SERVICE, BISTRO, DESTINATION = "witness", "service", "bistro", "destination"
ROLES = (WITNESS, SERVICE, BISTRO, DESTINATION)
# By role: what stands in a row of the event, or beside it.
_KINDS: dict[str, dict[str, Any]] = {
    WITNESS: {"url": Url(), "vkey": WITNESS_KEY},
    SERVICE: {"url": Url(), "key": PublicKey()},
    BISTRO: {"url": Url(), "key": PublicKey(), "name": HostName()},
    DESTINATION: {
        "url": Url(),
        "key": PublicKey(),
        "collector": PublicKey(),
        "recipient": Recipient(),
    },
}


def read_half(tree: Any) -> dict[str, str]:
    """Return what a host tells of itself, as it is written.

    Raises
    ------
    ProblemError
        It has another role than there are, or lacks something.
    """
    if not isinstance(tree, dict) or tree.get("role") not in ROLES:
        got = tree.get("role") if isinstance(tree, dict) else tree
        raise ProblemError(f"a host joins as {', '.join(ROLES)}, got {shown(got)}")
    kinds = _KINDS[tree["role"]]
    if tree.keys() != {"role", *kinds}:
        raise ProblemError(f"a {tree['role']} tells {', '.join(kinds)}, got {', '.join(tree)}")
    for key, kind in kinds.items():
        kind.read(tree[key], f"{tree['role']}.{key}")
    return {key: str(value) for key, value in tree.items()}


def key_of(half: dict[str, str]) -> str:
    """Return the public key by which the host of a half signs."""
    return half["key"] if "key" in half else WITNESS_KEY.read(half["vkey"], "vkey").key


def host_of(half: dict[str, str]) -> str:
    """Return the host of a half."""
    return (urlsplit(half["url"]).hostname or "").lower()
