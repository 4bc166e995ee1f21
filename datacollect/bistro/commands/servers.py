"""The commands ``datacollect timestamp`` and ``datacollect witness``: servers of events."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from datacollect.commands.brought import CommandSpec
from datacollect.commands.options import Json
from datacollect.commands.streams import complain, emit
from datacollect.net.safe_text import safe_text


def timestamp(
    service_file: Annotated[
        str, typer.Argument(metavar="SERVICE", help="File of the service, TOML.")
    ],
    as_json: Json = False,
) -> None:
    """Keep a log of an event: take entries, have witnesses sign, publish proofs.

    Says when it is ready; its log goes to standard error, a JSON object per line. Ends on SIGTERM
    after what is under way; rereads its certificate on SIGHUP.
    """
    from datacollect.bistro.http.config import ServiceConfig
    from datacollect.bistro.log_service.core import log_of
    from datacollect.bistro.log_service.server.service import run_service

    config = ServiceConfig.from_file(service_file)
    log = log_of(config.event, config.key)

    def ready(url: str) -> None:
        if as_json:
            # In one line: whoever has started it waits for it.
            emit(json.dumps({"url": url, "log": log.text, "event": config.event.id.hex()}))
        else:
            emit(f"the service of {config.event.name!r} is ready at {url}, log {log.text}")

    run_service(config, ready, _say)


def witness(
    witness_file: Annotated[
        str, typer.Argument(metavar="WITNESS", help="File of the witness, TOML.")
    ],
    as_json: Json = False,
) -> None:
    """Be a witness: sign how large each log in its file is, and when.

    Says its verifier key when it is ready; its log goes to standard error, a JSON object per line.
    Ends on SIGTERM after what is under way; rereads its certificate on SIGHUP.
    """
    from datacollect.bistro.http.config import WitnessConfig
    from datacollect.bistro.witness.server import run_witness

    config = WitnessConfig.from_file(witness_file)

    def ready(url: str, key: str) -> None:
        if as_json:
            emit(json.dumps({"url": url, "vkey": key}))
        else:
            emit(f"the witness is ready at {url}, verifier key {key}")

    run_witness(config, ready, _say)


def _say(text: str) -> None:
    # As agents write theirs.
    complain(json.dumps({"time_s": round(time.time(), 3), "what": "note", "why": safe_text(text)}))


TIMESTAMP_COMMAND = CommandSpec("timestamp", timestamp, has_own_log=True)
WITNESS_COMMAND = CommandSpec("witness", witness, has_own_log=True)
