"""A log of verdicts takes over what the one before it had proved by its end, and no later word."""

from __future__ import annotations

from contextlib import closing

import pytest
from instances.custody import SignedLog, custody_event
from instances.events import key_of

from datacollect.bistro.formats.custody.verdicts import COLLECTED, NEVER_CAME, REFUSED, Verdict
from datacollect.bistro.formats.event.event import EndedLog
from datacollect.bistro.formats.log.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    sign_checkpoint,
)
from datacollect.bistro.log_service.log_copy import LogCopy, folder_name
from datacollect.bistro.log_service.store import LogStore
from datacollect.bistro.mirror.copying import Growing, LogCopying
from datacollect.bistro.mirror.mirror import EVENT_FILE
from datacollect.bistro.mirror.rebuilding import write_log
from datacollect.bistro.mirror.succeeding import entries_of_ended
from datacollect.errors import ProblemError
from datacollect.files.held_folder import Held

EVENT = custody_event()
OLD = EVENT.verdicts
ENDED_S = 1005
SAID = [Verdict(EVENT.id, bytes([i]) * 32, COLLECTED).data for i in range(3)]
LATER = [Verdict(EVENT.id, bytes([i]) * 32, REFUSED, NEVER_CAME).data for i in range(3)]
PUSHED = [Verdict(EVENT.id, bytes([9]) * 32, REFUSED, NEVER_CAME).data]


def mirror_of(folder, *heads, entries=(*SAID, *LATER)) -> LogCopy:
    """Make a mirror of the old log: size and time of each checkpoint that witnesses have signed."""
    folder.mkdir()
    (folder / EVENT_FILE).touch()
    copy = LogCopy(folder / folder_name(OLD), OLD, EVENT)
    log = SignedLog(EVENT, OLD, "dest", entries[: heads[-1][0]], heads)
    LogCopying(copy, EVENT, is_mirror=True).take(log)
    return copy


def push(copy) -> None:
    """Append what the log's key alone has signed."""
    growing = Growing(*copy.edge())
    for leaf in PUSHED:
        growing.append(leaf)
    head = Checkpoint(OLD.name, growing.edge.size, growing.edge.root())
    copy.push(growing.taken(), SignedCheckpoint(head, sign_checkpoint(head, key_of("dest"))))


def taken_over(tmp_path, *mirrors, ended_s=ENDED_S):
    own = tmp_path / "destination" / "log"
    own.parent.mkdir(exist_ok=True)
    return entries_of_ended(EVENT, EndedLog(OLD, ended_s), own, [str(each) for each in mirrors])


@pytest.mark.parametrize(
    ("ended_s", "n"), [(1000, 3), (ENDED_S, 3), (1009, 3), (1010, 6), (None, 6), (999, 0)]
)
def test_words_after_its_end_are_not_taken_over(tmp_path, ended_s, n):
    mirror_of(tmp_path / "mirror", (3, 1000), (6, 1010))
    found = taken_over(tmp_path, tmp_path / "mirror", ended_s=ended_s)
    assert found == [*SAID, *LATER][:n]


def test_words_that_its_key_alone_has_signed_are_not_taken_over(tmp_path):
    push(mirror_of(tmp_path / "mirror", (3, 1000)))
    assert taken_over(tmp_path, tmp_path / "mirror") == SAID


def test_of_its_own_folder_only_what_it_had_proved_is_taken_over(tmp_path):
    copy = mirror_of(tmp_path / "mirror", (3, 1000), (6, 1010))
    own = tmp_path / "destination" / "log"
    own.parent.mkdir()
    with closing(LogStore(Held(own), OLD.text)) as store:
        write_log(copy, EVENT, key_of("dest"), store)
    assert taken_over(tmp_path) == SAID
    assert taken_over(tmp_path, ended_s=999) == []


def test_of_several_mirrors_the_one_that_holds_most_counts(tmp_path):
    mirror_of(tmp_path / "behind", (2, 1000))
    mirror_of(tmp_path / "ahead", (2, 1000), (3, 1004), (6, 1010))
    assert taken_over(tmp_path, tmp_path / "behind", tmp_path / "ahead") == SAID


def test_where_nobody_holds_any_that_is_said(tmp_path):
    with pytest.raises(ProblemError, match="no mirror holds the log"):
        taken_over(tmp_path, tmp_path)
