"""Answers whose heads never end: each tool stops, and the script gives up at once."""

from __future__ import annotations

import pytest
from conftest import need
from instances.exported_scripts import Scripts, data_of
from judges.misbehaving_answers import ServedFile
from judges.misbehaving_server import Site, misbehaving_server
from judges.misbehaviour import HEADS_WITHOUT_END, Behaviour

# By tool: what a range costs at most, by docs/exports.md, and what is on the way.
MOST_BYTES = {
    "curl": 1_000_000,
    "aria2": 16_000_000,
    "rclone": 15_000_000,
}
DATA = data_of("f")


@pytest.mark.slow
@pytest.mark.parametrize("words", HEADS_WITHOUT_END)
@pytest.mark.parametrize("tool", MOST_BYTES)
def test_a_head_without_end_is_given_up_at_once(tmp_path, tool, words):
    need(tool)
    scripts = Scripts(tmp_path, tool)
    site = Site({"/f": ServedFile(DATA, DATA, DATA)}, {"/f": Behaviour(timing=words)})
    with misbehaving_server(site) as server:
        remote = {"RCLONE_CONFIG_W_TYPE": "http", "RCLONE_CONFIG_W_URL": server.url}
        scripts.write("w:." if tool == "rclone" else server.url)
        code, said = scripts.start(**remote)
        n_ranges = 1 if tool == "aria2" else 2
        assert code == 1
        assert said.count("its server sends headers without end; exit code") == n_ranges
        assert "gave up after 1 tries" in said
        assert site.n_requests["/f"] == n_ranges
        assert site.sent_bytes["/f"] < n_ranges * MOST_BYTES[tool]
        site.behave({})
        assert scripts.start(**remote)[0] == 0
    assert scripts.has_arrived()
