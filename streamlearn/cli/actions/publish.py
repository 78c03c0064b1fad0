"""Write the lines of files, or a synthetic stream, to a Kafka topic."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from streamlearn.cli.broker import connection, exit_codes
from streamlearn.cli.progress import Bar
from streamlearn.config.files import require_files
from streamlearn.daemon.outputs.blocking import BlockingSink
from streamlearn.stream import Clicks, Files, Partition, StandardInput, Synthetic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.cli.parsing import Options
    from streamlearn.stream import Source
    from streamlearn.stream.sinks.sink import Sink

FLUSH_SECONDS = 60.0


def run(options: Options) -> int:
    """Write all records and print their number."""
    source = records_of(options)
    require_files(options.files)
    with exit_codes():
        source.open({}, None)
        sink = BlockingSink(connection(options).sink(options.topic))
        try:
            count = publish(source, sink, options)
        finally:
            sink.close()
            source.close()
    sys.stdout.write(f"{count:,} records written to {options.topic}\n")
    return 0


def records_of(options: Options) -> Source:
    """Return the source of the records."""
    if options.kind is None:
        for name in ("schema", "descriptors", "message", "registry"):
            if getattr(options, name) is not None:
                raise ValueError(f"--{name} needs --as")
    synthetic = {name: getattr(options, name) for name in ("rate", "events", "seed")}
    if options.synthetic is None:
        for name, value in synthetic.items():
            if value is not None:
                raise ValueError(f"--{name} needs --synthetic")
        if not options.files:
            raise ValueError(
                "no input; name files, use - for standard input, or --synthetic clicks"
            )
        if options.files == ["-"]:
            return StandardInput(delimiter=options.delimiter)
        return Files(options.files, delimiter=options.delimiter)
    if options.files or options.header or options.delimiter:
        raise ValueError("--synthetic cannot be combined with files, --header or --delimiter")
    stream = Clicks(options.synthetic, options.seed or 0)
    return Synthetic(stream, events=options.events, rate=options.rate)


def publish(source: Source, sink: Sink, options: Options) -> int:
    """Write all records and return their number."""
    count = 0
    with Bar("publishing") as bar:
        values = values_of(source, bar, header=options.header)
        if options.kind is not None:
            from streamlearn.cli.record_writer import serialized  # noqa: PLC0415 - optional

            values = serialized(values, options)
        try:
            for value in values:
                sink.send(value)
                count += 1
        except KeyboardInterrupt:
            sink.flush(FLUSH_SECONDS)
            sys.stderr.write(f"interrupted: the first {count:,} records are written\n")
            raise
        sink.flush(FLUSH_SECONDS)
    return count


def values_of(source: Source, bar: Bar, *, header: bool) -> Iterator[bytes]:
    """Yield the values of all records, without the first line of each file if it is a header."""
    started = set[Partition]()
    while not source.ended():
        for records in source.poll(0.25):
            first = header and records.partition not in started
            started.add(records.partition)
            yield from filter(None, records.values[1:] if first else records.values)
        bar.update(source)
