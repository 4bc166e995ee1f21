"""What people read on the page: one table for each language, and no text elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import REPOSITORY
from instances.words import flat

PAGE = REPOSITORY / "datacollect" / "bistro" / "page"
TABLES = {
    path.stem: json.loads(path.read_text()) for path in sorted((PAGE / "src/texts").glob("*.json"))
}
ENGLISH = TABLES["en"]
HTML = (PAGE / "static" / "index.html").read_text()


def holes(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


@pytest.mark.parametrize("language", TABLES)
def test_each_language_has_the_same_keys_and_the_same_holes(language):
    table = TABLES[language]
    # In one order, so that translators see two beside each other.
    assert list(table) == list(ENGLISH)
    assert {key for key in table if holes(table[key]) != holes(ENGLISH[key])} == set()
    assert [key for key, text in table.items() if not text.strip()] == []


def test_no_text_was_forgotten_in_another_language():
    """Words may be alike; a sentence is not."""
    for language in TABLES.keys() - {"en"}:
        same = [key for key, text in TABLES[language].items() if text == ENGLISH[key]]
        assert [key for key in same if len(ENGLISH[key].split()) > 3] == []


def test_the_tables_are_those_that_can_be_chosen():
    assert set(re.findall(r'<option value="(\w+)"', HTML)) == TABLES.keys()


def test_what_stands_in_the_page_before_its_script_runs_is_of_the_table():
    told = re.findall(r'data-text="(\w+)"[^>]*>([^<]*)<', HTML)
    assert told
    assert {key: text for key, text in told if text != ENGLISH[key]} == {}
    (without_script,) = re.findall(r"<noscript>(.*?)</noscript>", HTML, re.DOTALL)
    for table in TABLES.values():
        assert f">{table['no_script']}</p>" in flat(without_script)


def test_all_that_the_script_says_is_in_the_table_and_nothing_else():
    sources = "\n".join(path.read_text() for path in (PAGE / "src").glob("*.js"))
    # Keys stand in quotes, or begin there and go on with a value.
    words = set(re.findall(r'["`.](\w+)', sources)) | set(re.findall(r"(\w+):", sources))
    begun = tuple(f"{each}_" for each in ("why", "do", "state", "covers", "proof", "not"))
    begun += ("counts_", "never_came_", "in_time_", "late_time_", "file_")
    known = words | set(re.findall(r'data-text="(\w+)"', HTML)) | {"no_script"}
    assert [key for key in ENGLISH if key not in known and not key.startswith(begun)] == []
    said = set(re.findall(r'(?:(?<!store\.)\bsay|\brefuse)\("(\w+)"', sources))
    assert said <= ENGLISH.keys()
    lines = (PAGE / "src" / "lines.js").read_text()
    keys = set(re.findall(r'return \["(\w+)"', lines))
    keys |= {
        key
        for row in re.findall(r"return .* \? (.*)", lines)
        for key in re.findall(r'"(\w+)"', row)
    }
    keys.add("sending")
    assert keys <= ENGLISH.keys()
    to_do = dict(re.findall(r'(\w+): "(\w+)"', lines.partition("TO_DO = ")[2].partition("}")[0]))
    assert {f"do_{to_do.get(key, key)}" for key in keys} == {
        key for key in ENGLISH if key.startswith("do_")
    }


def test_no_sentence_stands_in_the_sources():
    """Errors of programs are quoted as they are; they are short, and begin small."""
    for path in (PAGE / "src").glob("*.js"):
        code = re.sub(r"//.*", "", path.read_text())
        found = re.findall(r'"([A-ZÄÖÜ][^"]* [^"]*\.)"', code)
        assert found == [], Path(path).name
