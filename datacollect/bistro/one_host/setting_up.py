"""Makes all that an event on one host needs, in one folder; started again it goes on.

The event's file comes when all that it names is there: until then all is made anew but keys, which
stay. Once it is there nothing in it changes any more.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.fields import EVENT
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.kinds import PEM
from datacollect.bistro.formats.event.policy import read_witnesses
from datacollect.bistro.formats.log.checkpoints import witness_key
from datacollect.bistro.one_host.places import SERVICE, VERDICTS, WITNESS
from datacollect.bistro.one_host.ways import HTTPS
from datacollect.bistro.organiser.new_event import new_event
from datacollect.bistro.organiser.roster import read_people
from datacollect.bistro.organiser.ticket_files import write_tickets
from datacollect.bistro.page.writing import write_page
from datacollect.errors import ProblemError
from datacollect.files.documents import (
    document_name,
    folder_of,
    not_made,
    not_written,
    parse_toml,
    read_bytes,
    read_text,
    write_atomically,
    write_owned,
    written_durably,
)
from datacollect.files.durability import synchronise
from datacollect.files.toml_tables import toml_of
from datacollect.net.http_asking import Asker
from datacollect.net.keys import new_private_key, read_private_key, write_private_key
from datacollect.net.names import HOST_NAME, host_port_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.one_host.places import Places

# One key, one purpose.
KEYS = ("organiser", "service", "witness", "verdicts", "collector", "receipts")
# So long after the deadline files are still collected, and receipts can be verified against logs.
COLLECT_DAYS, KEEP_DAYS = 7, 365
DRAFTS = 10
# Uploads, what was fetched of them, and the files themselves lie on one disk.
COPIES = 3
MOST_LIST_BYTES = 2**20


@dataclass(frozen=True)
class Wanted:
    """An event as its organiser wants it.

    Attributes
    ----------
    name : str
        What people call it.
    deadline : datetime
        With its offset, in `timezone`.
    timezone : str
    address : tuple of str and int
        How people reach this host.
    most_bytes : int
        Of a sealed file.
    certificate : str or None
        Of the bistro, PEM, where no authority that everybody trusts has signed it.
    witnesses : str or None
        File or URL of a list of outside witnesses.
    authorities : str or None
        File of outside authorities.
    """

    name: str
    deadline: datetime
    timezone: str
    address: tuple[str, int]
    most_bytes: int
    certificate: str | None = None
    witnesses: str | None = None
    authorities: str | None = None

    @property
    def url(self) -> str:
        """The address of all."""
        return url_of(self.address)


def url_of(address: tuple[str, int]) -> str:
    """Return the URL of an address.

    >>> url_of(("hand-in.example", 443)), url_of(("::1", 8443))
    ('https://hand-in.example', 'https://[::1]:8443')
    """
    return f"https://{host_port_text(*address).removesuffix(f':{HTTPS}')}"


def make_folder(places: Places) -> None:
    """Make the event's folder, for its owner's eyes alone.

    Raises
    ------
    NotWrittenError
        It cannot be made.
    """
    try:
        places.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not any(places.folder.iterdir()):
            # One that was there, and empty, may be open to others.
            places.folder.chmod(0o700)
        places.logs.mkdir(exist_ok=True)
    except OSError as error:
        raise not_made(places.folder, error) from None


def keep_people(places: Places, roster: str | None) -> None:
    """Read a roster, and keep a copy of it; None: the copy that is there.

    Raises
    ------
    ProblemError
        It cannot be read, or names somebody twice.
    NotWrittenError
        The copy cannot be written.
    """
    require_people(places, roster)
    if roster is None:
        return
    data = read_bytes(roster)
    with written_durably(places.people) as beside:
        write_owned(beside, data, mode=0o600)


def require_people(places: Places, roster: str | None) -> None:
    """Raise `ProblemError` where there is no roster, or one that cannot be read."""
    if roster is not None:
        read_people(roster)
    elif not places.people.exists():
        raise ProblemError(
            "--people must name the table of all who may hand in; add --people FILE.csv"
        )


def make_event(places: Places, wanted: Wanted) -> Event:
    """Make keys, the event's file, and its page; return the event.

    Raises
    ------
    ProblemError
        The event breaks a rule.
    NotWrittenError, TransferError
        A file cannot be written, or the list of witnesses not be read.
    """
    make_keys(places, KEYS)
    return completed(places, {**draft_of(places, wanted), **_own_rows(places, wanted)})


def make_keys(places: Places, names: Sequence[str]) -> None:
    """Make private keys, but for those that are there.

    Raises
    ------
    NotWrittenError
        One cannot be written.
    """
    for name in names:
        if not places.key(name).exists():
            # Whole or not at all: one that was begun would have to be removed by hand.
            with written_durably(places.key(name)) as beside:
                beside.unlink(missing_ok=True)
                write_private_key(beside, new_private_key())


def completed(places: Places, tree: dict[str, Any]) -> Event:
    """Return the event that a draft becomes, once both are written.

    Raises
    ------
    ProblemError
        The event breaks a rule.
    NotWrittenError
        A file cannot be written.
    """
    write_atomically(places.draft, toml_of(EVENT, tree).encode())
    # The identity that stays here opens a trial; that of the other was just made.
    identities = [each for each in (places.identity, places.offline_identity) if each.exists()]
    event = new_event(places.draft, places.event, [str(each) for each in identities]).event
    # Tickets that are signed for it outlast a loss of power, and so must it.
    for each in (places.event, places.folder):
        synchronise(each)
    return event


def recipient_of(file: Path) -> str:
    """Return the recipient of an identity of age in a file, which is made where it is absent."""
    import pyrage

    if not file.exists():
        identity = pyrage.x25519.Identity.generate()
        text = f"# public key: {identity.to_public()}\n{identity}\n"
        try:
            write_owned(file, text.encode(), mode=0o600, new=True)
        except OSError as error:
            raise not_written(file, error) from None
    lines = [line for line in read_text(file).splitlines() if line and not line.startswith("#")]
    try:
        return str(pyrage.x25519.Identity.from_str(lines[0]).to_public())
    except (IndexError, pyrage.IdentityError):
        raise ProblemError(
            f"{document_name(file)}: must hold an identity of age; remove that file, and the same "
            "command makes another"
        ) from None


def draft_of(places: Places, wanted: Wanted) -> dict[str, Any]:
    """Return what a draft says of an event, but for those who keep it; identities are made.

    Raises
    ------
    ProblemError
        A file of an identity is none.
    NotWrittenError
        An identity cannot be written.
    """
    until = {
        key: (wanted.deadline + timedelta(days=days)).date().isoformat()
        for key, days in (("collect_until", COLLECT_DAYS), ("keep_until", KEEP_DAYS))
    }
    return {
        "name": wanted.name,
        "deadline": wanted.deadline.replace(tzinfo=None).isoformat(),
        "timezone": wanted.timezone,
        **until,
        "organiser": read_private_key(places.key("organiser")).public,
        "recipients": [recipient_of(places.identity), recipient_of(places.offline_identity)],
        "limits": {"bytes": wanted.most_bytes, "commitments_per_ticket": DRAFTS},
    }


def _own_rows(places: Places, wanted: Wanted) -> dict[str, Any]:
    """Return what a draft says of those who keep an event on this host."""

    def public(name: str) -> str:
        return read_private_key(places.key(name)).public

    url, name = wanted.url, name_of(wanted.address[0])
    own = {"url": f"{url}/{WITNESS}", "vkey": witness_key(name, public("witness")).text}
    outside = [] if wanted.witnesses is None else _listed(wanted.witnesses)
    bistro = {"name": name, "url": url, "key": public("receipts")}
    if wanted.certificate is not None:
        bistro["ca"] = wanted.certificate
    rows: dict[str, Any] = {
        "services": [{"url": f"{url}/{SERVICE}", "key": public("service")}],
        "witnesses": [own, *outside],
        "verdicts": {"key": public("verdicts"), "url": f"{url}/{VERDICTS}"},
        "bistros": [bistro],
    }
    if not outside:
        rows |= {"alone": True, "quorum": 1}
    if wanted.authorities is not None:
        rows["authorities"] = _authorities(wanted.authorities)
    return rows


def name_of(host: str) -> str:
    """Return what a host is called where only names of letters, digits and dots are.

    >>> name_of("hand-in.example"), name_of("::1")
    ('hand-in.example', 'this-host')
    """
    return host if HOST_NAME.fullmatch(host) else "this-host"


def _listed(place: str) -> list[dict[str, str]]:
    """Return the witnesses of a list, in a file or at a URL."""
    if not place.startswith(("https://", "http://")):
        return read_witnesses(read_text(place), document_name(place))
    with Asker(place) as asker:
        answer = asker.get("", MOST_LIST_BYTES)
    if answer.status != 200:
        raise ProblemError(
            f"--witnesses: {place} must be a list of witnesses, but the server answers "
            f"{answer.status}; open it in a browser, or give a file"
        )
    return read_witnesses(answer.body.decode(errors="replace"), place)


def _authorities(file: str) -> list[dict[str, str]]:
    """Return the rows of a file's ``[[authorities]]``, each with its certificates in it."""
    rows = parse_toml(read_text(file), document_name(file)).get("authorities")
    if not isinstance(rows, list) or len(rows) < 2 or not all(isinstance(r, dict) for r in rows):
        raise ProblemError(
            f"{document_name(file)}: must have two [[authorities]] or more, each with url and "
            "certificate: one alone could backdate; add another"
        )
    return [
        {
            **row,
            "certificate": given
            if PEM.fullmatch(given := str(row.get("certificate", "")))
            else read_text(folder_of(file) / given),
        }
        for row in rows
    ]


def make_page(places: Places) -> None:
    """Write the event's page anew: another version of this program may have written the other."""
    write_page(places.event, places.page, force=True)


def make_tickets(places: Places, page: str) -> tuple[int, int]:
    """Write tickets, links and cards for the people of the roster; return how many are new, of all.

    Parameters
    ----------
    places : Places
    page : str
        Address of the page.

    Raises
    ------
    ProblemError
        A ticket that is there is another's.
    NotWrittenError
        A file cannot be written.
    """
    done = write_tickets(
        *(places.event, places.people, places.key("organiser"), places.tickets),
        page,
        places.sheet,
    )
    return done.n_new, done.n_new + done.n_kept


def event_of(places: Places) -> Event:
    """Return the event that was made."""
    return read_event(read_bytes(places.event), document_name(places.event))


def room_bytes(places: Places) -> int:
    """Return how much of the disk uploads may take."""
    return max(shutil.disk_usage(places.folder).free // COPIES, 1)
