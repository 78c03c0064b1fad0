"""Our own writer of simple Avro types: the bytes of fastavro's."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlearn.daemon.outputs.written import AVRO, avro_schema
from streamlearn.errors import SchemaError
from streamlearn.stream.formats.simple_avro import SimpleAvroWriter
from streamlearn.stream.formats.writers import AvroWriter

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES: dict[Any, Any] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": LONGS,
    "double": st.floats(allow_nan=False),
    "string": TEXTS,
    "bytes": st.binary(max_size=80),
}


def values_of(kind: Any) -> Any:
    if isinstance(kind, list):
        return st.one_of([values_of(one) for one in kind])
    if isinstance(kind, str):
        return VALUES[kind]
    if kind["type"] == "map":
        return st.dictionaries(TEXTS, values_of(kind["values"]), min_size=1, max_size=70)
    return VALUES[kind["type"]]


@pytest.mark.parametrize("name", AVRO)
@given(data=st.data())
def test_the_bytes_are_those_of_fastavro(name: str, data: Any) -> None:
    schema = avro_schema(name, AVRO[name])
    own, other = SimpleAvroWriter(schema), AvroWriter(schema)
    for one in (own, other):
        one.use_id(7)
    value = data.draw(
        st.fixed_dictionaries({field: values_of(kind) for field, kind in AVRO[name].items()})
    )
    assert own.write(value) == other.write(value)


def test_numbers_of_a_union_and_values_that_do_not_match() -> None:
    field = {"name": "x", "type": ["null", "double"], "default": None}
    writer = SimpleAvroWriter({"type": "record", "name": "A", "fields": [field]})
    assert writer.read(writer.write({"x": 3})) == {"x": 3.0}
    wrongs: list[Any] = ["x", b"x", {}]
    for wrong in wrongs:
        with pytest.raises(SchemaError):
            writer.write({"x": wrong})
