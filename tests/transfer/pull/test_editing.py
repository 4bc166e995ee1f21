"""Collection files that are made, and added to: what else stands in them stays."""

from __future__ import annotations

import json

import pytest

from datacollect.errors import NotWrittenError, ProblemError
from datacollect.files.documents import write_atomically
from datacollect.net.keys import read_private_key
from datacollect.transfer.protocol.introduction import Introduction, introductions_of
from datacollect.transfer.pull.config.editing import add_agents, new_collection
from datacollect.transfer.pull.config.file import Collection

PRINT = f"sha256:{'9f' * 32}"
OTHER = f"sha256:{'0a' * 32}"
HEAD = 'format = "datacollect-collection/1"\ndestination = "D"\nkey = "c.key"\n'


def known(path):
    return {
        name: (entry.address, entry.fingerprint)
        for name, entry in Collection.from_file(path).entries["agents"].items()
    }


def agent(name="S1", url="https://s1.example:7443", fingerprint=PRINT):
    return Introduction(name, url, fingerprint)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "collection.toml"
    path.write_text(HEAD)
    return path


def test_a_new_one_has_a_key_of_its_own(tmp_path):
    path = tmp_path / "collection.toml"
    public = new_collection(path, "D", "collector.key")
    assert read_private_key(tmp_path / "collector.key").public == public
    add_agents(path, [agent()])
    collection = Collection.from_file(path)
    assert (collection.destination, collection.key) == ("D", tmp_path / "collector.key")


def test_a_new_one_again_changes_nothing_and_loses_no_agents(tmp_path):
    path = tmp_path / "collection.toml"
    public = new_collection(path, "D", "collector.key")
    add_agents(path, [agent()])
    before = path.read_text()
    assert new_collection(path, "D", "collector.key") == public
    assert path.read_text() == before


@pytest.mark.parametrize(("destination", "key"), [("E", "c.key"), ("D", "other.key")])
def test_another_one_is_not_overwritten(file, destination, key):
    with pytest.raises(ProblemError, match=r"exists already, with another destination or key"):
        new_collection(file, destination, key)
    assert file.read_text() == HEAD
    assert [path.name for path in file.parent.iterdir()] == ["collection.toml"]


@pytest.mark.parametrize("text", ["[1]", "", "destination = 5", '["a"]\n'])
def test_what_is_no_collection_is_not_overwritten(file, text):
    file.write_text(text)
    for act in (lambda: new_collection(file, "D", "c.key"), lambda: add_agents(file, [agent()])):
        with pytest.raises(ProblemError):
            act()
        assert file.read_text() == text


def test_agents_are_added_below_all_that_stands_there(file):
    text = HEAD + "# Ours.\n[limits]\nconnections = 4 # few"
    file.write_text(text)
    (added,) = add_agents(file, [agent()])
    assert (added.is_new, added.is_collected) == (True, True)
    assert file.read_text().startswith(text + "\n\n[agents.S1]\n")
    assert known(file) == {"S1": (("s1.example", 7443), PRINT)}
    add_agents(file, [agent("S2", "https://[::1]:7000", OTHER), agent("a.b")])
    assert known(file).keys() == {"S1", "S2", "a.b"}


def test_one_that_is_there_stays_as_it_is(file):
    add_agents(file, [agent()])
    before = file.read_text()
    (added,) = add_agents(file, [agent()])
    assert not added.is_new
    assert file.read_text() == before


@pytest.mark.parametrize(
    "other",
    [agent(fingerprint=OTHER), agent(url="https://s9.example:7443")],
    ids=["fingerprint", "url"],
)
def test_another_of_its_name_replaces_it_by_force_alone(file, other):
    file.write_text(
        f'{HEAD}[agents.S0]\nurl = "https://s0.example:1"\nfingerprint = "{PRINT}"\n'
        f'[ agents.S1 ]\nurl = "https://s1.example:7443"\nfingerprint = "{PRINT}"\n'
    )
    before = file.read_text()
    with pytest.raises(ProblemError, match=r"agents.S1: exists already, .*--force replaces both"):
        add_agents(file, [other])
    assert file.read_text() == before
    (added,) = add_agents(file, [other], force=True)
    assert added.is_new
    host = other.url.removeprefix("https://").partition(":")[0]
    assert known(file) == {
        "S0": (("s0.example", 1), PRINT),
        "S1": ((host, 7443), other.fingerprint),
    }


def test_by_force_the_other_rows_stay(file):
    rows = 'url = "https://s1.example:7443" # here\nca = "ca.pem"\n# a note\n'
    file.write_text(
        f'{HEAD}[agents.S1] # first\n{rows}\n[agents.S2]\nurl = "https://s2.example:1"\n'
        f'fingerprint = "{PRINT}"\n'
    )
    add_agents(file, [agent(url="https://s9.example:1", fingerprint=OTHER)], force=True)
    assert known(file) == {
        "S1": (("s9.example", 1), OTHER),
        "S2": (("s2.example", 1), PRINT),
    }
    assert "[agents.S1] # first\n" in file.read_text()
    assert "# a note\n" in file.read_text()


def test_ways_to_write_that_cannot_be_added_to_are_said(file):
    text = f'{HEAD}agents = {{ S0 = {{ url = "https://a:1", fingerprint = "{PRINT}" }} }}\n'
    file.write_text(text)
    with pytest.raises(ProblemError, match=r"write by hand: agents.S1 with url = "):
        add_agents(file, [agent()])
    assert file.read_text() == text


def test_json_stays_json(file):
    tree = {"format": "datacollect-collection/1", "destination": "D", "key": "c.key"}
    file.write_text(json.dumps(tree))
    add_agents(file, [agent()])
    assert json.loads(file.read_text()).keys() == {*tree, "agents"}
    assert known(file) == {"S1": (("s1.example", 7443), PRINT)}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (agent("D"), "is the destination's name"),
        (agent("_S"), "must be a name of ASCII letters"),
        (agent(url="http://s1.example:7443"), "must be https://HOST:PORT"),
        (agent(url="https://s1.example/x"), "must be https://HOST:PORT"),
        (agent(fingerprint="sha256:9F"), "64 lowercase hexadecimal digits"),
        (agent("s2"), "another host's name"),
    ],
    ids=["destination", "name", "no TLS", "path", "fingerprint", "case"],
)
def test_where_one_does_not_fit_none_is_added(file, wrong, message):
    add_agents(file, [agent("S2")])
    before = file.read_text()
    with pytest.raises(ProblemError, match=message) as failure:
        add_agents(file, [agent("S3"), wrong])
    assert str(failure.value).startswith(str(file))
    assert file.read_text() == before


def test_whom_the_sources_do_not_name_is_told(file):
    file.write_text(HEAD + "[sources.S1]\n")
    added = add_agents(file, [agent("S1"), agent("R")])
    assert [each.is_collected for each in added] == [True, False]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ProblemError, match="no such file; `datacollect collection new` makes one"):
        add_agents(tmp_path / "gone.toml", [agent()])


@pytest.mark.parametrize("text", ["", "S1", "S1 https://a:1", "S1 https://a:1 sha256:0 S2"])
def test_lines_that_are_none(text):
    with pytest.raises(ProblemError, match="the line must be NAME https://HOST:PORT sha256:"):
        introductions_of(text)


def test_what_is_printed_is_what_is_read():
    assert introductions_of(f"{agent()}\n{agent('S2')}\n") == (agent(), agent("S2"))


def test_a_key_that_is_lost_is_not_replaced_without_a_word(tmp_path):
    """Agents know the old one: they would refuse whatever a new one signs."""
    path = tmp_path / "collection.toml"
    new_collection(path, "D", "collector.key")
    (tmp_path / "collector.key").unlink()
    with pytest.raises(
        NotWrittenError,
        match=r"the file collector\.key of its key.* is missing; put that file back",
    ):
        new_collection(path, "D", "collector.key")
    assert not (tmp_path / "collector.key").exists()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_that_is_edited_keeps_its_mode(tmp_path, mode):
    """It may hold users and passwords of web servers."""
    path = tmp_path / "collection.toml"
    path.write_text("old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == mode
