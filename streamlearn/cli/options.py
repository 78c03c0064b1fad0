"""The options that several commands share.

Values stay text here: whatever turns them into a configuration is imported when a command runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.parsing import whole
from streamlearn.core import formats

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser, Group

BOOTSTRAP_VARIABLE = "KAFKA_BOOTSTRAP"
LOCAL_BROKER = "localhost:9092"


def add_json(parser: CommandParser) -> None:
    """Add the option of every command that prints a table."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def add_model(parser: CommandParser) -> None:
    """Add a saved model, or one learner of a daemon's checkpoints."""
    parser.add_argument("model", metavar="MODEL", help="a model file or a daemon's checkpoint.path")
    add_checkpoint_learner(parser)


def add_checkpoint_learner(parser: CommandParser) -> None:
    """Add which learner of a daemon's checkpoints is meant."""
    parser.add_argument("--learner", metavar="NAME", help="the learner, in a checkpoint.path")


def add_config(parser: CommandParser) -> None:
    """Add the configuration file and its overrides."""
    parser.add_argument("file", metavar="FILE", help="a configuration file (TOML)")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="override a key of the file, for example source.start=latest",
    )


def add_broker(parser: CommandParser) -> None:
    """Add the address of the brokers, or a configuration that has their login as well."""
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        help=f"the brokers (default: ${BOOTSTRAP_VARIABLE}, or {LOCAL_BROKER})",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="a configuration whose [source] has brokers and login"
    )


def add_files(parser: CommandParser, count: str = "+") -> None:
    """Add the files to read."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs=count,
        help="files or globs, plain, .gz or .zst; - reads standard input",
    )


def add_format(parser: CommandParser) -> None:
    """Add files and the options of [format]."""
    add_files(parser)
    group = parser.add_group("format")
    group.add_argument(
        "--format",
        choices=sorted(formats.names(in_files=True)),
        help="format of the records (default: from the file name)",
    )
    group.add_argument(
        "--schema", metavar="FILE", help="schema to read the records as (avro; default: their own)"
    )
    group.add_argument(
        "--descriptors",
        metavar="FILE",
        help="descriptor set of protoc, with all imports (protobuf)",
    )
    group.add_argument(
        "--message", metavar="NAME", help="the message in it, such as shop.Click (protobuf)"
    )
    group.add_argument("--label", metavar="FIELD", help="field of the label (not svmlight, vw)")
    group.add_argument(
        "--labels",
        metavar="A,B",
        help='all valid labels, or "open": new labels may appear at any time',
    )
    group.add_argument(
        "--label-warmup",
        metavar="N",
        type=int,
        help="labeled events after which no new label is accepted (default: 1000)",
    )
    group.add_argument(
        "--max-classes",
        metavar="N",
        type=int,
        help="maximum number of labels, unless --labels lists them (default: 100)",
    )
    group.add_argument(
        "--positive",
        metavar="VALUE",
        action="append",
        help="label that means true; all others mean false (repeatable)",
    )
    group.add_argument("--weight", metavar="FIELD", help="field of the event's weight")
    group.add_argument(
        "--kept",
        metavar="SHARE",
        type=float,
        help="share of the negatives in the files, if others were left out: each weighs 1 / SHARE",
    )
    group.add_argument("--id", metavar="FIELD", help="field of the event's id")
    group.add_argument(
        "--delimiter", metavar="CHAR", type=delimiter, help=r"delimiter, such as ; or \t (csv)"
    )
    group.add_argument(
        "--decimal",
        choices=[".", ","],
        metavar="CHAR",
        help="what is before the decimals of numbers (csv; default: a point)",
    )
    group.add_argument(
        "--columns", metavar="A,B", type=names, help="column names, if there is no header (csv)"
    )
    group.add_argument(
        "--on-invalid",
        choices=["stop", "skip"],
        default="stop",
        help="on an invalid line: stop (default), or skip and count it",
    )


def add_features(parser: CommandParser) -> None:
    """Add the options of [features]."""
    group = parser.add_group("features")
    group.add_argument(
        "--field",
        metavar="NAME=KIND",
        action="append",
        help="what a field is: id=ignore, price='number(log1p)', user^ad=interaction (repeatable)",
    )
    group.add_argument("--hash", metavar="BITS", type=int, help="hash features into 2^BITS slots")
    group.add_argument(
        "--max-names", metavar="N", type=int, help="maximum number of exact feature names"
    )


def add_guess(parser: CommandParser) -> None:
    """Add the option that turns off guesses of what fields are."""
    parser.add_argument(
        "--no-guess",
        dest="guess",
        action="store_false",
        help="do not guess from the first 10,000 rows what the other fields are (csv, json)",
    )


def add_learner(parser: CommandParser) -> None:
    """Add the options of a [[learner]]."""
    group = parser.add_group("model")
    group.add_argument("--model", metavar="EXPR", help='a preset, "PegasosClassifier(l2=1e-4)"')
    group.add_argument(
        "--rule", metavar="EXPR", help='"DualAveraging(gamma=5.0)" (default: needs no tuning)'
    )
    group.add_argument(
        "--loss", metavar="EXPR", help='"Hinge()" (default: logistic; for regression, squared)'
    )
    group.add_argument("--penalty", metavar="EXPR", help='"L1(1e-3)" (default: none)')
    group.add_argument(
        "--l1", metavar="STRENGTH", type=float, help='the same as --penalty "L1(STRENGTH)"'
    )
    add_regression(group)
    group.add_argument(
        "--average",
        choices=["last", "uniform", "tail", "random"],
        help="the weights that predict (default: last)",
    )
    group.add_argument(
        "--class-weight",
        metavar="LABEL=WEIGHT",
        action="append",
        help="weight of the events with this label, such as true=10 (repeatable)",
    )
    group.add_argument(
        "--calibrated", action="store_true", help="calibrate the probabilities while learning"
    )
    group.add_argument("--batch", metavar="N", type=int, help="events per step (default: 1)")
    group.add_argument("--seed", metavar="N", type=int, help="seed of --average random")


def add_regression(parser: CommandParser | Group) -> None:
    """Add the option that makes labels numbers."""
    parser.add_argument("--regression", action="store_true", help="predict numbers, not classes")


def add_shards(group: CommandParser | Group, purpose: str) -> None:
    """Add where shards are, and how many."""
    group.add_argument(
        "--ray", metavar="ADDRESS", help=f'{purpose} on a Ray cluster: HOST:PORT, or "auto"'
    )
    group.add_argument(
        "--shards",
        metavar="N",
        type=whole,
        help=f"{purpose} in so many shards; large files are divided (default: the cores)",
    )


def delimiter(text: str) -> str:
    r"""Return a delimiter; a tab may be typed as \t."""
    return "\t" if text == "\\t" else text


def names(text: str) -> list[str]:
    """Return comma-separated names as a list."""
    return [name.strip() for name in text.split(",") if name.strip()]
