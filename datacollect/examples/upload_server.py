"""A service for upload servers: serves pull lists, plans again.

Needs aiohttp: ``pip install 'aiohttp>=3.14'``. Then ``python upload_server.py alps.toml`` answers::

    GET  /plan                  the plan under way: its name, when it begins, how long it takes
    GET  /pulls/HOST            what HOST has to request: from whom, which bytes, when, how fast
    POST /plans/PLAN/progress   a progress file as JSON: what lies where, what is new; plans again
    POST /plans/PLAN/links      {"S": {"D": "80 Mbit/s"}}, where all else goes as planned; likewise

A post is answered with the new plan; until then, and where it is refused, the old one is served.
Refusals are ``{"error": "..."}``: 400 malformed, or of another problem; 409 of another plan than
the one under way, or while a post before it is being planned; 422 no plan exists. Nobody is asked
who they are: let only your upload servers reach the port, or a proxy that knows them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import datacollect as dc

try:
    from aiohttp import web
except ModuleNotFoundError as error:
    if __name__ == "__main__" and error.name == "aiohttp":
        raise SystemExit("aiohttp is missing: pip install 'aiohttp>=3.14'") from None
    raise
if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

MOST_BODY_BYTES, MOST_BODY_S, MOST_PLANNING_S = 16 * 2**20, 20.0, 600.0
STATUS_OF = {1: 422, 2: 400, 3: 503}  # by exit codes: no plan exists, bad input, a solver failed


@dataclass(frozen=True)
class Served:
    """A plan, and every answer about it, ready to be sent."""

    problem: dc.Problem
    plan: dc.Schedule
    begins: datetime  # when its 0 s is
    facts: dict[str, Any]
    lists: dict[str, bytes]  # by host, in JSON

    @classmethod
    def of(cls, problem: dc.Problem, plan: dc.Schedule, begins: datetime) -> Served:
        """Write each host's list once, here in the thread, however often it is asked for."""
        facts: dict[str, Any] = {"plan": plan.problem_sha256[:16], "begins": begins.isoformat()}
        facts |= {"destination": plan.destination, "makespan_s": plan.makespan_s}
        table = plan.pulls(manifest=problem.manifest)
        files = table.pop("files") if "files" in table else None
        texts = table.to_json(orient="records", lines=True, double_precision=15).splitlines()
        rows: dict[str, list[str]] = {host: [] for host in problem.names}
        for i, (host, row) in enumerate(zip(table["host"], texts, strict=False)):
            if files is not None:  # one by one, so that requests are answered between them
                row = f'{row[:-1]}, "files": [{", ".join(map(json.dumps, files[i]))}]}}'
            rows[host].append(row)
        head = json.dumps(facts)[:-1]
        lists = {h: f'{head}, "pulls": [{", ".join(own)}]}}'.encode() for h, own in rows.items()}
        return cls(problem, plan, begins, facts, lists)

    def after(self, what: str, tree: Any) -> Served:
        """Plan again: from progress, or with new links where all went as planned until now."""
        if what == "links":
            now_s = max(0.0, (datetime.now(UTC) - self.begins).total_seconds())
            progress = dc.Progress.from_schedule(self.problem, self.plan, now_s, links=tree)
        elif isinstance(tree, dict) and "bandwidth_csv" in tree:
            raise dc.ProblemError("bandwidth_csv would be a file of this server; post links")
        else:
            progress = dc.Progress.from_dict(tree, self.problem)
        try:
            begins = self.begins + timedelta(seconds=progress.at_s)
        except OverflowError:
            raise dc.ProblemError(f"at_s is beyond all calendars, got {progress.at_s:g}") from None
        plan = dc.replan(self.problem, self.plan, progress, time_limit_s=MOST_PLANNING_S)
        return Served.of(dc.remaining_problem(self.problem, progress), plan, begins)


class Service:
    """Answers requests from the plan under way, which posts replace whole."""

    def __init__(self, served: Served) -> None:
        self.served, self.is_planning = served, False

    async def plan(self, _: web.Request) -> web.Response:
        """Answer GET /plan."""
        return web.json_response(self.served.facts | {"is_planning": self.is_planning})

    async def pulls(self, request: web.Request) -> web.Response:
        """Answer GET /pulls/HOST."""
        host = request.match_info["host"]
        if host not in self.served.lists:
            raise web.HTTPNotFound(text=f"there is no host {host!r}")
        return web.Response(body=self.served.lists[host], content_type="application/json")

    async def post(self, request: web.Request) -> web.Response:
        """Answer POST: two at once would count from different plans, so the second is refused."""
        async with asyncio.timeout(MOST_BODY_S):
            body = await request.read()
        served, name = self.served, request.match_info["plan"]
        if name != served.facts["plan"]:
            raise web.HTTPConflict(text=f"the plan under way is {served.facts['plan']}, not {name}")
        if self.is_planning:
            raise web.HTTPConflict(text="another post is being planned; get its plan, then post")
        self.is_planning = True
        self.planning = asyncio.create_task(self.replace(request.match_info["what"], body))
        await asyncio.shield(self.planning)  # a client that leaves does not end it
        return await self.plan(request)

    async def replace(self, what: str, body: bytes) -> None:
        """Serve a new plan, which a thread makes; where that fails, still the old one."""
        try:
            self.served = await asyncio.to_thread(lambda: self.served.after(what, parsed(body)))
        finally:
            self.is_planning = False


def parsed(body: bytes) -> Any:
    """Return what a body says in JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise dc.ProblemError(f"the body is no JSON: {error}; correct it") from None


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer with the words of whatever refuses a request."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        status, text = error.status, error.text or error.reason
    except dc.DatacollectError as error:
        status, text = STATUS_OF[error.exit_code], str(error)
    except TimeoutError:
        status, text = 408, f"the body did not come within {MOST_BODY_S:g} s"
    return web.json_response({"error": text}, status=status)


def application(problem: dc.Problem) -> web.Application:
    """Plan, and return the service, which may also be a part of yours: ``add_subapp``."""
    plan = dc.coordinated(problem)
    begins = datetime.now(UTC) if problem.clock is None else problem.clock.start
    service = Service(Served.of(problem, plan, begins))
    app = web.Application(middlewares=[errors_as_json], client_max_size=MOST_BODY_BYTES)
    app.router.add_get("/plan", service.plan)
    app.router.add_get("/pulls/{host:.+}", service.pulls)
    app.router.add_post("/plans/{plan}/{what:progress|links}", service.post)
    return app


def main() -> None:
    """Read the command line, plan, and serve until interrupted."""
    parser = argparse.ArgumentParser(description="Serve pull lists; plan again on the way.")
    parser.add_argument("problem", help="problem file: TOML or JSON")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at")
    parser.add_argument("--port", type=int, default=8080)
    given = parser.parse_args()
    try:
        app = application(dc.Problem.from_file(given.problem))
    except dc.DatacollectError as error:
        parser.exit(error.exit_code, f"error: {error}\n")
    web.run_app(app, host=given.host, port=given.port)


if __name__ == "__main__":
    main()
