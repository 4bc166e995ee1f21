"""The tool `trace`: what a trace costs, and the row that comes of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from datacollect.errors import ProblemError, TransferError
from datacollect.measuring.operator.tool import SECONDS, Option, Tool, ended_of, line_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.measurement.routes import Hop
    from datacollect.measuring.operator.agents import AskedAgent
    from datacollect.measuring.plan.budget import Cost

# Beyond what 64 hops take.
MOST_TEXT = 64_000


@dataclass(frozen=True)
class TraceSettings:
    """Settings of a trace: over at most `hops` routers, in at most `seconds`.

    Raises
    ------
    ProblemError
        jc is not installed, which reads what traceroute says.
    """

    hops: int = 30
    seconds: float = 30.0

    tool: ClassVar[str] = "trace"

    def __post_init__(self) -> None:
        from datacollect.measurement.routes import require_jc

        require_jc()

    @property
    def cost(self) -> Cost:
        """Return what it takes at most."""
        from datacollect.measuring.agent.tracing import TRACE_BYTES, TRIES
        from datacollect.measuring.plan.budget import Cost

        return Cost(TRIES * TRACE_BYTES * self.hops, self.seconds)

    def row(self, sender: AskedAgent, receiver: AskedAgent, said: dict[str, Any]) -> dict[str, Any]:
        """Return what the row of a trace says."""
        return trace_row(sender.name, said, self)


def trace_row(name: str, said: dict[str, Any], settings: TraceSettings) -> dict[str, Any]:
    """Return what the row of a trace says.

    Parameters
    ----------
    name : str
        Of the agent that has traced.
    said : dict
        Its answer.
    settings : TraceSettings

    Raises
    ------
    TransferError
        It says what no trace can say.
    """
    by, text, address = (said.get(key) for key in ("by", "text", "address"))
    ended = ended_of(said)
    if text is None and ended != "done":
        return {"ended": ended}
    try:
        if not isinstance(text, str) or not isinstance(address, str) or len(text) > MOST_TEXT:
            raise ProblemError("the answer does not hold the text of a trace")
        route = _route(by, text, address)
    except ProblemError as error:
        raise TransferError(f"{name}: its answer is not a trace: {error}") from None
    said_by = {**asdict(settings), "by": by}
    return {"ended": ended, "routers": json.dumps(route), "settings": json.dumps(said_by)}


def _route(by: Any, text: str, address: str) -> list[Hop]:
    from datacollect.measurement.routes import route_of_scamper, route_of_traceroute
    from datacollect.measuring.agent.tracing import MANY_FLOWS, ONE_FLOW, SCAMPER

    if by == SCAMPER:
        return route_of_scamper(text, address)
    if by in (ONE_FLOW, MANY_FLOWS):
        return route_of_traceroute(text, address, one_flow=by == ONE_FLOW)
    raise ProblemError("the answer names a program that this version does not know")


def _line(row: Mapping[str, Any]) -> str:
    """Say a route's routers: all that answered at a hop, and where none did."""
    from datacollect.measurement.routes import answering

    if row.get("routers") is None:
        return line_of(row, None)
    hops = (" or ".join(answering(hop)) or "*" for hop in json.loads(row["routers"]))
    return line_of(row, " ".join(hops) or "no router between")


TRACE = Tool(
    TraceSettings,
    help="Find the routers between hosts that run agents: by scamper, else by traceroute.",
    options={
        "hops": Option("--hops", "N", "At most this many routers of a route.", 1, 64),
        "seconds": SECONDS,
    },
    line=_line,
    settings_for=lambda _: TraceSettings(),
    loads_wires=False,
    is_usual=True,
)
