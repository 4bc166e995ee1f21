"""Keys of files for options of methods, in [method] and [planning]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.files.fields import Field, Table
from datacollect.files.kinds import Choice
from datacollect.methods.choice import METHODS, find_method
from datacollect.methods.places import options_in

if TYPE_CHECKING:
    from datacollect.files.kinds import Schema
    from datacollect.methods.options.option import Option, Place


def fields_in(place: Place, options: Mapping[str, Option] | None = None) -> tuple[Field, ...]:
    """Return the keys by which files ask for the options that a place takes, or for some."""
    taken = options_in(place) if options is None else options
    return tuple(Field(name, about.kind, about.described()) for name, about in taken.items())


@dataclass(frozen=True)
class MethodName(Choice):
    """The name of a method: one of ours, or one that another package brings."""

    def read(self, value: Any, place: str) -> str:
        """Return the name."""
        if isinstance(value, str) and value not in self.words and value in METHODS.names():
            return METHODS.get(value).name
        return super().read(value, place)

    def schema(self) -> Schema:
        """Return the JSON Schema of the names."""
        return {"enum": list(METHODS.names())}


@dataclass(frozen=True)
class MethodTable(Table):
    """A table whose key ``name`` names a method; one of another package adds its options."""

    def read(self, value: Any, place: str) -> dict[str, Any]:
        """Return the values of all fields, also of those that the method adds."""
        name = value.get("name") if isinstance(value, Mapping) else None
        spec = find_method(name) if isinstance(name, str) and name not in METHODS.own else None
        if spec is None:
            return super().read(value, place)
        more = {key: about for key, about in spec.takes.items() if key not in self.by_name}
        fields = (*self.fields, *fields_in("scenario", more))
        return Table(self.name, self.description, fields, refused=self.refused).read(value, place)
