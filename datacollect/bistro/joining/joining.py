"""A host joins an event: makes its keys, tells their public halves, and gets the event's file."""

from __future__ import annotations

import base64
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.checkpoints import witness_key
from datacollect.bistro.formats.log.notes import decoded
from datacollect.bistro.formats.log.one_meaning import peer_json
from datacollect.bistro.http.config_fields import (
    SERVICE_FORMAT,
    WITNESS_FORMAT,
)
from datacollect.bistro.joining.guests import JOIN, OPENED
from datacollect.bistro.joining.halves import BISTRO, DESTINATION, ROLES, SERVICE, WITNESS
from datacollect.bistro.joining.invitation import Invitation, expired_text, fingerprint_of_half
from datacollect.bistro.joining.reception import OPENED as OPENED_PATH
from datacollect.bistro.joining.reception import POSTED, SIGNED
from datacollect.bistro.one_host.places import Places
from datacollect.bistro.one_host.servers import accept_table, agent_text, destination_text
from datacollect.bistro.one_host.setting_up import (
    make_folder,
    make_keys,
    name_of,
    recipient_of,
    room_bytes,
    url_of,
)
from datacollect.bistro.organiser.ticket_files import LIST
from datacollect.errors import ProblemError, TransferError
from datacollect.files.documents import (
    document_name,
    read_text,
    toml_text,
    write_atomically,
    write_owned,
    written_durably,
)
from datacollect.files.kinds import shown
from datacollect.net.http_asking import Asker
from datacollect.net.keys import is_signed, read_private_key
from datacollect.net.names import host_port_text
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.bistro.one_host.certificates import Certificate
    from datacollect.bistro.one_host.ways import Ways
    from datacollect.net.keys import PrivateKey

AGAIN_S = 1.0
MOST_ANSWER_BYTES = 64 * 2**20
JSON_TYPE = "application/json"
KEYS = {
    WITNESS: ("witness",),
    SERVICE: ("service",),
    BISTRO: ("receipts",),
    DESTINATION: ("verdicts", "collector"),
}
COMMANDS = {
    WITNESS: ("witness", "witness.toml"),
    SERVICE: ("timestamp", "service.toml"),
    BISTRO: ("agent", "bistro.toml"),
    DESTINATION: ("event", "run", "event.toml", "--destination", "destination.toml"),
}


@dataclass(frozen=True)
class Joined:
    """Part of an event that a host keeps: its folder, and the command that runs its server."""

    folder: Path
    role: str
    command: tuple[str, ...]


def joined(
    line: str,
    role: str,
    folder: str,
    ways: Ways,
    room: int | None,
    say: Callable[[str], None],
    told: Callable[[dict[str, str], str], None] = lambda *_: None,
) -> Joined:
    """Join an event, and wait until it is open; started again it goes on.

    Parameters
    ----------
    line : str
        The invitation.
    role : str
    folder : str
        Of all that this host keeps of the event.
    ways : Ways
    room : int or None
        For uploads, bytes; None: a third of what is free.
    say : function
        Takes lines on what is waited for.
    told : function
        Told what this host has told of itself, and its fingerprint, once the organiser has it.

    Raises
    ------
    ProblemError
        The invitation was changed, used or has expired, or this host is not as it must be.
    NotWrittenError
        A file cannot be written.
    """
    if role not in ROLES:
        raise ProblemError(f"--as must be one of {', '.join(ROLES)}, got {shown(role)}")
    invitation = Invitation.parse(line)
    places = Places(Path(folder).resolve())
    done = Joined(places.folder, role, COMMANDS[role])
    _require_own_folder(places, invitation, role)
    if places.event.exists():
        return done
    ways.require()
    if time.time() > invitation.expires_s and not places.folder.exists():
        raise ProblemError(expired_text())
    make_folder(places)
    _keep(places.folder / "invitation", invitation.text)
    make_keys(places, KEYS[role])
    certificate = ways.certificate_for(places, ways.reached[0])
    half = _half(places, role, ways)
    with Asker(invitation.url) as asker:
        _post(asker, invitation, half, say)
        told(half, fingerprint_of_half(half))
        tree = _opened(asker, invitation, read_private_key(places.key(KEYS[role][0])), say)
    event = read_event(tree["event"].encode(), "the event that the organiser has sent")
    if event.organiser != invitation.organiser:
        raise ProblemError(
            "the event that was sent names another organiser than the invitation; tell the "
            "organiser, and do not start"
        )
    text = _server_file(places, role, ways, certificate, tree, room)
    write_atomically(places.folder / f"{role}.toml", text.encode())
    _keep(places.folder / f"datacollect-{role}.service", _unit(done), mode=0o644)
    # The last: once it is there, all is.
    with written_durably(places.event) as beside:
        beside.write_bytes(tree["event"].encode())
    return done


def _require_own_folder(places: Places, invitation: Invitation, role: str) -> None:
    """Raise `ProblemError` where a folder is of something else than this invitation's host."""
    folder, kept = places.folder, places.folder / "invitation"
    if not folder.exists():
        return
    if kept.exists():
        # Its keys say as what it has joined.
        is_own = read_text(kept).strip() == invitation.text
        is_own &= places.key(KEYS[role][0]).exists() or not any(folder.glob("*.key"))
    else:
        # It may have been killed before the line was kept.
        begun = (places.logs.name, f".{kept.name}.")
        is_own = all(each.name.startswith(begun) for each in folder.iterdir())
    if not is_own:
        raise ProblemError(
            f"{document_name(folder)}: must be a new folder, or one where this invitation was "
            "begun in the same role, but it holds something else; name another with --folder"
        )


def _half(places: Places, role: str, ways: Ways) -> dict[str, str]:
    host, url = ways.reached[0], url_of(ways.reached)
    public = {name: read_private_key(places.key(name)).public for name in KEYS[role]}
    half = {"role": role, "url": url}
    if role == WITNESS:
        return {**half, "vkey": witness_key(name_of(host), public["witness"]).text}
    if role == SERVICE:
        return {**half, "key": public["service"]}
    if role == BISTRO:
        return {**half, "key": public["receipts"], "name": name_of(host)}
    return {
        **half,
        "key": public["verdicts"],
        "collector": public["collector"],
        "recipient": recipient_of(places.identity),
    }


def _post(
    asker: Asker, invitation: Invitation, half: dict[str, str], say: Callable[[str], None]
) -> None:
    text = json.dumps(half)
    mac = invitation.mac(JOIN + text.encode())
    asked = {"number": invitation.number, "half": text, "mac": mac}
    _asked(asker, POSTED, asked, say, "the organiser does not listen yet (`event open`)")


def _opened(
    asker: Asker, invitation: Invitation, key: PrivateKey, say: Callable[[str], None]
) -> dict[str, Any]:
    message = OPENED + invitation.number.encode()
    by_key = base64.b64encode(key.sign(message)).decode()
    asked = {"number": invitation.number, "mac": invitation.mac(message), "signature": by_key}
    answer = _asked(asker, OPENED_PATH, asked, say, "waiting until the organiser opens the event")
    payload, signature = (str(answer.get(key)) for key in ("payload", "signature"))
    tree, signed = peer_json(payload), decoded(signature)
    if not isinstance(tree, dict) or signed is None:
        raise TransferError("the organiser's answer is not understood; update one of the two hosts")
    is_own = is_signed(SIGNED + payload.encode(), signed, invitation.organiser)
    if not is_own or tree.get("number") != invitation.number:
        raise ProblemError(
            "what was sent is not signed by the organiser of the invitation: somebody else answers "
            "there; tell the organiser, and do not start"
        )
    return tree


def _asked(
    asker: Asker, path: str, tree: dict[str, str], say: Callable[[str], None], waiting: str
) -> dict[str, Any]:
    """Return the answer, once there is one."""
    body, said = json.dumps(tree).encode(), ""
    while True:
        try:
            answer = asker.post(path, body, JSON_TYPE, MOST_ANSWER_BYTES)
        except TransferError as error:
            line = f"{waiting}: {error}"
        else:
            if answer.status == 200 and isinstance(found := peer_json(answer.body), dict):
                return found
            if answer.status in (400, 403, 409, 410, 413):
                raise ProblemError(f"the organiser refuses: {_why(answer.body)}")
            line = waiting
        if line != said:
            say(line)
            said = line
        time.sleep(AGAIN_S)


def _why(body: bytes) -> str:
    tree = peer_json(body)
    why = tree.get("why") if isinstance(tree, dict) else None
    return safe_text(why) if isinstance(why, str) else "it gives no reason"


def _server_file(
    places: Places,
    role: str,
    ways: Ways,
    certificate: Certificate,
    tree: dict[str, Any],
    room: int | None,
) -> str:
    """Return the text of the server's own file."""
    files = (("certificate", certificate.chain), ("key", certificate.key))
    tls = ", ".join(f"{key} = {toml_text(str(file))}" for key, file in files)
    listen = f"listen = {toml_text(host_port_text(*ways.listening))}\ntls = {{ {tls} }}\n"
    if role == WITNESS:
        clock = "trusted" if ways.is_clock_trusted else "kernel"
        return (
            f"format = {toml_text(WITNESS_FORMAT)}\nname = {toml_text(name_of(ways.reached[0]))}\n"
            f'key = "witness.key"\n{listen}folder = "signed"\nclock = "{clock}"\n'
            f"logs = {toml_text(tree['logs'])}\n"
        )
    if role == SERVICE:
        return (
            f'format = {toml_text(SERVICE_FORMAT)}\nevent = "event.toml"\nkey = "service.key"\n'
            f'{listen}folder = "log"\n'
        )
    if role == BISTRO:
        (places.folder / "state").mkdir(mode=0o700, exist_ok=True)
        return agent_text(
            name_of(ways.reached[0]),
            tree["collector"],
            ways.listening,
            certificate,
            accept_table(room or room_bytes(places)),
        )
    places.tickets.mkdir(mode=0o700, exist_ok=True)
    listed = tree.get("list")
    if not isinstance(listed, str):
        raise ProblemError(
            "the organiser has sent no list of tickets: the program on the organiser's host is of "
            "another version; ask the organiser to update it, and join again"
        )
    _keep(places.tickets / LIST, listed)
    return destination_text(places, listen)


def _unit(done: Joined) -> str:
    """Return a unit of systemd that runs the server, as whoever joins now: his are its files."""
    import pwd
    import sys

    number = os.getuid()
    try:
        user = pwd.getpwuid(number).pw_name
    except KeyError:
        user = str(number)
    folder, program = (str(each).replace("%", "%%") for each in (done.folder, sys.executable))
    return (
        f"[Unit]\nDescription=datacollect: {done.role} of an event\nWants=network-online.target\n"
        f"After=network-online.target\n\n[Service]\nUser={user}\n"
        f'WorkingDirectory={folder}\nExecStart="{program}" -m datacollect '
        f"{' '.join(done.command)}\nExecReload=/bin/kill -HUP $MAINPID\nRestart=on-failure\n"
        "RestartSec=2\nLimitNOFILE=65536\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n"
        "NoNewPrivileges=yes\nProtectSystem=full\nPrivateTmp=yes\nUMask=0077\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def _keep(path: Path, text: str, mode: int = 0o600) -> None:
    with written_durably(path) as beside:
        write_owned(beside, (text if text.endswith("\n") else f"{text}\n").encode(), mode=mode)
