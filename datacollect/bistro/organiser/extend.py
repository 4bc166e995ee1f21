"""Amendments: signed, kept beside the event's file, posted to all services, until published."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.amendments import (
    AMEND_PATH,
    amended,
    missing_numbers,
    read_amendment,
    sign_amendment,
)
from datacollect.bistro.formats.event.draft import fresh_log
from datacollect.bistro.formats.event.file import read_event, require_current
from datacollect.bistro.formats.event.kinds import Url
from datacollect.bistro.formats.event.tickets import read_ticket, token_hash
from datacollect.bistro.formats.receipt.counted_time import proved_time
from datacollect.bistro.http.published import Found, Saved, amendments_of
from datacollect.errors import DatacollectError, ProblemError
from datacollect.files.documents import (
    document_name,
    parse_toml,
    read_bytes,
    read_text,
    written_durably,
)
from datacollect.files.kinds import shown
from datacollect.net.fan_out import fan_out
from datacollect.net.http_asking import Asker
from datacollect.net.keys import read_private_key
from datacollect.net.kinds import PublicKey
from datacollect.net.safe_text import safe_text
from datacollect.net.tls import web_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence
    from os import PathLike

    from datacollect.bistro.formats.event.amendments import Amendment
    from datacollect.bistro.formats.event.event import Event
    from datacollect.net.http_asking import Answer

PATIENCE_S = 60.0
AGAIN_S = 1.0
# A service that starts hears its witnesses first.
STARTS_WITHIN_S = 10.0
NOTE_TYPE = "text/plain; charset=utf-8"
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Extended:
    """Outcome of an amendment.

    Attributes
    ----------
    number : int
    note_file : str
        The amendment as it was signed.
    published : tuple of str
        URLs of the services whose logs have published it.
    troubles : dict of str to str
        What is the matter with the others, by URL.
    amendments : str or None
        The file of all amendments and their proofs, for who verifies receipts.
    logs : tuple of str
        Where the log of verdicts was succeeded: what the files of witnesses must name now.
    """

    number: int
    note_file: str
    published: tuple[str, ...]
    troubles: dict[str, str]
    amendments: str | None
    logs: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 where all logs have published it, 1 where some have, 3 where none has."""
        if not self.troubles:
            return 0
        return 1 if self.published else 3


def extend(
    event: str | PathLike[str],
    key: str | PathLike[str],
    *,
    deadline: str | None = None,
    revoke: Sequence[str] = (),
    bistros: str | PathLike[str] | None = None,
    verdicts: str | None = None,
    verdicts_url: str | None = None,
    cancelled: str | None = None,
) -> Extended:
    """Change an event afterwards, for everybody to see; started again it goes on.

    The amendment is kept beside the event's file before anybody is sent it.

    Parameters
    ----------
    event : path-like
    key : path-like
        The organiser's private key.
    deadline : str, optional
        A later one, with offset.
    revoke : sequence of str
        Files of tickets or of their links, or the hashes of their tokens as ``tickets.csv`` has
        them.
    bistros : path-like, optional
        TOML with more ``[[bistros]]``.
    verdicts : str, optional
        Public key of the log that succeeds the log of verdicts, which cannot go on.
    verdicts_url : str, optional
        Where that is read; by default where the one before was.
    cancelled : str, optional
        Why the event ends at once, and for good.

    Raises
    ------
    ProblemError
        It changes what cannot be changed, an earlier amendment is missing here, or the event is of
        an older kind, which nothing serves any more.
    NotWrittenError
        The amendment cannot be kept.
    """
    found = read_event(read_bytes(event), document_name(event))
    require_current(found, document_name(event))
    changes = _changes(found, deadline, revoke, bistros)
    if cancelled is not None:
        changes["cancelled"] = cancelled
    if verdicts_url is not None and verdicts is None:
        raise ProblemError(
            "--verdicts-url belongs to a new log of verdicts; give that log's key with --verdicts"
        )
    if not changes and verdicts is None:
        raise ProblemError("say what changes: --deadline, --revoke, --bistros or --verdicts")
    private = read_private_key(key)
    saved = Saved(found, event, Path(event).parent)
    tls = web_context()
    urls = [each.url for each in found.services]
    known = amendments_of(found, urls, tls)
    earlier = _earlier(Path(event), found, known)
    if verdicts is not None:
        changes["verdicts"] = _successor(verdicts, verdicts_url, found, earlier)
    again = next((each for each in earlier if _says(each, changes)), None)
    if again is None:
        if missing := missing_numbers(earlier):
            raise ProblemError(
                f"amendment {missing[0]} is neither on this host nor in the logs that answer; "
                "extend the event on the host where that amendment was made"
            )
        number = max((each.number for each in earlier), default=0) + 1
        note = sign_amendment(amended(found, earlier), changes, number, private)
    else:
        number, note = again.number, again.entry
    note_file = _note_file(Path(event), number)
    if not note_file.exists():
        with written_durably(note_file) as beside:
            beside.write_bytes(note)
    before = [each.entry for each in earlier if each.number < number]
    troubles = _posted(urls, [*before, note], tls)
    published, all_known = _published(found, urls, note, tls, troubles)
    amendments = None
    if published:
        saved.add(all_known.amendments)
        amendments = str(saved.path)
    late = "has not published it yet; run the same command again"
    rest = {url: troubles.get(url, late) for url in urls if url not in published}
    logs: tuple[str, ...] = ()
    if verdicts is not None:
        now = amended(found, [*earlier, read_amendment(note, found)])
        logs = tuple(each.text for each in now.log_keys)
    return Extended(number, str(note_file), tuple(published), rest, amendments, logs)


def _successor(
    key: str, url: str | None, event: Event, earlier: Sequence[Amendment]
) -> dict[str, str]:
    """Return the table of a log of verdicts; of a key that has one already, that one."""
    now, key = amended(event, earlier), PublicKey().read(key, "--verdicts")
    where = now.verdicts_url if url is None else Url().read(url, "--verdicts-url")
    table = {} if where is None else {"url": where}
    for each in earlier:
        if each.verdicts is not None and (each.verdicts.key, each.verdicts_url) == (key, where):
            return {"log": each.verdicts.text, **table}
    origin = "" if now.verdicts is None else now.verdicts.name
    host = where.split("/")[2] if where is not None else origin.partition("/")[0] or "verdicts"
    return {"log": fresh_log(host, key, os.urandom).text, **table}


def _changes(
    event: Event,
    deadline: str | None,
    revoke: Sequence[str],
    bistros: str | PathLike[str] | None,
) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if deadline is not None:
        changes["deadline"] = deadline
    if revoke:
        changes["revoked"] = list(dict.fromkeys(_token_hash(each, event) for each in revoke))
    if bistros is not None:
        name = document_name(bistros)
        tree = parse_toml(read_text(bistros), name)
        if tree.keys() != {"bistros"}:
            raise ProblemError(f"{name}: must hold [[bistros]] and nothing else")
        changes["bistros"] = tree["bistros"]
    return changes


def _token_hash(given: str, event: Event) -> str:
    """Return the hash by which a ticket is revoked, of its file or written out."""
    if _HASH.fullmatch(given):
        return given
    if not Path(given).is_file():
        raise ProblemError(
            f"--revoke must be the file of a ticket, or 64 hexadecimal digits of its token_sha256 "
            f"in tickets.csv, got {shown(given)}"
        )
    return token_hash(read_ticket(given, event).token).hex()


def _note_file(event: Path, number: int) -> Path:
    return event.with_name(f"{event.stem}.amendment-{number}.txt")


def _earlier(path: Path, event: Event, known: Found) -> list[Amendment]:
    """Return all amendments that are kept here, or that logs hold."""
    notes = {each.note for each in known.amendments}
    number = 1
    while (file := _note_file(path, number)).exists():
        notes.add(read_bytes(file))
        number += 1
    return sorted((read_amendment(note, event) for note in notes), key=lambda each: each.number)


def _says(amendment: Amendment, changes: dict[str, Any]) -> bool:
    """Return whether an amendment says just these changes: then it only has to be posted."""
    text = amendment.entry.decode().rpartition("\n\n")[0]
    tree = parse_toml(text, "the amendment")
    said = {key: value for key, value in tree.items() if key not in ("format", "event", "number")}
    return {**said} == {**_read_back(changes)}


def _read_back(changes: dict[str, Any]) -> dict[str, Any]:
    from datacollect.bistro.formats.event.amendments import AMENDMENT
    from datacollect.files.toml_tables import toml_of

    return parse_toml(toml_of(AMENDMENT, changes), "the changes")


def _posted(urls: Sequence[str], notes: Sequence[bytes], tls: ssl.SSLContext) -> dict[str, str]:
    """Send amendments to all services, in order; return what was the matter, by URL.

    A service that was away takes none before those that it has missed. The last is what counts.
    """

    def post(url: str) -> str:
        with Asker(url, tls) as asker:
            answers = [_answer(asker, note) for note in notes]
        if answers[-1].status == 200:
            return ""
        # The first one that is refused says why the others are.
        first = next(answer for answer in answers if answer.status != 200)
        text = safe_text(first.body.decode(errors="replace").strip())
        return f"({first.status}) {text}"

    troubles: dict[str, str] = {}
    for url, outcome in fan_out(urls, post).items():
        if outcome.error is None:
            troubles |= {url: outcome.result()} if outcome.result() else {}
        elif isinstance(outcome.error, DatacollectError):
            troubles[url] = str(outcome.error)
        else:
            raise outcome.error
    return troubles


def _answer(asker: Asker, note: bytes) -> Answer:
    """Return what a service answers to an amendment; one that is about to start is waited for."""
    end_s = time.monotonic() + STARTS_WITHIN_S
    while True:
        answer = asker.post(AMEND_PATH, note, NOTE_TYPE)
        pause_s = min(answer.retry_after_s or AGAIN_S, STARTS_WITHIN_S)
        if answer.status not in (429, 503) or time.monotonic() + pause_s > end_s:
            return answer
        time.sleep(pause_s)


def _published(
    event: Event,
    urls: Sequence[str],
    note: bytes,
    tls: ssl.SSLContext,
    troubles: dict[str, str],
) -> tuple[list[str], Found]:
    """Wait until the services that took an amendment have published it; return which have."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        found = amendments_of(event, urls, tls)
        published = [
            url
            for url, rows in found.by_url.items()
            for each in rows
            if each.note == note
            and any(proved_time(proof, note, event).time_s is not None for proof in each.proofs)
        ]
        waiting = [url for url in urls if url not in published and url not in troubles]
        if not waiting or time.monotonic() >= end_s:
            return published, found
        time.sleep(AGAIN_S)
