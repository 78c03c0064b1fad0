"""Send dead letters back to the topics that they came from."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from streamlearn import config
from streamlearn.cli.broker import exit_codes
from streamlearn.cli.configured import load
from streamlearn.cli.tables import show, show_json
from streamlearn.daemon.outputs.replay import FileTarget, TopicTarget, count_reasons, replay

if TYPE_CHECKING:
    from streamlearn.cli.parsing import Options
    from streamlearn.daemon.outputs.replay import Target


def run(options: Options) -> int:
    """Send them, or count them, and print the outcome."""
    settings = load(options)
    if options.json and options.to == "-":
        raise ValueError("--to - and --json both write to standard output; use --to FILE")
    with exit_codes():
        if options.dry_run:
            show_pending(settings, options)
            return 0
        destination = target(settings, options)
        try:
            outcome = replay(settings, destination, again=options.again)
        finally:
            destination.close()
    if options.json:
        show_json(
            {
                "sent": outcome.sent,
                "already_sent": outcome.already_sent,
                "not_sent": outcome.not_sent,
            }
        )
        return 0
    # with --to - the letters themselves go to standard output
    summary = sys.stderr if options.to == "-" else sys.stdout
    summary.write(f"{outcome.sent:,} dead letters sent\n")
    if outcome.already_sent:
        summary.write(f"{outcome.already_sent:,} were already sent by an interrupted run\n")
    for why, count in outcome.not_sent.most_common():
        summary.write(f"{count:,} not sent: {why}\n")
    return 0


def show_pending(settings: config.Config, options: Options) -> None:
    """Print the number of dead letters not yet sent, by reason."""
    rows = [{"reason": why, "letters": n} for why, n in count_reasons(settings).most_common()]
    if options.json:
        show_json(rows)
    elif rows:
        show(rows)
    else:
        sys.stdout.write("no dead letters to send\n")


def target(settings: config.Config, options: Options) -> Target:
    """Return where the letters go."""
    if options.to is not None:
        return FileTarget(options.to)
    if not isinstance(settings.source, config.KafkaSourceConfig):
        raise ValueError(
            f'{options.file}: source.kind is not "kafka", so there is no topic to send them to; '
            "use --to FILE"
        )
    return TopicTarget(settings.source)
