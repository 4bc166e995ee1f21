"""Policy for other verifiers, of an event's logs and witnesses (c2sp.org/tlog-policy)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.kinds import WITNESS_KEY, Url
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.bistro.formats.event.event import Event


def policy_of(event: Event) -> str:
    """Return the policy: an entry counts in any log whose checkpoint a quorum has signed.

    Other verifiers judge by it that an entry was logged. The rule of time is ours: none of them
    looks at the times of cosignatures.
    """
    logs = [f"log {each.log.text} {each.url}" for each in event.services]
    names = [f"w{i}" for i in range(len(event.witnesses))]
    witnesses = [
        f"witness {name} {each.vkey.text} {each.url}"
        for name, each in zip(names, event.witnesses, strict=True)
    ]
    group = f"group witnesses {event.quorum} {' '.join(names)}"
    return "\n".join([*logs, *witnesses, group, "quorum witnesses", ""])


def read_witnesses(text: str, name: str) -> list[dict[str, str]]:
    """Return the witnesses of a policy as rows of an event's draft; its other lines do not matter.

    Parameters
    ----------
    text : str
        Lines ``witness NAME VKEY URL``, as lists of public witnesses have them.
    name : str
        Of the file, for messages.

    Raises
    ------
    ProblemError
        It names none, or one without a key or an address.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words[:1] != ["witness"]:
            continue
        place = f"{name}, line {number}"
        if len(words) != 4:
            raise ProblemError(
                f"{place}: must be 'witness NAME VKEY URL', got {len(words)} words; one without an "
                "address cannot be asked: remove it, or add its address"
            )
        vkey = WITNESS_KEY.read(words[2], f"{place}: its key")
        found.append({"url": Url().read(words[3], f"{place}: its URL"), "vkey": vkey.text})
    if not found:
        raise ProblemError(
            f"{name}: must name witnesses, in lines 'witness NAME VKEY URL'; take another list"
        )
    return found
