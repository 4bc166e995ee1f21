"""A source and a relay with a spool, as agents: what is ordered is kept, sealed, and given back."""

import time
from contextlib import contextmanager

import pytest
from instances.agents import KEY, running, source_ticket, write_agent

from datacollect.errors import ProblemError, RefusedError, TransferError
from datacollect.net.tickets import Ticket, sign_ticket
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.protocol.messages import FileEntry, Read, WireSegment
from datacollect.transfer.spool import messages
from datacollect.transfer.spool.conversation import Conversation
from datacollect.transfer.spool.drops import wish_drop
from datacollect.transfer.spool.messages import AskedPiece, Order
from datacollect.transfer.spool.sealing import new_key, open_sealed
from datacollect.transfer.spool.store import collections_of

PLAIN = b"a secret that no relay may read " * 4096
SEALING_KEY = new_key()


def ticket(kind, agent, **fields):
    now_s = time.time()
    values = {"issued_s": now_s, "expires_s": now_s + 600, **fields}
    return sign_ticket(Ticket(KEY.public, agent, kind, "tests", **values), KEY)


@contextmanager
def talking(agent):
    found = Conversation(agent.name, agent.address, agent.agent.fingerprint)
    try:
        yield found
    finally:
        found.close()


def ask(agent, target, body, token=None, most=2**20):
    kind = "source" if target == messages.KEY else "spool"
    with talking(agent) as conversation:
        return conversation.ask(target, token or ticket(kind, agent.name), body, most)


def asked_piece(folder, index, offset, n_bytes):
    stat = (folder / "data" / "a").stat()
    entry = FileEntry("a", stat.st_size, stat.st_mtime_ns, stat.st_ino)
    return AskedPiece(index, Read((WireSegment(entry, offset, n_bytes),)))


@pytest.fixture
def hosts(tmp_path):
    """Return a running source and a running relay that keeps up to 1 MB of it."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_bytes(PLAIN)
    with running(write_agent(tmp_path, "S", serve="data")) as source:
        spool = 'spool = { folder = "spool", bytes = 1_000_000 }'
        path = write_agent(tmp_path, "K", connect_to={"S": source.place}, more=spool)
        with running(path) as relay:
            yield source, relay


def order_of(source, pieces, **fields):
    values = {
        "ticket": ticket("sealed", "S", source="S"),
        "until_s": time.time() + 600,
        "fingerprint": source.agent.fingerprint,
        **fields,
    }
    return Order("S", values["fingerprint"], values["ticket"], values["until_s"], tuple(pieces))


def keep(hosts, pieces, **fields):
    source, relay = hosts
    body = messages.order_body(order_of(source, pieces, **fields))
    return messages.parse_outcome(ask(relay, messages.KEEP, body))


def kept_at(relay):
    return messages.parse_page(ask(relay, messages.LIST, messages.list_body(None)))


def test_a_piece_is_fetched_kept_and_opens_at_the_destination_alone(hosts, tmp_path):
    source, relay = hosts
    ask(source, messages.KEY, messages.key_body(SEALING_KEY))
    pieces = [asked_piece(tmp_path, i, 1000 * i, 1000) for i in range(10)]
    assert keep(hosts, pieces).kept == tuple(range(10))
    assert [each.index for each in kept_at(relay).pieces] == list(range(10))
    for each in pieces:
        name = each.sealed_of("S")
        sealed = ask(relay, messages.FETCH, messages.fetch_body(name))
        begin = 1000 * each.index
        assert open_sealed(SEALING_KEY, "tests", name, sealed) == PLAIN[begin : begin + 1000]
    # A relay's disk holds nothing that it could read.
    for path in (tmp_path / "spool").rglob("*"):
        assert path.is_dir() or b"secret" not in path.read_bytes()
    ask(relay, messages.FORGET, messages.forget_body([("S", i) for i in range(9)]))
    assert [each.index for each in kept_at(relay).pieces] == [9]
    ask(relay, messages.END, b"{}")
    assert kept_at(relay).pieces == ()
    assert not list((tmp_path / "spool").rglob("*.segment"))
    assert collections_of(tmp_path / "spool") == []


def test_what_is_changed_swapped_replayed_or_old_does_not_open(hosts, tmp_path):
    """Each is refused: a flipped byte, another piece, another collection, a version before."""
    source, relay = hosts
    ask(source, messages.KEY, messages.key_body(SEALING_KEY))
    first, second = (asked_piece(tmp_path, i, 1000 * i, 1000) for i in range(2))
    keep(hosts, [first, second])
    names = [each.sealed_of("S") for each in (first, second)]
    sealed = [ask(relay, messages.FETCH, messages.fetch_body(name)) for name in names]
    (tmp_path / "data" / "a").write_bytes(PLAIN[::-1])
    newer = asked_piece(tmp_path, 0, 0, 1000).sealed_of("S")
    changed = bytearray(sealed[0])
    changed[500] ^= 1
    for name, data, collection in (
        (names[0], bytes(changed), "tests"),
        (names[0], sealed[1], "tests"),
        (names[0], sealed[0], "other"),
        (names[0], sealed[0][:-1], "tests"),
        (newer, sealed[0], "tests"),
    ):
        with pytest.raises(TransferError, match="not as its source sealed it"):
            open_sealed(SEALING_KEY, collection, name, data)


def test_without_a_key_nothing_is_sealed_and_the_reason_comes_through(hosts, tmp_path):
    outcome = keep(hosts, [asked_piece(tmp_path, 0, 0, 1000)])
    assert outcome.kept == ()
    assert "S: refuses (428): the collector has given no key" in outcome.refused[0][1]


def test_a_changed_file_is_not_kept_and_others_are(hosts, tmp_path):
    source, _ = hosts
    ask(source, messages.KEY, messages.key_body(SEALING_KEY))
    old = asked_piece(tmp_path, 0, 0, 1000)
    (tmp_path / "data" / "a").write_bytes(PLAIN * 2)
    outcome = keep(hosts, [old, asked_piece(tmp_path, 1, 1000, 1000)])
    assert outcome.kept == (1,)
    assert "has changed since it was listed" in dict(outcome.refused)[0]


def test_no_room_is_507_before_a_byte_and_a_part_fits(hosts, tmp_path):
    source, relay = hosts
    (tmp_path / "data" / "a").write_bytes(bytes(3_000_000))
    ask(source, messages.KEY, messages.key_body(SEALING_KEY))
    with pytest.raises(RefusedError, match="no room in the spool") as refused:
        keep(hosts, [asked_piece(tmp_path, 0, 0, 2_000_000)])
    assert refused.value.status == 507
    outcome = keep(hosts, [asked_piece(tmp_path, i, 0, 600_000) for i in range(2)])
    assert outcome.kept == (0,)
    assert "no room" in dict(outcome.refused)[1]
    assert [each.index for each in kept_at(relay).pieces] == [0]


def test_tickets_of_another_kind_do_not_count(hosts, tmp_path):
    """Neither does the relay's ticket give it a file, nor a source ticket the spool."""
    source, relay = hosts
    body = messages.asked_body(asked_piece(tmp_path, 0, 0, 1000))
    for agent, target, token in (
        (source, messages.SEALED, source_ticket("S")),
        (source, messages.SEALED, ticket("spool", "S")),
        (source, messages.KEY, ticket("sealed", "S")),
        (source, "/v1/read", ticket("sealed", "S")),
        (relay, messages.LIST, source_ticket("K")),
        (relay, messages.LIST, ticket("spool", "L")),
        (relay, messages.END, ticket("sealed", "K")),
    ):
        with pytest.raises(RefusedError) as refused:
            ask(agent, target, body, token)
        assert refused.value.status == 401


def test_another_certificate_than_the_order_says_is_not_fetched_from(hosts, tmp_path):
    piece = asked_piece(tmp_path, 0, 0, 1000)
    outcome = keep(hosts, [piece], fingerprint="sha256:" + "0" * 64)
    assert outcome.kept == ()
    assert "certificate" in outcome.refused[0][1]


def test_what_an_operator_drops_is_told_to_the_collector(hosts, tmp_path):
    source, relay = hosts
    ask(source, messages.KEY, messages.key_body(SEALING_KEY))
    keep(hosts, [asked_piece(tmp_path, 0, 0, 1000)])
    wish_drop(tmp_path / "spool", "tests")
    page = kept_at(relay)
    assert (page.pieces, page.dropped, page.expired) == ((), (1, 1000), (0, 0))
    assert not list((tmp_path / "spool").rglob("*.segment"))


@pytest.mark.parametrize(("serve", "spool"), [("data", "data/spool"), ("spool/x", "spool")])
def test_a_spool_and_what_is_served_lie_apart(tmp_path, serve, spool):
    more = f'spool = {{ folder = "{spool}", bytes = 5 }}'
    path = write_agent(tmp_path, "K", serve=serve, more=more)
    with pytest.raises(ProblemError, match="must lie apart from the folder that is served"):
        AgentConfig.from_file(path)
