"""``datacollect example``: where files go, and what is not overwritten."""

from __future__ import annotations

import json


def test_example_is_overwritten_only_by_force(here, call):
    (here / "figure1.toml").write_text("mine")
    assert call("example", "figure1")[0] == 2
    assert (here / "figure1.toml").read_text() == "mine"
    assert call("example", "figure1", "--force")[0] == 0
    assert "destination" in (here / "figure1.toml").read_text()


def test_example_goes_where_it_is_to_go(here, call):
    (here / "sub").mkdir()
    code, out, err = call("example", "upload", "-o", "sub")
    assert (code, out) == (0, "")
    assert "saved to sub/upload.csv" in err
    assert call("compare", "sub/upload.toml", "--json")[0] == 0


def test_programs_are_written_and_what_to_do_next_is_said(here, call):
    code, out, err = call("example", "upload-server")
    assert (code, out) == (0, "")
    assert err.endswith("try: datacollect example alps && python upload_server.py alps.toml\n")
    assert (here / "upload_server.py").read_text().startswith('"""A service for upload servers')
    assert call("example", "upload-server")[0] == 2
    assert call("example", "upload_server")[2].startswith("error: no example is called")


def test_programs_are_listed(call):
    listed = json.loads(call("example", "--json")[1])["examples"]
    assert listed[-1] == {
        "name": "upload-server",
        "shows": "A service for upload servers: serves pull lists, plans again.",
    }
