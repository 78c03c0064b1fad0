"""Find the best fixed model of files, in shards on this machine or on a Ray cluster."""

from __future__ import annotations

import dataclasses
import shlex
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

import streamlearn
from streamlearn import config
from streamlearn.cli.decoded_batches import report_positive
from streamlearn.cli.guessing import understand, with_delimiter
from streamlearn.cli.parsing import INTERRUPTED
from streamlearn.cli.seen_fields import report_declared
from streamlearn.cli.sharding import Opening, chosen_host, divided, refuse_standard_input
from streamlearn.cli.tables import counted, show_facts, show_json
from streamlearn.config import arguments, effective, expressions
from streamlearn.config.files import require_writable
from streamlearn.core.nearest import nearest
from streamlearn.daemon import build
from streamlearn.estimators.fixed import fixed_model
from streamlearn.features.fields import Ignore
from streamlearn.hindsight import METHODS
from streamlearn.hindsight.sharded.problem import load_shards
from streamlearn.hindsight.solve import solve_problem
from streamlearn.hindsight.structured.multivariate.loss import MultivariateLoss
from streamlearn.losses import Logistic, Squared
from streamlearn.losses.loss import AnyLoss
from streamlearn.penalties import L1, L2, ElasticNet
from streamlearn.stream import CSVDecoder
from streamlearn.stream.formats.label_set import LabelSet
from streamlearn.stream.sources.parts import SourcePart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.cli.guessing import Guesses
    from streamlearn.cli.parsing import Options
    from streamlearn.features import Reader
    from streamlearn.hindsight import Solution, Step
    from streamlearn.hindsight.sharded.agreement import Survey
    from streamlearn.hindsight.sharded.problem import LoadedShards
    from streamlearn.penalties import Penalty
    from streamlearn.stream import Decoder

COLUMNS = "{:>9} {:>16} {:>16} {:>10} {:>9}"
HEADER = COLUMNS.format("iteration", "objective", "lower bound", "gap", "seconds")
FACTOR = 0.5  # by which the gap falls from line to line
PAUSE = 10.0  # seconds after which a line is printed anyway


def run(options: Options) -> int:
    """Solve, print the progress, and save the model."""
    refuse_standard_input(options)
    if options.method not in {"auto", *METHODS}:
        raise ValueError(f"--method: {nearest(options.method, ['auto', *METHODS])}")
    if options.save is not None:
        require_writable(options.save, "--save", options.files)
    guesses = guessed(options)
    loss = chosen_loss(options, regression=options.regression or guesses.regression)
    settings = with_group(open_labels(guesses.settings), loss, options)
    with ExitStack() as stack:
        host, count = chosen_host(options, stack)
        grouped = options.group is not None
        if is_of_all_rows(loss) and not grouped:
            count = options.shards or 1
        shards = divided(Opening(settings), options, count, grouped=grouped)
        begun = time.perf_counter()
        intercept = has_intercept(loss, options)
        loaded = load_shards(shards, loss, penalty(options), host, fit_intercept=intercept)
        monitor = Monitor(time.perf_counter() - begun, options.seconds, quiet=options.json)
        report_rows(loaded.surveys, options)
        if not options.json:
            rows, features = loaded.rows, loaded.problem.features
            sys.stdout.write(f"{counted(rows, 'row')}, {counted(features, 'feature')}\n")
            sys.stdout.write(f"{HEADER}\n")
        solution = solve_problem(
            loaded.problem,
            method=options.method,
            gap=options.gap,
            max_iter=None,
            start=None,
            callback=monitor.add,
        )
    monitor.finish(solution)
    solution = ordered(solution, settings, loss)
    facts = {**summary(loaded, solution, monitor), "shards": len(shards)}
    reader = config.feature_reader(settings.features)
    restore_names(reader, loaded)
    if options.save is not None:
        save(options, settings, loaded, reader, solution)
        facts["saved"] = options.save
    if options.json:
        history = [step._asdict() | {"gap": step.gap} for step in solution.history]
        show_json({**facts, "history": history})
    else:
        shown = {name: value for name, value in facts.items() if value != []}  # no labels
        show_facts(shown, before="\n")
    seen = [value for one in loaded.surveys for value in one.positive_seen]
    report_positive("solve", settings, seen)
    report_declared("solve", reader, options)
    if options.save is not None and isinstance(loss, MultivariateLoss) and not solution.labels:
        sys.stderr.write(
            f"streamlearn solve: the score of {options.save} is for ranking; `streamlearn test` "
            "compares it with the labels, as a regression, and does not measure the ranking\n"
        )
    if solution.interrupted:
        why = "the time limit" if monitor.spent else "interrupted"
        sys.stderr.write(f"streamlearn solve: {why}; this is the best solution so far\n")
    return INTERRUPTED if solution.interrupted and not monitor.spent else 0


def report_rows(surveys: Sequence[Survey], options: Options) -> None:
    """Print what may be wrong with the rows."""
    for survey in surveys:
        for line in survey.examples:
            sys.stderr.write(f"invalid: {line}\n")
    if options.weight is not None and all(one.weight == one.rows for one in surveys):
        sys.stderr.write(
            f"streamlearn solve: all events weigh 1; the field {options.weight!r} (--weight) may "
            "be misspelled\n"
        )


def ordered(solution: Solution, settings: config.Config, loss: Any) -> Solution:
    """Return the solution for the declared order of two labels: the positive one is last."""
    declared = LabelSet(config.event_fields(settings.format)).order
    if getattr(loss, "kind", None) != "binary" or isinstance(loss, MultivariateLoss):
        return solution
    if len(declared) != 2 or solution.labels != declared[::-1]:
        return solution
    opposite = {"w": -solution.w, "intercept": -solution.intercept, "labels": declared}
    return dataclasses.replace(solution, **opposite)


def guessed(options: Options) -> Guesses:
    """Return the settings, with what the first rows show."""
    given = with_delimiter(arguments.settings(options, [arguments.task_table(options)]), options)
    source = SourcePart(build.source(given.source, given.format))
    guesses = understand(given, source, options)
    source.close()
    if guesses and not options.json:
        sys.stdout.write("\n".join([*guesses.lines(), "", ""]))
    return guesses


def chosen_loss(options: Options, *, regression: bool) -> Any:
    """Return the loss of --loss, or that of the task."""
    if options.loss is None:
        return Squared() if regression else Logistic()
    name = options.loss.partition("(")[0].strip()
    families = [expressions.known_classes(kind) for kind in (AnyLoss, MultivariateLoss)]
    if not any(name in family for family in families):
        hint = nearest(name, [one for family in families for one in family])
        raise ValueError(f"--loss: unknown {name!r}; {hint}")
    return expressions.parse(options.loss, AnyLoss if name in families[0] else MultivariateLoss)


def has_intercept(loss: Any, options: Options) -> bool:
    """Return whether the model has an intercept, which cannot change a ranking."""
    is_ranking = isinstance(loss, MultivariateLoss) and loss.takes_groups
    return not (options.no_intercept or is_ranking)


def with_group(settings: config.Config, loss: Any, options: Options) -> config.Config:
    """Return settings that read the group of each row as its id; the id stays no feature."""
    table, features = settings.format, settings.features
    if options.group is None:
        return settings
    if not isinstance(loss, MultivariateLoss) or not loss.takes_groups:
        raise ValueError(
            f"--group: {loss!r} has no groups; leave it out, or use --loss with one of "
            f"{', '.join(losses_of_groups())}"
        )
    if table.id is not None and table.id != options.group:
        features = replace(features, fields=features.fields | {table.id: str(Ignore())})
    return replace(settings, format=replace(table, id=options.group), features=features)


def is_of_all_rows(loss: Any) -> bool:
    """Return whether a loss is one of all rows together, unless they have groups."""
    return isinstance(loss, MultivariateLoss) and not loss.row_mean


def losses_of_groups() -> list[str]:
    """Return the names of the losses that are means over groups."""
    found = expressions.known_classes(MultivariateLoss)
    return [name for name, kind in found.items() if kind.takes_groups]


def penalty(options: Options) -> Penalty:
    """Return the penalty of --l1 and --l2."""
    if options.l1 and options.l2:
        return ElasticNet(options.l1, options.l2)
    if not options.l1 and not options.l2:
        raise ValueError(
            "--l2 or --l1 is missing: without a penalty the best model may be infinitely large; "
            "use --l2 1e-6"
        )
    return L1(options.l1) if options.l1 else L2(options.l2)


def open_labels(settings: config.Config) -> config.Config:
    """Return settings in which labels do not close: shards may see them in any order."""
    table = settings.format
    if table.labels or table.positive is not None:
        return settings
    return replace(settings, format=replace(table, labels=config.OPEN_LABELS))


@dataclass
class Monitor:
    """Prints the progress, and stops at the time limit."""

    loading: float
    limit: float
    quiet: bool
    spent: bool = False
    printed: list[Step] = field(default_factory=list)

    def add(self, step: Step) -> bool:
        """Print a step if enough has changed; return whether to stop."""
        last = self.printed[-1] if self.printed else None
        if last is None or step.gap <= FACTOR * last.gap or step.seconds - last.seconds >= PAUSE:
            self.print(step)
        self.spent = step.seconds > self.limit
        return self.spent

    def finish(self, solution: Solution) -> None:
        """Print the last step, unless it was."""
        if solution.history and (not self.printed or self.printed[-1] != solution.history[-1]):
            self.print(solution.history[-1])

    def print(self, step: Step) -> None:
        """Print a step."""
        self.printed.append(step)
        if not self.quiet:
            sys.stdout.write(
                COLUMNS.format(
                    step.iteration,
                    f"{step.objective:.10g}",
                    f"{step.lower_bound:.10g}",
                    f"{step.gap:.3g}",
                    f"{step.seconds:.2f}",
                )
                + "\n"
            )
            sys.stdout.flush()


def summary(loaded: LoadedShards, solution: Solution, monitor: Monitor) -> dict[str, Any]:
    """Return what is printed at the end."""
    loss, groups = loaded.problem.loss, [one.groups for one in loaded.surveys]
    ranked = isinstance(loss, MultivariateLoss) and loss.takes_groups
    return {
        "method": solution.method,
        "objective": solution.objective,
        "lower bound": solution.lower_bound,
        "gap": solution.gap,
        "non-zeros": int((solution.w != 0.0).sum()),
        "labels": solution.labels,
        "rows": loaded.rows,
        **({"groups": sum(1 if one is None else len(one) for one in groups)} if ranked else {}),
        "invalid": sum(one.invalid for one in loaded.surveys),
        "seconds to load": monitor.loading,
        "seconds to solve": solution.history[-1].seconds if solution.history else 0.0,
    }


def save(
    options: Options,
    settings: config.Config,
    loaded: LoadedShards,
    reader: Reader,
    solution: Solution,
) -> None:
    """Write the model, with how its events are read."""
    loss: Any = loaded.problem.loss
    if isinstance(loss, MultivariateLoss):
        loss = Squared()  # the model predicts the score by which rows are ranked
    model = fixed_model(loss, reader, solution.w, solution.intercept, solution.labels, loaded.rows)
    decoder = build.decoder(settings, reader, [model])
    for label in solution.labels:
        decoder.admit(label)
    command = shlex.join(["streamlearn", *options.command_line])
    model.save(
        options.save,
        notes={
            "made by": f"{command} (streamlearn {streamlearn.__version__})",
            "format": {
                f"format.{key}": item for key, item in effective.plain(settings.format).items()
            },
            "decoder": decoder_state(decoder, loaded),
        },
    )


def restore_names(reader: Reader, loaded: LoadedShards) -> None:
    """Give a new reader the names of all columns, and the boundaries of buckets."""
    for survey in loaded.surveys:
        reader.restore_frozen(dict(survey.buckets))
    if loaded.names is not None:
        reader.restore(
            {**reader.state(), "columns": 0, "names": [as_lists(one) for one in loaded.names]}
        )


def as_lists(name: Any) -> Any:
    """Return a name as a reader's state has it."""
    return [as_lists(part) for part in name] if isinstance(name, tuple) else name


def decoder_state(decoder: Decoder, loaded: LoadedShards) -> dict[str, Any]:
    """Return the state of a decoder that has read the shards."""
    if isinstance(decoder, CSVDecoder):
        decoder.set_types(dict(next(one.types for one in loaded.surveys if one.rows)))
    return decoder.state()
