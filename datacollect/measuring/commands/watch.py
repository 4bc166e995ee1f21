"""The command ``datacollect measure watch``."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit, emit_json, note_text, working
from datacollect.commands.options import Force, Json, require_new
from datacollect.errors import ProblemError
from datacollect.measuring.commands.problem import stored_samples

if TYPE_CHECKING:
    from datacollect.measuring.operator.counter_polls import CounterPolls
    from datacollect.measuring.page.router_map import Providers


def watch(
    samples: Annotated[
        str, typer.Argument(metavar="SAMPLES", help="Folder that tests have written into.")
    ],
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="The page, .html.")
    ] = None,
    page: Annotated[
        int | None,
        typer.Option(
            "--page",
            metavar="PORT",
            min=0,
            max=65_535,
            help="Instead of -o: show the page live, on this host alone, until Ctrl-C; 0: any free "
            "port.",
        ),
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            "--hosts", metavar="HOSTS.toml", help="With --page: ask these agents for counters, too."
        ),
    ] = None,
    providers: Annotated[
        str | None,
        typer.Option("--providers", metavar="FILE.csv", help="Networks: prefix, provider."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show measurements on one page: rates, round trips, routers, failures.

    The file of -o needs no network. It holds the names of hosts and the addresses of routers: send
    it to those who may know them. With --page the page follows the tests that run.
    """
    if (output is None) == (page is None):
        given = "neither" if output is None else "both"
        raise ProblemError(f"give either -o FILE or --page PORT, got {given}")
    if hosts is not None and page is None:
        raise ProblemError(
            "--hosts is for --page alone: only the live page asks agents; leave --hosts out, or "
            "give --page"
        )
    folder, known = Path(samples), _providers(providers)
    if output is not None:
        _write(folder, output, known, force=force, as_json=as_json)
    else:
        assert page is not None
        _serve(folder, page, hosts, known, as_json=as_json)


def _providers(file: str | None) -> Providers:
    from datacollect.files.documents import document_name, read_text
    from datacollect.measuring.page.router_map import read_providers

    return {} if file is None else read_providers(read_text(file), document_name(file))


def _write(folder: Path, output: str, providers: Providers, *, force: bool, as_json: bool) -> None:
    from datacollect.files.documents import write_atomically
    from datacollect.measuring.page.watch import watch_html

    require_new(output, force=force)
    with working("reading samples"):
        stored = stored_samples(folder)
    with working("drawing"):
        page = watch_html(_title(folder), stored.frame, providers)
    write_atomically(output, page.encode())
    if as_json:
        emit_json({"file": output, "n_tests": len(stored.frame), "damaged": list(stored.damaged)})
    else:
        emit(f"saved to {output}")
    for file in stored.damaged:
        note_text(f"note: {folder}/{file} is damaged and left out")


def _serve(
    folder: Path, port: int, hosts: str | None, providers: Providers, *, as_json: bool
) -> None:
    """Serve the page until somebody ends it."""
    from datacollect.measuring.page.watch_feed import WatchFeed
    from datacollect.pictures.live_views import live_page

    if not folder.is_dir():
        raise ProblemError(
            f"{folder}: is no folder; name the one that tests write into, and make it first if "
            "no test has run so far"
        )
    with _polls(hosts) as polls:
        feed = WatchFeed(folder, polls.known, providers)
        with live_page("measurements", _title(folder), feed.news, port) as page:
            # JSON in one line: whoever has started it waits for it.
            emit(json.dumps({"url": page.url}) if as_json else f"open {page.url}")
            threading.Event().wait()


def _polls(hosts: str | None) -> CounterPolls:
    from datacollect.measuring.operator.counter_polls import CounterPolls
    from datacollect.measuring.plan.hosts_file import HostsFile
    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.keys import read_private_key

    if hosts is None:
        return CounterPolls((), None)
    known = HostsFile.from_file(hosts)
    agents = [host for host in known.hosts.values() if isinstance(host, AgentEntry)]
    return CounterPolls(agents, None if known.key is None else read_private_key(known.key))


def _title(folder: Path) -> str:
    return f"Measurements: {folder.resolve().name}"
