"""`streamlearn publish`: lines of files into a topic."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from streamlearn.cli.broker import broker_arguments, connection, reachable
from streamlearn.cli.progress import Bar
from streamlearn.daemon.patience import Patient
from streamlearn.stream import Files, StandardInput

if TYPE_CHECKING:
    import argparse

    from streamlearn.cli.parsing import Options
    from streamlearn.stream import Source
    from streamlearn.stream.sink import Sink

HELP = "write the lines of files into a topic of Kafka, a record each"
EXAMPLES = """\
  streamlearn publish clicks.jsonl --topic clicks
  streamlearn publish "day-*.vw.gz" --topic clicks --bootstrap broker-1:9092,broker-2:9092
  streamlearn publish prices.csv --topic prices --header --config config/clicks.toml
"""
FLUSH_SECONDS = 60.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare files, topic and brokers."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="files or globs, plain, .gz or .zst; - is standard input",
    )
    parser.add_argument("--topic", required=True, help="where to; it must be there")
    parser.add_argument(
        "--header", action="store_true", help="the first line of each file is no record (csv)"
    )
    broker_arguments(parser)


def run(options: Options) -> int:
    """Write all lines, and say how many are there."""
    source: Source = Files(options.files) if options.files != ["-"] else StandardInput()
    with reachable():
        source.open({}, None)
        sink = Patient(connection(options).sink(options.topic))
        try:
            count = publish(source, sink, header=options.header)
        finally:
            sink.close()
            source.close()
    sys.stdout.write(f"{count:,} records written to {options.topic}\n")
    return 0


def publish(source: Source, sink: Sink, *, header: bool) -> int:
    """Write all lines that are not empty; how many."""
    count = 0
    with Bar("publishing") as bar:
        try:
            while not source.ended():
                for records in source.poll(0.25):
                    for offset, value in zip(records.offsets, records.values, strict=True):
                        if not (header and offset == 0):
                            sink.send(value)
                            count += 1
                bar.update(source)
        except KeyboardInterrupt:
            sink.flush(FLUSH_SECONDS)
            sys.stderr.write(f"interrupted: the first {count:,} records are written\n")
            raise
        sink.flush(FLUSH_SECONDS)
    return count
