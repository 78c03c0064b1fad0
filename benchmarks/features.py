"""What declared fields cost, and what they are worth on a table of clicks.

python -m benchmarks.features [--events N] [--rows N] [--rounds N]

Cost: records of twelve fields are decoded, and decoded and learned, with four fields declared (a
category, a logarithm, a time and buckets) and with none; and text of 20 words with bigrams against
scikit-learn's HashingVectorizer. Worth: the log-loss of the default learner on the second half of a
click table, after the first half; scikit-learn fits one-hot categories, hour and weekday on the
first half, in any number of passes.
"""

import argparse
import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

import streamlearn as sl
from benchmarks.report import alternate, table, unprepared
from streamlearn.stream import Events, Fields, decoder_of

Record = dict[str, Any]

BITS = 18
DECLARED = {
    "user_id": "category",
    "price": "number(log1p)",
    "ts": "time(hour, weekday, zone='Europe/Berlin')",
    "age": "buckets(18, 25, 35, 50, 65)",
}
MOST_COST = 1.3  # times the record without transforms
LEAST_SPEED = 5.0  # times HashingVectorizer
CLICKS = {
    "user_id": "category",
    "ad_id": "category",
    "site": "category",
    "price": "buckets(20)",
    "ts": "time(hour, weekday)",
    "query": "text(binary)",
    "event_id": "ignore",
}


def records(count: int, seed: int = 0) -> list[Record]:
    """Return records of twelve fields."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {
        "user_id": rng.integers(10**6, size=count).tolist(),
        "price": rng.exponential(30.0, count).round(2).tolist(),
        "ts": (1_700_000_000 + rng.integers(3 * 10**7, size=count)).tolist(),
        "age": rng.integers(12, 90, size=count).tolist(),
    }
    for k in range(4):
        columns[f"word{k}"] = [f"value-{n}" for n in rng.integers(1000, size=count).tolist()]
        columns[f"number{k}"] = rng.normal(0.0, 10.0, count).round(4).tolist()
    columns["label"] = rng.integers(2, size=count).tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def as_json(rows: list[Record]) -> list[bytes]:
    """Return records as JSON."""
    return [json.dumps(row, separators=(",", ":")).encode() for row in rows]


def as_csv(rows: list[Record]) -> list[bytes]:
    """Return records as CSV, with their header."""
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode().splitlines()


def decode(kind: str, lines: list[bytes], fields: dict[str, str]) -> None:
    """Decode records to rows, in batches."""
    decoder = decoder_of(
        kind, sl.Hashing(BITS, fields=fields), Fields(label="label"), grow_always=True
    )
    events = Events()
    for start in range(0, len(lines), 2000):
        events.clear()
        decoder.decode(lines[start : start + 2000], events)


def learn(kind: str, lines: list[bytes], fields: dict[str, str]) -> None:
    """Decode records to rows and learn them with the default learner, in batches."""
    model = sl.LinearClassifier(features=sl.Hashing(BITS, fields=fields))
    decoder = decoder_of(kind, model.reader, Fields(label="label"), [model])
    events = Events()
    for start in range(0, len(lines), 2000):
        events.clear()
        decoder.decode(lines[start : start + 2000], events)
        model.progressive_events(events)


def costs(count: int, rounds: int, run: Callable[..., None]) -> Iterator[list[str]]:
    """Yield a row for each format: microseconds a record without and with transforms."""
    rows = records(count)
    for kind, lines in (("json", as_json(rows)), ("csv", as_csv(rows))):
        sides = {
            name: partial(unprepared, partial(run, kind, lines, fields))
            for name, fields in (("plain", {}), ("declared", DECLARED))
        }
        found = alternate(sides, rounds)
        ratio = found["plain"].ratio(found["declared"])[0]
        yield [
            f"{run.__name__} {kind}",
            found["plain"].per_event(count),
            found["declared"].per_event(count),
            f"{ratio:.2f}",
            verdict(ratio <= MOST_COST, f"at most {MOST_COST}"),
        ]


def text_speed(count: int, rounds: int, seed: int = 0) -> list[str]:
    """Return the row of text with bigrams against scikit-learn."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{k}" for k in range(20_000)])
    texts = [" ".join(row) for row in words[rng.integers(len(words), size=(count, 20))]]
    lines = as_json([{"text": text} for text in texts])
    vectorizer = HashingVectorizer(n_features=1 << BITS, ngram_range=(1, 2), alternate_sign=False)
    found = alternate(
        {
            "scikit-learn": partial(unprepared, partial(vectorizer.transform, texts)),
            "streamlearn": partial(
                unprepared, partial(decode, "json", lines, {"text": "text(ngrams=2, normalized)"})
            ),
        },
        rounds,
    )
    ratio = found["streamlearn"].ratio(found["scikit-learn"])[0]
    return [
        "text of 20 words, bigrams",
        found["scikit-learn"].per_event(count),
        found["streamlearn"].per_event(count),
        f"{ratio:.1f}",
        verdict(ratio >= LEAST_SPEED, f"at least {LEAST_SPEED}"),
    ]


def clicks(count: int, seed: int = 0) -> tuple[list[Record], list[bool]]:
    """Return a table of clicks: integer ids, a time, a query, missing values; 2 % are clicked.

    What counts are the user, the ad, the site, the hour, the weekend, the words of the query, and
    the price, whose effect is not linear.
    """
    rng = np.random.default_rng(seed)
    users = rng.zipf(1.3, count) % 20_000
    ads = rng.integers(500, size=count)
    sites = rng.integers(60, size=count)
    seconds = 1_700_000_000 + np.sort(rng.integers(28 * 86_400, size=count))
    price = rng.lognormal(3.0, 1.0, count).round(2)
    queries = rng.integers(200, size=(count, 3))
    score = -5.0 + rng.normal(0.0, 0.8, 20_000)[users] + rng.normal(0.0, 0.7, 500)[ads]
    score += rng.normal(0.0, 0.4, 60)[sites] + rng.normal(0.0, 0.5, 200)[queries].sum(axis=1)
    hour, day = seconds // 3600 % 24, seconds // 86_400 % 7
    score += 0.9 * np.sin(2 * np.pi * hour / 24) + 0.5 * ((day == 2) | (day == 3))
    score -= 0.8 * np.abs(np.log(price) - 3.0)
    labels = rng.random(count) < 1.0 / (1.0 + np.exp(-score))
    missing = rng.random((count, 3)) < 0.05
    rows = []
    for i in range(count):
        row: Record = {
            "event_id": f"{i:08x}",
            "user_id": int(users[i]),
            "ad_id": int(ads[i]),
            "site": f"site-{sites[i]}",
            "ts": datetime.fromtimestamp(int(seconds[i]), UTC).isoformat(),
            "price": float(price[i]),
            "query": " ".join(f"w{k}" for k in queries[i].tolist()),
        }
        for name, absent in zip(("site", "price", "query"), missing[i].tolist(), strict=True):
            if absent:
                row[name] = None
        rows.append(row)
    return rows, labels.tolist()


def progressive(rows: list[Record], labels: list[bool], fields: dict[str, str]) -> list[float]:
    """Return the default learner's probabilities, each before its label is learned."""
    model = sl.LinearClassifier(features=sl.Hashing(20, fields=fields))
    found = []
    for row, label in zip(rows, labels, strict=True):
        found.append(model.predict_proba_one(row).get(True, 0.5))
        model.learn_one(row, label)
    return found


def one_hot(row: Record) -> Iterator[str]:
    """Yield what a scikit-learn user would encode."""
    moment = datetime.fromisoformat(row["ts"])
    for name in ("user_id", "ad_id", "site"):
        yield f"{name}={row[name]}"
    yield f"hour={moment.hour}"
    yield f"weekday={moment.weekday()}"
    yield f"price={'none' if row['price'] is None else round(2 * np.log(row['price']))}"
    for word in (row["query"] or "").split():
        yield f"query={word}"


def batch(rows: list[Record], labels: list[bool]) -> Any:
    """Return scikit-learn's probabilities for the second half, fitted on the first."""
    hasher = FeatureHasher(1 << 20, input_type="string", alternate_sign=False)
    x, half = hasher.transform([list(one_hot(row)) for row in rows]), len(rows) // 2
    model = LogisticRegression(C=0.3, max_iter=300).fit(x[:half], labels[:half])
    return model.predict_proba(x[half:])[:, 1]


def worth(count: int) -> Iterator[list[str]]:
    """Yield a row for each way to encode the click table."""
    rows, labels = clicks(count)
    half = count // 2
    sides: dict[str, Callable[[], Any]] = {
        "undeclared": lambda: progressive(rows, labels, {})[half:],
        "declared": lambda: progressive(rows, labels, CLICKS)[half:],
        "scikit-learn, one-hot": lambda: batch(rows, labels),
    }
    found = {name: side() for name, side in sides.items()}
    losses = {name: log_loss(labels[half:], one) for name, one in found.items()}
    for name, one in found.items():
        auc = roc_auc_score(labels[half:], one)
        mark = (
            ""
            if name != "declared"
            else verdict(losses[name] <= losses["scikit-learn, one-hot"], "at most scikit-learn's")
        )
        yield [name, f"{losses[name]:.4f}", f"{auc:.3f}", mark]


def verdict(holds: bool, mark: str) -> str:  # noqa: FBT001 - a fact
    """Return whether a mark holds."""
    return f"{mark}: {'yes' if holds else 'NO'}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    head = ["", "without, us", "with, us", "ratio", "mark"]
    rows = [row for run in (decode, learn) for row in costs(options.events, options.rounds, run)]
    print(table(head, rows), end="\n\n")
    head = ["", "scikit-learn, us", "streamlearn, us", "times as fast", "mark"]
    print(table(head, [text_speed(options.events // 5, options.rounds)]), end="\n\n")
    print(table(["click table", "log-loss", "AUC", "mark"], worth(options.rows)))


if __name__ == "__main__":
    main()
