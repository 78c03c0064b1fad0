"""Compare learners on the same files, and with the best fixed model in hindsight."""

from __future__ import annotations

import math
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlearn import config, regret
from streamlearn.cli import chart
from streamlearn.cli.decoded_batches import (
    Pass,
    report_absent,
    report_positive,
    require_labels,
    spelling_hint,
)
from streamlearn.cli.guessing import understand, with_delimiter
from streamlearn.cli.parsing import INTERRUPTED
from streamlearn.cli.progress import Bar
from streamlearn.cli.progressive import ProgressiveCurve
from streamlearn.cli.seen_fields import report_declared
from streamlearn.cli.sharding import chosen_host, divided, opening_after, refuse_standard_input
from streamlearn.cli.tables import cell, show, show_json
from streamlearn.config import arguments, expressions
from streamlearn.config.expressions import known_classes, parse, split_calls
from streamlearn.config.files import require_writable
from streamlearn.core.nearest import nearest
from streamlearn.daemon import build
from streamlearn.errors import IncompatibleError
from streamlearn.losses.loss import AnyLoss
from streamlearn.penalties import Penalty
from streamlearn.regret.findings import MORE_TIME
from streamlearn.regret.tracker import sample_key
from streamlearn.rules import Rule
from streamlearn.stream.formats.csv import SAMPLE
from streamlearn.stream.sources.parts import SourcePart

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.cli.parsing import Options
    from streamlearn.cli.saved_models import Model
    from streamlearn.engine.events import Events
    from streamlearn.hindsight.sharded import Host
    from streamlearn.hindsight.sharded.files import FileShard

FIRST_POINT = SAMPLE  # events; column types are inferred from no fewer
SECONDS, SECONDS_OF_ALL = 5.0, 600.0  # for the last hindsight, on events in memory or on all
SHARE = 0.2  # of the former, for the hindsight of each point before the last


@dataclass
class Contender:
    """A learner and its curves."""

    name: str
    model: Model
    tracker: regret.Tracker
    loss: ProgressiveCurve = field(default_factory=ProgressiveCurve)
    measures: dict[str, ProgressiveCurve] = field(default_factory=dict)
    points: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def loss_name(self) -> str:
        """The loss; different losses are not comparable."""
        return expressions.unparse(self.model.objective.loss)

    @property
    def objective_name(self) -> str:
        """What the best fixed model minimizes; different regrets are not comparable."""
        task = self.tracker.ledger.task
        return f"{expressions.unparse(task.loss)} + {expressions.unparse(task.penalty)}"

    def learn(self, events: Events) -> None:
        """Learn a batch, and add its losses to the curves."""
        begun = time.perf_counter()
        values = self.model.progressive_events(events, ["loss", *self.measures]).measures
        self.seconds += time.perf_counter() - begun
        for name, curve in (("loss", self.loss), *self.measures.items()):
            for _ in curve.add(values[name], events.weights):
                pass

    def finish(self, seconds: float, *, again: bool = False) -> None:
        """Add the last point, unless it is there, or `again`."""
        if self.points and self.points[-1]["events"] == self.loss.events:
            if not again:
                return
            self.points.pop()
        self.add_point(seconds)

    def add_point(self, seconds: float) -> None:
        """Add a point here."""
        report = self.tracker.report(seconds)
        self.points.append(
            {
                "events": report.events,
                "loss": self.loss.end().loss,
                **{name.replace("_", " "): c.end().loss for name, c in self.measures.items()},
                "regret": report.regret,
                "regret low": report.regret_low,
                "regret high": report.regret_high,
                "regret stderr": None if report.regret is None else report.stderr,
                "certified": report.certified,
                "bound": report.bound,
                "non-zeros": self.model.nonzero,
                "hindsight's non-zeros": report.comparator_nonzero,
                "why unknown": report.why_unknown,
            }
        )


def run(options: Options) -> int:
    """Learn the files, and show the comparison."""
    require_outputs(options)
    on_all = bool(options.ray or options.shards)
    if on_all:
        refuse_standard_input(options)
    given = with_delimiter(arguments.settings(options, [arguments.task_table(options)]), options)
    source = SourcePart(build.source(given.source, given.format))
    guesses = understand(given, source, options)
    settings = guesses.settings
    shared = config.feature_reader(settings.features)
    entries: list[Contender] = []
    for name, made in models(options, settings.learners[0].task).items():
        model = made.clone({"features": shared})
        key = sample_key(model)
        alike = [one for one in entries if sample_key(one.model) == key]
        beside = alike[0].tracker if alike else None
        entries.append(entry(name, model, options, beside))
    decoder = build.decoder(settings, shared, [one.model for one in entries])
    with ExitStack() as stack:
        # a cluster that does not answer is an error before the pass, not after it
        host, count = chosen_host(options, stack) if on_all else (None, 0)
        bar = stack.enter_context(Bar("evaluating", quiet=options.json))
        batches = Pass(
            source,
            decoder,
            skip=options.on_invalid == "skip",
            on_batch=bar.update,
            first=FIRST_POINT,
            on_first=partial(guesses.show, bar),
        )
        limit = options.seconds or SECONDS
        last = Last(limit, SHARE * limit)
        if host is not None:
            last = LastOnAll(
                options.seconds or SECONDS_OF_ALL,
                SHARE * limit,
                host,
                lambda: divided(opening_after(settings, shared, decoder), options, count),
            )
        interrupted = not learn(batches, entries, last) or source.interrupted
    for line in batches.examples:
        sys.stderr.write(f"invalid: {line}\n")
    report_absent("evaluate", batches.absent, options)
    report_declared("evaluate", shared, options)
    if not options.labels and (hint := spelling_hint(decoder.labels.labels)):
        sys.stderr.write(f"streamlearn evaluate: {hint}\n")
    events = max(one.loss.events for one in entries)
    if not interrupted:
        require_labels(settings, batches.events, events, decoder, options)
        report_positive("evaluate", settings, decoder.labels.positive_seen)
        present(entries, options)
        return 0
    present_if_any(entries, options)
    return INTERRUPTED


def require_outputs(options: Options) -> None:
    """Raise ValueError unless --png and --html can be written."""
    for option in ("png", "html"):
        path = getattr(options, option)
        if path is not None:
            chart.require_matplotlib()
            require_writable(path, f"--{option}", options.files)
    if options.png is not None and options.png == options.html:
        raise ValueError(f"--html: {options.html} is already used for --png; use another name")


def present_if_any(entries: list[Contender], options: Options) -> None:
    """Show how far an interrupted comparison came."""
    events = any(one.loss.events for one in entries)
    if events or options.json:
        present(entries, options)
    what = "these are the results so far" if events else "nothing was learned"
    sys.stderr.write(f"streamlearn evaluate: interrupted; {what}\n")


@dataclass(frozen=True)
class Last:
    """The last point: its hindsight is solved on the events in memory.

    seconds, earlier: time limits of its hindsight, and of those of the points before it.
    """

    seconds: float
    earlier: float

    def add(self, entries: list[Contender]) -> None:
        """Add the last point of each learner."""
        for one in entries:
            one.finish(self.seconds)


@dataclass(frozen=True)
class LastOnAll(Last):
    """The last point: its hindsight is solved on all events, which are read again, in shards."""

    host: Host
    shards: Callable[[], list[FileShard]]  # once all events are learned

    def add(self, entries: list[Contender]) -> None:
        """Add the last point of each learner."""
        shards = self.shards()
        for one in entries:
            one.tracker.solve_all(shards, self.host, self.seconds)
        for one in entries:
            one.finish(self.seconds, again=True)


def learn(batches: Pass, entries: list[Contender], last: Last) -> bool:
    """Learn all batches and add the points; return False if interrupted."""
    try:
        for events in batches:
            for one in entries:
                one.learn(events)
            if batches.at_point:
                for one in entries:
                    one.add_point(last.earlier)
        last.add(entries)
    except KeyboardInterrupt:
        return False
    finally:
        batches.close()
        for one in entries:
            one.finish(0.0)
            one.tracker.close()
    return True


def models(options: Options, task: str) -> dict[str, Model]:
    """Return the models of --learners by their expressions."""
    kind = config.ESTIMATORS[task]
    given: dict[str, Any] = {
        name: parse(text, family)
        for name, text, family in (
            ("loss", options.loss, AnyLoss),
            ("penalty", options.penalty, Penalty),
        )
        if text is not None
    }
    found: dict[str, Model] = {}
    for text in split_calls(options.learners):
        name = text.partition("(")[0].strip()
        if text in found:
            raise ValueError(f"--learners: {text} appears twice")
        if text == "default":
            found[text] = kind()
        elif name in known_classes(Rule):
            try:
                found[text] = kind(parse(text, Rule), **given)
            except IncompatibleError as error:
                raise ValueError(f"--learners: {error}") from None
        elif name not in known_classes():
            hint = nearest(name, ["default", *known_classes(Rule), *known_classes(kind)])
            raise ValueError(f"--learners: unknown {name!r}; {hint}")
        else:
            found[text] = parse(text, kind)
    if not found:
        raise ValueError("--learners: expected at least one")
    if given and not any(text.partition("(")[0].strip() in known_classes(Rule) for text in found):
        raise ValueError(
            f"--{next(iter(given))} is for learners given as rules, such as AdaGrad; "
            "a preset has its own"
        )
    return found


def entry(name: str, model: Model, options: Options, beside: regret.Tracker | None) -> Contender:
    """Return a learner that shares the sample of events, if it can."""
    tracker = regret.Tracker(model, options.memory_bytes, 0, beside)
    others = {measure: ProgressiveCurve() for measure in model.score_measures if measure != "loss"}
    return Contender(name, model, tracker, measures=others)


def present(entries: list[Contender], options: Options) -> None:
    """Print the table, and write --png and --html."""
    rows = [row(one) for one in entries]
    curves = {one.name: one.points for one in entries}
    events = max(one.loss.events for one in entries)
    for_people = [shown(one) for one in rows]
    title = f"{', '.join(options.files)}: {events:,} events"
    figure = chart.draw(title, panels(entries)) if options.png or options.html else None
    if figure is not None and options.png:
        Path(options.png).write_bytes(chart.png(figure))
    if figure is not None and options.html:
        text = (
            "Losses are progressive: of each event before it was learned. Regret is the "
            "progressive objective minus that of the best fixed model in hindsight; the band "
            "is its bracket."
        )
        Path(options.html).write_text(chart.page(title, figure, for_people, text), encoding="utf-8")
    if options.json:
        show_json({"events": events, "learners": rows, "curves": curves})
        return
    show(for_people)
    for one in entries:
        reason = one.points[-1]["why unknown"]
        if reason is not None:
            remedy = " (--seconds)" if reason == MORE_TIME else ""
            sys.stdout.write(f"{one.name}: regret unknown: {reason}{remedy}\n")
    for path in (options.png, options.html):
        if path is not None:
            sys.stdout.write(f"written: {path}\n")


def row(one: Contender) -> dict[str, Any]:
    """Return the last point of a learner."""
    hidden = {"events", "certified", "why unknown", "hindsight's non-zeros"}
    found = {key: value for key, value in one.points[-1].items() if key not in hidden}
    kind = {"learner": one.name, "loss of": one.loss_name}
    return {**kind, **found, "us/event": 1e6 * one.seconds / max(one.loss.events, 1)}


def shown(found: dict[str, Any]) -> dict[str, Any]:
    """Return a row for people, with the regret and its bracket in one cell."""
    cells = {}
    for key, value in found.items():
        if key == "regret":
            cells["regret"] = bracket(value, found["regret low"], found["regret high"])
        elif key not in {"regret low", "regret high", "regret stderr"}:
            cells[key] = value
    return cells


def bracket(regret: float | None, low: float | None, high: float | None) -> str:
    """Return the regret with its bracket, or one number where all print the same.

    >>> bracket(3500.0, 3224.0, 3784.7), bracket(689.41, 689.41, 689.42), bracket(None, None, None)
    ('3500 (3224 .. 3785)', '689.4', 'unknown')
    """
    if regret is None:
        return "unknown"
    middle, *ends = cell(regret), cell(low), cell(high)
    return middle if middle == ends[0] == ends[1] else f"{middle} ({' .. '.join(ends)})"


def panels(entries: list[Contender]) -> list[chart.ChartPanel]:
    """Return the curves of loss, regret and non-zeros; only comparable ones share an axis."""

    def column(one: Contender, key: str) -> list[float]:
        return [math.nan if point[key] is None else point[key] for point in one.points]

    def curve(one: Contender, line: str | None, low: str = "", high: str = "") -> chart.Curve:
        sides = [column(one, key) if key else [] for key in (line, low, high)]
        return chart.Curve(one.name, column(one, "events"), *sides)

    losses = [
        chart.ChartPanel(f"progressive loss: {kind}", [curve(one, "loss") for one in alike])
        for kind, alike in grouped(entries, lambda one: one.loss_name)
    ]
    regrets = [
        chart.ChartPanel(
            f"regret bracket: {kind}",
            [curve(one, "regret", "regret low", "regret high") for one in alike],
        )
        for kind, alike in grouped(entries, lambda one: one.objective_name)
    ]
    counts = chart.ChartPanel("non-zero weights", [curve(one, "non-zeros") for one in entries])
    return [*losses, *regrets, counts]


def grouped(
    entries: list[Contender], kind: Callable[[Contender], str]
) -> list[tuple[str, list[Contender]]]:
    """Group comparable learners, in their order."""
    found: dict[str, list[Contender]] = {}
    for one in entries:
        found.setdefault(kind(one), []).append(one)
    return list(found.items())
