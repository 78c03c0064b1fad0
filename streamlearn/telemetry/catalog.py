"""All metrics: what each of them is called, counts and is labeled by.

`_total` counters start at 0 with the process. What belongs to a model's life is a gauge that goes
on from the checkpoint, so that no rate() jumps at a restart. A number that does not exist (the area
under a curve of labels that were all alike, a step size of a rule that has none) is absent.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from streamlearn.late.join import BOUNDS

PREFIX = "streamlearn_"
LEARNER, PLACE = ("learner",), ("topic", "partition")
# where the buckets of histograms end. Of batches: from tens of microseconds to a stall
BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
EDGES = {"batch_seconds": BUCKETS, "label_delay_seconds": BOUNDS}  # of labels: up to a month
# what becomes of labels that come late, and of events that wait for them
FATES = {
    "joined": "the label of an event came, and was learned",
    "timed_out": "no label came in time, or there was no more room",
    "evicted": "of those and of orphans, for want of room",
    "orphaned": "no event came for the label",
    "corrected": "a label came after the time-out, and was learned in its place",
    "duplicates": "a second label of an event, ignored",
    "repeated": "a second event of an id, predicted and not held",
}
STAGES = ("poll", "decode", "learn", "publish")
# what may be wrong with a record, for people who are not shown what it holds
REASONS = {
    "syntax": "the record is not in the configured format",
    "label": "its label cannot be used",
    "weight": "its weight cannot be used",
    "id": "its id cannot be used",
    "time": "its time cannot be used",
    "value": "a field has a value that cannot be a feature",
    "other": "the record cannot be used",
}


class Metric(NamedTuple):
    """A metric, without its prefix."""

    name: str
    kind: Literal["counter", "gauge", "histogram", "info"]
    help: str
    labels: tuple[str, ...] = ()


def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Metric:
    """A number that may rise and fall."""
    return Metric(name, "gauge", text, labels)


def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Metric:
    """A number that rises, from 0 at the start of the process."""
    return Metric(name + "_total", "counter", text, labels)


FLOW = (
    counter("events_polled", "Records read from the source.", PLACE),
    counter("polled_bytes", "Bytes of the values of records read.", ("topic",)),
    counter("events_predicted", "Events scored before their label was used.", LEARNER),
    counter("events_learned", "Events learned: with a label and a weight above 0.", LEARNER),
    counter("events_unlabeled", "Events without a label, or of weight 0."),
    gauge("events_since_label", "Events since the last one with a label; not of delayed labels."),
    counter("events_deleted", "Records without a value (tombstones)."),
    counter("events_bad", "Records that could not be read, by what was wrong.", ("reason",)),
    counter("events_lost", "Records that were deleted before they were read (on_gap).", PLACE),
    gauge("lag_events", "Records that wait behind the position (bytes, of files).", PLACE),
    gauge("position_offset", "The position to go on from.", PLACE),
    gauge("last_batch_timestamp_seconds", "When a batch was learned last."),
    Metric(
        "batch_seconds",
        "histogram",
        "Time of a batch by stage; learn has predicting in it, which is one pass with learning.",
        ("stage",),
    ),
)
QUALITY = (
    gauge("learned_events", "Events learned over the model's life.", LEARNER),
    gauge(
        "diverged_events",
        "Events left out as their score was not finite, or their gradient too large.",
        LEARNER,
    ),
    gauge("progressive_loss", "Mean loss before learning, over the model's life.", LEARNER),
    gauge("window_loss", "Mean loss before learning, over the last events.", LEARNER),
    gauge("error_ratio", "Share of wrong labels before learning, over life.", LEARNER),
    gauge("window_error_ratio", "Share of wrong labels before learning, of late.", LEARNER),
    gauge("absolute_error", "Mean absolute error before learning, over life.", LEARNER),
    gauge("window_absolute_error", "Mean absolute error before learning, of late.", LEARNER),
    gauge("window_roc_area_ratio", "Area under the ROC curve over the last events.", LEARNER),
    gauge(
        "window_calibration_ratio",
        "Mean predicted probability over the share of positive labels, of late; 1 is right.",
        LEARNER,
    ),
    gauge(
        "window_calibration_error_ratio",
        "Mean distance of predicted and observed shares over ten bins, of late.",
        LEARNER,
    ),
    gauge("best", "1 for the learner that did best of late, 0 for the others.", LEARNER),
)
REGRET = (
    gauge("regret_low", "The least the regret can be; absent while it is unknown.", LEARNER),
    gauge("regret_high", "The most the regret can be; absent while it is unknown.", LEARNER),
    gauge(
        "regret_stderr",
        "Standard error of the regret, by two of which the sample moves both ends out.",
        LEARNER,
    ),
    gauge("regret_bound", "The paper's bound on the regret; absent if none is proved.", LEARNER),
    gauge("comparator_nonzero_weights", "Weights of the comparator that are not 0.", LEARNER),
    gauge("comparator_gap", "Duality gap of the comparator's objective.", LEARNER),
    gauge("comparator_solved_timestamp_seconds", "When the comparator was solved last.", LEARNER),
)
MODEL = (
    gauge("mixture_weight_ratio", "Share of a mixture's member.", ("learner", "member")),
    gauge("nonzero_weights", "Weights that are not 0: an exact count.", LEARNER),
    gauge("weights_norm", "Euclidean norm of the weights.", LEARNER),
    gauge("weights_timestamp_seconds", "When weights were counted and measured last.", LEARNER),
    gauge("steps", "Steps taken over the model's life.", LEARNER),
    gauge("step_size", "The current step size, of rules that have one.", LEARNER),
    gauge("slots", "Slots of features that are in use, or all 2^bits of hashing."),
    gauge(
        "turned_away_features",
        "Features with a new name when the table of names was full, over life.",
    ),
    gauge("hash_load_ratio", "Share of hash slots in which a learner has a weight, not 0."),
    Metric(
        "learner_info",
        "info",
        "What a learner is made of.",
        ("learner", "model", "loss", "comparator"),
    ),
)
DAEMON = (
    gauge("checkpoint_timestamp_seconds", "When the last durable checkpoint was written."),
    gauge("checkpoint_bytes", "Size of the last checkpoint."),
    gauge("checkpoint_duration_seconds", "How long the last checkpoint took to write."),
    counter("checkpoint_failures", "Checkpoints that could not be written."),
    gauge("active", "1 while this instance learns, 0 as a standby, loading or stopping."),
    gauge("standby", "1 while this instance waits for another to give up, else 0."),
    gauge("epoch", "Number of the ownership of the models."),
    gauge("restarts", "Starts from a checkpoint over the model's life."),
    gauge("start_timestamp_seconds", "When this process began to watch."),
    Metric("build_info", "info", "Versions.", ("version", "python")),
    Metric("config_info", "info", "What is configured.", ("source", "format", "features", "hash")),
)
LATE = (
    gauge("held_events", "Events and labels that wait for each other."),
    gauge("held_oldest_seconds", "How long the oldest has waited, by the stream's time."),
    counter("late_labels", "Late labels and their events, by what became of them.", ("fate",)),
    Metric(
        "label_delay_seconds",
        "histogram",
        "Time from an event to its label, by the stream's time.",
    ),
)
GROUPS = (*FLOW, *LATE, *QUALITY, *REGRET, *MODEL, *DAEMON)
METRICS = {metric.name: metric for metric in GROUPS}
