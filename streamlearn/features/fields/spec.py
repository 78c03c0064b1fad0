"""The declarations of an event's fields, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from streamlearn.features.fields.auto import Auto
from streamlearn.features.fields.buckets import Buckets
from streamlearn.features.fields.field import Field
from streamlearn.features.fields.grammar import parse
from streamlearn.features.fields.interaction import Interaction, fields_of
from streamlearn.features.fields.number import Number

OTHERS = "*"  # the name of all fields that are not declared


class FieldSpec(Mapping[str, Field]):
    """What the fields of an event are, by name; inner fields have names with dots.

    `*` stands for all fields that are not declared; without it they are `Auto()`. A field inside
    one that is `Auto` or `Ignore` is the same, unless it is declared itself. The name of an
    `Interaction` lists its fields.

    >>> spec = FieldSpec({"user_id": "category", "*": "ignore"})
    >>> spec["user_id"], spec
    (Category(), {'user_id': 'category', '*': 'ignore'})
    """

    def __init__(self, fields: object = None) -> None:
        if fields is None:
            fields = {}
        if not isinstance(fields, Mapping):
            raise ValueError(f"fields={fields!r}: give a mapping such as {{'user_id': 'category'}}")
        self._fields = {name: declared(name, field) for name, field in fields.items()}
        self.interactions = tuple(
            fields_of(name)
            for name, field in self._fields.items()
            if isinstance(field, Interaction)
        )
        twice = [one for one, n in Counter(map(frozenset, self.interactions)).items() if n > 1]
        if twice:
            raise ValueError(f"the interaction of {', '.join(sorted(twice[0]))} is declared twice")

    def __getitem__(self, name: str) -> Field:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def of(self, name: str) -> Field:
        """Return what a field is: as declared, as the field that it is in, or as all others.

        >>> FieldSpec({"user": "ignore", "user.age": "number"}).of("user.id")
        Ignore()
        """
        while name not in self and "." in name:
            name = name.rpartition(".")[0]
        return self._fields.get(name, self._fields.get(OTHERS, Auto()))

    def __hash__(self) -> int:
        return hash(frozenset(self._fields.items()))

    def __repr__(self) -> str:
        return repr(self.texts)

    @property
    def texts(self) -> dict[str, str]:
        """The fields as text in the grammar of configurations."""
        return {name: str(field) for name, field in self._fields.items()}


def declared(name: object, field: object) -> Field:
    """Return the field; ValueError with its name if it is invalid."""
    if not isinstance(name, str):
        raise ValueError(f"the name of a field is a str, not {name!r}")
    if isinstance(field, str):
        try:
            field = parse(field)
        except ValueError as error:
            raise ValueError(f"field {name!r}: {error}") from None
    if not isinstance(field, Field) or type(field) not in Field.kinds().values():
        raise ValueError(
            f"field {name!r}: {field!r} is no field: use one of {', '.join(Field.kinds())}"
        )
    if isinstance(field, Interaction):
        try:
            fields_of(name)
        except ValueError as error:
            raise ValueError(f"field {name!r}: {error}") from None
    learned = isinstance(field, Buckets) and isinstance(field.edges, int)
    if name == OTHERS and (learned or (isinstance(field, Number) and field.indicator)):
        raise ValueError(
            "field '*': a warm-up or an indicator needs the name of its field: declare the fields"
            " one by one"
        )
    return field
