"""``datacollect keys``: made once, shown often."""

from __future__ import annotations

import stat

from datacollect.commands.main import run


def test_a_key_is_made_and_shown(tmp_path, capsys):
    path = tmp_path / "collector.key"
    assert run(["keys", "new", str(path)]) == 0
    made = capsys.readouterr()
    assert made.out.startswith("ed25519:")
    assert len(made.out.strip()) == len("ed25519:") + 44
    assert "collectors" in made.err
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run(["keys", "show", str(path)]) == 0
    assert capsys.readouterr().out == made.out


def test_a_key_is_never_overwritten(tmp_path, capsys):
    path = tmp_path / "collector.key"
    run(["keys", "new", str(path)])
    before = path.read_bytes()
    assert run(["keys", "new", str(path)]) == 2
    assert "is there already; a key overwritten is lost" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_what_is_no_key(tmp_path, capsys):
    (tmp_path / "a").write_text("ed25519:abc\n")
    for name, message in (("a", "must hold one line ed25519-private:"), ("b", "no such file")):
        assert run(["keys", "show", str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err
    assert run(["keys", "new", str(tmp_path / "no/such")]) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err
