"""Warn of missing labels, or positive ones, of labels spelled in several ways, of absent fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlearn.daemon.absent_fields import field_hint

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from streamlearn.daemon.absent_fields import AbsentFields
    from streamlearn.daemon.process.log import Log
    from streamlearn.stream import Decoder
    from streamlearn.stream.formats.fields import Label
    from streamlearn.stream.formats.label_set import LabelSet

UNLABELED_RUN = 1000  # consecutive events without a label
SPELLING_REMEDY = (
    "repair the labels, or declare which are valid (format.labels) or positive (format.positive)"
)
JOIN_REMEDY = (
    "compare the ids of events and labels (format.id, labels.id); if events have their labels, "
    "omit [labels]"
)


class LabelMonitor:
    """Log long runs of events without a label, and label sets without a positive value."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.logged = False
        self.logged_negative = False
        self.spellings = Spellings()

    def check_run(self, events: int, decoder: Decoder) -> None:
        """Log a long run of unlabeled events, once until a label occurs."""
        if events < UNLABELED_RUN:
            self.logged = False
        elif not self.logged:
            self.logged = True
            self.log.rate_limited(
                "no labels", "warning", "no labels", events=events, **label_hint(decoder)
            )

    def check_joined(self, labels: int, min_labels: int = UNLABELED_RUN) -> None:
        """Log a run of at least `min_labels` delayed labels of which none met its event."""
        if labels >= min_labels:
            self.log.rate_limited(
                "no events of labels", "warning", "no events of labels",
                labels=labels, remedy=JOIN_REMEDY,
            )  # fmt: skip

    def check_positive(self, labels: LabelSet, min_events: int = UNLABELED_RUN) -> None:
        """Log, once, the declared positive values that `min_events` labels or more did not have."""
        if self.logged_negative or labels.events < min_events or not labels.positive_unseen:
            return
        self.logged_negative = True
        self.log.warning(
            "no positive labels",
            events=labels.events,
            positive=labels.positive_unseen,
            labels=labels.negative_values,
        )

    def check_absent(self, absent: AbsentFields) -> None:
        """Log, once, the configured fields that the first events did not have."""
        if absent.events < UNLABELED_RUN:
            return
        for role, name in absent.found().items():
            hint = field_hint(name, absent.decoder)
            self.log.warning("field absent", role=role, events=absent.events, **hint)
        absent.end()

    def check_weights(
        self, learner: str, weighted: Iterable[Hashable], labels: Sequence[Label]
    ) -> None:
        """Log the labels with a class weight that are not among the closed set of labels."""
        if unknown := [label for label in weighted if label not in labels]:
            self.log.warning(
                "class weights unused", learner=learner, of_labels=unknown, labels=labels
            )

    def check_spelling(self, labels: LabelSet) -> None:
        """Log new labels that differ from others only in case or surrounding spaces."""
        if not labels.declared and (alike := self.spellings.add(labels.labels)):
            self.log.warning("labels spelled alike", labels=alike, remedy=SPELLING_REMEDY)


class Spellings:
    """Find labels that differ only in case or surrounding spaces, in a list that grows.

    >>> spellings = Spellings()
    >>> spellings.add(["yes", "no"]), spellings.add(["yes", "no", "Yes", "YES ", "maybe", 1])
    ([], [['yes', 'Yes', 'YES ']])
    >>> spellings.add(["yes", "no", "Yes", "YES ", "maybe", 1])
    []
    """

    def __init__(self) -> None:
        self._checked = 0
        self._groups: dict[str, list[Label]] = {}

    def add(self, labels: Sequence[Label]) -> list[list[Label]]:
        """Return the groups of labels spelled alike that have grown since the last call."""
        grown: dict[str, list[Label]] = {}
        for label in labels[self._checked :]:
            if isinstance(label, str | bool):
                key = str(label).strip().casefold()
                group = self._groups.setdefault(key, [])
                group.append(label)
                if len(group) > 1:
                    grown[key] = group
        self._checked = len(labels)
        return [group.copy() for group in grown.values()]


def label_hint(decoder: Decoder) -> dict[str, Any]:
    """Return the label field, and the most similar field names of the records."""
    return field_hint(decoder.fields.label, decoder)
