"""Advice on how to collect: the ways side by side, what each takes for granted, what to measure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from datacollect.files.units import format_duration

if TYPE_CHECKING:
    from datacollect.schedule.data.assumptions import Assumptions

Take: TypeAlias = Literal["nothing", "direct", "connections", "relays", "measure"]

NOT_MEASURED = (
    "Nothing in this problem says that its bandwidths were measured: all below is as right as "
    "they are."
)


@dataclass(frozen=True)
class Way:
    """A way to collect.

    Attributes
    ----------
    name : str
    makespan_s : float or None
        When it would end; None where that is not known.
    gain : float or None
        How many times longer direct takes; None where one of them is not known.
    takes : str
        What is taken for granted, or why nothing is known; empty where the problem says all.
    """

    name: str
    makespan_s: float | None
    gain: float | None
    takes: str = ""


@dataclass(frozen=True, eq=False)
class Advisory:
    """Result of `advise`.

    Attributes
    ----------
    take : {"nothing", "direct", "connections", "relays", "measure"}
        What to do first: there is nothing to move; send directly; do so over more connections; take
        relays; measure, since relays gain only where hosts do more than was shown.
    text : str
        The same in a sentence, with its reason.
    is_measured : bool
        Whether the problem says that any of its numbers was measured.
    ways : tuple of Way
        Direct, direct over more connections, relays, relays where hosts do no more than was shown
        (if that matters), adaptive.
    lower_bound_s : float
        The earliest instant, in seconds, by which all can have arrived at these bandwidths.
    assumptions : Assumptions or None
        What the plan over relays leans on; None where there is none.
    measure : tuple of str
        Commands whose results would settle what is not known.
    notes : tuple of str
        What else the numbers rely on.
    """

    take: Take
    text: str
    is_measured: bool
    ways: tuple[Way, ...]
    lower_bound_s: float
    assumptions: Assumptions | None
    measure: tuple[str, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        known = [f"{way.name} {way.makespan_s:g} s" for way in self.ways if way.makespan_s]
        return f"<Advisory: take {self.take}; {', '.join(known) or 'nothing known'}>"

    def _repr_html_(self) -> str:
        """Show the ways in a notebook."""
        from datacollect.files.notebook import html_of_rows

        return html_of_rows(self.text, ("way", "end", "vs direct", "given that"), self.rows)

    @property
    def rows(self) -> list[list[str]]:
        """The ways as people read them: name, when it ends, how much faster than direct, if what.

        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> dc.advise(problem).rows[0][:3]
        ['direct', '2 s', '1.00×']
        """
        return [
            [
                way.name,
                "not known" if way.makespan_s is None else format_duration(way.makespan_s),
                "–" if way.gain is None else f"{way.gain:.2f}×",
                way.takes,
            ]
            for way in self.ways
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``datacollect advise --json`` prints.

        Returns
        -------
        dict
            ``take``, ``text``, ``is_measured``, ``ways`` (name, makespan_s, gain, takes),
            ``lower_bound_s``, ``assumptions``, ``measure``, ``notes``.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> dc.advise(problem).to_dict()["take"]
        'direct'
        """
        return {
            "take": self.take,
            "text": self.text,
            "is_measured": self.is_measured,
            "ways": [asdict(way) for way in self.ways],
            "lower_bound_s": self.lower_bound_s,
            "assumptions": None if self.assumptions is None else self.assumptions.to_dict(),
            "measure": list(self.measure),
            "notes": list(self.notes),
        }
