"""Guess what the fields of files are, show it as configuration, and report what contradicted it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from streamlearn import config
from streamlearn.config import effective
from streamlearn.core import formats
from streamlearn.daemon import build
from streamlearn.features.fields import Ignore, Number
from streamlearn.features.fields.spec import OTHERS
from streamlearn.guesses import (
    ROWS,
    Guess,
    TableSample,
    are_numbers,
    classes_beside_strays,
    guess_delimiter,
    guess_fields,
    last_new_class,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamlearn.cli.parsing import Options
    from streamlearn.cli.progress import Bar
    from streamlearn.stream.sources.parts import SourcePart

WIDEST = 48  # characters of a declaration before its comment
MOST_LINES = 100  # fields that are shown; --json shows all
SAYS_TASK = (  # options that say whether labels are classes or numbers
    "regression", "model", "loss", "labels", "label_warmup", "max_classes", "positive",
    "class_weight", "calibrated", "kept",
)  # fmt: skip


@dataclass
class Guesses:
    """What was guessed, and the configuration with it."""

    settings: config.Config
    fields: dict[str, Guess] = field(default_factory=dict)  # those that are not declared
    rows: int = 0  # looked at
    table: dict[str, str] = field(default_factory=dict)  # keys of [format] that were guessed
    regression: bool = False

    def __bool__(self) -> bool:
        return bool(self.fields or self.regression or self.table)

    def facts(self) -> dict[str, dict[str, str]]:
        """Return kind and reason of each field."""
        return {
            name: {"kind": text, "why": self.reason(name)}
            for name, text in self.settings.features.fields.items()
        }

    def reason(self, name: str) -> str:
        """Return why a field is what it is."""
        return self.fields[name].reason if name in self.fields else "declared"

    def show(self, bar: Bar) -> None:
        """Print what was guessed, if anything."""
        for line in [*self.lines(), ""] if self and not bar.quiet else ():
            bar.print(line)

    def lines(self) -> Iterator[str]:
        """Yield configuration with the reasons as comments."""
        yield f"# guessed from the first {self.rows:,} rows"
        yield "# --field NAME=KIND overrules a guess, --no-guess turns all off"
        if self.table:
            yield "[format]"
            yield from (f"{key} = {effective.toml(value)}" for key, value in self.table.items())
            yield ""
        yield "[features.fields]"
        fields = list(self.settings.features.fields.items())
        texts = {name: f"{effective.key(name)} = {effective.toml(text)}" for name, text in fields}
        shown = dict(list(texts.items())[:MOST_LINES])
        width = min(max([0, *map(len, shown.values())]), WIDEST)
        for name, text in shown.items():
            yield f"{text:<{width}}  # {self.reason(name)}"
        if len(fields) > MOST_LINES:
            yield f"# and {len(fields) - MOST_LINES:,} more fields; --json prints all"
        if self.regression:
            label = self.settings.format.label
            yield from ("", "[[learner]]", f'task = "regression"  # {label} has numbers')

    def contradictions(self, dropped: Mapping[str, int]) -> Iterator[str]:
        """Yield which values did not fit; `dropped` counts them by field."""
        for name, count in dropped.items():
            if name not in self.fields:
                continue
            is_number = isinstance(self.fields[name].field, Number)
            became = "became categories" if is_number else "counted as missing"
            yield (
                f"field {name!r}: {count:,} values were not as guessed, and {became}; if they"
                f" matter, use --field {name}=KIND"
            )


def with_delimiter(settings: config.Config, options: Options) -> config.Config:
    """Return the settings with the delimiter that the first line of a CSV file shows."""
    table = settings.format
    if not options.guess or table.kind != "csv" or table.delimiter != "," or options.delimiter:
        return settings
    if options.files == ["-"]:  # which can be read only once
        return settings
    source = build.source(settings.source)
    source.open({}, None)
    try:
        polled = source.poll(0.0)
    finally:
        source.close()
    header = polled[0].values[0] if polled else None
    if header is None:
        return settings
    return replace(settings, format=replace(table, delimiter=guess_delimiter(header, table.label)))


def understand(given: config.Config, source: SourcePart, options: Options) -> Guesses:
    """Guess what is not given, from the first rows of the source."""
    settings = given
    table, features = settings.format, settings.features
    if (
        not options.guess
        or table.kind not in formats.names(names_fields=True, has_schemas=False)
        or OTHERS in features.fields
    ):
        return Guesses(settings)
    roles = config.event_fields(table)
    try:
        records = source.first(ROWS)
    except BaseException:
        source.close()
        raise
    may_have_commas = table.kind == "csv" and table.delimiter != "," and options.decimal is None
    sample = TableSample(
        records,
        table.kind,
        roles,
        delimiter=table.delimiter,
        columns=table.columns,
        decimal=None if may_have_commas else table.decimal,
    )
    guesses = guess_fields(sample.columns, typed=table.kind != "csv")
    guesses |= {name: Guess(Ignore(), kind) for name, kind in source.meaningless().items()}
    fields = {
        name: guess for name, guess in guesses.items() if not is_declared(name, features.fields)
    }
    texts = {name: str(guess.field) for name, guess in fields.items()} | features.fields
    order = [column.name for column in sample.columns if column.name in texts]
    ordered = {name: texts[name] for name in [*order, *texts]}
    (learner,) = settings.learners
    regression = not says_task(options) and are_numbers(sample.labels)
    settings = replace(
        settings,
        format=replace(with_classes(table, sample, options), decimal=sample.decimal),
        features=replace(features, fields=ordered),
        learners=(replace(learner, task="regression") if regression else learner,),
    )
    found = {"delimiter": (table.delimiter, ","), "decimal": (sample.decimal, ".")}
    of_table = {
        key: value
        for key, (value, default) in found.items()
        if value not in {default, getattr(options, key)}
    }
    return Guesses(settings, fields, sample.rows, of_table, regression)


def with_classes(
    table: config.FormatConfig, sample: TableSample, options: Options
) -> config.FormatConfig:
    """Return the format in which all classes of the sample are known before labels close.

    Labels that occur once beside two classes are not valid.
    """
    if options.label_warmup is not None or table.labels or table.positive is not None:
        return table
    numbers = are_numbers(sample.labels) or any(
        getattr(options, name, None) for name in ("regression", "model", "loss")
    )
    classes = [] if numbers else classes_beside_strays(sample.labels)
    if classes:
        return replace(table, labels=tuple(classes))
    return replace(table, label_warmup=max(table.label_warmup, last_new_class(sample.labels)))


def is_declared(name: str, fields: Mapping[str, str]) -> bool:
    """Return whether a field, or one that it is in, is declared.

    >>> is_declared("user.id", {"user": "ignore"}), is_declared("users", {"user": "ignore"})
    (True, False)
    """
    parts = name.split(".")
    return any(".".join(parts[:n]) in fields for n in range(1, len(parts) + 1))


def says_task(options: Options) -> bool:
    """Return whether an option says what labels are."""
    return any(getattr(options, name, None) for name in SAYS_TASK)
