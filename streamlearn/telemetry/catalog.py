"""The catalog of metrics: names, types, help texts and labels.

`_total` counters start at 0 with the process. Values over the model's lifetime are gauges that
resume from the checkpoint, so that rate() does not jump at a restart. An undefined value (the ROC
area without labels of both classes, the step size of a rule without one) is absent.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from streamlearn.late.join import BOUNDS

PREFIX = "streamlearn_"
LEARNER, PARTITION, ARM = ("learner",), ("topic", "partition"), ("learner", "arm")
# upper bounds of histogram buckets; of batches: from tens of microseconds to a stall
BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
EDGES = {
    "batch_seconds": BUCKETS,
    "serve_request_seconds": BUCKETS,
    "label_delay_seconds": BOUNDS,  # up to a month
}
# outcomes of delayed labels and of the events held for them
OUTCOMES = {
    "joined": "the label was matched with its event and learned",
    "timed_out": "an event timed out, or was evicted, without a label",
    "evicted": "a timed-out event or an orphaned label was dropped because the buffer was full",
    "orphaned": "a label timed out, or was evicted, without an event",
    "corrected": "a label came after the time-out and replaced the assumed one",
    "duplicates": "a second label of an event was ignored",
    "repeated": "a second event with the same id was predicted but not held",
}
STAGES = ("poll", "decode", "learn", "publish")


class Metric(NamedTuple):
    """A metric, named without the prefix."""

    name: str
    kind: Literal["counter", "gauge", "histogram", "info"]
    help: str
    labels: tuple[str, ...] = ()


def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Metric:
    """Declare a gauge."""
    return Metric(name, "gauge", text, labels)


def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Metric:
    """Declare a counter, which starts at 0 with the process."""
    return Metric(name + "_total", "counter", text, labels)


FLOW = (
    counter("events_polled", "Records read from the source.", PARTITION),
    counter("polled_bytes", "Bytes of the values of records read from the source.", ("topic",)),
    counter("events_predicted", "Events predicted before their label was used.", LEARNER),
    counter("events_learned", "Events learned, with a label and a weight above 0.", LEARNER),
    counter("events_unlabeled", "Events without a label or with weight 0."),
    gauge("events_since_label", "Events since the last labeled one; absent for delayed labels."),
    counter("events_deleted", "Records without a value (tombstones)."),
    counter("invalid_records", "Invalid records by reason.", ("reason",)),
    counter("schema_records", "Records by the id of their schema in a registry.", ("schema",)),
    counter("events_lost", "Records deleted from the source before they were read.", PARTITION),
    gauge(
        "lag_events",
        "Records behind the end of the partition; for files of lines an estimate from their bytes.",
        PARTITION,
    ),
    gauge("position_offset", "Next offset to read.", PARTITION),
    gauge("last_batch_timestamp_seconds", "Time of the last learned batch."),
    Metric(
        "batch_seconds",
        "histogram",
        "Duration of a batch by stage; stage learn includes predicting.",
        ("stage",),
    ),
)
QUALITY = (
    gauge("lifetime_events_learned", "Events learned over the model's lifetime.", LEARNER),
    gauge(
        "lifetime_events_diverged",
        "Events skipped because the score was not finite or the gradient too large, lifetime.",
        LEARNER,
    ),
    gauge("progressive_loss", "Progressive loss, mean over the model's lifetime.", LEARNER),
    gauge("recent_loss", "Progressive loss, mean over recent events.", LEARNER),
    gauge("error_ratio", "Progressive error rate over the model's lifetime.", LEARNER),
    gauge("recent_error_ratio", "Progressive error rate over recent events.", LEARNER),
    gauge("absolute_error", "Progressive mean absolute error, lifetime.", LEARNER),
    gauge("recent_absolute_error", "Progressive mean absolute error, recent events.", LEARNER),
    gauge("recent_roc_auc", "Area under the ROC curve over recent events.", LEARNER),
    gauge(
        "recent_calibration_ratio",
        "Predicted positive labels / positive labels over recent events, by weight; ideally 1.",
        LEARNER,
    ),
    gauge(
        "recent_calibration_error",
        "Expected calibration error over recent events, in 15 bins of equal weight.",
        LEARNER,
    ),
    gauge("currently_best", "1 for the currently best learner, 0 for the others.", LEARNER),
)
REGRET = (
    gauge("regret", "Estimated regret; absent while unknown.", LEARNER),
    gauge("regret_low", "Lower end of the regret's bracket; absent while unknown.", LEARNER),
    gauge("regret_high", "Upper end of the regret's bracket; absent while unknown.", LEARNER),
    gauge(
        "regret_stderr",
        "Standard error of the regret; the bracket includes two of them on each side.",
        LEARNER,
    ),
    gauge(
        "regret_events",
        "Events that the regret covers; it is updated when the best fixed model is solved again.",
        LEARNER,
    ),
    gauge("regret_bound", "Theoretical bound on the regret; absent if there is none.", LEARNER),
    gauge("comparator_nonzero_weights", "Non-zero weights of the comparator.", LEARNER),
    gauge("comparator_gap", "Duality gap of the comparator's objective.", LEARNER),
    gauge(
        "comparator_solved_timestamp_seconds", "Time of the comparator's last solution.", LEARNER
    ),
)
MODEL = (
    gauge(
        "mixture_weight_ratio",
        "Share of a mixture's member, mean over the classes.",
        ("learner", "member"),
    ),
    gauge("nonzero_weights", "Non-zero weights (exact count).", LEARNER),
    gauge("weights_norm", "Euclidean norm of the weights.", LEARNER),
    gauge("weights_timestamp_seconds", "Time of the last count and norm of weights.", LEARNER),
    gauge("steps", "Steps over the model's lifetime.", LEARNER),
    gauge("step_size", "Current step size, for rules that have one.", LEARNER),
    gauge("slots", "Feature slots used; all 2^bits with hashing."),
    gauge(
        "rejected_features",
        "Features with a new name that came when the table was full, lifetime.",
    ),
    gauge("hash_load_ratio", "Share of hash slots with a non-zero weight."),
    Metric(
        "learner_info",
        "info",
        "Composition of a learner.",
        ("learner", "model", "loss", "comparator"),
    ),
)
DAEMON = (
    gauge("checkpoint_timestamp_seconds", "Time of the last durable checkpoint."),
    gauge("checkpoint_bytes", "Size of the last checkpoint."),
    gauge("checkpoint_duration_seconds", "Time to write the last checkpoint."),
    counter("checkpoint_failures", "Checkpoints that could not be written."),
    gauge("active", "1 while this instance learns, 0 in standby, loading or stopping."),
    gauge("standby", "1 while this instance waits for another one to release the models."),
    gauge("epoch", "Ownership epoch of the models."),
    gauge(
        "restarts",
        "Starts from a checkpoint, without those that wrote none themselves (see epoch).",
    ),
    gauge("start_timestamp_seconds", "Start time of telemetry in this process."),
    Metric("build_info", "info", "Versions.", ("version", "python")),
    Metric("config_info", "info", "Configuration.", ("source", "format", "features", "hash")),
)
WORKER = ("worker",)
FLEET = (
    gauge("worker_partitions", "Partitions that a worker reads.", WORKER),
    gauge("worker_events_per_second", "Events a second in a worker's last round.", WORKER),
    gauge("worker_lag_events", "Records not yet read after a worker's last round.", WORKER),
    gauge("worker_round_timestamp_seconds", "Time of a worker's last accepted round.", WORKER),
    counter("rounds_merged", "Rounds that were merged into the model."),
    counter("rounds_refused", "Rounds of workers that were refused, by reason.", ("reason",)),
    counter("workers_replaced", "Workers that died or did not answer, and were replaced."),
    gauge("round_merge_seconds", "Time that merging the last round took."),
    gauge("round_bytes", "Bytes of what workers learned in the last round."),
)
DELAYED_LABELS = (
    gauge("held_events", "Events and labels held until they are matched."),
    gauge("held_oldest_seconds", "Age of the oldest held event or label, in event time."),
    counter("delayed_labels", "Delayed labels and their events by outcome.", ("outcome",)),
    Metric(
        "label_delay_seconds",
        "histogram",
        "Delay from an event to its label, in event time.",
    ),
)
SERVED = (
    gauge("served_loss", "Mean loss of the scores that were served.", ARM),
    gauge("served_loss_low", "Lower end of the 95% confidence interval of the served loss.", ARM),
    gauge("served_loss_high", "Upper end of the 95% confidence interval of the served loss.", ARM),
    gauge("served_events", "Served events whose label is known.", ARM),
)
# of the server, which is another process
SERVER = (
    Metric(
        "serve_request_seconds",
        "histogram",
        "Time from a request's head to its answer.",
        ("route",),
    ),
    counter("serve_requests", "Answers by route and class of status.", ("route", "status")),
    counter("serve_events", "Events that were predicted."),
    counter("serve_invalid_events", "Events that were invalid."),
    counter("serve_arm_events", "Events that were predicted, by arm.", ("arm",)),
    counter("serve_refused_requests", "Requests refused because too many were in work."),
    gauge("serve_in_flight", "Requests in work."),
    counter("serve_log_stored", "Served events that the log has stored."),
    gauge("serve_log_waiting", "Served events that wait to be stored."),
    counter("serve_log_lost", "Served events that a killed process had not stored, at most."),
    counter("serve_log_refused_requests", "Requests refused because the log was unavailable."),
    counter("serve_unlogged_events", "Events served although the log did not store them in time."),
    gauge("serve_snapshot_age_seconds", "Age of the snapshot in use.", LEARNER),
    gauge("serve_snapshot_epoch", "Epoch of the snapshot in use.", LEARNER),
    gauge("serve_snapshot_events", "Events learned by the snapshot in use.", LEARNER),
    gauge("serve_snapshot_bytes", "Size of the snapshot in use.", LEARNER),
    gauge("serve_promoted", "1 for the learner that is promoted to serve everybody.", LEARNER),
)
ALL = (*FLOW, *FLEET, *DELAYED_LABELS, *QUALITY, *SERVED, *REGRET, *MODEL, *DAEMON)
METRICS = {metric.name: metric for metric in ALL}
SERVER_METRICS = {metric.name: metric for metric in SERVER}
