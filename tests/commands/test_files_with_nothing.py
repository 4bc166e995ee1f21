"""Empty files and lists, refused with the command that writes a file of that kind."""

from __future__ import annotations

import pytest

REMEDIES = {
    "plan BAD": "`datacollect example minimal` writes one",
    "check figure1.toml BAD": "`datacollect plan -o` writes one",
    "explain figure1.toml BAD": "`datacollect plan -o` writes one",
    "pulls figure1.toml BAD": "`datacollect plan -o` writes one",
    "replan figure1.toml plan.json BAD": "`datacollect progress` writes one",
    "simulate BAD --engine fluid": "`datacollect example scenario_small` writes one",
    "sweep BAD -o out": "`datacollect schema experiment` shows what one holds",
    "pull BAD --into got": "`datacollect collection new` writes one",
    "agent BAD": "`datacollect agent init` writes one",
}


@pytest.mark.parametrize("command", REMEDIES)
@pytest.mark.parametrize("text", ["", "\n", "[1]"], ids=["empty", "line", "list"])
def test_the_remedy_is_the_command_that_writes_such_a_file(planned, call, command, text):
    """An empty schedule was told that `datacollect example` writes one: it writes problems."""
    (planned / "bad.json").write_text(text)
    code, _, said = call(*command.replace("BAD", "bad.json").split())
    what = "must be a table of keys and values, got [1]" if text == "[1]" else "the file is empty"
    assert code == 2
    assert " ".join(said.split()).startswith("error: bad.json: ")
    assert what in " ".join(said.split())
    assert REMEDIES[command] in " ".join(said.split())
