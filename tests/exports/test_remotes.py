"""Hosts in addresses are refused when scripts are written, where their tool would not take them."""

from __future__ import annotations

import pytest

import datacollect as dc
from datacollect.exports.formats import EXPORTS

TAKEN = [
    ("rclone", "a b", "{host}:{path}", "a b:x"),
    ("rclone", "S1", ":http,url='https://h':{path}", ":http,url='https://h':x"),
    ("rclone", "S1", "{host},shared:{path}", "S1,shared:x"),
    ("rclone", "zürich", "zrh:{path}", "zrh:x"),
    ("rclone", "zürich", "/mnt/{host}/{path}", "/mnt/zürich/x"),
    ("rsync", "zürich", "{host}:/data/{path}", "zürich:/data/x"),
    ("rsync", "S1", "me@{host}::m/{path}", "me@S1::m/x"),
    ("rsync", "S1", "rsync://me@{host}:873/m/{path}", "rsync://me@S1:873/m/x"),
    ("curl", "S1", "https://[::1]:8443/{path}", "https://[::1]:8443/x"),
    ("curl", "S1", "https://me@{host}:8443/{path}", "https://me@S1:8443/x"),
    ("curl", "a/b", "file:///mnt/{host}/{path}", "file:///mnt/a/b/x"),
]


@pytest.mark.parametrize("given", TAKEN, ids=[f"{each[0]} {each[2]}" for each in TAKEN])
def test_what_the_tool_takes_is_taken(given):
    EXPORTS.get(given[0]).require_address(*given[1:])


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (("rclone", "zürich", "{host}:{path}", "zürich:x"), "zürich"),
        (("rclone", "a+b", "{host}:{path}", "a+b:x"), "a+b"),
        (("rclone", "-x", "{host}:{path}", "-x:x"), "-x"),
        (("rclone", "x ", "{host}:{path}", "x :x"), "x "),
        # rclone would look for it in a folder here.
        (("rclone", "lab/4", "{host}:{path}", "lab/4:x"), "lab/4"),
        (("rsync", "-e sh", "{host}:/data/{path}", "-e sh:/data/x"), "-e sh"),
        (("rsync", "a;b", "me@{host}:/data/{path}", "me@a;b:/data/x"), "a;b"),
        (("curl", "zürich", "https://{host}/{path}", "https://z%C3%BCrich/x"), "z%C3%BCrich"),
        (("curl", "lab/4", "https://{host}/{path}", "https://lab/4/x"), "lab/4"),
        (("aria2", "a b", "https://{host}/{path}", "https://a%20b/x"), "a%20b"),
    ],
)
def test_what_the_tool_would_refuse_is_refused_with_another_template(given, name):
    with pytest.raises(dc.ProblemError) as refused:
        EXPORTS.get(given[0]).require_address(*given[1:])
    assert f"--url for {given[1]!r}: {name!r} is no " in str(refused.value)
    assert f"--url '{given[1]}={given[2].replace('{host}', 'NAME')}'" in str(refused.value)
