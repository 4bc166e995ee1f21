"""How a bistro is: what ``GET /bistro`` answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from datacollect.errors import TransferError
from datacollect.net.http_asking import Asker
from datacollect.net.names import host_port_text
from datacollect.net.tls import fingerprint_of_file, web_context
from datacollect.transfer.agent.config.file import AgentConfig

if TYPE_CHECKING:
    from os import PathLike


def facts_of(where: str | PathLike[str], fingerprint: str | None = None) -> dict[str, Any]:
    """Return what a bistro says of itself.

    Parameters
    ----------
    where : str or path-like
        Its URL, or the file of its agent, on its own host.
    fingerprint : str, optional
        Of its certificate; by default it is verified as usual.

    Raises
    ------
    ProblemError
        The agent's file cannot be read.
    TransferError
        There is no answer, or it is none of a bistro.
    """
    url = str(where)
    if not url.startswith(("https://", "http://")):
        config = AgentConfig.from_file(where)
        host, port = config.listen
        if host in ("0.0.0.0", "::"):
            host = "localhost"
        url = f"https://{host_port_text(host, port)}"
        fingerprint = fingerprint_of_file(config.certificate)
    with Asker(url, web_context(fingerprint=fingerprint), fingerprint=fingerprint) as asker:
        answer = asker.get("/bistro")
    try:
        facts = json.loads(answer.body)
    except (ValueError, RecursionError):
        facts = None
    if answer.status != 200 or not isinstance(facts, dict) or "free_bytes" not in facts:
        raise TransferError(
            f"{url}: answers {answer.status}, and not as a bistro that takes uploads does"
        )
    return facts
