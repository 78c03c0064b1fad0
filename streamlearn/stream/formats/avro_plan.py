"""Avro schemas as plans: lists of nodes, which a decoder walks through.

fastavro parses schemas and checks them. A reader's schema renames fields by its aliases, leaves
fields out, and adds defaults; what it promotes (an int to a double) has the same value here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamlearn.errors import SchemaError

try:
    from fastavro.schema import SchemaParseException, UnknownType, parse_schema
except ImportError as error:
    raise ImportError("Avro requires fastavro; run pip install 'streamlearn[registry]'") from error

# What a node is; the same numbers are in `avro.pyx`.
NULL, BOOL, INT, FLOAT, DOUBLE, TEXT, BYTES, FIXED, ENUM, ARRAY, MAP, RECORD, UNION = range(13)
DECIMAL_BYTES, DECIMAL_FIXED, UUID_FIXED = range(13, 16)

PRIMITIVES = {
    "null": NULL,
    "boolean": BOOL,
    "int": INT,
    "long": INT,
    "float": FLOAT,
    "double": DOUBLE,
    "string": TEXT,
    "bytes": BYTES,
}
SECONDS = {  # the unit of times
    "date": 86_400.0,
    "timestamp-millis": 1e-3,
    "timestamp-micros": 1e-6,
    "timestamp-nanos": 1e-9,
    "local-timestamp-millis": 1e-3,
    "local-timestamp-micros": 1e-6,
    "local-timestamp-nanos": 1e-9,
}


@dataclass
class Node:
    """A type; `children` are numbers of nodes."""

    kind: int
    children: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of fields ("" is left out), or of symbols
    size: int = 0  # of a fixed
    scale: float = 0.0  # of a decimal; of a time, its unit in seconds
    defaults: list[tuple[str, Any]] = field(default_factory=list)


def parse(schema: Any, named: dict[str, Any] | None = None) -> Any:
    """Return a parsed schema; SchemaError if it is invalid. `named` collects its named types."""
    try:
        return parse_schema(schema, named_schemas={} if named is None else named)
    except (SchemaParseException, UnknownType, TypeError, KeyError, AttributeError) as error:
        raise SchemaError(f"invalid Avro schema: {error}") from error


def plan(schema: Any, reader: Any = None, references: list[Any] | None = None) -> list[Node]:
    """Return the nodes of a schema, the first of which is the record.

    >>> schema = {"type": "record", "name": "Click", "fields": [{"name": "hour", "type": "int"}]}
    >>> [(node.kind, node.names, node.children) for node in plan(schema)]
    [(11, ['hour'], [1]), (2, [], [])]
    """
    named: dict[str, Any] = {}
    for other in references or ():
        parse(other, named)
    return _AvroPlanner(parse(schema, named), named, reader).nodes


class _AvroPlanner:
    """Makes the nodes of one schema; a named type has one for each of the reader's types.

    Plans of many schemas share the processor's cache, so equal types have one node.
    """

    def __init__(self, schema: Any, named: dict[str, Any], reader: Any) -> None:
        self.nodes: list[Node] = []
        self._named = named
        self._reader_named: dict[str, Any] = {}
        self._reader = None if reader is None else parse(reader, self._reader_named)
        self._made: dict[tuple[str, str | None], int] = {}
        self._leaves: dict[tuple[int, float], int] = {}  # types without a name, by kind and scale
        top = self.nodes[self._node(schema, self._reader)]
        if top.kind != RECORD:
            raise SchemaError("an event is a record: this Avro schema is of another type")

    def _node(self, schema: Any, reader: Any) -> int:
        """Return the number of a schema's node; `reader`: the reader's schema, None if any."""
        if isinstance(schema, str) and schema not in PRIMITIVES:
            schema = self._named[schema]
        if isinstance(reader, str) and reader not in PRIMITIVES:
            reader = self._reader_named[reader]
        if isinstance(schema, list):
            return self._add(Node(UNION), lambda: [self._node(one, reader) for one in schema])
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind in {"record", "error", "enum", "fixed"}:
            return self._named_node(kind, schema, reader)
        if kind == "array":
            item = _inner(reader, "array", "items")
            return self._add(Node(ARRAY), lambda: [self._node(schema["items"], item)])
        if kind == "map":
            value = _inner(reader, "map", "values")
            return self._add(Node(MAP), lambda: [self._node(schema["values"], value)])
        leaf = _primitive(kind, schema if isinstance(schema, dict) else {})
        key = leaf.kind, leaf.scale
        if key not in self._leaves:
            self._leaves[key] = self._add(leaf)
        return self._leaves[key]

    def _add(self, node: Node, children: Any = None) -> int:
        number = len(self.nodes)
        self.nodes.append(node)
        if children is not None:
            node.children = children()
        return number

    def _named_node(self, kind: str, schema: dict[str, Any], reader: Any) -> int:
        wanted = _inner_record(reader) if kind in {"record", "error"} else None
        key = (schema["name"], None if wanted is None else wanted["name"])
        if key in self._made:
            return self._made[key]
        self._made[key] = len(self.nodes)
        if kind == "enum":
            return self._add(Node(ENUM, names=list(schema["symbols"])))
        if kind == "fixed":
            node = _primitive("fixed", schema)
            node.size = int(schema["size"])
            return self._add(node)
        node = Node(RECORD)
        return self._add(node, lambda: self._fields(node, schema, wanted))

    def _fields(
        self, node: Node, schema: dict[str, Any], reader: dict[str, Any] | None
    ) -> list[int]:
        if reader is None:
            node.names = [one["name"] for one in schema["fields"]]
            return [self._node(one["type"], None) for one in schema["fields"]]
        children = []
        written = {one["name"] for one in schema["fields"]}
        names = {
            alias: one
            for one in reader["fields"]
            for alias in (one["name"], *one.get("aliases", ()))
        }
        for one in schema["fields"]:
            target = names.get(one["name"])
            node.names.append("" if target is None else target["name"])
            children.append(self._node(one["type"], None if target is None else target["type"]))
        for one in reader["fields"]:
            if written.isdisjoint({one["name"], *one.get("aliases", ())}):
                if "default" not in one:
                    raise SchemaError(
                        f"field {one['name']!r} of the reader's schema is not in the writer's, and "
                        "has no default"
                    )
                node.defaults.append((one["name"], one["default"]))
        return children


def _primitive(kind: str, schema: dict[str, Any]) -> Node:
    logical = schema.get("logicalType")
    node = Node(FIXED if kind == "fixed" else PRIMITIVES[kind])
    if logical == "decimal" and node.kind in {BYTES, FIXED}:
        node.scale = float(10 ** -int(schema.get("scale", 0)))
        node.kind = DECIMAL_BYTES if node.kind == BYTES else DECIMAL_FIXED
    elif logical == "uuid" and node.kind == FIXED:
        node.kind = UUID_FIXED
    elif logical in SECONDS and node.kind == INT:
        node.scale = SECONDS[logical]
    return node


def _inner(reader: Any, kind: str, part: str) -> Any:
    """Return the items' or values' type of the reader's schema."""
    for one in reader if isinstance(reader, list) else [reader]:
        if isinstance(one, dict) and one["type"] == kind:
            return one[part]
    return None


def _inner_record(reader: Any) -> dict[str, Any] | None:
    """Return the record among the types of the reader's schema."""
    for one in reader if isinstance(reader, list) else [reader]:
        if isinstance(one, dict) and one["type"] in {"record", "error"}:
            found: dict[str, Any] = one
            return found
    return None
