"""Connect to the brokers that a command's options name."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streamlearn import config
from streamlearn.cli.options import BOOTSTRAP_VARIABLE, LOCAL_BROKER
from streamlearn.daemon import build
from streamlearn.daemon.process.exits import Stop, exit_code
from streamlearn.errors import SinkError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.cli.parsing import Options
    from streamlearn.kafka import Connection


def connection(options: Options) -> Connection:
    """Return the connection of --config or --bootstrap."""
    if options.config is None:
        bootstrap = options.bootstrap or os.environ.get(BOOTSTRAP_VARIABLE) or LOCAL_BROKER
        return build.connection(config.KafkaSourceConfig(bootstrap=bootstrap))
    if options.bootstrap is not None:
        raise ValueError("use --config or --bootstrap, not both")
    source = config.load(options.config).source
    if not isinstance(source, config.KafkaSourceConfig):
        raise ValueError(f'{options.config}: source.kind: expected "kafka"')
    return build.connection(source)


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn errors of brokers and topics into the exit codes of `run`."""
    try:
        yield
    except (SourceError, SinkError) as error:
        raise Stop(exit_code(error), str(error)) from error
