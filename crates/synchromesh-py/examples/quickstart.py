"""Quickstart: a model fitted in the clear scores encrypted patients; the plot shows levels, precision and scores."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import matplotlib
import numpy as np

import synchromesh as sm

matplotlib.use("agg")
import matplotlib.pyplot as plt

DATA = Path(__file__).parents[2] / "synchromesh-cli/data/breast_cancer_wisconsin.csv"


def main(folder: Path) -> None:
    table = np.loadtxt(DATA, delimiter=",", skiprows=1)
    test = np.arange(len(table)) % 5 == 0
    features, labels = table[:, :-1], table[:, -1]

    # The hospital fits a model on patients whose diagnosis is known.
    model = sm.linear_model.LogisticRegression(clamp=1.5, alpha=10.0).fit(features[~test], labels[~test])
    patients = model.transform(features[test])

    # What shall be computed on encrypted patients: the model's own function, run once without data.
    start = time.perf_counter()
    plan = sm.plan(model.predict_proba, [patients.shape], precision=10)
    print(plan)
    print(plan.explain())
    print(f"planned in {time.perf_counter() - start:.1f} s; forecast {plan.memory()['total'] / 2**20:.0f} MiB")

    start = time.perf_counter()
    context = sm.Context(plan)
    keys = context.keygen()
    encrypted = context.encrypt(patients)
    print(f"keys and encryption in {time.perf_counter() - start:.1f} s: {encrypted}")

    start = time.perf_counter()
    scores = model.predict_proba(encrypted)
    print(f"scores in {time.perf_counter() - start:.1f} s: {scores}")

    found = keys.secret.decrypt(scores)
    clear = model.predict_proba(patients)
    accuracy = float(((found > 0.5) == labels[test]).mean())
    print(f"accuracy {accuracy:.4f}, in the clear {float(((clear > 0.5) == labels[test]).mean()):.4f}")
    assert abs(accuracy - 110 / 114) < 0.02

    folder.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 5))
    plan.plot(left)
    for label, colour, name in ((0, "tab:blue", "benign"), (1, "tab:red", "malignant")):
        own = labels[test] == label
        right.scatter(clear[own], found[own], s=14, color=colour, label=name)
    right.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    right.set(xlabel="score in the clear", ylabel="score of the encrypted patient")
    right.legend()
    figure.tight_layout()
    path = folder / "quickstart.png"
    figure.savefig(path, dpi=110)
    print(f"plot: {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out"))
