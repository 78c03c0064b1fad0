"""`streamlearn train FILE --label L`, without an option, compared with scikit-learn on a table.

python -m benchmarks.train [--rows N] [--seeds N] [--fast-rows N]

Quality: a table of clicks with integer ids, a time, missing values and drift, of which 1.7% are
positive; the last 20% by time are held out. `train` guesses what the columns are and learns in one
pass; LogisticRegression has one-hot ids, hour and weekday made by hand, imputed and scaled numbers,
and the best of three C on the held-out rows themselves. Both sides are frozen there.

Speed: the command as a process, from its start to its end, on a longer table.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.report import table

Columns = dict[str, Any]

HELD_OUT = 0.2
STRENGTHS = (0.1, 0.3, 1.0)  # C of LogisticRegression
MOST_LOSS = 1.01  # times scikit-learn's
MOST_AREA = 0.005  # below scikit-learn's
LEAST_RATE = 300_000.0  # rows a second
CATEGORIES = ("user_id", "ad_id", "site_id", "device", "country")
NUMBERS = ("price", "age", "visits", "returning")


def clicks(rows: int, seed: int = 0) -> tuple[Columns, Any]:
    """Return the columns of a table, None where a value is missing, and its labels."""
    rng = np.random.default_rng(seed)
    users, days = 20_000, 28
    seconds = 1_700_000_000 + np.sort(rng.integers(days * 86_400, size=rows))
    user = rng.zipf(1.3, rows) % users
    ad, site = rng.integers(500, size=rows), rng.zipf(1.5, rows) % 300
    device, country = rng.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05]), rng.zipf(1.6, rows) % 40
    price = rng.lognormal(3.0, 1.0, rows).round(2)
    age = np.clip(rng.normal(38.0, 14.0, rows), 16, 90).astype(int)
    visits, returning = rng.geometric(0.2, rows) - 1, rng.random(rows) < 0.3
    passed = (seconds - seconds[0]) / (days * 86_400)
    before = rng.normal(0.0, 0.7, 500)
    after = before + rng.normal(0.0, 0.6, 500)  # what an ad is worth drifts
    score = -5.75 + rng.normal(0.0, 0.8, users)[user] + rng.normal(0.0, 0.5, 300)[site]
    score += before[ad] * (1.0 - passed) + after[ad] * passed
    score += np.array([0.0, 0.4, -0.3, 0.8])[device] + rng.normal(0.0, 0.4, 40)[country]
    score += 0.7 * np.sin(2.0 * np.pi * (seconds // 3600 % 24) / 24)
    score += 0.5 * ((seconds // 86_400 + 3) % 7 >= 5)
    score += 0.015 * (age - 38.0) + 0.05 * np.minimum(visits, 15) + 0.5 * returning
    score += 0.5 * (passed - 0.5) - 0.35 * (np.log(price) - 3.0)
    labels = (rng.random(rows) < 1.0 / (1.0 + np.exp(-score))).astype(int)
    missing = rng.random((rows, 3)) < (0.05, 0.1, 0.1)
    columns: Columns = {
        "event_id": np.arange(rows) + 10_000_000,
        "ts": [datetime.fromtimestamp(int(one), UTC).isoformat() for one in seconds],
        "user_id": rng.permutation(users)[user] + 1000,
        "ad_id": ad + 77_000,
        "site_id": without(site, missing[:, 0]),
        "device": np.array(["phone", "desktop", "tablet", "tv"])[device],
        "country": [f"C{one}" for one in country],
        "price": without(price, missing[:, 1]),
        "age": without(age, missing[:, 2]),
        "visits": visits,
        "returning": returning.astype(int),
        "source": ["web"] * rows,
    }
    return columns, labels


def without(values: Any, missing: Any) -> list[Any]:
    """Return values, None where they are missing."""
    return [None if gone else x for x, gone in zip(values.tolist(), missing.tolist(), strict=True)]


def write(path: Path, columns: Columns, labels: Any, copies: int = 1) -> None:
    """Write a table as CSV, its rows several times."""
    lists = [list(column) for column in columns.values()]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "clicked"])
        for _ in range(copies):
            writer.writerows(zip(*lists, labels.tolist(), strict=True))


def ours(path: Path) -> tuple[float, float]:
    """Return log-loss and area under the ROC curve of the held-out rows."""
    facts = train(path, "--holdout", f"last:{HELD_OUT:.0%}")["holdout"]
    return facts["loss"], facts["ROC area"]


def train(path: Path, *options: str) -> dict[str, Any]:
    """Run the command, and return what it prints."""
    command = [sys.executable, "-m", "streamlearn", "train", str(path), "--label", "clicked"]
    command += [*options, "--json"]
    done = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 -- ourselves
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def by_hand(columns: Columns, labels: Any) -> Any:
    """Return the features that a scikit-learn user makes."""
    first = round((1.0 - HELD_OUT) * len(labels))
    moments = [datetime.fromisoformat(one) for one in columns["ts"]]
    parts = [[one.hour for one in moments], [one.weekday() for one in moments]]
    texts = np.array([*(columns[name] for name in CATEGORIES), *parts], dtype=object).T.astype(str)
    one_hot = OneHotEncoder(handle_unknown="ignore").fit(texts[:first]).transform(texts)
    numbers = []
    for name in NUMBERS:
        x = np.array(columns[name], dtype=float)
        absent = np.isnan(x)
        numbers += [np.where(absent, np.nanmean(x[:first]), x), absent.astype(float)]
    dense = np.array(numbers).T
    return sp.hstack([one_hot, StandardScaler().fit(dense[:first]).transform(dense)]).tocsr()


def theirs(columns: Columns, labels: Any) -> tuple[float, float]:
    """Return the least log-loss and the largest area that a C reaches."""
    x, first = by_hand(columns, labels), round((1.0 - HELD_OUT) * len(labels))
    losses, areas = [], []
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=500).fit(x[:first], labels[:first])
        found = model.predict_proba(x[first:])[:, 1]
        losses.append(log_loss(labels[first:], found))
        areas.append(roc_auc_score(labels[first:], found))
    return min(losses), max(areas)


def quality(rows: int, seeds: int, directory: Path) -> Iterator[list[str]]:
    """Yield a row for each table."""
    for seed in range(seeds):
        columns, labels = clicks(rows, seed)
        path = directory / "clicks.csv"
        write(path, columns, labels)
        loss, area = ours(path)
        other_loss, other_area = theirs(columns, labels)
        holds = loss <= MOST_LOSS * other_loss and area >= other_area - MOST_AREA
        yield [
            f"{seed}: {labels.mean():.2%} positive",
            f"{loss:.5f}, {area:.4f}",
            f"{other_loss:.5f}, {other_area:.4f}",
            f"{loss / other_loss - 1.0:+.2%}, {area - other_area:+.4f}",
            "yes" if holds else "NO",
        ]


def speed(rows: int, directory: Path) -> list[str]:
    """Return the row of the speed."""
    columns, labels = clicks(200_000)
    path = directory / "long.csv"
    write(path, columns, labels, rows // 200_000)
    start = time.perf_counter()
    learned = train(path)["learned"]
    seconds = time.perf_counter() - start
    rate = learned / seconds
    return [f"{learned:,}", f"{seconds:.2f}", f"{rate:,.0f}", "yes" if rate >= LEAST_RATE else "NO"]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--fast-rows", type=int, default=2_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        head = [
            "log-loss, ROC area of the held-out rows",
            "train",
            "best LogisticRegression",
            "difference",
            f"within {MOST_LOSS - 1.0:.0%} and {MOST_AREA}",
        ]
        print(table(head, quality(options.rows, options.seeds, directory)), end="\n\n")
        head = ["rows", "seconds, start to end", "rows/s", f"at least {LEAST_RATE:,.0f}"]
        print(table(head, [speed(options.fast_rows, directory)]))


if __name__ == "__main__":
    main()
