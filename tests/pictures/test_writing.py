"""Names in any script: no box, no warning, nothing that is not what it seems."""

from __future__ import annotations

import warnings
from unicodedata import normalize

import pytest
from matplotlib.font_manager import findfont, get_font

from datacollect.files.host_names import fault_of
from datacollect.methods.direct import direct
from datacollect.pictures import writing
from datacollect.pictures.plot import save_plot
from datacollect.pictures.writing import families, inches_of, shortened, visible, width_of, written
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem

NAMES = {
    "Chinese": "中文主机",
    "Arabic": "حاسوب",
    "emoji": "🚀 rocket",
    "combining": "e\u0301a\u0300",
    "formula": "$a_b$^{2}",
    "underscore": "_x",
    "markup": "</script><b>&",
    "control": "a\nb\t\"q'",
    "override": "\u202etxt",
    "private": "\ue000",
    "Thai": "ไทย",
}


def fonts_have(character: str) -> bool:
    """Whether one of the fonts that texts are drawn in has a character."""
    fonts = [get_font(findfont(name)) for name in families([character])]
    return any(font.get_char_index(ord(character)) for font in fonts)


@pytest.mark.parametrize("kind", NAMES)
def test_what_is_written_can_be_drawn_and_read(kind):
    text = written(NAMES[kind])
    assert text
    assert all(fonts_have(character) for character in text)
    assert written(text) == text
    assert all(character.isprintable() for character in text)


def test_what_no_font_has_is_written_as_its_number(monkeypatch):
    """DejaVu Sans alone has Arabic letters, but no Chinese ones."""
    monkeypatch.setattr(writing, "_candidates", lambda: {"DejaVu Sans": findfont("DejaVu Sans")})
    writing._written.cache_clear()
    writing._family.cache_clear()
    try:
        assert written("中a") == r"\u4e2da"
        assert written("🚀") == r"\U0001f680"
        assert written("حاسوب") == "حاسوب"
        assert families(["中"]) == ["DejaVu Sans"]
    finally:
        writing._written.cache_clear()
        writing._family.cache_clear()


def test_another_font_is_found_for_what_the_first_lacks():
    """Of the fonts that come with matplotlib, only a serif one has this sign."""
    mono = get_font(findfont("DejaVu Math TeX Gyre")).get_charmap().keys()
    sans = get_font(findfont("DejaVu Sans")).get_charmap().keys()
    sign = chr(min(number for number in mono - sans if chr(number).isprintable()))
    assert written(sign) == sign
    first, *others = families([f"a{sign}"])
    assert first == "DejaVu Sans"
    assert len(others) == 1


def test_unseen_signs_are_seen():
    assert visible("evil\u202etxt.exe") == r"evil\u202etxt.exe"
    assert visible("日本 🚀") == "日本 🚀"
    joined = "\u0645\u06cc\u200c\u062e"
    assert visible(joined) == joined


def test_widths():
    assert (width_of("日本"), width_of("e\u0301")) == (4, 1)
    assert shortened("日本語の名前", 5) == "日本…"
    assert inches_of("WWW") > inches_of("iii")


@pytest.mark.slow
def test_a_picture_of_all_names_is_drawn_without_a_warning(tmp_path, caplog):
    composed = (normalize("NFC", name) for name in NAMES.values())
    names = [*(name for name in composed if not fault_of(name)), "K" * 90]
    problem = Problem.from_hosts(
        [*(Host(name, 1000 * (i + 1)) for i, name in enumerate(names)), Host("D&<b>$")],
        [Link(name, "D&<b>$", 100.0) for name in names],
        "D&<b>$",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_plot(problem, direct(problem), tmp_path / "names.svg")
    assert not caplog.records
    # Texts are drawn as paths; what is written stands beside them in a comment.
    assert "<!-- حاسوب -->" in (tmp_path / "names.svg").read_text(encoding="utf-8")
