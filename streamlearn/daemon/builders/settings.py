"""The settings that models depend on."""

from __future__ import annotations

from streamlearn import config
from streamlearn.config import effective
from streamlearn.daemon.checkpointing.field_changes import FIELDS
from streamlearn.features.fields import Ignore


def input_settings(settings: config.Config) -> dict[str, str]:
    """Return the settings that turn bytes into rows, as text; models do not survive a change.

    The id and time fields count only as ignored features, unless they are declared.
    `LabelSet.restore` checks the labels.
    """
    format_ = effective.plain(settings.format)
    aside = {format_.pop(name) for name in ("id", "time")} - {None}
    others = ("time_unit", "labels", "label_warmup", "max_classes")
    for name in (*others, "schema", "descriptors", "message"):  # schemas may evolve
        del format_[name]
    features = effective.plain(settings.features)
    del features["max_bytes"]  # may be raised before the table is full
    spec = config.feature_reader(settings.features).fields
    fields = features.pop("fields") | {
        name: "ignore"
        for name in sorted(aside)
        if name not in spec and not isinstance(spec.of(name), Ignore)
    }
    tables = {"features": features, "format": format_, FIELDS: fields}
    return {
        f"{name}.{key}": str(value)
        for name, table in tables.items()
        for key, value in table.items()
    } | label_settings(settings.labels)


def label_settings(labels: config.LabelsConfig | None) -> dict[str, str]:
    """Return the settings of delayed labels that must not change."""
    if labels is None or labels.label is None:
        return {}
    return {"labels.label": labels.label}
