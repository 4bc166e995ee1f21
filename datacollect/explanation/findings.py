"""Findings of an explanation: plain data, and the trees that programs read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.explanation.plan_relaxations import PlanAdvice
from datacollect.files.notebook import html_of_facts, html_of_rows, html_of_text
from datacollect.files.units import format_duration, format_rate
from datacollect.methods.choice import is_max_min_fair
from datacollect.schedule.data.transfers import Bottleneck, bottleneck_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from datacollect.explanation.excess import Excess
    from datacollect.explanation.plan_limits import Limit
    from datacollect.explanation.relaxations import Advice
    from datacollect.explanation.sources import BindingInterval, SourceExplanation
    from datacollect.files.choices import Preference
    from datacollect.schedule.data.assumptions import Assumptions


@dataclass(frozen=True)
class DeadlineSaving:
    """Saving of a plan with a deadline by ending later than it could.

    Attributes
    ----------
    deadline_s : float
    prefer : str
        What the plan minimises, see `datacollect.explanation.plan_relaxations.plan_cost`.
    cost : float
        Of the plan.
    fastest_s, fastest_cost : float
        The fastest plan of the same kind ends then, and costs that.
    proved : bool
        No plan in time costs less, whatever its chunks.
    gap : float or None
        The plan costs at most this part more than the least of all plans in time; None where that
        is not known.
    """

    deadline_s: float
    prefer: Preference
    cost: float
    fastest_s: float
    fastest_cost: float
    proved: bool
    gap: float | None = None


@dataclass(frozen=True)
class ConnectionGain:
    """Gain of more connections.

    Attributes
    ----------
    names : tuple of str
        Links, one more connection on each, or all on one; none: wherever they are best.
    connections : int
    saves_s : float
    """

    names: tuple[str, ...]
    connections: int
    saves_s: float


@dataclass(frozen=True)
class PlanExplanation:
    """Explanation of a plan: when its constraints bind, and what relaxing them gains.

    All is predicted: as the plan says, not measured.

    Attributes
    ----------
    method : str
    makespan_s : float
    excess_s : float
        Makespan less lower bound.
    parts : tuple of Excess
        Causes, see `datacollect.explanation.excess`; they add up to `excess_s`.
    slot_s, chunk_s : float or None
        As in the schedule.
    prefer : str or None
        What it was planned to minimise, where known.
    money : float or None
        Price of all links; None where they have none.
    deadline : DeadlineSaving or None
        Where it was planned for one.
    coordinated_s : float or None
        When a coordinated plan ends; None for such a plan itself, and where there is none.
    binds : tuple of Limit
        What holds data back in the plan, and when; those that do so to the end first.
    advice : PlanAdvice
        What to relax first in it.
    connections : int or None
        So many it was to share out; None: one per hop of each route.
    more : tuple of ConnectionGain
        What a few more would save, the links where most first; last, with all shared out again.
    assumptions : Assumptions or None
        What it leans on; None where it is no plan for the problem, or its method is not known.
    wires_known : bool
        Whether the problem says which links share a wire; where it does not, and data take
        relays, nobody knows what links in the middle carry together.
    """

    method: str
    makespan_s: float
    excess_s: float
    parts: tuple[Excess, ...]
    slot_s: float | None = None
    chunk_s: float | None = None
    prefer: Preference | None = None
    money: float | None = None
    deadline: DeadlineSaving | None = None
    coordinated_s: float | None = None
    binds: tuple[Limit, ...] = ()
    advice: PlanAdvice = field(default_factory=PlanAdvice)
    connections: int | None = None
    more: tuple[ConnectionGain, ...] = ()
    assumptions: Assumptions | None = None
    wires_known: bool = True

    @property
    def is_fair(self) -> bool:
        """Return whether sources share max-min fairly, so that each has a bottleneck of its own."""
        return is_max_min_fair(self.method)

    def to_dict(self) -> dict[str, Any]:
        """Return a plain tree."""
        return {
            "method": self.method,
            "makespan_s": self.makespan_s,
            "excess_s": self.excess_s,
            "parts": [asdict(part) for part in self.parts],
            "slot_s": self.slot_s,
            "chunk_s": self.chunk_s,
            "prefer": self.prefer,
            "money": self.money,
            "deadline": None if self.deadline is None else asdict(self.deadline),
            "coordinated_s": self.coordinated_s,
            "binds": [limit.to_dict() | {"sources": list(limit.sources)} for limit in self.binds],
            "relax": self.advice.to_dict(),
            "assumptions": None if self.assumptions is None else self.assumptions.to_dict(),
            "wires_known": self.wires_known,
        } | (
            {}
            if self.connections is None
            else {"connections": self.connections, "more": [asdict(gain) for gain in self.more]}
        )


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Result of `explain`; ``str()`` is its text.

    Attributes
    ----------
    lower_bound_s : float
        The earliest instant by which all can have arrived.
    bottleneck : Bottleneck
        What forbids an earlier one.
    binds : tuple of BindingInterval
        What binds when, if all is coordinated.
    advice : Advice
        What to relax first, if all is coordinated.
    sources : sequence of SourceExplanation
        Latest first; with a plan each is made when asked for.
    plan : PlanExplanation or None
    cautious_lower_bound_s : float or None
        Without a plan: the earliest end if no host does more at once than was shown of it, or than
        direct has it do; None where that leaves most of what can be gained.
    text : str
        All of it in words, in lines of at most 80 columns; long lists are shortened.
    """

    lower_bound_s: float
    bottleneck: Bottleneck
    binds: tuple[BindingInterval, ...]
    advice: Advice
    sources: Sequence[SourceExplanation]
    plan: PlanExplanation | None
    cautious_lower_bound_s: float | None = None
    text: str = ""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        planned = ""
        if self.plan is not None:
            planned = f"{self.plan.method} {self.plan.makespan_s:g} s, "
        return (
            f"<Explanation: {planned}lower bound {self.lower_bound_s:g} s, binds: "
            f"{self.bottleneck.text}>"
        )

    def _repr_html_(self) -> str:
        """Show the explanation in a notebook: what binds and when, all in words below."""
        title = "Explanation" if self.plan is None else f"Explanation of {self.plan.method}"
        facts = [("lower bound", format_duration(self.lower_bound_s))]
        if self.plan is not None:
            facts.append(("makespan", format_duration(self.plan.makespan_s)))
        rows = [
            (
                format_duration(each.from_s),
                format_duration(each.to_s),
                format_rate(each.rate_bytes_per_s),
                each.bottleneck.text,
            )
            for each in self.binds
        ]
        return (
            html_of_facts(title, [*facts, ("binds", self.bottleneck.text)])
            + html_of_rows("What binds when", ("from", "to", "rate", "what"), rows)
            + html_of_text(self.text)
        )

    def to_dataframe(self) -> pd.DataFrame:
        """Return what binds when, if all is coordinated, as a table.

        Returns
        -------
        DataFrame
            A row for each of `binds`: from_s, to_s, rate_bytes_per_s, kind, hosts (tuple of names)
            and text of the bottleneck.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> dc.explain(problem).to_dataframe()[["from_s", "to_s", "kind"]].to_dict("records")
        [{'from_s': 0.0, 'to_s': 2.0, 'kind': 'destination'}]
        """
        import pandas as pd

        rows = [
            (
                *(each.from_s, each.to_s, each.rate_bytes_per_s),
                *(each.bottleneck.kind, each.bottleneck.hosts, each.bottleneck.text),
            )
            for each in self.binds
        ]
        columns = ["from_s", "to_s", "rate_bytes_per_s", "kind", "hosts", "text"]
        return pd.DataFrame(rows, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``datacollect explain --json`` prints.

        Returns
        -------
        dict
            The attributes, as what JSON can say.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> dc.explain(problem).to_dict()["lower_bound_s"]
        2.0
        """
        return {
            "lower_bound_s": self.lower_bound_s,
            "cautious_lower_bound_s": self.cautious_lower_bound_s,
            "bottleneck": bottleneck_tree(self.bottleneck),
            "binds": [
                {
                    "from_s": interval.from_s,
                    "to_s": interval.to_s,
                    "rate_bytes_per_s": interval.rate_bytes_per_s,
                    **bottleneck_tree(interval.bottleneck),
                }
                for interval in self.binds
            ],
            "relax": self.advice.to_dict(),
            "sources": [source.to_dict() for source in self.sources],
            "plan": None if self.plan is None else self.plan.to_dict(),
        }
