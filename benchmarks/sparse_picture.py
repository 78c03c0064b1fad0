"""The picture of `benchmarks.sparse`: objective against non-zero weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from benchmarks.sparse_baselines import Result

SETS = ("a9a", "phishing", "sms_spam", "spambase")
STRENGTHS = (1e-3, 1e-4)


def frontier(results: list[Result]) -> list[Result]:
    """Return the results that no other beats in both, from few to many weights."""
    kept: list[Result] = []
    for one in sorted(results, key=lambda one: (one.nonzero, one.objective)):
        if not kept or one.objective < kept[-1].objective:
            kept.append(one)
    return kept


def draw(ours: Mapping[str, Result], stored: Mapping[str, Any], path: Path) -> None:
    """Draw a panel for each set and strength; the baselines have all their settings."""
    figure = Figure(figsize=(13.0, 6.0), layout="constrained")
    panels = figure.subplots(len(STRENGTHS), len(SETS), squeeze=False)
    for line, strength in zip(panels, STRENGTHS, strict=True):
        for panel, name in zip(line, SETS, strict=True):
            key = f"{name} {strength:g}"
            panel.set_title(f"{name}, l1 = {strength:g}", fontsize=10)
            if key not in stored or key not in ours:
                continue
            least = np.inf
            for k, (family, settings) in enumerate(stored[key]["settings"].items()):
                points = frontier([Result(*numbers) for numbers in settings.values()])
                least = min(least, points[-1].objective)
                xs, ys = [one.nonzero for one in points], [one.objective for one in points]
                panel.step(xs, ys, where="post", color=f"C{k}", lw=1.0, marker=".", label=family)
            one = ours[key]
            panel.plot(one.nonzero, one.objective, "k*", ms=13, label="default, one setting")
            batch = stored[key]["batch"]
            panel.axvline(batch, color="0.6", lw=0.8, ls=":")
            panel.set_ylim(0.97 * min(one.objective, least), 1.35 * least)
            panel.set_xscale("log")
            panel.set_xlim(0.4 * min(one.nonzero, batch), 5.0 * max(one.nonzero, batch))
            for axis in (panel.xaxis.set_major_formatter, panel.xaxis.set_minor_formatter):
                axis(LogFormatter(minor_thresholds=(2.0, 0.5)))
    figure.supxlabel("non-zero weights (dotted: of the batch optimum)")
    figure.supylabel("progressive objective")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, fontsize=9)
    figure.savefig(path, dpi=110)
