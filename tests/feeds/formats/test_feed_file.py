"""FEED.toml and FEEDS.toml: what they may say."""

from __future__ import annotations

import pytest

from datacollect.errors import ProblemError
from datacollect.feeds.formats.feed_file import FeedFile
from datacollect.feeds.formats.feeds_file import feeds_from_file

AGENT = {"url": "https://d.example:7443", "ca": "ca.pem"}
TREE = {
    "format": "datacollect-feed/1",
    "name": "scan7",
    "to": "D",
    "key": "instrument.key",
    "agents": {"D": AGENT, "K": AGENT},
    "rate": "16 Mbit/s",
}


def test_what_is_left_out_has_a_value(tmp_path):
    feed = FeedFile.from_dict({**TREE, "via": ["K"], "spill": "spool"}, tmp_path)
    assert (feed.rate_bytes_per_s, feed.message_bytes, feed.transport) == (2e6, 4096, "tcp")
    assert (feed.when_full, feed.catch_up, feed.late_after_s) == ("stop", 1.25, 0.02)
    assert (feed.key, feed.spill) == (tmp_path / "instrument.key", tmp_path / "spool")
    assert [each.name for each in (feed.to, *feed.via)] == ["D", "K"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rate": 0}, "rate must be a finite number of bytes per second > 0, got 0; say what"),
        ({"name": "../scan7"}, "name must be letters, digits"),
        ({"name": ".scan7"}, "begin with a letter or digit"),
        ({"name": "x" * 101}, "at most 100"),
        ({"name": "scan7.part"}, "must not end in .part, .json or .holes"),
        ({"to": "E"}, "to must name one of agents"),
        ({"via": ["Q"]}, "via must name one of agents"),
        ({"via": ["D"]}, "via names the receiver D"),
        ({"message_bytes": 0}, "message_bytes must be a whole number of bytes >= 1"),
        ({"message_bytes": "2 MiB"}, "below 1048577"),
        ({"catch_up": 0.5}, "catch_up must be >= 1"),
        ({"buffer_bytes": 100}, "buffer_bytes must hold a message of 4096 bytes, got 100"),
        ({"when_full": "wait"}, 'when_full must be "stop" or "drop-new" or "drop-old"'),
        ({"transport": "srt"}, 'transport must be "tcp" or "udp"'),
        ({"late": 1}, "late: unknown key"),
    ],
)
def test_what_it_cannot_say(change, why):
    with pytest.raises(ProblemError, match=why.replace("(", r"\(")):
        FeedFile.from_dict({**TREE, **change})


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("feeds = []", "feeds: the file names no feed"),
        ('[[feeds]]\nfile = "a.toml"', "must have either input or generate, got neither"),
        ('[[feeds]]\nfile = "a.toml"\ninput = "x"\ngenerate = 1', "got both"),
        ('[[feeds]]\nfile = "b.toml"\ngenerate = 1', "no such file"),
        (2 * '[[feeds]]\nfile = "a.toml"\ngenerate = "1 s"\n', "go to one receiver"),
    ],
)
def test_what_a_file_of_feeds_cannot_say(tmp_path, rows, why):
    (tmp_path / "a.toml").write_text(
        'format = "datacollect-feed/1"\nto = "D"\nkey = "k"\nrate = "1 MB/s"\n'
        '[agents.D]\nurl = "https://d.example"\nca = "ca.pem"\n'
    )
    (tmp_path / "feeds.toml").write_text(f'format = "datacollect-feeds/1"\n{rows}\n')
    with pytest.raises(ProblemError, match=why):
        feeds_from_file(tmp_path / "feeds.toml")
