"""Collection files: what is wrong is said with its place, rule and remedy."""

import pytest

from datacollect.errors import ProblemError
from datacollect.transfer.pull.config.file import Collection

LINK = {"from": "S1", "to": "D", "bandwidth_bytes_per_s": 1.0}
AGENT = {"url": "https://127.0.0.1:7443", "fingerprint": "sha256:" + "0a" * 32}


def tree(**changes):
    return {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": "collector.key",
        "agents": {"S1": AGENT},
    } | changes


def agent(**changes):
    return tree(agents={"S1": AGENT | changes})


def test_paths_are_relative_to_the_file(tmp_path):
    agents = {"S1": {"url": AGENT["url"], "ca": "ca.pem"}}
    found = Collection.from_dict(tree(agents=agents), tmp_path)
    ca = found.entries["agents"]["S1"].ca
    assert (found.key, ca) == (tmp_path / "collector.key", tmp_path / "ca.pem")


def test_left_out_sources_are_all_agents():
    assert Collection.from_dict(tree()).sources is None
    chosen = Collection.from_dict(tree(sources={"S1": {"files": ["*.tar"]}}))
    assert chosen.sources["S1"].files == ("*.tar",)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (tree(format="datacollect-problem/1"), 'format must be "datacollect-collection/1"'),
        ({"destination": "D"}, "keys format, key are missing"),
        (tree(agents={}), "there is no host to collect from"),
        (tree(sources={}), "sources: names no host; name what to collect, or leave it out"),
        (agent(url="http://127.0.0.1:7443"), r"agents.S1.url must be https://HOST:PORT"),
        (agent(url="https://127.0.0.1:7443/x"), "must be https://HOST:PORT"),
        (agent(url="https://u@127.0.0.1:7443"), "must be https://HOST:PORT"),
        (agent(url="https://127.0.0.1:99999"), "must be https://HOST:PORT"),
        (agent(fingerprint="sha256:" + "0A" * 32), "lowercase hexadecimal digits"),
        (agent(ca="ca.pem"), "must have either fingerprint or ca, got both"),
        (tree(agents={"S1": {"url": AGENT["url"]}}), "got neither"),
        (tree(agents={"d": AGENT}), "is the destination's name"),
        (tree(agents={"../x": AGENT}), "must be a name of ASCII letters"),
        (tree(agents={".datacollect": AGENT}), "must be a name of ASCII letters"),
        (tree(destination="a/b"), "destination must be a name"),
        (
            tree(sources={"S2": {}}),
            "must be one of the agents or servers, got 'S2'; add .agents.S2.",
        ),
        (tree(sources={"S1": {"files": []}}), "files must be a list"),
        (tree(limits={"connections": 0}), "limits.connections must be a whole number >= 1"),
        (tree(limits={"piece_bytes": 100_000}), "piece_bytes must be a power of two"),
        (tree(hosts={"S1": {"backlog_bytes": 5}}), "backlog_bytes: what there is to collect"),
        (
            tree(hosts={"S1": {"uplink_bytes_per_s": "Sa Su 1 Gbit/s"}}),
            'hosts.S1.uplink_bytes_per_s: hours .* add timezone = "Europe/Zurich" at the top',
        ),
        (
            tree(timezone="Europe/Zurich", hosts={"S1": {"uplink_bytes_per_s": [1, 2]}}),
            "hosts.S1.uplink_bytes_per_s must be a rate, .* no periods here, .*; write it like",
        ),
        (
            tree(timezone="Europe/Zurich", hosts={"S1": {"uplink_bytes_per_s": "8:00 1"}}),
            "leave out the quotes, or give the unit",
        ),
        (tree(timezone="Europe/Zürich"), "must be an IANA name .* did you mean"),
        (tree(limits={"rate": 0}), "limits.rate must be .* > 0, got 0; leave it out for unlimited"),
        (
            tree(limits={"rate": "8:00 1 MB/s, 20:00 1 GB/s"}),
            'limits.rate: hours .* add timezone = "Europe/Zurich" at the top',
        ),
        (tree(hosts={"S1": {"open": "20:00-06:00"}}), r"hosts\.S1\.open: hours .* add timezone"),
        (tree(hosts={"S1": {"open": "nights"}}), r"hosts\.S1\.open must be windows of hours"),
        (
            tree(links=[{**LINK, "open": "20:00-06:00"}]),
            r"links\[0\]\.open: hours .* add timezone",
        ),
        (tree(links=[{**LINK, "cap": 1}]), r"links\[0\]\.cap must be true or false"),
        (tree(colour="red"), "unknown key"),
    ],
)
def test_what_is_wrong_is_said(wrong, said):
    with pytest.raises(ProblemError, match=said):
        Collection.from_dict(wrong)


def test_the_file_is_named(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("format = 1")
    with pytest.raises(ProblemError, match=r"c\.toml: "):
        Collection.from_file(path)


def test_windows_with_a_zone_of_their_own_need_no_other():
    said = tree(hosts={"S1": {"open": "20:00-06:00 Asia/Tokyo"}})
    assert Collection.from_dict(said).network["hosts"]["S1"]["open"][0].zone == "Asia/Tokyo"


def test_rates_have_units_or_hours():
    assert Collection.from_dict(tree(limits={"rate": "80 Mbit/s"})).limits.rate == 1e7
    hourly = tree(timezone="UTC", limits={"rate": "Mo-Fr 08:00 1 MB/s, Mo 20:00 1 GB/s"})
    assert max(Collection.from_dict(hourly).limits.rate.bytes_per_s) == 1e9
