"""The proof that an entry was collected, as a person's receipt keeps it: a tlog-proof.

Of a draft that was superseded and counts again the log says which other it was; without that nobody
could tell what the proof is of. It stands in the line of a tlog-proof that is for whoever uses it.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from datacollect.bistro.formats.custody.verdicts import COLLECTED, Verdict
from datacollect.bistro.formats.log.notes import decoded
from datacollect.bistro.formats.log.proofs import FIRST_LINE

if TYPE_CHECKING:
    from datacollect.bistro.formats.log.proofs import LogProof

_EXTRA = re.compile(rf"{re.escape(FIRST_LINE)}\nextra ([A-Za-z0-9+/]{{43}}=)\n")


def collected_text(proof: LogProof, verdict: Verdict) -> str:
    """Return what a receipt keeps of the proof of a verdict that says that it was collected."""
    first, rest = proof.data.decode().split("\n", 1)
    if not verdict.why:
        return f"{first}\n{rest}"
    return f"{first}\nextra {base64.b64encode(bytes.fromhex(verdict.why)).decode()}\n{rest}"


def collected_verdict(text: str, event: bytes, entry: bytes) -> Verdict:
    """Return the verdict that the proof of a receipt is of, if of any."""
    extra = _EXTRA.match(text)
    again = None if extra is None else decoded(extra[1])
    why = "" if again is None else again.hex()
    return Verdict(event, entry, COLLECTED, why)
