"""`streamlearn publish`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.options import add_broker, add_files, delimiter
from streamlearn.cli.parsing import seed, whole

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "write the lines of files, or a synthetic stream, to a Kafka topic, one record per line"
EXAMPLES = """\
  streamlearn publish clicks.jsonl --topic clicks
  streamlearn publish "day-*.vw.gz" --topic clicks --bootstrap broker-1:9092,broker-2:9092
  streamlearn publish prices.csv --topic prices --header --config config/clicks.toml
  streamlearn publish --synthetic clicks --topic clicks --rate 1000   # until interrupted
  streamlearn publish clicks.jsonl --topic clicks --as avro --registry http://localhost:8081
"""


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    add_files(parser, "*")
    parser.add_argument("--topic", required=True, help="the topic, which must exist")
    parser.add_argument(
        "--header", action="store_true", help="skip the first line of each file (csv)"
    )
    parser.add_argument(
        "--delimiter",
        metavar="CHAR",
        type=delimiter,
        help="read rows of CSV, so that one with quoted line breaks is one record (csv)",
    )
    group = parser.add_group("Avro and Protobuf, from records of JSON")
    group.add_argument(
        "--as",
        dest="kind",
        choices=["avro", "protobuf"],
        help="what to write; without a schema, one is inferred from the first 1000 records",
    )
    group.add_argument("--schema", metavar="FILE", help="the schema to write (avro)")
    group.add_argument(
        "--descriptors",
        metavar="FILE",
        help="descriptor set of protoc, with all imports (protobuf)",
    )
    group.add_argument(
        "--message", metavar="NAME", help="the message in it, such as shop.Click (protobuf)"
    )
    group.add_argument(
        "--registry",
        metavar="URL",
        help="register the schema as TOPIC-value, and begin each record with its id",
    )
    group = parser.add_group("a synthetic stream, instead of files")
    group.add_argument(
        "--synthetic", choices=["clicks", "spending", "spam"], help="what to generate, as JSON"
    )
    group.add_argument(
        "--rate", metavar="N", type=whole, help="events per second (default: no limit)"
    )
    group.add_argument(
        "--events", metavar="N", type=whole, help="number of events (default: no end)"
    )
    group.add_argument("--seed", metavar="N", type=seed, help="random seed (default: 0)")
    add_broker(parser)
