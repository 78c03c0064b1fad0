"""`streamlearn replay`: dead letters back into the stream."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from streamlearn import config
from streamlearn.cli.broker import reachable
from streamlearn.cli.commands.check import config_arguments, load
from streamlearn.cli.parsing import json_option
from streamlearn.cli.tables import show, show_json
from streamlearn.daemon.outputs.replay import SentBack, SetAside, reasons, replay

if TYPE_CHECKING:
    import argparse

    from streamlearn.cli.parsing import Options
    from streamlearn.daemon.outputs.replay import Target

HELP = "send dead letters back into the topics that they came from, each once"
EXAMPLES = """\
  streamlearn replay config/clicks.toml --dry-run   # how many wait, and what was wrong
  streamlearn replay config/clicks.toml
  streamlearn replay config/clicks.toml --to letters.jsonl   # to be repaired, then published

All readers of those topics see the records again; the headers streamlearn.origin.topic, .partition
and .offset say where they were first. What was sent is remembered beside the checkpoints.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the configuration, and where letters go."""
    config_arguments(parser)
    parser.add_argument(
        "--to", metavar="FILE", help="append their lines to a file instead (- is standard output)"
    )
    parser.add_argument(
        "--again", action="store_true", help="those that were sent before, too, from the beginning"
    )
    parser.add_argument("--dry-run", action="store_true", help="count and send nothing")
    json_option(parser)


def run(options: Options) -> int:
    """Send them, and say what became of them."""
    settings = load(options)
    if options.json and options.to == "-":
        raise ValueError("--to - and --json both want the standard output; give --to a file")
    with reachable():
        if options.dry_run:
            waiting = [{"reason": why, "letters": n} for why, n in reasons(settings).most_common()]
            return told(waiting, options, "no dead letters wait\n")
        where = target(settings, options)
        try:
            outcome = replay(settings, where, again=options.again)
        finally:
            where.close()
    if options.json:
        show_json({"sent": outcome.sent, "sent_before": outcome.before, "left": outcome.left})
        return 0
    # what goes to standard output is the letters' own
    say = sys.stderr if options.to == "-" else sys.stdout
    say.write(f"{outcome.sent:,} dead letters sent\n")
    if outcome.before:
        say.write(f"{outcome.before:,} had been sent already, by a run that was cut off\n")
    for why, count in outcome.left.most_common():
        say.write(f"{count:,} not sent: {why}\n")
    return 0


def told(rows: list[dict[str, object]], options: Options, nothing: str) -> int:
    """Show a table."""
    if options.json:
        show_json(rows)
    elif rows:
        show(rows)
    else:
        sys.stdout.write(nothing)
    return 0


def target(settings: config.Config, options: Options) -> Target:
    """Where the letters go."""
    if options.to is not None:
        return SetAside(options.to)
    if not isinstance(settings.source, config.KafkaSourceConfig):
        raise ValueError(
            f"{options.file}: the source is not Kafka's, so there is no topic to send them back "
            "to; use --to FILE"
        )
    return SentBack(settings.source)
