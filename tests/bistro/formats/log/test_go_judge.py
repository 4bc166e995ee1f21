"""A log and its notes as Go's golang.org/x/mod/sumdb sees them, both ways.

What Go has said stands in `go_answers.json`; where Go is, it is asked again. It is written anew by
`python tests/bistro/formats/log/test_go_judge.py`.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import NO_GO

from datacollect.bistro.formats.log.checkpoints import Checkpoint, log_key, sign_checkpoint
from datacollect.bistro.formats.log.notes import OF_NOTE, VerifierKey, is_by, parse_note
from datacollect.bistro.formats.log.tiles import Edge, TileReader, tiles_of
from datacollect.bistro.formats.log.tree import (
    consistency_proof,
    inclusion_proof,
    is_consistent,
    is_included,
    leaf_hash,
    tree_root,
)
from datacollect.net.keys import PrivateKey, public_key_bytes

GO = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
JUDGE = Path(__file__).parents[3] / "judges" / "tlog"
ANSWERS = Path(__file__).with_name("go_answers.json")

KEY = PrivateKey(bytes(range(32)))
LOG = log_key("log.example/0123456789abcdef", KEY.public)
ENTRIES = [bytes([i % 251]) * (i % 40) for i in range(70)]
PAIRS = [(old, size) for size in (1, 2, 7, 8, 63, 64, 65, 70) for old in (1, 5, 64, size)]
PAIRS = [(old, size) for old, size in PAIRS if old <= size]


def tree() -> TileReader:
    edge, written = Edge(), {}
    for entry in ENTRIES:
        written.update(edge.append(leaf_hash(entry)))
    written.update(edge.partial_tiles())
    return TileReader(edge.size, written.__getitem__)


NODE = tree().node
ROOTS = [tree_root(size, NODE) for size in range(len(ENTRIES) + 1)]


def base64s(hashes: list[bytes]) -> list[str]:
    return [base64.b64encode(each).decode() for each in hashes]


def question() -> dict:
    """Return what Go is asked: our log, our proofs, our note, and a key to sign with."""
    size = len(ENTRIES)
    private = base64.b64encode(bytes([OF_NOTE]) + KEY.seed).decode()
    return {
        "entries": base64s(ENTRIES),
        "vkey": LOG.text,
        "skey": f"PRIVATE+KEY+{LOG.name}+{LOG.key_id.hex()}+{private}",
        "note": sign_checkpoint(Checkpoint(LOG.name, size, ROOTS[size]), KEY).data.decode(),
        "text": Checkpoint(LOG.name, 7, ROOTS[7]).text,
        "pairs": PAIRS,
        "ours": [base64s(consistency_proof(*pair, NODE)) for pair in PAIRS],
        "records": [base64s(inclusion_proof(i, size, NODE)) for i in range(size)],
    }


def ask_go() -> dict:
    """Build the judge and ask it; it ends with an error where it accepts something not."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "judge"
        build = [GO, "build", "-o", str(program), "."]
        subprocess.run(build, cwd=JUDGE, check=True, capture_output=True, timeout=300)
        asked = json.dumps(question()).encode()
        done = subprocess.run([program], input=asked, check=True, capture_output=True, timeout=60)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def answers() -> dict:
    return json.loads(ANSWERS.read_text(encoding="ascii"))


def test_go_computes_the_same_roots_and_has_accepted_all_our_proofs(answers):
    assert answers["roots"] == base64s(ROOTS)
    assert answers["accepted"] == len(PAIRS) + len(ENTRIES)


def test_we_accept_all_proofs_that_go_makes(answers):
    size = len(ENTRIES)
    for (old, new), proof in zip(PAIRS, answers["consistency"], strict=True):
        hashes = [base64.b64decode(each) for each in proof]
        assert is_consistent(old, ROOTS[old], new, ROOTS[new], hashes)
    for i, proof in enumerate(answers["inclusion"]):
        hashes = [base64.b64decode(each) for each in proof]
        assert is_included(leaf_hash(ENTRIES[i]), i, size, hashes, ROOTS[size])


def test_go_reads_our_note_and_we_read_its(answers):
    asked = question()
    assert answers["opened"] == parse_note(asked["note"].encode()).text
    theirs = parse_note(answers["signed"].encode())
    assert theirs.text == asked["text"]
    assert is_by(theirs, VerifierKey.parse(asked["vkey"], OF_NOTE, "the key"))
    assert len(public_key_bytes(LOG.key)) == 32


def test_go_names_the_same_tiles(answers):
    """Go writes the height into paths, as sumdb does; the rest is the same but for bundles."""
    ours = [tile.path for tile in tiles_of(70_000) if tile.level >= 0]
    assert sorted(path.replace("tile/8/", "tile/") for path in answers["tile_paths"]) == sorted(
        ours
    )


@pytest.mark.slow
@pytest.mark.skipif(GO is None, reason=NO_GO)
def test_go_still_says_so(answers):
    assert ask_go() == answers


if __name__ == "__main__":
    sys.stdout.write(json.dumps(ask_go()) + "\n")
