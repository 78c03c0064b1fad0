"""Every problem that a check of a configuration can find, and that its key is named."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from pathlib import Path
from typing import Any

import pytest

from streamlearn import config
from streamlearn.config import ConfigError, checks, learners
from streamlearn.config.problems import ConfigProblem
from tests.support.configurations import KAFKA, SYNTHETIC

PAST = {"backfill.paths": ["a.jsonl"], "backfill.until": "2026-11-18T00:00:00Z"}
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (SYNTHETIC, {"source.kind": "kafak"}, "source.kind"),
    (SYNTHETIC, {"source": 5}, "source"),
    (SYNTHETIC, {"learner": {}}, "learner"),
    (SYNTHETIC, {"learner": [5]}, "learner[0]"),
    (SYNTHETIC, {"source.seed": True}, "source.seed"),
    (SYNTHETIC, {"source.seed": 2**70}, "source.seed"),
    (SYNTHETIC, {"regret.cpu_share": float("nan")}, "regret.cpu_share"),
    (SYNTHETIC, {"run.until": "someday"}, "run.until"),
    (SYNTHETIC, {"run.until": "0"}, "run.until"),
    (SYNTHETIC, {"run.until": 0}, "run.until"),
    (SYNTHETIC, {"run.until": -5}, "run.until"),
    (SYNTHETIC, {"telemetry.protect_metrics": True}, "telemetry.protect_metrics"),
    (SYNTHETIC, {"learner": [{"name": "a", "seed": 5}]}, "learner[0].seed"),
    (SYNTHETIC, {"run": {"until": "end"}, "source": {"kind": "synthetic"}}, "run.until"),
    (SYNTHETIC, {"source": {"kind": "synthetic", "drift": True}}, "source.drift"),
    (SYNTHETIC, {"features": {"max_names": 5, "kind": "hashing"}}, "features.max_names"),
    (SYNTHETIC, {"features": {"max_bytes": 50_000, "kind": "hashing"}}, "features.max_bytes"),
    (SYNTHETIC, {"features.max_bytes": 5}, "features.max_bytes"),
    (
        SYNTHETIC,
        {
            "source": {"kind": "file", "paths": ["*.csv"], "follow": True},
            "format": {"kind": "csv", "label": "y"},
        },
        "format.columns",
    ),
    (SYNTHETIC, {"features.bits": 31}, "features.bits"),
    (SYNTHETIC, {"predictions.topic": "out"}, "predictions.topic"),
    (SYNTHETIC, {"predictions": {"learner": "svm", "path": "p"}}, "predictions.learner"),
    (SYNTHETIC, {"predictions.learner": "default"}, "predictions.learner"),
    (SYNTHETIC, {"predictions.learner": "best"}, "predictions.best.by"),
    (SYNTHETIC, {"predictions.best": {"by": "error"}}, "predictions.learner"),
    (
        SYNTHETIC,
        {
            "predictions": {"learner": "best", "best": {"by": "log_loss"}},
            "learner": [{"name": "a"}, {"name": "svm", "loss": "Hinge()"}],
        },
        "predictions.best.by",
    ),
    (
        SYNTHETIC,
        {"predictions": {"learner": "best", "best": {"by": "squared"}}},
        "predictions.best.by",
    ),
    (SYNTHETIC, {"learner": [{"name": "a"}] * 2}, "learner[0].name learner[1].name"),
    (SYNTHETIC, {"learner": [{"name": "best"}]}, "learner[0].name"),
    (
        SYNTHETIC,
        {"learner": [{"name": "a", "rule": "Pegasos()", "model": "PegasosClassifier()"}]},
        "learner[0].rule",
    ),
    (SYNTHETIC, {"learner": [{"name": "a", "model": "PegasosRegressor"}]}, "learner[0].model"),
    (
        SYNTHETIC,
        {"learner": [{"name": "a", "model": "PegasosClassifier(features=Hashing(3))"}]},
        "learner[0].model",
    ),
    (SYNTHETIC, {"learner": [{"name": "a", "start": "none.model"}]}, "learner[0].start"),
    (SYNTHETIC, {"learner": [{"name": "a", "loss": "Squared()"}]}, "learner[0].loss"),
    (SYNTHETIC, {"learner": [{"name": "a", "task": "regression"}, {"name": "b"}]}, "learner"),
    (
        SYNTHETIC,
        {
            "format.positive": 1,
            "source.stream": "spending",
            "learner": [{"name": "a", "task": "regression"}],
        },
        "format.positive",
    ),
    (SYNTHETIC, {"source.stream": "spending"}, "learner[0].task"),
    (SYNTHETIC, {"format.kind": "vw"}, "format.kind"),
    (KAFKA, {"format.positive": [0, 2], "format.labels": [0, 1]}, "format.positive"),
    (
        SYNTHETIC,
        {"format.labels": [0, 1], "learner": [{"name": "a", "class_weight": {"2": 1.0}}]},
        "learner[0].class_weight.2",
    ),
    (KAFKA, {"source.topics": []}, "source.topics"),
    (KAFKA, {"source.topics": [], "source.pattern": "a("}, "source.pattern"),
    (KAFKA, {"source.topics": ["a b"]}, "source.topics[0]"),
    (KAFKA, {"source.start": "yesterday"}, "source.start"),
    (KAFKA, {"source.client": "confluence"}, "source.client"),
    (SYNTHETIC, {**PAST, "format.time": "t"}, "backfill"),
    (KAFKA, PAST, "format.time"),
    (KAFKA, {**PAST, "format.time": "t", "backfill.until": "yesterday"}, "backfill.until"),
    (KAFKA, {**PAST, "format.time": "t", "source.start": "latest"}, "source.start"),
    (
        KAFKA,
        {**PAST, "format.time": "t", "backfill.offsets": {"clicks": 5}},
        "backfill.offsets",
    ),
    (
        KAFKA,
        {**PAST, "format.time": "t", "format.id": "id", "labels": {"label": "l"}},
        "backfill",
    ),
    (KAFKA, {"predictions.topic": "clicks"}, "predictions.topic"),
    (KAFKA, {"dead_letters.topic": "clicks"}, "dead_letters.topic"),
    (KAFKA, {"dead_letters": {"topic": "a", "path": "b"}}, "dead_letters.topic"),
    (KAFKA, {"predictions.topic": "a", "dead_letters.topic": "a"}, "dead_letters.topic"),
    (
        KAFKA,
        {"source.security": {"mechanism": "PLAIN", "password": "x"}},
        "source.security.username",
    ),
    (
        KAFKA,
        {
            "source.security.protocol": "SSL",
            "source.security.mechanism": "OAUTHBEARER",
            "source.security.token_provider": "a:b",
        },
        "source.security.mechanism",
    ),
    (KAFKA, {"source.security.protocol": "SASL_SSL"}, "source.security.mechanism"),
    (KAFKA, {"source.security.cafile": "/none"}, "source.security.cafile"),
    (KAFKA, {"format.label": None}, "format.label"),
    (KAFKA, {"format.kind": "jsn"}, "format.kind"),
    (KAFKA, {"format.kind": "vw"}, "format.label"),
    (KAFKA, {"format.delimiter": ";"}, "format.delimiter"),
    (KAFKA, {"format.kind": "csv", "format.delimiter": "."}, "format.delimiter"),
    (KAFKA, {"format.include": ["user"]}, "format.include"),
    (KAFKA, {"features.fields": {"clicked": "category"}}, "features.fields.clicked"),
    (
        KAFKA,
        {"format.time": "at", "features.fields": {"at": "auto"}},
        "features.fields.at",
    ),
    (
        KAFKA,
        {"features.fields": {"user^clicked": "interaction"}},
        "features.fields.user^clicked",
    ),
    (KAFKA, {"features.fields": {"user": "interaction"}}, "features.fields.user"),
    (KAFKA, {"format.positive": 2, "format.labels": [0, 1]}, "format.positive"),
    (KAFKA, {"source": {"kind": "file", "paths": ["a.gz"], "follow": True}}, "source.paths[0]"),
    (KAFKA, {"source.x.y": 1, "source.kind": "kafka"}, "source.x"),
    (KAFKA, {"source.kind.y": 1}, "source.kind.y"),
    (KAFKA, {"format.kind": "avro"}, "format.schema"),
    (KAFKA, {"format.kind": "protobuf"}, "format.descriptors"),
    (KAFKA, {"format.schema": "a.avsc"}, "format.schema"),
    (
        KAFKA,
        {"format": {"kind": "avro", "schema": "a.avsc", "label": "y", "message": "A"}},
        "format.message",
    ),
    (
        KAFKA,
        {"format": {"kind": "protobuf", "descriptors": "a.pb", "label": "y"}},
        "format.message",
    ),
    (KAFKA, {"registry.url": "http://a"}, "registry"),
    (KAFKA, {"format.kind": "avro", "registry.url": "localhost:8081"}, "registry.url"),
    (KAFKA, {"format.kind": "avro", "registry.url": "http://a,"}, "registry.url"),
    (KAFKA, {"format.kind": "avro", "registry.url": "http://me:pass@a"}, "registry.url"),
    (
        KAFKA,
        {"format.kind": "avro", "registry": {"url": "http://a", "username": "me"}},
        "registry.username",
    ),
    (
        KAFKA,
        {
            "format.kind": "avro",
            "registry": {"url": "http://a", "username": "a", "password": "b", "token": "c"},
        },
        "registry.token",
    ),
    (
        KAFKA,
        {"format.kind": "avro", "registry": {"url": "http://a", "keyfile": __file__}},
        "registry.keyfile",
    ),
    (
        KAFKA,
        {"format.kind": "avro", "registry": {"url": "http://a", "cafile": "none"}},
        "registry.cafile",
    ),
    (
        KAFKA,
        {"format.kind": "avro", "registry": {"url": "http://a", "wait_seconds": 50}},
        "registry.wait_seconds",
    ),
    (KAFKA, {"format.kind": "json-schema"}, "registry.url"),
    (
        KAFKA,
        {
            "format": {"kind": "avro", "schema": "a.avsc", "label": "y", "id": "id"},
            "labels.topic": "labels",
        },
        "format.schema",
    ),
    (
        KAFKA,
        {
            "format": {"kind": "avro", "schema": "a.avsc", "label": "y"},
            "source": {"kind": "stdin"},
        },
        "format.kind",
    ),
]

FILE = {"kind": "file", "paths": ["a.txt"]}
STDIN = {"kind": "stdin"}
SASL = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "u", "password": "p"}
TOKEN = {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "token_provider": "a:b"}
DELAYED_STREAM = {"kind": "synthetic", "stream": "delayed"}
DELAYED = {"format.id": "id", "labels": {"topic": "labels"}}
LOGGED = {**DELAYED, "serve": {"log": {"topic": "served"}}}
REGRESSION = {"name": "a", "task": "regression"}
TWO = {"learner": [{"name": "a"}, {"name": "b"}]}
WORKERS = {"fleet.workers": 2, "features.kind": "hashing", "format.labels": [0, 1]}
READERS = {"fleet.readers": 2, "features.kind": "hashing"}
COLUMNS = {"kind": "csv", "label": "y", "columns": ["y", "a"]}
REFUSED += [
    # sources
    (KAFKA, {"source": {"kind": "a b:c"}}, "source.kind"),
    (KAFKA, {"checkpoint.path": "s3://"}, "checkpoint.path"),
    (KAFKA.split("[checkpoint]", maxsplit=1)[0], {}, "checkpoint.path"),
    (KAFKA, {"source.pattern": "c.*"}, "source.topics"),
    (KAFKA, {"source.topics": ["a" * 250]}, "source.topics[0]"),
    (KAFKA, {"source.security": {**SASL, "username": None}}, "source.security.username"),
    (KAFKA, {"source.security": {**SASL, "password": None}}, "source.security.password"),
    (
        KAFKA,
        {"source.security": {**TOKEN, "token_provider": None}},
        "source.security.token_provider",
    ),
    (
        KAFKA,
        {"source.security": {**TOKEN, "token_provider": "a b"}},
        "source.security.token_provider",
    ),
    (
        KAFKA,
        {"source.security": {**SASL, "token_provider": "a:b"}},
        "source.security.token_provider",
    ),
    (
        KAFKA,
        {"source.security": {**SASL, "protocol": "SASL_PLAINTEXT", "certfile": __file__}},
        "source.security.certfile",
    ),
    (
        KAFKA,
        {"source.security": {"protocol": "SSL", "keyfile": __file__}},
        "source.security.keyfile",
    ),
    (SYNTHETIC, {"source.events": None, "source.drift": True}, "source.drift"),
    (
        SYNTHETIC,
        {"source": DELAYED_STREAM, "labels": {}},
        "source.events",
    ),
    (SYNTHETIC, {"source.stream": "delayed"}, "labels"),
    (KAFKA, {**PAST, "format.time": "t", "backfill.offsets": {"clicks:0": -1}}, "backfill.offsets"),
    (KAFKA, {**PAST, "format.time": "t", "backfill.kind": "jsn"}, "backfill.kind"),
    (SYNTHETIC, {"source.events": None, "run.until": "end"}, "run.until"),
    (KAFKA, {"source": {**FILE, "follow": True}, "run.until": "end"}, "run.until"),
    # formats
    (KAFKA, {"format": {**COLUMNS, "columns": ["y", "y"]}}, "format.columns"),
    (KAFKA, {"format": {**COLUMNS, "decimal": ","}}, "format.decimal"),
    (KAFKA, {"format.decimal": ","}, "format.decimal"),
    (KAFKA, {"format.columns": ["a"]}, "format.columns"),
    (KAFKA, {"format": {**COLUMNS, "root": "a"}}, "format.root"),
    (KAFKA, {"format": {**COLUMNS, "cloudevents": True}}, "format.cloudevents"),
    (KAFKA, {"format.root": "a", "format.cloudevents": True}, "format.root"),
    (KAFKA, {"format.root": "a..b"}, "format.root"),
    (KAFKA, {"format.id": "clicked"}, "format.id"),
    (KAFKA, {"format.weight": "n", "format.time": "n"}, "format.time"),
    (KAFKA, {"format.labels": [1]}, "format.labels"),
    (KAFKA, {"format.labels": [1, 1]}, "format.labels"),
    (KAFKA, {"format.labels": [1, "1"]}, "format.labels"),
    (KAFKA, {"format.labels": [True, "true"]}, "format.labels"),
    (KAFKA, {"format.labels": [0, 1, 1]}, "format.labels"),
    # columns
    (KAFKA, {"format.kind": "parquet"}, "format.kind"),
    (KAFKA, {"source": STDIN, "format.kind": "parquet"}, "format.kind"),
    (KAFKA, {"source": {**FILE, "follow": True}, "format.kind": "parquet"}, "source.follow"),
    # schemas
    (
        KAFKA,
        {"source": FILE, "format.kind": "json-schema", "registry.url": "http://a"},
        "format.kind",
    ),
    (
        KAFKA,
        {"source": {**FILE, "follow": True}, "format.kind": "avro"},
        "source.follow",
    ),
    (KAFKA, {"predictions": {"path": "p", "format": "avro"}}, "predictions.format"),
    (KAFKA, {"predictions": {"topic": "p", "format": "avro"}}, "predictions.format"),
    (KAFKA, {"dead_letters": {"path": "p", "format": "avro"}}, "dead_letters.format"),
    # features
    (KAFKA, {"features.fields": {"a": "numbr"}}, "features.fields.a"),
    (KAFKA, {"format": COLUMNS, "features.fields": {"b": "number"}}, "features.fields.b"),
    (KAFKA, {"format": COLUMNS, "features.fields": {"a^b": "interaction"}}, "features.fields.a^b"),
    (KAFKA, {"format.time": "t", "features.fields": {"a^t": "interaction"}}, "features.fields.a^t"),
    (KAFKA, {"features.bits": 21}, "features.bits"),
    (KAFKA, {"features.max_bytes": 9_999}, "features.max_bytes"),
    # delayed labels
    (KAFKA, {**DELAYED, "format": {**COLUMNS, "id": "a"}}, "format.kind"),
    (KAFKA, {**DELAYED, "format": {"kind": "vw"}}, "format.kind format.id"),
    (KAFKA, {"labels": {"topic": "labels"}}, "format.id"),
    (KAFKA, {**DELAYED, "format.kept": 0.5}, "format.kept"),
    (KAFKA, {"source": FILE, "format.id": "i", "labels": {"hold_for": 9}}, "labels.hold_for"),
    (
        KAFKA,
        {**DELAYED, "format.labels": [0, 1], "labels.on_timeout": 2},
        "labels.on_timeout",
    ),
    (KAFKA, {**DELAYED, "labels.orphans": True}, "labels.orphans"),
    (KAFKA, {"format.id": "i", "labels": {"format": {"kind": "json"}}}, "labels.format"),
    (KAFKA, {**DELAYED, "labels.format": {"kind": "csv"}}, "labels.format.kind"),
    (KAFKA, {**DELAYED, "labels.format": {"kind": "jsn"}}, "labels.format.kind"),
    (KAFKA, {"format.id": "i", "labels": {"id": "i"}}, "labels.id"),
    (KAFKA, {"format.id": "i", "labels": {"time": "t"}}, "labels.time"),
    (KAFKA, {**DELAYED, "source": FILE}, "labels.topic"),
    (
        KAFKA,
        {**DELAYED, "source.topics": [], "source.pattern": "c.*"},
        "labels.topic",
    ),
    (KAFKA, {**DELAYED, "labels.topic": "a b"}, "labels.topic"),
    (KAFKA, {**DELAYED, "format.labels": [0, 1], "labels.on_timeout": "no"}, "labels.on_timeout"),
    (KAFKA, {**DELAYED, "labels.hold_for": 9}, "source.order"),
    (KAFKA, {**DELAYED, "format": {"id": "id"}}, "format.label"),
    # URLs where files are meant
    (SYNTHETIC, {"predictions.path": "s3://b/p"}, "predictions.path"),
    (SYNTHETIC, {"dead_letters.path": "s3://b/p"}, "dead_letters.path"),
    (
        SYNTHETIC,
        {"source": {"kind": "file", "paths": ["a", "gs://b/c"]}, "format.label": "y"},
        "source.paths[1]",
    ),
    (
        KAFKA,
        {"backfill": {"paths": ["s3://b/p"], "until": "2026-11-18"}, "format.time": "t"},
        "backfill.paths[0]",
    ),
    (KAFKA, {"serve": {"path": "s3://b/p"}}, "serve.path"),
    (KAFKA, {"checkpoint.path": "s3://b/p", "serve": {}}, "serve.path"),
    # outputs
    (SYNTHETIC, {"predictions.path": "a", "dead_letters.path": "a"}, "dead_letters.path"),
    (
        KAFKA,
        {"source.topics": [], "source.pattern": "a.*", "predictions.topic": "ab"},
        "predictions.topic",
    ),
    # processes
    (KAFKA, {**READERS, "format.labels": "open"}, "format.labels"),
    (KAFKA, {**READERS, "source": FILE}, "fleet.readers"),
    (KAFKA, {**READERS, **PAST, "format.time": "t"}, "fleet.readers"),
    (KAFKA, {**READERS, "format": COLUMNS}, "format.columns"),
    (KAFKA, {"fleet.readers": 1}, "features.kind"),
    (KAFKA, {**WORKERS, "fleet.readers": 1}, "fleet.workers"),
    (KAFKA, {"fleet.min_workers": 2}, "fleet.min_workers"),
    (KAFKA, {**WORKERS, **DELAYED}, "labels"),
    (KAFKA, {**WORKERS, "source.order": "time"}, "source.order"),
    (KAFKA, {**WORKERS, "run.until": "9"}, "run.until"),
    (KAFKA, {**WORKERS, "predictions.path": "-"}, "predictions.path"),
    (KAFKA, {**WORKERS, "dead_letters.path": "-"}, "dead_letters.path"),
    (
        KAFKA,
        {**WORKERS, "predictions": {"learner": "best", "best": {"by": "log_loss"}}},
        "predictions.best",
    ),
    (KAFKA, {**WORKERS, **LOGGED, "source.topics": ["served"]}, "labels serve.log"),
    (KAFKA, {**WORKERS, "learner": [{"name": "a", "calibrated": True}]}, "learner[0]"),
    # serving
    (SYNTHETIC, {"serve": {}}, "checkpoint.path"),
    (KAFKA, {"serve.certfile": __file__}, "serve.certfile"),
    (KAFKA, {"serve.keyfile": __file__}, "serve.certfile"),
    (KAFKA, {"serve": {"certfile": __file__, "keyfile": "none"}}, "serve.keyfile"),
    (KAFKA, {**LOGGED, "source.topics": ["a b", "served"]}, "source.topics[0]"),
    (KAFKA, LOGGED, "serve.log.topic"),
    (KAFKA, {**LOGGED, "source": FILE}, "labels.topic serve.log.topic"),
    (KAFKA, {"source.topics": ["served"], "serve": {"log": {"topic": "served"}}}, "labels.topic"),
    (
        KAFKA,
        {**LOGGED, "source.topics": ["served"], "labels.topic": "served"},
        "labels.topic",
    ),
    (
        KAFKA,
        {**LOGGED, "source.topics": ["served"], "format.kind": "avro", "registry.url": "http://a"},
        "format.kind",
    ),
    (KAFKA, {"serve.split": {"by": "u", "arms": {"default": 1.0}}}, "serve.split.arms"),
    (KAFKA, {**TWO, "serve.split": {"by": "u", "arms": {"a": 0.5, "b": 0.4}}}, "serve.split.arms"),
    (
        KAFKA,
        {**TWO, "serve.split": {"by": "u", "arms": {"a": 0.5, "c": 0.5}}},
        "serve.split.arms.c",
    ),
    (KAFKA, {"serve.learners": ["a"]}, "serve.learners[0]"),
    (KAFKA, {"serve.learner": "a"}, "serve.learner"),
    (KAFKA, {**TWO, "serve": {"learners": ["a"], "learner": "b"}}, "serve.learner"),
    # learners
    (KAFKA, {"learner": [{**REGRESSION, "class_weight": {"1": 2.0}}]}, "learner[0].class_weight"),
    (KAFKA, {"learner": [{**REGRESSION, "calibrated": True}]}, "learner[0].calibrated"),
    (KAFKA, {"learner": [REGRESSION], "format.kept": 0.5}, "format.kept"),
    (KAFKA, {"learner": [REGRESSION], "format.label_warmup": 9}, "format.label_warmup"),
    (KAFKA, {"learner": [REGRESSION], "format.max_classes": 9}, "format.max_classes"),
    (KAFKA, {"learner": [REGRESSION], "format.labels": [0, 1]}, "format.labels"),
    (
        KAFKA,
        {"learner": [{"name": "a", "start": __file__, "model": "PegasosClassifier()"}]},
        "learner[0].model",
    ),
    (KAFKA, {"learner": [{"name": "a", "start": __file__, "loss": "Hinge()"}]}, "learner[0].loss"),
    (KAFKA, {**DELAYED, "labels.corrections": True}, "labels.corrections"),
    (
        KAFKA,
        {
            **DELAYED,
            "labels": {"topic": "l", "corrections": True, "on_timeout": False},
            "learner": [{"name": "a", "rule": "MirrorDescent()"}],
        },
        "labels.corrections",
    ),
    (
        KAFKA,
        {"learner": [REGRESSION], "predictions": {"learner": "best", "best": {"by": "error"}}},
        "predictions.best.by",
    ),
]
WITHOUT: list[tuple[str, dict[str, Any], str]] = [  # a package
    ("confluent_kafka", {"source.client": "confluent"}, "source.client"),
    ("obstore", {"checkpoint.path": "s3://bucket/state"}, "checkpoint.path"),
    ("ray", READERS, "fleet.readers"),
    ("ray", WORKERS, "fleet.workers"),
    ("pyarrow", {"source": FILE, "format.kind": "parquet"}, "format.kind"),
    ("pyarrow", {**PAST, "format.time": "t", "backfill.paths": ["a.parquet"]}, "backfill.kind"),
    ("fastavro", {"format.kind": "avro", "registry.url": "http://a"}, "format.kind"),
    ("google.protobuf", {"format.kind": "protobuf", "registry.url": "http://a"}, "format.kind"),
    (
        "fastavro",
        {"predictions": {"topic": "p", "format": "avro"}, "registry.url": "http://a"},
        "predictions.format",
    ),
]
ACCEPTED: list[tuple[str, dict[str, Any]]] = [  # what is just not refused
    (SYNTHETIC, {"features.max_bytes": 0}),
    (SYNTHETIC, {"features.max_bytes": 10_000}),
    (SYNTHETIC, {"run.until": "1"}),
    (SYNTHETIC, {"run.until": "end"}),
    (SYNTHETIC, {"source": {**DELAYED_STREAM, "events": 1}, "labels": {"hold_for": 9}}),
    (KAFKA, {"source.topics": ["a" * 249]}),
    (KAFKA, {"source.topics": [], "source.pattern": "c.*"}),
    (KAFKA, {"source.security": SASL}),
    (KAFKA, {"source.security": TOKEN}),
    (
        KAFKA,
        {
            "source.security": {
                "protocol": "SSL",
                "cafile": __file__,
                "certfile": __file__,
                "keyfile": __file__,
            }
        },
    ),
    (KAFKA, {**PAST, "format.time": "t", "backfill.offsets": {"clicks:0": 0}}),
    (KAFKA, {"format": {**COLUMNS, "delimiter": ";", "decimal": ","}}),
    (KAFKA, {"format.root": "a.b"}),
    (SYNTHETIC, {"run.until": 5}),
    (SYNTHETIC, {"run.until": "5"}),
    (SYNTHETIC, {"telemetry.protect_metrics": True, "telemetry.token": "t"}),
    (SYNTHETIC, {"learner": [{"name": "a", "seed": 5, "average": "random"}]}),
    (KAFKA, {"format.labels": [0, 1]}),
    (KAFKA, {"source": {**FILE, "follow": True}, "format": COLUMNS}),
    (KAFKA, {"source": FILE, "format.kind": "avro"}),
    (KAFKA, {"format": COLUMNS, "features.fields": {"a": "number", "*": "ignore"}}),
    (KAFKA, {"source": FILE, "format.id": "i", "format.time": "t", "labels": {"hold_for": 9}}),
    (KAFKA, {**DELAYED, "format.labels": [0, 1], "labels.on_timeout": 1}),
    (KAFKA, {**DELAYED, "labels.orphans": True, "dead_letters.path": "d"}),
    (KAFKA, {**DELAYED, "source.order": "time", "labels.hold_for": 9}),
    (KAFKA, {**DELAYED, "format": {"id": "id"}, "labels": {"topic": "l", "label": "y"}}),
    (KAFKA, {**DELAYED, "source": {**FILE, "paths": ["events", "labels"]}}),
    (KAFKA, {"predictions.topic": "p", "dead_letters.topic": "d"}),
    (KAFKA, {"predictions.path": "p", "dead_letters.path": "d"}),
    (KAFKA, {**READERS, "run.until": "9", "source.order": "time", "predictions.path": "p"}),
    (KAFKA, {**WORKERS, "fleet.min_workers": 2, "run.until": "end"}),
    (KAFKA, {**LOGGED, "source.topics": ["clicks", "served"]}),
    (KAFKA, {**LOGGED, "source.topics": [], "source.pattern": "served|labels"}),
    (KAFKA, {**TWO, "serve.split": {"by": "u", "arms": {"a": 0.9, "b": 0.1}}}),
    (KAFKA, {**TWO, "serve": {"learners": ["b"], "learner": "b", "certfile": None}}),
    (KAFKA, {"learner": [REGRESSION], "format.kept": 1.0}),
    (KAFKA, {"format.kind": "avro", "registry": {"url": "http://a,http://b", "wait_seconds": 39}}),
]


def refused(base: str, change: dict[str, Any]) -> set[str]:
    """Return the keys that are named."""
    try:
        config.parse(base, overrides=change, environ={})
    except ConfigError as error:
        return {problem.path for problem in error.problems}
    return set()


def absent(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a package be none that is installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find(name)
    )


@pytest.mark.parametrize(("base", "change", "paths"), REFUSED)
def test_an_invalid_configuration_names_its_key(
    base: str, change: dict[str, Any], paths: str
) -> None:
    assert refused(base, change) == set(paths.split())


@pytest.mark.parametrize(("package", "change", "path"), WITHOUT)
def test_what_needs_a_package_is_refused_without_it(
    package: str, change: dict[str, Any], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(KAFKA, change) == set()
    absent(package, monkeypatch)
    assert refused(KAFKA, change) == {path}


@pytest.mark.parametrize(("base", "change"), ACCEPTED)
def test_what_is_just_not_refused_is_accepted(base: str, change: dict[str, Any]) -> None:
    assert refused(base, change) == set()


def test_every_problem_that_a_check_finds_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: set[tuple[str, int]] = set()
    new = ConfigProblem.__new__

    def recorded(*given: Any, **named: Any) -> ConfigProblem:
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        reached.add((frame.f_back.f_code.co_filename, frame.f_back.f_lineno))
        made: ConfigProblem = new(*given, **named)
        return made

    monkeypatch.setattr(ConfigProblem, "__new__", recorded)
    for base, change, _ in REFUSED:
        refused(base, change)
    for package, change, _ in WITHOUT:
        with pytest.MonkeyPatch.context() as patch:
            absent(package, patch)
            refused(KAFKA, change)
    sites = {
        (str(path), node.lineno)
        for path in [*Path(checks.__file__).parent.glob("*.py"), Path(learners.__file__)]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "ConfigProblem"
    }
    assert len(sites) > 90
    assert sites - reached == set()
