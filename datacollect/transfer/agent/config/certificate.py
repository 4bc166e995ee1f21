"""The certificate that an agent makes for itself, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import NotWrittenError
from datacollect.files.documents import document_name, write_owned
from datacollect.files.refusals import refusal_of
from datacollect.net.tls import make_certificate

if TYPE_CHECKING:
    from datacollect.transfer.agent.config.file import AgentConfig


def make_own_certificate(config: AgentConfig) -> None:
    """Make the agent's own certificate where there is none yet; what is there stays.

    Raises
    ------
    NotWrittenError
    """
    if not config.own_certificate or (config.certificate.exists() and config.key.exists()):
        return
    certificate, key = make_certificate(config.name, config.listen[0])
    try:
        for path, data, mode in (
            (config.key, key, 0o600),
            (config.certificate, certificate, 0o644),
        ):
            write_owned(path, data, mode=mode)
    except OSError as error:
        reason, remedy = refusal_of(error)
        raise NotWrittenError(
            f"{document_name(config.key)}: cannot be written: {reason}; the agent keeps its "
            f"certificate in this file: {remedy or 'name another folder as state'}",
            error.errno,
        ) from None
