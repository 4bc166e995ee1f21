"""Each goal of feeds has a result that the documentation shows, and a script that measures it."""

import sys


def test_all_rows_are_printed_with_their_last_results(scripts, monkeypatch, capsys):
    feed_goals = scripts("feed_goals")
    monkeypatch.setattr(sys, "argv", ["feed_goals.py", "--last"])
    feed_goals.main()
    out = capsys.readouterr().out
    for goal in feed_goals.GOALS:
        assert goal.what in out
        assert feed_goals.last_rows(goal)[-1] in out
        assert (feed_goals.ROOT / "experiments" / goal.command.split()[0]).is_file()
