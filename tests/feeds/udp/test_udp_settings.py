"""What a feed's file says of UDP, and what it may not."""

from __future__ import annotations

import pytest
from instances.udp_feeds import feed_file

from datacollect.errors import ProblemError
from datacollect.feeds.formats.udp_settings import UdpSettings


def test_a_message_is_what_one_packet_holds_if_nothing_else_is_said() -> None:
    """Of 1500 bytes IP version 6 with UDP takes 48, a feed's head 40."""
    assert feed_file(message_bytes=None).message_bytes == 1412
    assert feed_file().message_bytes == 1000


def test_what_is_said_counts_and_goes_to_the_receiver_as_it_was_said() -> None:
    udp = {"most_loss": 0.02, "grace": "3 s", "drop": 0.065, "fill": "pattern", "seed": 3}
    found = feed_file(udp=udp).udp
    assert (found.most_loss, found.grace_s, found.drop, found.fill) == (0.02, 3.0, 0.065, "pattern")
    assert UdpSettings.from_dict(found.to_dict()) == found


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"message_bytes": 20_000}, "a message is one packet"),
        ({"via": ["K"]}, "via must be left out with udp"),
        ({"spill": "here"}, "spill must be left out with udp"),
        ({"transport": "tcp", "udp": {"drop": 0.1}}, 'write transport = "udp"'),
        ({"udp": {"drop": 1}}, "udp.drop must be a part"),
        ({"udp": {"most_loss": 1.5}}, "udp.most_loss must be a part"),
        ({"udp": {"mean_bunch": 0.5}}, "udp.mean_bunch must be >= 1"),
        ({"udp": {"fill": "ones"}}, "udp.fill must be"),
        ({"udp": {"reorder": 0}}, "udp.reorder must be"),
        ({"rate": 0}, "rate must be"),
    ],
)
def test_what_cannot_be_by_udp_is_refused(more: dict[str, object], why: str) -> None:
    with pytest.raises(ProblemError, match=why):
        feed_file(**more)
