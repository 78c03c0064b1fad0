"""The schema of a configuration file: one struct per table, one field per key.

The configuration reference prints the description of each field. This module is the only place
where defaults are defined. Constraints between keys are in `checks`.
"""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

from streamlearn.config.secret import Secret

Label: TypeAlias = str | int | float | bool


def about(description: str, **limits: Any) -> Meta:
    """Describe a key and limit its values."""
    return Meta(description=description, **limits)


Batch: TypeAlias = Annotated[int, about("maximum records per batch", ge=1, le=1_000_000)]
Count: TypeAlias = Annotated[int, Meta(ge=1)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
OPEN_LABELS = "open"  # new labels may appear at any time
Seed: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class SecurityConfig(Section, frozen=True):
    """Encryption and authentication for Kafka."""

    protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] | None,
        about("Kafka's security.protocol; derived from the other keys if not set"),
    ] = None
    mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None,
        about("SASL mechanism"),
    ] = None
    username: Annotated[str | None, about("for PLAIN and SCRAM")] = None
    password: Annotated[Secret | None, about("for PLAIN and SCRAM")] = None
    cafile: Annotated[str | None, about("CA certificate file that verifies the brokers")] = None
    certfile: Annotated[str | None, about("client certificate file")] = None
    keyfile: Annotated[str | None, about("private key file of the client certificate")] = None
    token_provider: Annotated[
        str | None, about("for OAUTHBEARER: module:callable that returns a token")
    ] = None


class KafkaSourceConfig(Section, frozen=True, tag_field="kind", tag="kafka"):
    """Records from Kafka topics."""

    bootstrap: Annotated[str, about("bootstrap servers, host:port, comma-separated", min_length=1)]
    topics: Annotated[tuple[str, ...], about("topic names; set either this or `pattern`")] = ()
    pattern: Annotated[
        str | None, about("regular expression that must match a topic's whole name")
    ] = None
    group_id: Annotated[
        str, about("consumer group under which positions are committed, for lag tools only")
    ] = "streamlearn"
    client: Annotated[
        Literal["kafka-python", "confluent"],
        about("client library; confluent requires the extra `fast`"),
    ] = "kafka-python"
    start: Annotated[
        str,
        about('where to start without a checkpoint: "earliest", "latest" or an ISO 8601 time'),
    ] = "earliest"
    isolation: Annotated[
        Literal["read_committed", "read_uncommitted"],
        about("whether records of aborted transactions are skipped or read"),
    ] = "read_committed"
    order: Annotated[
        Literal["even", "time"],
        about("how a backlog is consumed: evenly across partitions, or by record time"),
    ] = "even"
    fetch_bytes: Annotated[
        int, about("maximum bytes prefetched, over all partitions", ge=65_536)
    ] = 64 << 20
    on_gap: Annotated[
        Literal["stop", "continue"],
        about("when retention has deleted unread records: stop, or count them and continue"),
    ] = "stop"
    batch: Batch = 2000
    security: Annotated[SecurityConfig, about("encryption and authentication")] = SecurityConfig()


class FileSourceConfig(Section, frozen=True, tag_field="kind", tag="file"):
    """Lines of files, records of Avro and Protobuf, or rows of Parquet and Arrow.

    .gz and .zst files are decompressed.
    """

    paths: Annotated[tuple[str, ...], about("files or globs, read in this order", min_length=1)]
    follow: Annotated[
        bool,
        about("keep reading the last file, and all files that match a glob, as they grow"),
    ] = False
    batch: Batch = 2000


class BackfillConfig(Section, frozen=True):
    """History to learn before a Kafka source; `format.time` tells what is history.

    Of the files, the events before `until` are learned; then, of the topics, those at or after it.
    """

    paths: Annotated[tuple[str, ...], about("files or globs, read in this order", min_length=1)]
    until: Annotated[str, about("where history ends and the stream begins: an ISO 8601 time")]
    overlap_seconds: Annotated[
        float,
        about("how long before `until` the topics are read from, by the times of records", ge=0),
    ] = 3600.0
    offsets: Annotated[
        dict[str, int],
        about('where to read the topics from instead, by partition, such as {"clicks:0" = 5000}'),
    ] = {}
    kind: Annotated[
        str | None,
        about("format of the files; if not set, by their name, else `format.kind`"),
    ] = None
    delimiter: Annotated[str, about("one-byte separator of the values of CSV")] = ","


class StdinSourceConfig(Section, frozen=True, tag_field="kind", tag="stdin"):
    """Lines of standard input; the daemon exits at its end."""

    batch: Batch = 2000


class SyntheticSourceConfig(Section, frozen=True, tag_field="kind", tag="synthetic"):
    """Generated JSON events whose labels follow a known sparse model."""

    stream: Annotated[
        Literal["clicks", "spending", "spam", "delayed"],
        about(
            "ad clicks, spending per visit (a regression), emails, or ad impressions with delayed "
            "clicks (requires `events` and [labels])"
        ),
    ] = "clicks"
    events: Annotated[Count | None, about("number of events; unlimited if not set")] = None
    seed: Annotated[Seed, about("random seed of the events and of the model behind them")] = 0
    drift: Annotated[bool, about("whether what matters changes halfway (requires `events`)")] = (
        False
    )
    rate: Annotated[Positive | None, about("events per second; unlimited if not set")] = None
    batch: Batch = 2000


class CustomSourceConfig(Section, frozen=True):
    """A source of your own: see [the guide](../development/sources.md)."""

    kind: Annotated[str, about("module:callable that returns the source")]
    options: Annotated[
        dict[str, Any], about("keyword arguments of the callable; those from outside are masked")
    ] = field(default_factory=dict)


Source: TypeAlias = (
    KafkaSourceConfig
    | FileSourceConfig
    | StdinSourceConfig
    | SyntheticSourceConfig
    | CustomSourceConfig
)


class RecordFormatConfig(Section, frozen=True):
    """How bytes become fields, for records that have another format than [format]."""

    kind: Annotated[
        str,
        about(
            '"json", "svmlight", "vw", "csv", "parquet", "arrow", "avro", "protobuf", '
            '"json-schema", or the module:callable of a custom decoder'
        ),
    ] = "json"
    schema: Annotated[
        str | None,
        about(
            "schema file of all records; with [registry] or Avro files, the reader's schema (avro)"
        ),
    ] = None
    descriptors: Annotated[
        str | None,
        about(
            "file of protoc --include_imports --descriptor_set_out; with [registry], used instead "
            "of the registry's schemas (protobuf)"
        ),
    ] = None
    message: Annotated[
        str | None,
        about("full name of the message in `descriptors`, such as shop.Click (protobuf)"),
    ] = None


class FormatConfig(RecordFormatConfig, frozen=True):
    """How bytes become events.

    CSV is UTF-8, parsed like Python's `csv.reader` with `strict=True`:

    - A value that starts with a quote ends at the next quote that is not doubled, and may contain
      delimiters and line breaks. A quote elsewhere in a value is an ordinary character.
    - A line break outside quotes, LF or CRLF, ends a row. A row with line breaks inside quotes is
      shorter than 1 MiB. If a quote is not closed within that size or before the end of the data,
      or if text follows a closing quote, the first line of the row is one invalid record, and
      reading resumes at the next line. An open quote at the end of a followed file waits for more
      data. A Kafka record is one row.
    - The first row is the header, unless `columns` is set. A later row with the same names, in any
      order, is a header again. Names are trimmed; a duplicate name is an error.
    - A row with more or fewer values than columns is an invalid record. Blank lines and a
      byte-order mark are skipped.
    - A column that [features.fields] does not declare has numbers or text. Which of them is
      inferred from the first 1000 records before any is learned. So is the type of the label,
      unless `labels` lists all of them.
    - With `decimal = ","` numbers are written as 1.234,5; points are only between groups of three
      digits.
    - Empty values and `NA`, `N/A`, `NaN`, `null`, `None` and `?`, in any case, are missing: the
      event does not have the field.
    """

    root: Annotated[
        str | None,
        about("field that holds the event, such as payload.after; all others are left out"),
    ] = None
    cloudevents: Annotated[
        bool,
        about(
            "whether records are CloudEvents: structured (the event is `data`) or binary "
            "(attributes are headers); `id` and `time` default to their attributes"
        ),
    ] = False
    label: Annotated[str | None, about("field that holds the label (json, csv)")] = None
    labels: Annotated[
        Literal["open"] | tuple[Label, ...],
        about(
            "all valid labels; a record with another label is invalid. If not set, the labels seen "
            'during `label_warmup`. With "open", new labels may appear at any time'
        ),
    ] = ()
    label_warmup: Annotated[
        int,
        about(
            "labeled events after which the set of labels closes, once it has two; true and "
            "false, 0 and 1, or -1 and 1 close it immediately",
            ge=1,
        ),
    ] = 1000
    max_classes: Annotated[
        int,
        about("maximum number of labels if `labels` is not set; each has its own weights", ge=2),
    ] = 100
    positive: Annotated[
        Label | tuple[Label, ...] | None,
        about("label value or values that mean true; all others mean false"),
    ] = None
    weight: Annotated[str | None, about("field that holds the event's weight, from 0 to 1e100")] = (
        None
    )
    kept: Annotated[
        float,
        about(
            "share of the negative events that the stream has, if the others were left out at "
            "random; each weighs 1 / kept",
            gt=0,
            le=1,
        ),
    ] = 1.0
    id: Annotated[str | None, about("field that identifies the event in predictions")] = None
    time: Annotated[
        str | None, about("field that holds the event's time, ISO 8601 or a number")
    ] = None
    time_unit: Annotated[
        Literal["s", "ms", "us", "ns"],
        about("unit of numeric times since 1970; a time beyond the year 9999 is invalid"),
    ] = "s"
    delimiter: Annotated[str, about("separator of values (csv)", min_length=1, max_length=1)] = ","
    decimal: Annotated[
        Literal[".", ","],
        about("what is before the decimals of numbers; with a comma, 1.234,5 is 1234.5 (csv)"),
    ] = "."
    columns: Annotated[
        tuple[str, ...], about("column names, for files without a header (csv)")
    ] = ()


class RegistryConfig(Section, frozen=True):
    """The schema registry that Avro, Protobuf and JSON records name their schemas in."""

    url: Annotated[
        str, about("address; several, separated by commas, are tried in this order", min_length=1)
    ]
    username: Annotated[str | None, about("for basic authentication")] = None
    password: Annotated[Secret | None, about("for basic authentication")] = None
    token: Annotated[Secret | None, about("bearer token")] = None
    cafile: Annotated[str | None, about("CA certificate file that verifies the registry")] = None
    certfile: Annotated[str | None, about("client certificate file")] = None
    keyfile: Annotated[str | None, about("private key file of the client certificate")] = None
    cache: Annotated[
        str | None,
        about(
            "directory that keeps schemas, so that the daemon restarts while the registry is down"
        ),
    ] = None
    timeout_seconds: Annotated[float, about("maximum seconds of a request", gt=0)] = 5.0
    wait_seconds: Annotated[
        float,
        about(
            "seconds to wait for a schema that is not registered yet; then its records are invalid",
            ge=0,
        ),
    ] = 10.0
    subjects: Annotated[
        Literal["topic", "record", "topic-record"],
        about("what the subjects of the schemas of predictions and dead letters are named after"),
    ] = "topic"
    register: Annotated[
        bool, about("whether schemas of outputs are registered, or must be in the registry")
    ] = True


class LabelsConfig(Section, frozen=True):
    """Delayed labels, joined to their events by id."""

    topic: Annotated[
        str | None,
        about("topic, or one of the files, that holds the labels; that of the events if not set"),
    ] = None
    label: Annotated[
        str | None, about("label field of the label records; as in [format] if not set")
    ] = None
    id: Annotated[str | None, about("id field of the label records; as in [format] if not set")] = (
        None
    )
    time: Annotated[
        str | None, about("time field of the label records; as in [format] if not set")
    ] = None
    format: Annotated[
        RecordFormatConfig | None,
        about("format of the label records of `topic`; as in [format] if not set"),
    ] = None
    hold_events: Annotated[
        int, about("maximum number of held events and labels", ge=1, le=1 << 28)
    ] = 1_000_000
    hold_bytes: Annotated[
        int,
        about(
            "maximum memory for held events and labels; `corrections` may use the same again",
            ge=1 << 20,
            le=1 << 50,
        ),
    ] = 1 << 30
    hold_for: Annotated[
        Positive | None, about("seconds of event time to hold each; no limit if not set")
    ] = None
    on_timeout: Annotated[
        Label, about('label to learn if none arrives in time, or "drop" to discard the event')
    ] = "drop"
    corrections: Annotated[
        bool, about("whether a label after its timeout replaces the timeout's label in the model")
    ] = False
    orphans: Annotated[
        bool, about("whether labels without an event become dead letters; they are always counted")
    ] = False


class FeaturesConfig(Section, frozen=True):
    """What the fields of events are, and how feature names become slots, the same for all learners.

    `[features.fields]` declares what fields are, by name: `user_id = "category"`, `price =
    "number(log1p)"`, `"user.age" = "buckets(18, 30, 50)"`, `debug = "ignore"`, `"user_id^ad" =
    "interaction"`. `"*"` is all other fields: `"*" = "ignore"` uses only the declared ones. The
    kinds are in the [guide to fields](../guides/fields.md). Every model file and checkpoint has the
    declaration.
    """

    fields: Annotated[
        dict[str, str],
        about("what fields are, by name"),
    ] = field(default_factory=dict)
    kind: Annotated[
        Literal["names", "hashing"], about("one slot per name, or one of 2^bits slots by hash")
    ] = "names"
    bits: Annotated[int, about("the number of slots is 2^bits (hashing)", ge=1, le=30)] = 20
    max_names: Annotated[
        Annotated[int, Meta(ge=1, lt=1 << 31)] | None,
        about("maximum number of names; unlimited if not set"),
    ] = None
    on_full: Annotated[
        Literal["hash", "ignore"], about("what happens to new names when the table is full")
    ] = "hash"
    max_bytes: Annotated[
        int,
        about(
            "maximum memory for names, 100 bytes each plus their text; 0 for no limit",
            ge=0,
            le=1 << 50,
        ),
    ] = 256 << 20


class LearnerConfig(Section, frozen=True):
    """A model that learns every event: a rule, loss and penalty, or a preset as `model`."""

    name: Annotated[
        str,
        about(
            "name in predictions, metrics and checkpoints",
            pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
        ),
    ]
    task: Annotated[
        Literal["classification", "regression"], about("whether labels are classes or numbers")
    ] = "classification"
    model: Annotated[str | None, about('preset, such as "PegasosClassifier(l2=1e-4)"')] = None
    rule: Annotated[
        str | None, about('such as "DualAveraging(gamma=5.0)"; the default mixture if not set')
    ] = None
    loss: Annotated[str | None, about('such as "Hinge()"; Logistic or Squared if not set')] = None
    penalty: Annotated[str | None, about('such as "L1(1e-3)"; none if not set')] = None
    average: Annotated[
        Literal["last", "uniform", "tail", "random"], about("which weights predict")
    ] = "last"
    batch: Annotated[int, about("events per step", ge=1)] = 1
    fit_intercept: Annotated[
        bool | Literal["penalized"],
        about('true: outside the penalty; "penalized": inside it; false: no intercept'),
    ] = True
    class_weight: Annotated[
        dict[str, Annotated[float, Meta(ge=0)]], about("weight of the events of each label")
    ] = field(default_factory=dict)
    calibrated: Annotated[bool, about("scores are calibrated log-odds, for the logistic loss")] = (
        False
    )
    seed: Annotated[Seed | None, about('for average = "random"')] = None
    start: Annotated[
        str | None, about("saved model to start from, instead of describing a new one")
    ] = None


class BestConfig(Section, frozen=True):
    """Predictions from the learner with the best recent score."""

    by: Annotated[Literal["log_loss", "error", "squared", "absolute"], about("score to compare")]
    window: Annotated[
        int, about("labeled events over which scores are compared, by blocks of a hundredth", ge=1)
    ] = 10_000
    hysteresis: Annotated[
        float, about("relative improvement required to switch learners", ge=0, lt=1)
    ] = 0.05


class PredictionsConfig(Section, frozen=True):
    """Where predictions are published; nowhere if neither `topic` nor `path` is set."""

    topic: Annotated[str | None, about("topic in the cluster of the source")] = None
    format: Annotated[
        Literal["json", "avro", "protobuf"],
        about("format of the records of `topic`; avro and protobuf require [registry]"),
    ] = "json"
    path: Annotated[str | None, about('file of JSON lines; "-" is standard output')] = None
    learner: Annotated[
        str | None, about('name of the learner that predicts, or "best"; the first if not set')
    ] = None
    best: Annotated[BestConfig | None, about("how the best learner is chosen")] = None


class DeadLettersConfig(Section, frozen=True):
    """Where invalid records are sent; they are only counted if neither key is set."""

    topic: Annotated[str | None, about("topic in the cluster of the source")] = None
    format: Annotated[
        Literal["raw", "avro", "protobuf"],
        about(
            "format of the records of `topic`: the bytes of the invalid record, or inside a record "
            "with its origin and the reason, which requires [registry]"
        ),
    ] = "raw"
    path: Annotated[str | None, about("file of JSON lines")] = None
    max_invalid_ratio: Annotated[
        float, about("stop when a larger share of recent records is invalid", gt=0, le=1)
    ] = 0.1
    window: Annotated[int, about("number of recent records that count", ge=1)] = 10_000
    min_count: Annotated[int, about("minimum invalid records before stopping", ge=1)] = 100


class CheckpointConfig(Section, frozen=True):
    """Models, scores and positions as one atomic unit, and their owner."""

    path: Annotated[
        str,
        about("directory of the checkpoints, or s3://, gs:// or az://BUCKET/PREFIX", min_length=1),
    ]
    every_events: Annotated[int, about("maximum events between checkpoints", ge=1)] = 1_000_000
    every_seconds: Annotated[float, about("maximum seconds between checkpoints", gt=0)] = 10.0
    keep: Annotated[int, about("number of checkpoints to keep", ge=2)] = 2
    max_age_seconds: Annotated[
        float, about("stop when no checkpoint could be written for this long", gt=0)
    ] = 300.0
    lease_seconds: Annotated[
        float, about("seconds without a sign of life after which an owner is replaced", ge=0.5)
    ] = 10.0
    standby: Annotated[
        bool, about("whether to wait while another daemon is the owner, or to exit")
    ] = True
    required: Annotated[
        bool, about("refuse to start without a checkpoint; `run --begin` creates the first")
    ] = False
    transactions: Annotated[
        bool, about("fence Kafka outputs, so that brokers reject what a replaced owner sends")
    ] = True


class RegretConfig(Section, frozen=True):
    """Regret against the best fixed model in hindsight."""

    enabled: Annotated[bool, about("whether to compute it")] = True
    memory_bytes: Annotated[
        int,
        about(
            "memory for the random sample of events, shared by all learners; the default holds "
            "about a million clicks",
            ge=100_000,
        ),
    ] = 64_000_000
    cpu_share: Annotated[
        float, about("share of one core for the background solver", gt=0, le=1)
    ] = 0.1
    seed: Annotated[Seed, about("random seed of the sample")] = 0


class TelemetryConfig(Section, frozen=True):
    """Prometheus metrics and the live page."""

    enabled: Annotated[bool, about("whether to serve them")] = True
    host: Annotated[str, about("address to listen on", min_length=1)] = "127.0.0.1"
    port: Annotated[int, about("port; 0 for any free port", ge=0, le=65_535)] = 9464
    page: Annotated[bool, about("whether to serve the live page")] = True
    token: Annotated[Secret | None, about("bearer token that clients must send")] = None
    protect_metrics: Annotated[bool, about("whether /metrics also requires the token")] = False
    show_invalid_records: Annotated[
        bool, about("whether the page shows the contents of invalid records, which may be private")
    ] = False


class ServeLogConfig(Section, frozen=True):
    """The log of served predictions: the events that the daemon learns once their label arrives.

    Each event that was predicted is written to the topic with its id, the time, and the prediction.
    The topic must be one of `source.topics`, and labels must have their own `labels.topic`.
    """

    topic: Annotated[str, about("topic in the cluster of the source", min_length=1)]
    ack: Annotated[
        Literal["before", "after"],
        about(
            "whether the event is stored by the brokers before the answer (none is lost), or after "
            "it (those of the last moments are lost if the server is killed)"
        ),
    ] = "before"
    on_full: Annotated[
        Literal["refuse", "serve"],
        about(
            "what happens while the brokers are unreachable and the buffer is full: refuse "
            "requests with 503, or serve them unlogged"
        ),
    ] = "refuse"
    buffer_bytes: Annotated[
        int, about("maximum memory per process for events that are not stored yet", ge=1 << 16)
    ] = 32 << 20
    wait_seconds: Annotated[
        float, about('maximum seconds that an answer waits for the brokers (ack = "before")', gt=0)
    ] = 1.0


class SplitConfig(Section, frozen=True):
    """An A/B test: each user is in one arm, which is served by the learner of the same name.

    The arm is decided by a hash of the field `by`, so it is the same in all processes.
    """

    by: Annotated[
        str, about("field that decides the arm, such as the user; dots for nested", min_length=1)
    ]
    arms: Annotated[
        dict[str, Annotated[float, Meta(gt=0, le=1)]],
        about("share of each arm, by learner, such as { champion = 0.9, challenger = 0.1 }"),
    ]
    salt: Annotated[str, about("text that is hashed with the field; change it to redraw")] = ""


class ServeConfig(Section, frozen=True):
    """Predictions over HTTP: the daemon publishes snapshots, `streamlearn serve` answers."""

    path: Annotated[
        str | None, about("directory of the snapshots; `serving` in checkpoint.path if not set")
    ] = None
    every_seconds: Annotated[float, about("minimum seconds between snapshots", gt=0)] = 1.0
    keep: Annotated[int, about("number of snapshots to keep of each learner", ge=2)] = 5
    learners: Annotated[
        tuple[str, ...], about("learners that are served; all of them if not set")
    ] = ()
    learner: Annotated[
        str | None, about("learner that answers if a request names none; the first if not set")
    ] = None
    host: Annotated[str, about("address to listen on", min_length=1)] = "127.0.0.1"
    port: Annotated[int, about("port; 0 for any free port", ge=0, le=65_535)] = 8000
    token: Annotated[Secret | None, about("bearer token that clients must send")] = None
    certfile: Annotated[str | None, about("certificate file, for TLS")] = None
    keyfile: Annotated[str | None, about("private key file of the certificate")] = None
    max_in_flight: Annotated[
        int, about("requests in work per process; further ones are refused with 503", ge=1)
    ] = 256
    max_events: Annotated[int, about("maximum events of a request", ge=1, le=1_000_000)] = 10_000
    max_body_bytes: Annotated[int, about("maximum size of a request's body", ge=1024)] = 16 << 20
    body_seconds: Annotated[float, about("maximum seconds to receive a body", gt=0)] = 10.0
    shutdown_seconds: Annotated[
        float, about("seconds that requests in work have at a shutdown", gt=0)
    ] = 10.0
    log: Annotated[ServeLogConfig | None, about("the log of served predictions")] = None
    split: Annotated[SplitConfig | None, about("which learner answers whom, for an A/B test")] = (
        None
    )


class FleetConfig(Section, frozen=True):
    """Processes beside the daemon, on Ray; requires the extra `ray`."""

    readers: Annotated[
        int, about("processes that fetch and decode records; 0: the daemon does so", ge=0, le=1000)
    ] = 0
    workers: Annotated[
        int,
        about(
            "processes that learn, each some of the partitions, whose models are merged; 1: the "
            "daemon learns",
            ge=1,
            le=1000,
        ),
    ] = 1
    min_workers: Annotated[
        int,
        about(
            "fewer than `workers` learn while they keep up, but at least so many; 0: all always",
            ge=0,
            le=1000,
        ),
    ] = 0
    round_seconds: Annotated[
        float, about("seconds for which workers learn before they are merged, at most", ge=0.1)
    ] = 10.0
    warm_events: Annotated[
        int, about("events that the daemon learns before the workers do", ge=0)
    ] = 100_000
    ray: Annotated[
        str,
        about(
            'address of a Ray cluster, host:port; "auto": that of RAY_ADDRESS, or Ray is started '
            "on this machine",
            min_length=1,
        ),
    ] = "auto"
    deadline_seconds: Annotated[
        float, about("seconds without an answer after which a process is replaced", ge=1)
    ] = 10.0


class LogConfig(Section, frozen=True):
    """Logs on standard error."""

    format: Annotated[Literal["console", "json"], about("for people or for machines")] = "console"
    level: Annotated[
        Literal["debug", "info", "warning", "error"], about("lowest level that is logged")
    ] = "info"


class RunConfig(Section, frozen=True):
    """When the daemon exits."""

    until: Annotated[
        str | int | None,
        about(
            '"end", a number of events, or an ISO 8601 time; if not set, runs until it is stopped '
            "or standard input ends; at the end of files it waits to be stopped"
        ),
    ] = None
    watchdog_seconds: Annotated[
        float, about("seconds without progress of the loop after which the process is killed", gt=0)
    ] = 60.0
    shutdown_seconds: Annotated[float, about("maximum seconds a shutdown may take", gt=0)] = 10.0


class Config(Section, frozen=True):
    """A configuration file."""

    source: Annotated[Source, about("where events come from")]
    backfill: Annotated[BackfillConfig | None, about("files to learn before a Kafka source")] = None
    format: Annotated[FormatConfig, about("how bytes become events")] = FormatConfig()
    registry: Annotated[RegistryConfig | None, about("schemas of records")] = None
    labels: Annotated[LabelsConfig | None, about("delayed labels")] = None
    features: Annotated[FeaturesConfig, about("how feature names become slots")] = FeaturesConfig()
    learners: Annotated[tuple[LearnerConfig, ...], about("one [[learner]] table per model")] = (
        field(default=(), name="learner")
    )
    predictions: Annotated[PredictionsConfig, about("where predictions are published")] = (
        PredictionsConfig()
    )
    dead_letters: Annotated[DeadLettersConfig, about("where invalid records are sent")] = (
        DeadLettersConfig()
    )
    checkpoint: Annotated[
        CheckpointConfig | None, about("where models and positions are stored")
    ] = None
    regret: Annotated[RegretConfig, about("regret against the best fixed model")] = RegretConfig()
    telemetry: Annotated[TelemetryConfig, about("metrics and the live page")] = TelemetryConfig()
    serve: Annotated[ServeConfig | None, about("predictions over HTTP")] = None
    fleet: Annotated[FleetConfig, about("processes beside the daemon")] = FleetConfig()
    log: Annotated[LogConfig, about("logs")] = LogConfig()
    run: Annotated[RunConfig, about("when the daemon exits")] = RunConfig()
