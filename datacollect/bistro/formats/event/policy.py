"""Policy for other verifiers, of an event's logs and witnesses (c2sp.org/tlog-policy)."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
