"""Rosters as schools have them: names, addresses, classes, and what files are called by them."""

from __future__ import annotations

import pytest

from datacollect.bistro.organiser.roster import Person, file_stem, read_people
from datacollect.errors import ProblemError


def read(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "people.csv"
    path.write_text(text, encoding)
    return read_people(path)


def test_names_are_read_as_people_have_them(tmp_path):
    names = ["O'Neil", "Müller, Jan", "Nguyễn Văn A", "Jean-Luc (2)", "李雷", "17"]
    rows = "".join(f'"{name}"\n' for name in names)
    assert [person.name for person in read(tmp_path, f"person\n{rows}")] == names
    assert [file_stem(name) for name in names] == names


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("First name,Last name,Email address,Groups", "Ann,Lee,ann@x.example,7b"),
        ("Vorname;Nachname;E-Mail-Adresse;Gruppen", "Ann;Lee;ann@x.example;7b"),
        ("Prénom\tNom de famille\tAdresse de courriel\tGroupes", "Ann\tLee\tann@x.example\t7b"),
        ("first,last,email,class", "Ann,Lee,ann@x.example,7b"),
        ("Name,Email,Class", "Ann Lee,ann@x.example,7b"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_exports_are_read_as_they_are(tmp_path, header, row, encoding):
    found = read(tmp_path, f"{header}\n{row}\n", encoding)
    assert found == [Person("Ann Lee", "ann@x.example", "7b")]


def test_two_of_one_name_are_told_apart_by_their_addresses(tmp_path):
    found = read(tmp_path, "name,email\nJan Li,a@x.example\nJan Li,b@x.example\nEva,e@x.example\n")
    assert [person.name for person in found] == [
        "Jan Li (a@x.example)",
        "Jan Li (b@x.example)",
        "Eva",
    ]


def test_without_addresses_nobody_stands_there_twice(tmp_path):
    with pytest.raises(ProblemError, match=r"'Jan Li' in lines 2 and 3; .*a column email"):
        read(tmp_path, "person\nJan Li\njan li\n")


@pytest.mark.parametrize("name", ["", " ", "x" * 301, "a\x07b"])
def test_what_is_no_name_is_refused_by_its_line(tmp_path, name):
    with pytest.raises(ProblemError, match=r"people\.csv, line 3: person must be a name"):
        read(tmp_path, f'person,n\nAnn,1\n"{name}",2\n')


def test_a_roster_in_another_encoding_is_called_so(tmp_path):
    with pytest.raises(ProblemError, match="CSV UTF-8"):
        read(tmp_path, "person\nMüller\n", "cp1252")


def test_a_table_without_names_says_what_it_has(tmp_path):
    with pytest.raises(ProblemError, match="line 1: must have the column person, or first and"):
        read(tmp_path, "id,points\n1,2\n")


@pytest.mark.parametrize(
    "name", ["a/b", "..", ".hidden", "con", "x" * 300, "ü" * 200, "a\\b", "end.", "a:b", "*", "-rf"]
)
def test_any_name_names_a_file_on_every_system(tmp_path, name):
    """Short enough for all file systems, of one folder, seen by `ls`, no option, no device."""
    stem = file_stem(name)
    assert stem != name
    assert len(f".{stem}.ticket.tmp".encode()) <= 160
    assert stem[0] not in ".-"
    assert not set(stem) & set('/\\:*?"<>|')
    (tmp_path / f"{stem}.ticket").write_text("")
    assert [path.name for path in tmp_path.iterdir()] == [f"{stem}.ticket"]


def test_names_that_look_alike_have_files_of_their_own():
    assert len({file_stem(name) for name in ("a/b", "a:b", "a_b", "a*b")}) == 4
