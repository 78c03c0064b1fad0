"""What commands that write to a broker share: how to reach it, and what to say when they cannot."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.process.exits import Stop, code_of
from streamlearn.errors import SinkError, SourceError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from streamlearn.cli.parsing import Options
    from streamlearn.kafka import Connection

VARIABLE = "KAFKA_BOOTSTRAP"
LOCAL = "localhost:9092"


def broker_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the brokers are: said here, or in a configuration that has a login too."""
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        help=f"the brokers (the environment's {VARIABLE}, or {LOCAL})",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="a configuration whose [source] names brokers and login"
    )


def connection(options: Options) -> Connection:
    """The way to the brokers that the options name."""
    if options.config is None:
        bootstrap = options.bootstrap or os.environ.get(VARIABLE) or LOCAL
        return build.connection(config.KafkaSourceConfig(bootstrap=bootstrap))
    if options.bootstrap is not None:
        raise ValueError("give --config or --bootstrap, not both")
    source = config.load(options.config).source
    if not isinstance(source, config.KafkaSourceConfig):
        raise ValueError(f'{options.config}: source.kind: needs "kafka", for brokers to write to')
    return build.connection(source)


@contextmanager
def reachable() -> Iterator[None]:
    """A broker that is away, or a topic that is not there, has its exit code, as in `run`."""
    try:
        yield
    except (SourceError, SinkError) as error:
        raise Stop(code_of(error), str(error)) from error
