"""Following a pull while it goes on: its page, and its metrics, where somebody wants them."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.streams import note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.transfer.pull.progress.story import PullStory

MOST_PORT = 65_535

Page = Annotated[
    int | None,
    typer.Option(
        "--page",
        metavar="PORT",
        min=0,
        max=MOST_PORT,
        help="Show progress on a page, on this host alone; 0: any free port.",
    ),
]
Metrics = Annotated[
    int | None,
    typer.Option(
        "--metrics",
        metavar="PORT",
        min=0,
        max=MOST_PORT,
        help="Serve metrics to Prometheus, on this host alone; 0: any free port.",
    ),
]


@contextmanager
def followed(title: str, page: int | None, metrics: int | None) -> Iterator[PullStory | None]:
    """Serve a page and metrics as long as a pull goes on; None where nobody wants either.

    Raises
    ------
    ProblemError
        A port is taken, or what metrics need is not installed.
    """
    if page is None and metrics is None:
        yield None
        return
    from datacollect.transfer.pull.progress.story import PullStory

    story = PullStory()
    with ExitStack() as held:
        if metrics is not None:
            from datacollect.net.metrics import MetricsServer
            from datacollect.transfer.pull.progress.metrics import pull_families

            address, where = ("127.0.0.1", metrics), f"--metrics {metrics}"
            server = MetricsServer(address, lambda: pull_families(story), where)
            note(f"metrics are served at {held.enter_context(server).url}")
        if page is not None:
            from datacollect.pictures.live_views import live_page
            from datacollect.pictures.pull_page import PullFeed

            shown = live_page("pull", title, PullFeed(story).news, page)
            note(f"open {held.enter_context(shown).url}")
        yield story
