"""Status of a bistro: the answer to ``GET /bistro``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.log.checkpoints import TIME_STOP
from datacollect.bistro.formats.log.one_meaning import json_file
from datacollect.bistro.upload_server.table import accept_of
from datacollect.errors import ProblemError, TransferError
from datacollect.files.documents import document_name
from datacollect.files.fields import Field, Table
from datacollect.files.kinds import Number, Text, Whole
from datacollect.net.http_asking import Asker
from datacollect.net.names import host_port_text
from datacollect.net.tls import fingerprint_of_file, web_context
from datacollect.transfer.agent.config.file import AgentConfig

if TYPE_CHECKING:
    from os import PathLike

    from datacollect.net.http_asking import Answer


FACTS = Table(
    "how a bistro is",
    "What a bistro says of itself.",
    (
        Field("bistro", Text(), "The bistro's name in the event.", required=True),
        Field("event", Text(), "The event's id.", required=True),
        Field("free_bytes", Whole("bytes"), "Bytes that the bistro still accepts.", required=True),
        Field(
            "stored_bytes",
            Whole("bytes"),
            "Bytes at the bistro that are not yet collected.",
            required=True,
        ),
        Field(
            "reserved_bytes",
            Whole("bytes"),
            "Bytes kept free for uploads that have begun.",
            required=True,
        ),
        Field("wait_s", Number("seconds"), "Seconds that a new upload must wait.", required=True),
        Field(
            "oldest_s",
            Number("seconds"),
            "When the oldest upload that is not yet collected arrived.",
            nullable=True,
        ),
        Field(
            "last_contact_s",
            Number("seconds"),
            "When the destination last asked the bistro.",
            nullable=True,
        ),
    ),
)


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
        if accept_of(config) is None:
            raise ProblemError(f"{url}: has no table accept, so this agent accepts no uploads")
        host, port = config.listen
        if host in ("0.0.0.0", "::"):
            host = "localhost"
        url = f"https://{host_port_text(host, port)}"
        try:
            fingerprint = fingerprint_of_file(config.certificate)
        except FileNotFoundError:
            raise ProblemError(
                f"{document_name(config.certificate)}: no such file; the agent makes this "
                "certificate at its first start, unless its file names another one"
            ) from None
        except OSError as error:
            raise ProblemError(
                f"{document_name(config.certificate)}: the certificate cannot be read: "
                f"{error.strerror}"
            ) from None
    with Asker(url, web_context(fingerprint=fingerprint), fingerprint=fingerprint) as asker:
        return read_facts(asker.get("/bistro"), url)


def read_facts(answer: Answer, place: str) -> dict[str, Any]:
    """Return what a bistro has answered of itself; raise `TransferError` where that is nothing."""
    if answer.status == 503:
        raise TransferError(
            f"{place}: accepts nothing now: its disk is full or failing; make room there; its "
            "agent's log says more"
        )
    if answer.status != 200:
        raise TransferError(
            f"{place}: the server answers {answer.status}, so it is no bistro; check the address"
        )
    try:
        tree = json_file(answer.body, place)
        if not isinstance(tree, dict):
            raise ProblemError(f"{place} must answer a JSON object")
        facts = FACTS.read(tree, place)
        for key in ("wait_s", "oldest_s", "last_contact_s"):
            if (facts[key] or 0) >= TIME_STOP:
                raise ProblemError(f"{key} must be below {TIME_STOP}, got {facts[key]:g}")
        return facts
    except ProblemError as error:
        raise TransferError(f"the answer is not one of a bistro: {error}") from None
