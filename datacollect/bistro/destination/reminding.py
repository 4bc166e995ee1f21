"""Reminders to who has handed in nothing, or a timestamp whose file was never sent."""

from __future__ import annotations

import json
import os
import smtplib
import ssl
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate, make_msgid, parseaddr
from typing import TYPE_CHECKING, Any

from datacollect.bistro.destination.people import PROMISED, lacks_upload
from datacollect.bistro.http.config_fields import SMTP
from datacollect.bistro.organiser.spreadsheets import write_table
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name
from datacollect.files.durability import synchronise
from datacollect.files.held_folder import not_written
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike
    from pathlib import Path

    from datacollect.bistro.destination.people_list import PeopleList

SENT_FILE = "reminded.jsonl"
NO_FILE, NOT_SENT = "no file", "timestamp without upload"
# A server that is silent for so long does not answer.
ANSWERS_WITHIN_S = 30.0


@dataclass(frozen=True)
class SmtpConfig:
    """A mail server, as its file describes it; see ``SMTP`` of the fields."""

    host: str
    port: int
    sender: str
    user: str | None
    password: str | None = field(repr=False)
    starttls: bool
    page: str | None

    @property
    def domain(self) -> str:
        """Return where the sender is at home; empty where the address names nowhere."""
        return parseaddr(self.sender)[1].rpartition("@")[2]

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> SmtpConfig:
        """Read it; raise `ProblemError` where it is none."""

        def build(tree: dict[str, Any], folder: Path) -> SmtpConfig:
            values = SMTP.read(tree)
            password = None
            if values["password_file"] is not None:
                secret = folder / values["password_file"]
                try:
                    password = secret.read_text(encoding="utf-8").strip()
                except (OSError, UnicodeDecodeError) as error:
                    raise ProblemError(
                        f"password_file: {document_name(secret)} cannot be read: {error}; write "
                        "only the password into it"
                    ) from None
            if (values["user"] is None) != (password is None):
                raise ProblemError("user and password_file belong together; give both, or neither")
            return cls(
                values["host"],
                values["port"],
                values["from"],
                values["user"],
                password,
                values["starttls"],
                values["page"],
            )

        return SMTP.from_file(path, build)


@dataclass(frozen=True)
class Reminder:
    """One person's: what is lacking, and until when it can be mended."""

    person: str
    email: str
    what: str
    until: str
    event: str

    def to_dict(self) -> dict[str, str]:
        """Return it as JSON has it."""
        return {
            "person": self.person,
            "email": self.email,
            "what": self.what,
            "until": self.until,
        }

    def text(self, page: str | None) -> str:
        """Say it in words."""
        where = "" if page is None else f"\nThe page: {page}\n"
        if self.what == NOT_SENT:
            return (
                f"Hello {self.person},\n\nfor {self.event} you have a timestamp, but your file has "
                "not been sent. Open the page again in the same browser, on the same device, and "
                f"keep it open until it says that a server holds the file; or run `datacollect "
                f"upload` again. This is possible until {self.until}.\n{where}"
            )
        return (
            f"Hello {self.person},\n\nfor {self.event} nothing of yours has arrived yet. You can "
            f"hand in until {self.until}, with the link or the ticket that you were given.\n{where}"
        )

    def message(self, config: SmtpConfig) -> EmailMessage:
        """Return the mail."""
        mail = EmailMessage()
        mail["From"] = config.sender
        mail["To"] = self.email
        mail["Subject"] = f"{self.event}: {self.what}"
        mail["Date"] = formatdate()
        mail["Message-ID"] = make_msgid(domain=config.domain or None)
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(self.text(config.page))
        return mail


@dataclass
class Mailed:
    """Outcome of reminders: how many were sent now and before, and who was not reached."""

    n_sent: int = 0
    n_before: int = 0
    troubles: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"sent": self.n_sent, "before": self.n_before, "troubles": self.troubles}


def reminders_of(found: PeopleList, now_s: float | None = None) -> list[Reminder]:
    """Return who is to be reminded of what, as long as it can be mended.

    Raises
    ------
    ProblemError
        There is no time left.
    """
    now_s = time.time() if now_s is None else now_s
    standing = found.standing
    if standing.cancelled is not None:
        raise ProblemError(
            f"the event was cancelled: {standing.cancelled}: nobody can hand in any "
            "longer; `datacollect event list` says what had arrived from each"
        )
    deadline_s = max(standing.deadline_s, standing.latest_s or 0)
    if now_s > standing.collect_until_s:
        raise ProblemError(
            f"nobody can hand in or send after {found.clock_text(standing.collect_until_s)}; "
            "`datacollect event list` says what has arrived from each"
        )
    reminders = []
    for each in found.people:
        if not lacks_upload(each):
            continue
        is_promised = each.state == PROMISED
        if not is_promised and now_s > deadline_s:
            continue
        until_s = standing.collect_until_s if is_promised else standing.deadline_s
        reminders.append(
            Reminder(
                each.person,
                each.email,
                NOT_SENT if is_promised else NO_FILE,
                found.clock_text(until_s),
                found.event.name,
            )
        )
    return reminders


def write_reminders(reminders: Sequence[Reminder], path: Path) -> None:
    """Write a table of reminders, for its owner's eyes alone."""
    rows = ([*each.to_dict().values()] for each in reminders)
    write_table(path, ("person", "email", "what", "until"), rows)


# Of one person alone: the address cannot be written, the server cannot send to it, or refuses to.
UNREACHED = (
    ValueError,
    smtplib.SMTPNotSupportedError,
    smtplib.SMTPRecipientsRefused,
    smtplib.SMTPDataError,
)


def mail(reminders: Sequence[Reminder], config: SmtpConfig, folder: Path) -> Mailed:
    """Mail reminders one by one; who was mailed the same before gets none.

    What was sent is noted before the next one goes: interrupted, at most one person gets two.

    Raises
    ------
    ProblemError
        The server does not take anything.
    NotWrittenError
        What was sent cannot be noted: nothing more is sent.
    """
    done = Mailed()
    path = folder / SENT_FILE
    before = _sent(path)
    with _server(config) as server:
        for each in reminders:
            if (each.email, each.what, each.until) in before:
                done.n_before += 1
            elif "@" not in each.email:
                done.troubles[each.person] = "the roster has no e-mail address"
            else:
                try:
                    server.send_message(each.message(config))
                except UNREACHED as error:
                    done.troubles[each.person] = safe_text(f"{error}")
                    continue
                _note(path, each)
                done.n_sent += 1
    return done


@contextmanager
def _server(config: SmtpConfig) -> Iterator[smtplib.SMTP]:
    try:
        # Said as this host's name, which would else be looked for in the network.
        own = config.domain or "localhost"
        with smtplib.SMTP(
            config.host, config.port, local_hostname=own, timeout=ANSWERS_WITHIN_S
        ) as server:
            if config.starttls:
                server.starttls(context=ssl.create_default_context())
            if config.user is not None and config.password is not None:
                server.login(config.user, config.password)
            yield server
    except (OSError, smtplib.SMTPException) as error:
        raise ProblemError(
            f"{config.host}:{config.port} does not accept mail: {safe_text(str(error))}; check "
            "host, "
            "port, user and password_file, and run this again: nobody gets the same message twice"
        ) from None


def _sent(path: Path) -> set[tuple[str, str, str]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise not_written(path, error) from error
    found = set()
    for line in lines:
        try:
            tree = json.loads(line)
            found.add((tree["email"], tree["what"], tree["until"]))
        except (ValueError, KeyError, TypeError):
            continue  # the last line of who was killed
    return found


def _note(path: Path, each: Reminder) -> None:
    line = json.dumps({**each.to_dict(), "time_s": int(time.time())}, ensure_ascii=False) + "\n"
    try:
        with path.open("ab+") as file:
            # Whoever was killed in the middle of a line has left it without an end.
            if file.tell() and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
                file.write(b"\n")
            file.write(line.encode())
            file.flush()
            synchronise(path)
    except OSError as error:
        raise not_written(path, error) from error
