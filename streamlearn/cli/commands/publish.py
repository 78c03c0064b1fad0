"""`streamlearn publish`: lines of files, or events made up here, into a topic."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from streamlearn.cli import inputs
from streamlearn.cli.broker import broker_arguments, connection, reachable
from streamlearn.cli.parsing import seed, whole
from streamlearn.cli.progress import Bar
from streamlearn.daemon.outputs.blocking import BlockingSink
from streamlearn.stream import Clicks, Files, Partition, StandardInput, Synthetic

if TYPE_CHECKING:
    import argparse

    from streamlearn.cli.parsing import Options
    from streamlearn.stream import Source
    from streamlearn.stream.sinks.sink import Sink

HELP = "write the lines of files, or a made-up stream, into a topic of Kafka, a record each"
EXAMPLES = """\
  streamlearn publish clicks.jsonl --topic clicks
  streamlearn publish "day-*.vw.gz" --topic clicks --bootstrap broker-1:9092,broker-2:9092
  streamlearn publish prices.csv --topic prices --header --config config/clicks.toml
  streamlearn publish --synthetic clicks --topic clicks --rate 1000   # until it is interrupted
"""
FLUSH_SECONDS = 60.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare files, topic and brokers."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="files or globs, plain, .gz or .zst; - is standard input",
    )
    parser.add_argument("--topic", required=True, help="where to; it must be there")
    parser.add_argument(
        "--header", action="store_true", help="the first line of each file is no record (csv)"
    )
    parser.add_argument(
        "--delimiter",
        metavar="SIGN",
        type=inputs.sign,
        help="between the values: then a row with line breaks in quotes is one record (csv)",
    )
    group = parser.add_argument_group("events that are made up, instead of files")
    group.add_argument(
        "--synthetic", choices=["clicks", "spending", "spam"], help="what they are, as JSON"
    )
    group.add_argument(
        "--rate", metavar="N", type=whole, help="events a second (as fast as they are taken)"
    )
    group.add_argument("--events", metavar="N", type=whole, help="how many (without end)")
    group.add_argument("--seed", metavar="N", type=seed, help="another seed, another truth (0)")
    broker_arguments(parser)


def run(options: Options) -> int:
    """Write all of it, and say how many records are there."""
    source = asked(options)
    inputs.there(options.files)
    with reachable():
        source.open({}, None)
        sink = BlockingSink(connection(options).sink(options.topic))
        try:
            count = publish(source, sink, header=options.header)
        finally:
            sink.close()
            source.close()
    sys.stdout.write(f"{count:,} records written to {options.topic}\n")
    return 0


def asked(options: Options) -> Source:
    """Where the records come from."""
    made = {name: getattr(options, name) for name in ("rate", "events", "seed")}
    if options.synthetic is None:
        for name, value in made.items():
            if value is not None:
                raise ValueError(f"--{name} goes with --synthetic")
        if not options.files:
            raise ValueError("give files, - for standard input, or --synthetic clicks")
        if options.files == ["-"]:
            return StandardInput(delimiter=options.delimiter)
        return Files(options.files, delimiter=options.delimiter)
    if options.files or options.header or options.delimiter:
        raise ValueError("--synthetic makes up JSON: give no files and no --header or --delimiter")
    stream = Clicks(options.synthetic, options.seed or 0)
    return Synthetic(stream, events=options.events, rate=options.rate)


def publish(source: Source, sink: Sink, *, header: bool) -> int:
    """Write all records; how many."""
    count = 0
    begun = set[Partition]()
    with Bar("publishing") as bar:
        try:
            while not source.ended():
                for records in source.poll(0.25):
                    first = header and records.partition not in begun
                    begun.add(records.partition)
                    for value in records.values[1:] if first else records.values:
                        sink.send(value)
                        count += 1
                bar.update(source)
        except KeyboardInterrupt:
            sink.flush(FLUSH_SECONDS)
            sys.stderr.write(f"interrupted: the first {count:,} records are written\n")
            raise
        sink.flush(FLUSH_SECONDS)
    return count
