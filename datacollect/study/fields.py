"""The fields of experiment files: what to vary, how often, how precisely, what to draw.

As in `datacollect.scenario.fields`, one source for reading and checking files, for the hints in
messages and for the JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from datacollect.errors import ProblemError
from datacollect.files.fields import Document, Field, Part, Rows, Table
from datacollect.files.kinds import (
    Choice,
    Flag,
    ListOf,
    Number,
    Schema,
    Text,
    Whole,
    join,
    plain,
    wrong,
)
from datacollect.scenario.fields import ENGINES
from datacollect.study.columns import MEASURES

EXPERIMENT_FORMAT = "datacollect-experiment/1"

# Stands in values for the folder of data, which the command line names.
DATA = "{data}"

# What a scenario replaces as a whole: which keys it has depends on its kind.
WHOLE_TABLES = ("topology",)


@dataclass(frozen=True)
class AnyValue:
    """A value whose rules stand elsewhere: the scenario checks it."""

    def read(self, value: Any, place: str) -> Any:
        """Return the value."""
        return plain(value)

    def schema(self) -> Schema:
        """Return the JSON Schema that all values fit."""
        return {}


@dataclass(frozen=True)
class ValuesByKey:
    """Values of a scenario by their places, such as ``"background.flows"``."""

    def read(self, value: Any, place: str) -> dict[str, Any]:
        """Return the values."""
        if not isinstance(value, Mapping):
            remedy = f"write them below [{place}]"
            raise wrong(place, "must be a table of places and values", value, remedy)
        for key, item in value.items():
            Text().read(key, f"a place in {place}")
            # `method.name = "direct"` without quotes would replace all of [method].
            if isinstance(item, Mapping) and "." not in key and key not in WHOLE_TABLES:
                inner = next(iter(item), "KEY")
                raise wrong(
                    join(place, key),
                    "must not replace a whole table",
                    item,
                    f'write the place in quotes: "{key}.{inner}" = ...',
                )
        return dict(value)

    def schema(self) -> Schema:
        """Return the JSON Schema of such tables."""
        return {"type": "object", "propertyNames": {"minLength": 1}}


LABEL = Text()
PLACES = ListOf(LABEL)


@dataclass(frozen=True)
class ByLabels:
    """Labels by axis."""

    def read(self, value: Any, place: str) -> dict[str, list[str]]:
        """Return the labels."""
        if not isinstance(value, Mapping):
            remedy = 'write {AXIS = ["LABEL"]}'
            raise wrong(place, "must be a table of axes and labels", value, remedy)
        return {str(axis): PLACES.read(labels, join(place, axis)) for axis, labels in value.items()}

    def schema(self) -> Schema:
        """Return the JSON Schema of such tables."""
        labels = {"type": "array", "items": {"type": "string", "minLength": 1}}
        return {"type": "object", "additionalProperties": labels}


VALUE = Table(
    "the value",
    "One value of an axis that needs a label, or that changes several keys.",
    (
        Field("label", LABEL, "Name in tables and figures.", required=True),
        Field("value", AnyValue(), "Value of the axis' key."),
        Field(
            "set",
            ValuesByKey(),
            "Further keys of the scenario that this value sets, by their places.",
            default={},
        ),
        Field(
            "without", PLACES, "Keys of the scenario that are removed, by their places.", default=()
        ),
        Field(
            "only",
            ByLabels(),
            "The only labels of other axes that this value is combined with.",
            default={},
        ),
    ),
)


@dataclass(frozen=True)
class AxisValues:
    """Plain values of one key, or tables with a label."""

    def read(self, value: Any, place: str) -> list[dict[str, Any]]:
        """Return a table for each value."""
        items = ListOf(AnyValue(), 1, None, "must be a list of one value or more").read(
            value, place
        )
        return [self._one(item, f"{place}[{i}]") for i, item in enumerate(items)]

    def schema(self) -> Schema:
        """Return the JSON Schema of such lists."""
        simple = {"type": ["string", "number", "boolean"]}
        one = {"if": {"type": "object"}, "then": VALUE.schema(), "else": simple}
        return {"type": "array", "items": one, "minItems": 1}

    def _one(self, item: Any, place: str) -> dict[str, Any]:
        if isinstance(item, Mapping):
            return VALUE.read(item, place)
        if isinstance(item, list | tuple):
            raise wrong(place, "must have a label", item, 'write {label = "...", value = [...]}')
        return VALUE.read({"label": label_of(item), "value": item}, place)


def label_of(value: Any) -> str:
    """Return the label of a plain value.

    >>> label_of(20), label_of(0.05), label_of(True), label_of("Cubic")
    ('20', '0.05', 'true', 'Cubic')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


AXIS = Table(
    "the axis",
    "One thing that varies.",
    (
        Field("name", LABEL, "Name of the axis, and of its column in the results.", required=True),
        Field("key", LABEL, "Place in the scenario whose value varies."),
        Field(
            "paired",
            Flag(),
            "Whether all values of the axis meet the same network, background and measurement, "
            "run for run.",
            default=False,
        ),
        Field("values", AxisValues(), "Values, or tables with label, value, set.", required=True),
    ),
)

SEEDS = Table(
    "the seeds",
    "How often each setting is drawn again.",
    (
        Field("first", Whole(), "First seed.", default=1),
        Field("batch", Whole(minimum=1), "Seeds that are added at a time.", default=5),
        Field(
            "least",
            Whole(minimum=1),
            "Every setting is run with at least this many seeds.",
            default=5,
        ),
        Field(
            "most",
            Whole(minimum=1),
            "Every setting is run with at most this many seeds; default: least.",
        ),
        Field(
            "chosen",
            ListOf(Whole(), 1),
            "Instead of first: these seeds, in this order.",
            nullable=True,
        ),
    ),
)

PRECISION = Table(
    "the precision",
    "When a setting has enough seeds; without it, each has seeds.most.",
    (
        Field(
            "half_width",
            Number(positive=True),
            "Half-width of the confidence interval, divided by the mean.",
            default=0.05,
        ),
        Field("confidence", Number(positive=True), "Confidence, below 1.", default=0.95),
        Field(
            "of",
            ListOf(Choice(MEASURES), 1, None, "must be a list of one column or more"),
            "Columns of the results that must have this precision.",
            default=["makespan_s"],
        ),
    ),
)

PANEL = Table(
    "the panel",
    "One picture of the report.",
    (
        Field("label", LABEL, "Letter or name of the panel.", required=True),
        Field(
            "where",
            ValuesByKey(),
            "Labels of the settings that the panel shows, by axis.",
            default={},
        ),
        Field("x", LABEL, "Axis from left to right.", required=True),
        Field("series", LABEL, "Axis with a curve for each value.", required=True),
        Field(
            "y",
            Choice(MEASURES),
            "Column of the results from bottom to top.",
            default="makespan_s",
        ),
        Field("over", LABEL, "Label of the series that the others are divided by."),
    ),
)

LIMIT = Table(
    "the limit",
    "What hosts carry at most, all their links together.",
    (
        Field(
            "prefix", LABEL, "The limit holds for hosts whose names begin with this.", required=True
        ),
        Field(
            "uplink_bytes_per_s",
            Number("bytes per second", positive=True),
            "The most that each of these hosts sends, bytes per second.",
            required=True,
        ),
        Field(
            "downlink_bytes_per_s",
            Number("bytes per second", positive=True),
            "The most that each of these hosts receives, bytes per second.",
            required=True,
        ),
    ),
)

GRIDS = Table(
    "the grids",
    "Problems drawn from tables of measured bandwidths, one for every seed.",
    (
        Field("planned_csv", LABEL, "Table of bandwidths that plans are made on.", required=True),
        Field("truth_csv", LABEL, "Table of the bandwidths that there really are.", required=True),
        Field(
            "hosts_csv",
            LABEL,
            "A further table; only hosts that are in it, too, are used.",
            nullable=True,
        ),
        Field(
            "sources",
            Whole(minimum=1),
            "How many hosts with data are drawn at random.",
            required=True,
        ),
        Field(
            "backlog_bytes",
            Whole("bytes", minimum=1),
            "Bytes that each host with data holds.",
            required=True,
        ),
        Field(
            "relays",
            Whole(),
            "How many further hosts are drawn at random; default: all others.",
            nullable=True,
        ),
        Field("share", Number(positive=True), "Factor on links' bandwidths.", default=1.0),
        Field(
            "columns",
            ListOf(LABEL, 3, 3, "must be a list of three columns"),
            "Names of the tables' columns of sender, receiver and bits per second.",
            default=["src", "dst", "received_bps"],
        ),
        Field("limits", Rows(LIMIT), "What hosts carry at most.", default=()),
    ),
)

EXPERIMENT = Document(
    "the experiment",
    "A scenario, what varies in it, how often it is drawn again.",
    (
        Field("$schema", Text(), "JSON Schema of this file, for editors."),
        Field("format", Text((EXPERIMENT_FORMAT,)), "Format and its version."),
        Field(
            "name", LABEL, "Name of the experiment; default: the file's name.", default="experiment"
        ),
        Field("title", LABEL, "What the experiment shows, in a sentence."),
        Field("scenario", LABEL, "Scenario file, relative to this one."),
        Field(
            "grids",
            Part(GRIDS),
            "Tables of bandwidths, instead of a scenario; only for the fluid engine.",
        ),
        Field("engine", Choice(ENGINES), "Engine of all runs.", default="ns3"),
        Field(
            "scale",
            Number(positive=True),
            "Factor on backlogs, and, without probe_scale, on probes.",
        ),
        Field(
            "probe_scale", Number(positive=True), "Factor on the bytes of probes, not of backlogs."
        ),
        Field(
            "set",
            ValuesByKey(),
            "Keys of the scenario that the experiment changes, by their places.",
            default={},
        ),
        Field(
            "without", PLACES, "Keys of the scenario that are removed, by their places.", default=()
        ),
        Field("seeds", Part(SEEDS), "Seeds.", default=SEEDS.read({}, "seeds")),
        Field("precision", Part(PRECISION), "Precision wanted."),
        Field("axes", Rows(AXIS), "What varies; all combinations are run.", default=()),
        Field("panels", Rows(PANEL), "What the report draws.", default=()),
    ),
    remedy="`datacollect schema experiment` shows what one holds",
    named_after_file=True,
)


def reject_impossible(values: Mapping[str, Any]) -> None:
    """Refuse seeds and a precision that no run can fulfil."""
    seeds, precision = values["seeds"], values["precision"]
    _check_chosen(seeds)
    if seeds["most"] is not None and seeds["most"] < seeds["least"]:
        rule = f"must be >= seeds.least ({seeds['least']})"
        raise wrong("seeds.most", rule, seeds["most"], "swap seeds.most and seeds.least")
    if precision is None:
        return
    if precision["confidence"] >= 1:
        rule = "must be > 0 and < 1"
        raise wrong("precision.confidence", rule, precision["confidence"], "use 0.95")
    if seeds["least"] < 2:
        raise ProblemError(
            "seeds.least must be >= 2 with a precision, got 1: one run has no spread; use 5"
        )


def _check_chosen(seeds: Mapping[str, Any]) -> None:
    """Refuse a list of seeds that names one twice, or fewer than are asked for."""
    chosen = seeds["chosen"]
    if chosen is None:
        return
    for i, seed in enumerate(chosen):
        if seed in chosen[:i]:
            raise ProblemError(f"seeds.chosen[{i}]: seed {seed} is listed twice; remove one")
    most = seeds["most"] or seeds["least"]
    if len(chosen) < most:
        key = "seeds.most" if seeds["most"] else "seeds.least"
        rule = f"must name at least {most} seeds, as many as {key}"
        raise wrong("seeds.chosen", rule, len(chosen), f"name more, or lower {key}")
