"""The command ``datacollect feed run``."""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.brought import CommandSpec
from datacollect.commands.console import emit_json, emit_table, note
from datacollect.commands.following import Page
from datacollect.commands.options import Json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.feeds.commands.sending import FeedRun

SOMETHING_MISSING = 1
# So often a line of each feed is written.
LINES_EVERY_S = 10.0


def run(
    feeds_file: Annotated[str, typer.Argument(metavar="FEEDS", help="File of the feeds, TOML.")],
    page: Page = None,
    as_json: Json = False,
) -> int:
    """Send several feeds together, each as `feed send` does; a line for each.

    Exit code 1: something is missing of one of them.
    """
    from datacollect.feeds.commands.sending import HEADINGS, FeedRun
    from datacollect.feeds.formats.feeds_file import feeds_from_file

    found = feeds_from_file(feeds_file)
    runs = [
        FeedRun(each.feed, each.input, each.generate_s, _telling(each.feed.name)) for each in found
    ]
    with ExitStack() as held:
        for each in runs:
            each.begin()
        if page is not None:
            from datacollect.feeds.page.feeds_page import FeedsNews
            from datacollect.pictures.live_views import live_page

            shown = live_page("feeds", "Feeds", FeedsNews(runs).news, page)
            note(f"open {held.enter_context(shown).url}")
        _run_all(runs)
    if as_json:
        emit_json({"feeds": [each.to_dict() for each in runs]})
    else:
        emit_table(HEADINGS, [each.row() for each in runs], "<>>>>>>")
    for each in runs:
        if each.why is not None:
            note(f"{each.feed.name}: {each.why}")
    return 0 if all(each.is_whole for each in runs) else SOMETHING_MISSING


def _run_all(runs: Sequence[FeedRun]) -> None:
    """Run each in a thread of its own; an interruption ends all of them."""
    failures: list[BaseException] = []

    def run(each: FeedRun) -> None:
        try:
            each.run()
        except Exception as error:  # noqa: BLE001 - raised once all have ended
            failures.append(error)

    threads = [threading.Thread(target=run, args=(each,), daemon=True) for each in runs]
    for thread in threads:
        thread.start()
    with suppress(KeyboardInterrupt):
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(LINES_EVERY_S / len(threads))
            _write_lines(runs)
    for each in runs:
        each.stop()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _write_lines(runs: Sequence[FeedRun]) -> None:
    for each in runs:
        if not each.is_ended:
            name, rate, made, received, lost, behind, worst = each.row()
            note(
                f"{name}: rate {rate}: {made} made, {received} received, {lost} lost, {behind} "
                f"behind, 99 % of delays within {worst}"
            )


def _telling(name: str) -> Callable[[str], None]:
    return lambda line: note(f"{name}: {line}")


RUN_COMMAND = CommandSpec("run", run)
