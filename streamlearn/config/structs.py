"""What a configuration file may say: a struct a table, a field a key.

The description of each field is what the configuration reference prints. Defaults are here and
nowhere else. What no type can say (which keys exclude each other) is in `checks`.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

from streamlearn.config.secret import Secret

Label: TypeAlias = str | int | float | bool


def about(description: str, **limits: Any) -> Meta:
    """What a key means, and the limits of its value."""
    return Meta(description=description, **limits)


Batch: TypeAlias = Annotated[int, about("most records in one batch", ge=1, le=1_000_000)]
Count: TypeAlias = Annotated[int, Meta(ge=1)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
OPEN = "open"  # labels that may appear at any time
Seed: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class SecurityConfig(Section, frozen=True):
    """How to prove to the brokers who we are, and they to us."""

    protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] | None,
        about("as in Kafka's clients; what the rest asks for if nothing is said"),
    ] = None
    mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None,
        about("how to log in, with SASL"),
    ] = None
    username: Annotated[str | None, about("for PLAIN and SCRAM")] = None
    password: Annotated[Secret | None, about("for PLAIN and SCRAM")] = None
    cafile: Annotated[str | None, about("file of the authority that signed the brokers")] = None
    certfile: Annotated[str | None, about("file of our own certificate")] = None
    keyfile: Annotated[str | None, about("file of our own key")] = None
    token_provider: Annotated[
        str | None, about("for OAUTHBEARER: module:callable that returns a token")
    ] = None


class KafkaSourceConfig(Section, frozen=True, tag_field="kind", tag="kafka"):
    """Records of Kafka's topics."""

    bootstrap: Annotated[str, about("host:port of brokers, separated by commas", min_length=1)]
    topics: Annotated[tuple[str, ...], about("topics by name")] = ()
    pattern: Annotated[str | None, about("or all whose whole name this regex matches")] = None
    group_id: Annotated[str, about("under what name to commit for lag tools")] = "streamlearn"
    client: Annotated[
        Literal["kafka-python", "confluent"], about("confluent needs the extra `fast`")
    ] = "kafka-python"
    start: Annotated[
        str,
        about('where to begin without a checkpoint: "earliest", "latest" or a time in ISO 8601'),
    ] = "earliest"
    isolation: Annotated[
        Literal["read_committed", "read_uncommitted"],
        about("whether to see records of aborted transactions"),
    ] = "read_committed"
    order: Annotated[
        Literal["even", "time"], about("how a backlog is drained: partitions evenly, or by time")
    ] = "even"
    fetch_bytes: Annotated[
        int, about("bytes fetched ahead, all partitions together", ge=65_536)
    ] = 64 << 20
    on_gap: Annotated[
        Literal["stop", "continue"],
        about("records lost to retention: stop, or go on and count them"),
    ] = "stop"
    batch: Batch = 2000
    security: Annotated[SecurityConfig, about("encryption and login")] = SecurityConfig()


class FileSourceConfig(Section, frozen=True, tag_field="kind", tag="file"):
    """Lines of files; .gz and .zst are unpacked."""

    paths: Annotated[tuple[str, ...], about("files, or globs of them, read in order", min_length=1)]
    follow: Annotated[
        bool, about("wait at the end of the last file, and of all files of globs, for more")
    ] = False
    batch: Batch = 2000


class StdinSourceConfig(Section, frozen=True, tag_field="kind", tag="stdin"):
    """Lines of standard input; its end is that of the run."""

    batch: Batch = 2000


class SyntheticSourceConfig(Section, frozen=True, tag_field="kind", tag="synthetic"):
    """Events made up here, as JSON, with a sparse truth planted in them."""

    stream: Annotated[
        Literal["clicks", "spending", "spam", "delayed"],
        about(
            "what is made: clicks or none, how much is spent (a regression), mails, or impressions "
            "whose clicks come late (needs `events` and [labels])"
        ),
    ] = "clicks"
    events: Annotated[Count | None, about("how many; without end if nothing is said")] = None
    seed: Annotated[Seed, about("another seed, another truth")] = 0
    drift: Annotated[bool, about("whether the truth changes half way (needs `events`)")] = False
    rate: Annotated[
        Positive | None, about("events a second; as fast as they can be learned if not said")
    ] = None
    batch: Batch = 2000


Source: TypeAlias = KafkaSourceConfig | FileSourceConfig | StdinSourceConfig | SyntheticSourceConfig


class FormatConfig(Section, frozen=True):
    """How bytes become events.

    CSV is UTF-8, read as Python's `csv.reader` reads it with `strict=True`:

    - A value that begins with a quote ends at the next quote that is not doubled, and may hold
      delimiters and line breaks. A quote elsewhere in a value stands for itself.
    - A line break outside quotes, LF or CRLF, ends a row. A row with line breaks inside quotes is
      shorter than 1 MiB. Where a quote is not closed within that, or before the end of the data, or
      text follows the quote that closes a value, the row's first line is one invalid record, and
      reading resumes at the next line. A quote that is open at the end of a followed file waits for
      more. A record of Kafka is one row.
    - The first row is the header, unless `columns` names the columns. A row of the same names, in
      any order, is a header again. Names are trimmed; a name that appears twice is an error.
    - A row with fewer or more values than there are columns is an invalid record. Blank lines and a
      byte-order mark are skipped.
    - Empty values and `NA`, `N/A`, `NaN`, `null`, `None` and `?`, in any case, are missing: the
      event does not have the field.
    """

    kind: Annotated[
        str, about('"json", "svmlight", "vw", "csv", or module:callable of your own')
    ] = "json"
    label: Annotated[str | None, about("the field that holds the label (json, csv)")] = None
    labels: Annotated[
        Literal["open"] | tuple[Label, ...],
        about(
            "all labels there are; a record with another one is invalid. Not declared: those of "
            'the first events (`label_warmup`). "open": new ones may appear at any time'
        ),
    ] = ()
    label_warmup: Annotated[
        int,
        about(
            "labeled events after which no new label is learned, if two were seen; a pair of "
            "booleans, of 0 and 1, or of -1 and 1 is complete by itself",
            ge=1,
        ),
    ] = 1000
    max_classes: Annotated[
        int, about("most labels where none are declared; each takes its own weights", ge=2)
    ] = 100
    positive: Annotated[
        Label | tuple[Label, ...] | None,
        about("the label's value, or values, that mean true; all others mean false"),
    ] = None
    weight: Annotated[str | None, about("the field that holds the event's weight")] = None
    id: Annotated[str | None, about("the field that names the event in predictions")] = None
    time: Annotated[str | None, about("the field with the event's time; ISO 8601, or a number")] = (
        None
    )
    time_unit: Annotated[
        Literal["s", "ms", "us", "ns"], about("what a number in it counts, since 1970")
    ] = "s"
    include: Annotated[
        tuple[str, ...] | None, about("the fields that are features; all if nothing is said")
    ] = None
    exclude: Annotated[tuple[str, ...], about("fields that are no features")] = ()
    interactions: Annotated[
        tuple[tuple[str, ...], ...], about("fields whose values make features together")
    ] = ()
    delimiter: Annotated[str, about("between the values (csv)", min_length=1, max_length=1)] = ","
    columns: Annotated[
        tuple[str, ...], about("names of the columns, where no header line has them (csv)")
    ] = ()
    text: Annotated[
        tuple[str, ...] | None,
        about(
            "all columns of text, the others are of numbers; guessed from the first 1000 records "
            "if not said, which are waited for (csv)"
        ),
    ] = None


class LabelsConfig(Section, frozen=True):
    """Labels that come later than their events, and are joined to them by an id."""

    topic: Annotated[
        str | None,
        about("the topic (or one of the files) that holds them; with the events if not said"),
    ] = None
    label: Annotated[
        str | None, about("the field of the label in their records; as in [format] if not said")
    ] = None
    id: Annotated[str | None, about("the field of the id there; as in [format] if not said")] = None
    time: Annotated[
        str | None, about("the field of the time there; as in [format] if not said")
    ] = None
    hold_events: Annotated[int, about("most events and labels that wait", ge=1, le=1 << 28)] = (
        1_000_000
    )
    hold_bytes: Annotated[
        int, about("most memory for those, and as much for `corrections`", ge=1 << 20, le=1 << 50)
    ] = 1 << 30
    hold_for: Annotated[
        Positive | None, about("seconds of the stream's time that each waits; no limit if not said")
    ] = None
    on_timeout: Annotated[
        Label, about('what an event was whose label did not come: a label, or "drop"')
    ] = "drop"
    corrections: Annotated[
        bool, about("learn a label after its time-out, and take back what that had taught")
    ] = False
    orphans: Annotated[
        bool, about("labels without their event become dead letters; else they are only counted")
    ] = False


class FeaturesConfig(Section, frozen=True):
    """How names become slots; all learners share them."""

    kind: Annotated[
        Literal["names", "hashing"], about("a slot for each name, or one of 2^bits by its hash")
    ] = "names"
    bits: Annotated[int, about("2^bits slots (hashing)", ge=1, le=30)] = 20
    max_names: Annotated[
        Annotated[int, Meta(ge=1, lt=1 << 31)] | None,
        about("most names; without limit if not said"),
    ] = None
    on_full: Annotated[
        Literal["hash", "ignore"], about("what becomes of new names when the table is full")
    ] = "hash"
    max_bytes: Annotated[
        int,
        about(
            "most memory for names: 100 bytes each beside their text; 0: no limit", ge=0, le=1 << 50
        ),
    ] = 256 << 20


class LearnerConfig(Section, frozen=True):
    """A model that learns from every event; rule, loss and penalty, or a preset as `model`."""

    name: Annotated[
        str,
        about(
            "its name in predictions, metrics and checkpoints",
            pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
        ),
    ]
    task: Annotated[Literal["classification", "regression"], about("what its labels are")] = (
        "classification"
    )
    model: Annotated[str | None, about('a preset: "PegasosClassifier(l2=1e-4)"')] = None
    rule: Annotated[str | None, about('"DualAveraging(gamma=5.0)"; the mixture if not said')] = None
    loss: Annotated[str | None, about('"Hinge()"; Logistic or Squared if nothing is said')] = None
    penalty: Annotated[str | None, about('"L1(1e-3)"; none if nothing is said')] = None
    average: Annotated[
        Literal["last", "uniform", "tail", "random"], about("which weights predict")
    ] = "last"
    batch: Annotated[int, about("events that make one step", ge=1)] = 1
    fit_intercept: Annotated[
        bool | Literal["penalized"], about("outside the penalty, none, or inside it")
    ] = True
    class_weight: Annotated[
        dict[str, Annotated[float, Meta(ge=0)]], about("factors on events by their label")
    ] = field(default_factory=dict)
    seed: Annotated[Seed | None, about('for average = "random"')] = None
    start: Annotated[str | None, about("a saved model to begin from, instead of the above")] = None


class BestConfig(Section, frozen=True):
    """Predictions from the learner that did best of late."""

    by: Annotated[Literal["log_loss", "error", "squared", "absolute"], about("what is compared")]
    window: Annotated[int, about("over how many labeled events", ge=1)] = 10_000
    hysteresis: Annotated[
        float, about("how much better another must be to be chosen, as a share", ge=0, lt=1)
    ] = 0.05


class PredictionsConfig(Section, frozen=True):
    """Where predictions go; nowhere if neither topic nor path is given."""

    topic: Annotated[str | None, about("a topic of the source's brokers")] = None
    path: Annotated[str | None, about('a file of JSON lines; "-" is standard output')] = None
    learner: Annotated[
        str | None, about('a learner\'s name, or "best"; the first if nothing is said')
    ] = None
    best: Annotated[BestConfig | None, about("how the best is found")] = None


class DeadLettersConfig(Section, frozen=True):
    """Where events go that cannot be read; they are only counted without topic and path."""

    topic: Annotated[str | None, about("a topic of the source's brokers")] = None
    path: Annotated[str | None, about("a file of JSON lines")] = None
    max_invalid_ratio: Annotated[
        float, about("stop when more than this share of records is invalid", gt=0, le=1)
    ] = 0.1
    window: Annotated[int, about("over how many events", ge=1)] = 10_000
    min_count: Annotated[int, about("and at least so many bad ones", ge=1)] = 100


class CheckpointConfig(Section, frozen=True):
    """Models, scores and positions on disk, as one; and who owns them."""

    path: Annotated[str, about("the directory", min_length=1)]
    every_events: Annotated[int, about("events between two checkpoints", ge=1)] = 1_000_000
    every_seconds: Annotated[float, about("seconds between two checkpoints", gt=0)] = 10.0
    keep: Annotated[int, about("how many are kept", ge=2)] = 2
    max_age_seconds: Annotated[float, about("stop when none could be written so long", gt=0)] = (
        300.0
    )
    lease_seconds: Annotated[float, about("an owner silent so long is replaced", ge=0.5)] = 10.0
    standby: Annotated[bool, about("wait while another daemon owns it; else refuse")] = True
    required: Annotated[bool, about("refuse to start where no checkpoint is; see --begin")] = False
    transactions: Annotated[
        bool, about("fence outputs to Kafka: brokers refuse what a replaced owner still sends")
    ] = True


class RegretConfig(Section, frozen=True):
    """Regret against the best fixed model in hindsight."""

    enabled: Annotated[bool, about("whether it is followed")] = True
    memory: Annotated[int, about("events remembered for the hindsight", ge=100)] = 10_000
    cpu_share: Annotated[float, about("of one core, for background work", gt=0, le=1)] = 0.1
    seed: Annotated[Seed, about("which events are remembered")] = 0


class TelemetryConfig(Section, frozen=True):
    """Metrics for Prometheus, and the live page."""

    enabled: Annotated[bool, about("whether to serve them")] = True
    host: Annotated[str, about("the address to listen at", min_length=1)] = "127.0.0.1"
    port: Annotated[int, about("the port; 0 takes a free one", ge=0, le=65_535)] = 9464
    page: Annotated[bool, about("whether to serve the live page")] = True
    token: Annotated[Secret | None, about("what readers must show, if given")] = None
    protect_metrics: Annotated[bool, about("whether /metrics asks for the token too")] = False
    show_invalid_records: Annotated[
        bool, about("whether the page shows what bad events hold, which may be private")
    ] = False


class LogConfig(Section, frozen=True):
    """What the daemon says on standard error."""

    format: Annotated[Literal["console", "json"], about("for people, or for machines")] = "console"
    level: Annotated[
        Literal["debug", "info", "warning", "error"], about("the least that is said")
    ] = "info"


class RunConfig(Section, frozen=True):
    """When the daemon ends by itself."""

    until: Annotated[
        str | None,
        about(
            '"end", a number of events, or a time in ISO 8601; if not set, never, but at the end '
            "of standard input"
        ),
    ] = None
    watchdog_seconds: Annotated[float, about("a loop silent so long is ended", gt=0)] = 60.0
    shutdown_seconds: Annotated[float, about("most that a shutdown takes", gt=0)] = 10.0


class Config(Section, frozen=True):
    """A configuration file."""

    source: Annotated[Source, about("where events come from")]
    format: Annotated[FormatConfig, about("how bytes become events")] = FormatConfig()
    labels: Annotated[LabelsConfig | None, about("labels that come later than their events")] = None
    features: Annotated[FeaturesConfig, about("how names become slots")] = FeaturesConfig()
    learners: Annotated[tuple[LearnerConfig, ...], about("the models, one [[learner]] each")] = (
        field(default=(), name="learner")
    )
    predictions: Annotated[PredictionsConfig, about("where predictions go")] = PredictionsConfig()
    dead_letters: Annotated[DeadLettersConfig, about("where unreadable events go")] = (
        DeadLettersConfig()
    )
    checkpoint: Annotated[CheckpointConfig | None, about("where models and positions are kept")] = (
        None
    )
    regret: Annotated[RegretConfig, about("regret against the hindsight")] = RegretConfig()
    telemetry: Annotated[TelemetryConfig, about("metrics and the live page")] = TelemetryConfig()
    log: Annotated[LogConfig, about("what is said")] = LogConfig()
    run: Annotated[RunConfig, about("when to end")] = RunConfig()


def milliseconds(text: str) -> int:
    """A time of ISO 8601 in milliseconds since 1970; without a zone it is UTC.

    >>> milliseconds("2026-01-31T00:00:00Z")
    1769817600000
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time such as 2026-01-31T00:00:00Z") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return round(time.timestamp() * 1000)
