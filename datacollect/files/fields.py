"""Tables of fields in files: which keys belong together, and tables by row and by name.

`datacollect.files.kinds` says what the value of a key may be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from datacollect.errors import ProblemError, naming, nearest_hint
from datacollect.files.documents import document_name, folder_of, read_tree
from datacollect.files.kinds import (
    SHOWN_LENGTH,
    Kind,
    ListOf,
    Schema,
    Text,
    join,
    shown,
    shown_text,
    wrong,
)

if TYPE_CHECKING:
    from os import PathLike

Read = TypeVar("Read")

# No host's name is longer: of other text nothing is proposed.
LONGEST_NAME = 255

# Kinds of files that name no format, by the first of these keys that they hold, unless files of
# the kind that was asked for hold it, too.
KINDS_BY_KEY = (
    ("transfers", "schedule"),
    ("topology", "scenario"),
    ("hosts", "problem"),
    ("destination", "problem"),
)


@dataclass(frozen=True)
class Field:
    """One key of a table.

    Attributes
    ----------
    name : str
    kind : Kind
    description : str
        Meaning, unit included; the JSON Schema shows it in editors.
    required : bool
    default : object
        What absence means, where that is a value.
    nullable : bool
        Whether null (None) may stand for absence.
    """

    name: str
    kind: Kind
    description: str
    required: bool = False
    default: Any = None
    nullable: bool = False

    def schema(self) -> Schema:
        """Return the JSON Schema of the key's value, with what editors show."""
        kind = self.kind.schema()
        if self.nullable:
            kind = {"anyOf": [kind, {"type": "null"}]}
        schema = {"description": self.description, **kind}
        if self.default is not None and self.default != ():
            schema["default"] = self.default
        return schema


@dataclass(frozen=True)
class Table:
    """The keys that belong together; any other key is an error.

    Attributes
    ----------
    name, description : str
    fields : tuple of Field
    remedy : str
        Of a whole file: the command that writes one, for who has something else, or nothing.
    refused : mapping of str to str, optional
        Keys that others know and that make no sense here, and why.
    """

    name: str
    description: str
    fields: tuple[Field, ...]
    remedy: str = ""
    refused: Mapping[str, str] | None = None

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """The fields by their names."""
        return {field.name: field for field in self.fields}

    def read(self, value: Any, place: str) -> dict[str, Any]:
        """Return the values of all fields; where a key is absent, its default."""
        if not isinstance(value, Mapping):
            remedy = "" if place else self.remedy
            raise wrong(place, "must be a table of keys and values", value, remedy)
        by_name = self.by_name
        inside = f"{place}." if place else ""
        if not value.keys() <= by_name.keys():
            self._reject_unknown(value, place)
        values = {}
        for name, field in by_name.items():
            if name not in value:
                if field.required:
                    self._reject_missing(value, place)
                values[name] = field.default
            elif field.nullable and value[name] is None:
                values[name] = field.default
            else:
                values[name] = field.kind.read(value[name], inside + name)
        return values

    def schema(self) -> Schema:
        """Return a reference to this table: what writes the schema names and defines it once."""
        return {"$ref": self}

    def definition(self) -> Schema:
        """Return the JSON Schema of the table itself."""
        return {
            "description": self.description,
            "type": "object",
            "properties": {field.name: field.schema() for field in self.fields},
            "required": [field.name for field in self.fields if field.required],
            "additionalProperties": False,
        }

    def _reject_unknown(self, value: Mapping[Any, Any], place: str) -> None:
        key = next(key for key in value if key not in self.by_name)
        if key in (self.refused or {}):
            raise ProblemError(f"{join(place, key)}: {(self.refused or {})[key]}; leave it out")
        hint = nearest_hint(str(key)[:SHOWN_LENGTH], self.by_name)
        if hint.endswith(": convert"):
            hint += ", or write the number with its unit, in quotes"
        known = hint or f"; known keys are {', '.join(self.by_name)}"
        raise ProblemError(f"{join(place, key)}: unknown key{known}")

    def _reject_missing(self, value: Mapping[Any, Any], place: str) -> None:
        missing = [f.name for f in self.fields if f.required and f.name not in value]
        names = ", ".join(missing)
        what = f"key {names} is" if len(missing) == 1 else f"keys {names} are"
        where = f"{place}: " if place else ""
        raise ProblemError(
            f"{where}{what} missing; add {'it' if len(missing) == 1 else 'them'} to {self.name}"
        )


@dataclass(frozen=True)
class Document(Table):
    """The keys of a whole file, ``format`` among them, and how such files are read.

    Attributes
    ----------
    instead : mapping of str to str, optional
        Of other kinds of files, by their names: what helps who mixes them up with this one.
    named_after_file : bool
        Whether the file's own name is that of what it holds, where it says no other.

    Examples
    --------
    >>> tea = Field("format", Text(("datacollect-tea/1",)), "Format and its version.")
    >>> Document("the tea", "A drink.", (tea,), remedy="boil water").read({"transfers": []})
    Traceback (most recent call last):
    datacollect.errors.ProblemError: format must be "datacollect-tea/1": this is a schedule; boil...
    """

    instead: Mapping[str, str] | None = None
    named_after_file: bool = False

    @cached_property
    def format(self) -> str:
        """Return what such files give as their format."""
        kind = self.by_name["format"].kind
        assert isinstance(kind, Text)
        return kind.only[0]

    def read(self, value: Any, place: str = "") -> dict[str, Any]:
        """Return the values of all fields; say so where this is a file of another kind."""
        if isinstance(value, Mapping):
            self._reject_other(value)
        return super().read(value, place)

    def from_file(
        self,
        path: str | PathLike[str],
        build: Callable[[Any, Path], Read],
        read: Callable[[str | PathLike[str], str], Any] = read_tree,
    ) -> Read:
        """Return what a file becomes; what errors say begins with its name.

        Parameters
        ----------
        path : path-like
            ``-`` reads standard input.
        build : function
            What comes of the file's tree, and of the folder that its own file names are relative
            to.
        read : function, optional
            Reads the tree, and says what writes such a file where there is none.
        """
        tree = read(path, self.remedy)
        if self.named_after_file and isinstance(tree, dict) and str(path) != "-":
            tree = {"name": Path(path).stem, **tree}
        with naming(document_name(path)):
            return build(tree, folder_of(path))

    def _reject_other(self, tree: Mapping[str, Any]) -> None:
        # Before unknown keys: who mixes up two files is to read that.
        given, own = tree.get("format"), _kind_of(self.format)
        found = _kind_of(given) or own
        got = f", got {shown(given)}" if found != own else ""
        if found == own:
            hints = ((key, kind) for key, kind in KINDS_BY_KEY if key in tree)
            found = next(
                (kind for key, kind in hints if kind == own or self._lacks(key, tree)), own
            )
        if found != own:
            article = "an" if found[0] in "aeiou" else "a"
            remedy = (self.instead or {}).get(found, self.remedy)
            raise ProblemError(
                f'format must be "{self.format}"{got}: this is {article} {shown_text(found)}'
                + (remedy and f"; {remedy}")
            )

    def _lacks(self, key: str, tree: Mapping[str, Any]) -> bool:
        """Return whether no field takes what stands under a key.

        A list is no table of another kind.
        """
        field = self.by_name.get(key)
        return field is None or (isinstance(field.kind, ListOf) and isinstance(tree[key], dict))


def _kind_of(form: Any) -> str:
    """Return the kind of file that a format names; ``""``: none of ours."""
    found = re.fullmatch(r"datacollect-([a-z-]+)/\d+", form) if isinstance(form, str) else None
    return found[1] if found else ""


@dataclass(frozen=True)
class Rows:
    """A list of tables: in TOML ``[[name]]``, once for each."""

    table: Table

    def read(self, value: Any, place: str) -> list[dict[str, Any]]:
        """Return the fields of each table."""
        if not isinstance(value, list | tuple):
            remedy = f"write [[{place}]], with two brackets, once for each"
            raise wrong(place, "must be a list of tables", value, remedy)
        return [self.table.read(item, f"{place}[{i}]") for i, item in enumerate(value)]

    def schema(self) -> Schema:
        """Return the JSON Schema of such lists."""
        return {"type": "array", "items": self.table.schema()}


@dataclass(frozen=True)
class ByName:
    """Tables by name: in TOML ``[place.name]``, once for each."""

    table: Table

    def read(self, value: Any, place: str) -> dict[str, dict[str, Any]]:
        """Return the fields of each table, by its name."""
        if not isinstance(value, Mapping):
            raise wrong(place, "must hold a table for each name", value, f"write [{place}.NAME]")
        for name, item in value.items():
            dotted = self._dotted(name, item)
            if dotted and dotted.isprintable() and len(dotted) <= LONGEST_NAME:
                raise ProblemError(
                    f"{join(place, name)}: a dot in a name without quotes begins another table; "
                    f"write [{place}.{json.dumps(dotted, ensure_ascii=False)}]"
                )
        return {
            Text().read(name, f"a name in {place}"): self.table.read(item, join(place, name))
            for name, item in value.items()
        }

    def _dotted(self, name: Any, item: Any) -> str:
        """Return the name with dots that was written without quotes; ``""`` where none was."""
        if not isinstance(item, Mapping):
            return ""
        for key, inner in item.items():
            # Where a key holds a table, and is like none of the fields, it is the end of a dotted
            # name.
            is_field = key in self.table.by_name or nearest_hint(str(key), self.table.by_name)
            if isinstance(inner, Mapping) and not is_field:
                return f"{name}.{self._dotted(key, inner) or key}"
        return ""

    def schema(self) -> Schema:
        """Return the JSON Schema of tables by name."""
        return {
            "type": "object",
            "propertyNames": {"minLength": 1},
            "additionalProperties": self.table.schema(),
            "minProperties": 1,
        }


@dataclass(frozen=True)
class Part:
    """One table within another: in TOML ``[place]``."""

    table: Table

    def read(self, value: Any, place: str) -> dict[str, Any]:
        """Return the fields of the table."""
        return self.table.read(value, place)

    def schema(self) -> Schema:
        """Return a reference to the table."""
        return self.table.schema()
