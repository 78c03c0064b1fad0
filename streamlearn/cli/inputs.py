"""Files of events on the command line: the options are those of a configuration, and checked so."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlearn import config
from streamlearn.config import OPEN, ConfigError
from streamlearn.config.expressions import known, split
from streamlearn.daemon.unlabeled import about
from streamlearn.stream.sources.packed import PACKED

if TYPE_CHECKING:
    import argparse
    from collections.abc import Set as AbstractSet

    from streamlearn.cli.parsing import Options
    from streamlearn.stream import Decoder

SUFFIXES = {
    "json": (".json", ".jsonl", ".ndjson"),
    "csv": (".csv", ".tsv"),
    "svmlight": (".svm", ".svmlight", ".libsvm"),
    "vw": (".vw",),
}
# options by the keys of the configuration that they stand for
OPTIONS = {
    "source.paths": "FILE",
    "format.kind": "--format",
    "format.label": "--label",
    "format.labels": "--labels",
    "format.positive": "--positive",
    "format.label_warmup": "--label-warmup",
    "format.max_classes": "--max-classes",
    "format.weight": "--weight",
    "format.id": "--id",
    "format.include": "--include",
    "format.exclude": "--exclude",
    "format.interactions": "--interact",
    "format.delimiter": "--delimiter",
    "format.columns": "--columns",
    "format.text": "--text",
    "features.bits": "--hash",
    "features.max_names": "--max-names",
    "learner[0].name": "the model",
    "learner[0].task": "--regression",
    "learner[0].model": "--model",
    "learner[0].rule": "--rule",
    "learner[0].loss": "--loss",
    "learner[0].penalty": "--penalty",
    "learner[0].average": "--average",
    "learner[0].batch": "--batch",
    "learner[0].seed": "--seed",
}


def format_arguments(parser: argparse.ArgumentParser, files: str = "+") -> None:
    """Files, and how their lines become events."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs=files,
        help="files or globs, plain, .gz or .zst; - is standard input",
    )
    group = parser.add_argument_group("format")
    group.add_argument(
        "--format",
        choices=sorted(SUFFIXES),
        help="what the lines are; the file's name tells if nothing is said",
    )
    group.add_argument("--label", metavar="FIELD", help="the field of the label (json, csv)")
    group.add_argument(
        "--labels",
        metavar="A,B",
        type=declared,
        help="all labels there are; or open: new ones may appear at any time",
    )
    group.add_argument(
        "--label-warmup",
        metavar="N",
        type=int,
        help="labeled events after which the labels seen are all there are (1000)",
    )
    group.add_argument(
        "--max-classes", metavar="N", type=int, help="most labels, where none are declared (100)"
    )
    group.add_argument(
        "--positive",
        metavar="VALUE",
        type=config.value,
        action="append",
        help="the label's value that means true; all others mean false (may be repeated)",
    )
    group.add_argument("--weight", metavar="FIELD", help="the field of the event's weight")
    group.add_argument("--id", metavar="FIELD", help="the field of the event's id")
    group.add_argument("--include", metavar="A,B", type=listed, help="the features' fields; all")
    group.add_argument("--exclude", metavar="A,B", type=listed, help="fields that are no features")
    group.add_argument(
        "--interact",
        metavar="A,B",
        type=listed,
        action="append",
        help="fields that make features together (may be repeated)",
    )
    group.add_argument(
        "--delimiter", metavar="SIGN", type=sign, help=r"between the values, such as ; or \t (csv)"
    )
    group.add_argument(
        "--columns", metavar="A,B", type=listed, help="the columns of a file without a header (csv)"
    )
    group.add_argument(
        "--text",
        metavar="A,B",
        type=listed,
        help="all columns of text, where the first lines do not show which they are (csv)",
    )
    group.add_argument(
        "--on-bad",
        choices=["refuse", "skip"],
        default="refuse",
        help="lines that cannot be read end the command (refuse), or are counted and left out",
    )


def sign(text: str) -> str:
    """What stands between values; a tab as people type it."""
    return "\t" if text == "\\t" else text


def listed(text: str) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]


def declared(text: str) -> Any:
    """Labels with commas between, or open.

    >>> declared("0,1,maybe"), declared("open")
    ([0, 1, 'maybe'], 'open')
    """
    return text if text == OPEN else [config.value(name) for name in listed(text)]


def feature_arguments(parser: argparse.ArgumentParser) -> None:
    """How names become slots."""
    group = parser.add_argument_group("features")
    group.add_argument(
        "--hash", metavar="BITS", type=int, help="2^BITS slots by hash, instead of exact names"
    )
    group.add_argument("--max-names", metavar="N", type=int, help="most exact names")


def learner_arguments(parser: argparse.ArgumentParser) -> None:
    """What is learned."""
    group = parser.add_argument_group("model")
    group.add_argument("--model", metavar="CALL", help='a preset, "PegasosClassifier(l2=1e-4)"')
    group.add_argument(
        "--rule", metavar="CALL", help='"DualAveraging(gamma=5.0)"; the default needs no tuning'
    )
    group.add_argument("--loss", metavar="CALL", help='"Hinge()"; logistic, or squared')
    group.add_argument("--penalty", metavar="CALL", help='"L1(1e-3)"; none')
    group.add_argument("--regression", action="store_true", help="labels are numbers, no classes")
    group.add_argument(
        "--average", choices=["last", "uniform", "tail", "random"], help="which weights predict"
    )
    group.add_argument("--batch", metavar="N", type=int, help="events that make one step (1)")
    group.add_argument("--seed", metavar="N", type=int, help="for --average random")


def settings(
    options: Options, learners: list[dict[str, Any]], kept: dict[str, Any] | None = None
) -> config.Config:
    """The configuration that the options mean; `kept` are values that they stand before."""
    given = {
        "format.kind": options.format or guess(options.files, (kept or {}).get("format.kind")),
        "format.label": options.label,
        "format.labels": options.labels,
        "format.label_warmup": options.label_warmup,
        "format.max_classes": options.max_classes,
        "format.positive": options.positive,
        "format.weight": options.weight,
        "format.id": options.id,
        "format.include": options.include,
        "format.exclude": options.exclude,
        "format.interactions": options.interact,
        "format.delimiter": options.delimiter,
        "format.columns": options.columns,
        "format.text": options.text,
        "learner": learners or None,
    }
    if getattr(options, "hash", None) is not None:
        given |= {"features.kind": "hashing", "features.bits": options.hash}
    given["features.max_names"] = getattr(options, "max_names", None)
    if "-" in options.files and len(options.files) > 1:
        raise ValueError("standard input (-) is read alone, without files beside it")
    if given["format.delimiter"] is None and all(".tsv" in name for name in options.files):
        given["format.delimiter"] = "\t"
    said = {key: value for key, value in given.items() if value is not None}
    # what the model left out of its features may now be named as the id
    roles = {options.label, options.weight, options.id}
    kept = {
        key: [name for name in value if name not in roles] if key == "format.exclude" else value
        for key, value in (kept or {}).items()
    }
    said["features.max_bytes"] = 0  # a daemon's bound; here it is what the library learns
    source: dict[str, Any] = {"kind": "file", "paths": options.files}
    if options.files == ["-"]:
        source = {"kind": "stdin"}
    try:
        found = config.parse("", "", {**kept, **said, "source": source}, environ={})
    except ConfigError as error:
        raise ValueError(renamed(error, kept.keys() - said.keys())) from None
    there(options.files)
    return found


def renamed(error: ConfigError, kept: AbstractSet[str]) -> str:
    """Problems of a configuration, as problems of options; those `kept` are the model's."""
    lines = []
    for path, text in error.problems:
        key = next((key for key in OPTIONS if path == key or path.startswith(f"{key}[")), path)
        whose = " of the model's training" if key in kept else ""
        lines.append(f"{OPTIONS.get(key, key)}{whose}: {text}")
    return "; ".join(lines)


def learner(options: Options) -> dict[str, Any]:
    """The table of the learner that the options describe."""
    given = {
        "name": "model",
        "task": "regression" if options.regression else None,
        "model": options.model,
        "rule": options.rule,
        "loss": options.loss,
        "penalty": options.penalty,
        "average": options.average,
        "batch": options.batch,
        "seed": options.seed,
    }
    return {key: value for key, value in given.items() if value is not None}


def learners(text: str, *, regression: bool) -> list[dict[str, Any]]:
    """The tables of learners that are called one after the other, with commas between."""
    task = "regression" if regression else "classification"
    tables = []
    for i, call in enumerate(split(text)):
        name, _, _ = call.partition("(")
        preset = name in known(config.KINDS[task])
        tables.append(
            {"name": f"{i + 1}-{name}", "task": task, "model" if preset else "rule": call}
        )
    return tables


def there(files: list[str]) -> None:
    """ValueError unless all these are files."""
    for name in files:
        path = Path(name)
        if name == "-":
            continue
        if not path.exists():
            if not glob.glob(name, recursive=True):  # noqa: PTH207 - Path's take no absolute pattern
                what = "no file matches" if glob.has_magic(name) else "there is no file"
                raise ValueError(f"{what} {name}")
        elif path.is_dir():
            raise ValueError(f"{name} is a directory: give the files in it, '{name.rstrip('/')}/*'")
        elif not path.is_file():
            # of a pipe that has a name the first bytes would be read twice
            raise ValueError(f"{name} is no regular file; for a pipe give - and redirect it")


def writable(path: str, option: str, files: list[str]) -> None:
    """ValueError unless a file can be written there: before hours of work, not after them.

    Nor may it be one of those that are read.
    """
    where = Path(path)
    refuse_read(path, option, files)
    if where.is_symlink():  # what it points to is written
        with contextlib.suppress(RuntimeError):  # which is that of a circle, before Python 3.13
            where = where.resolve()
        if where.is_symlink():
            raise ValueError(f"{option}: {path} is a link that leads to itself: remove it")
    if where.is_dir():
        raise ValueError(f"{option}: {path} is a directory: give the name of a file")
    if not where.parent.is_dir():
        raise ValueError(f"{option}: there is no directory {where.parent}: make it first")
    # a file is written beside and renamed; a device or a pipe stays what it is
    place = where if where.exists() and not where.is_file() else where.parent
    if not os.access(place, os.W_OK):
        raise ValueError(f"{option}: {place} cannot be written to")


def refuse_read(path: str, option: str, files: list[str]) -> None:
    """ValueError if a file that is written is one of those read, or will be by a glob's name."""
    where = Path(path)
    for name in matching(files):
        if where.exists() and Path(name).exists() and where.samefile(name):
            raise ValueError(f"{option}: {path} is read here, and would be lost: give another name")
    for pattern in filter(glob.has_magic, files):
        if named_by(pattern, where):
            raise ValueError(
                f"{option}: {path} is a name that {pattern} reads: give another name or directory"
            )


def named_by(pattern: str, path: Path) -> bool:
    """Whether a glob names this path, which need not be there yet.

    >>> named_by("day/*.jsonl", Path("day/out.jsonl")), named_by("*.jsonl", Path("day/out.jsonl"))
    (True, False)
    >>> named_by("**/*.jsonl", Path("day/out.jsonl"))
    True
    """
    wanted, given = Path(os.path.abspath(pattern)), Path(os.path.abspath(path))  # noqa: PTH100 - resolve() follows links
    if "**" in wanted.parts:
        return fnmatch.fnmatchcase(str(given), str(wanted))
    return len(wanted.parts) == len(given.parts) and all(
        fnmatch.fnmatchcase(one, other)
        for one, other in zip(given.parts, wanted.parts, strict=True)
    )


def no_labels(decoder: Decoder, events: int, options: Options) -> str:
    """What to say of so many events, none of which has a label."""
    found = about(decoder)
    if found["field"] is None:
        return (
            f"not one of {events:,} lines has a label, so nothing was learned: lines begin with "
            "theirs"
        )
    if found["field"] in decoder.field_names():
        return (
            f"none of {events:,} events has a value in the field {found['field']!r}, so nothing "
            "was learned: fill it in, or name another field with --label FIELD"
        )
    whose = "" if options.label is not None else ", where the model had its labels"
    near = f" (nearest: {', '.join(found['nearest'])})" if "nearest" in found else ""
    return (
        f"none of {events:,} events has a label in the field {found['field']!r}{whose}: "
        f"name the field of the label with --label FIELD{near}"
    )


def refuse_nothing(
    settings: config.Config, events: int, learned: int, decoder: Decoder, options: Options
) -> None:
    """ValueError if there was no event, or not one with a label."""
    if learned:
        return
    if not events:
        source = settings.source
        where = (
            ", ".join(source.paths) if isinstance(source, config.FileSourceConfig) else "the input"
        )
        raise ValueError(f"{where}: not one event was found, so nothing was learned")
    raise ValueError(no_labels(decoder, events, options))


def matching(files: list[str]) -> list[str]:
    """The files that names and globs stand for; a name that matches nothing for itself."""
    # Path's take no absolute pattern
    found = {name: sorted(glob.glob(name, recursive=True)) for name in files}  # noqa: PTH207
    return [path for name in files for path in (found[name] or [name])]


def guess(files: list[str], otherwise: str | None = None) -> str:
    """The format that the names of the files say."""
    kinds = {kind_of(name) for name in matching(files)}
    if otherwise is not None and kinds == {None}:
        return otherwise
    if len(kinds) > 1 or None in kinds:
        there([name for name in files if Path(name).is_dir()])
        raise ValueError(
            f"what {', '.join(files)} holds does not follow from its name; "
            f"say --format {'|'.join(sorted(SUFFIXES))}"
        )
    (kind,) = kinds
    return str(kind)


def kind_of(name: str) -> str | None:
    """The format of one file; None: its name does not say.

    >>> kind_of("data/clicks.jsonl.gz"), kind_of("a9a")
    ('json', None)
    """
    name = name.lower()
    for suffix in PACKED:
        name = name.removesuffix(suffix)
    found = [kind for kind, ends in SUFFIXES.items() if name.endswith(ends)]
    return found[0] if found else None
