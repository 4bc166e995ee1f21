"""Request for an agent's introduction: its name and its certificate."""

from __future__ import annotations

from datacollect.net.agent_entries import agent_address
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import dial, naming_peer, start_tls
from datacollect.net.http_asking import ANSWER_S
from datacollect.net.names import host_port_text, require_host_name
from datacollect.net.tls import client_context, fingerprint_of
from datacollect.transfer.protocol.introduction import Introduction
from datacollect.transfer.sources.agent.session import SourceSession


def introduction_by(url: str, timeout_s: float = ANSWER_S) -> Introduction:
    """Ask an agent who it is.

    Nobody vouches for the answer: compare the fingerprint with what the agent says when it starts.

    Parameters
    ----------
    url : str
        Where it listens: ``https://host:port``.
    timeout_s : float
        How long all may take.

    Raises
    ------
    ProblemError
        The URL is none of an agent.
    TransferError
        Nobody answers there as an agent does.
    """
    address = agent_address(url, "URL")
    place, deadline = host_port_text(*address), Deadline(timeout_s)
    plain = dial([address], place, deadline)
    connection = start_tls(plain, client_context(), address[0], place, deadline)
    try:
        certificate = connection.getpeercert(binary_form=True) or b""
        with naming_peer(place):
            name = SourceSession(connection, place, timeout_s).agent(deadline).name
            require_host_name(name, "its name")
    finally:
        connection.close()
    return Introduction(name, url, fingerprint_of(certificate))
