"""Training on encrypted data: logistic regression by Nesterov's gradient descent, 30 steps, and a principal component.

``python training.py [FOLDER]`` takes 128 patients and 7 features at an insecure degree, in seconds; ``--secure`` takes all
patients for training and all 30 features at 128 bits (N = 2^16), where each refresh takes many seconds and all of it up to
10 GB. Features and labels are encrypted; the plot has loss and levels over time. It needs what
``pip install './crates/synchromesh-py[plot,progress]'`` installs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from tqdm import tqdm

import synchromesh as sm

matplotlib.use("agg")
import matplotlib.pyplot as plt

DATA = Path(__file__).parents[2] / "synchromesh-cli/data/breast_cancer_wisconsin.csv"
# Of the worst cells: radius, texture, concave points, smoothness, perimeter, area, concavity.
FEATURES = [20, 21, 27, 24, 22, 23, 26]
RATE, PENALTY = 1.0, 0.05


@dataclass(frozen=True)
class Patients:
    """Features in [-1, 1] with a column of ones, and labels: 1 for malignant, -1 for benign."""

    features: np.ndarray
    labels: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray

    @classmethod
    def load(cls, columns: list[int], rows: int | None) -> Patients:
        """The shipped table; every fifth patient is for testing."""
        table = np.loadtxt(DATA, delimiter=",", skiprows=1)
        test = np.arange(len(table)) % 5 == 0
        x, y = table[:, columns], 2 * table[:, -1] - 1
        mean, deviation = x[~test].mean(axis=0), x[~test].std(axis=0)
        x = np.column_stack([np.clip((x - mean) / (3 * deviation), -1, 1), np.ones(len(x))])
        return cls(x[~test][:rows], y[~test][:rows], x[test], y[test])

    def accuracy(self, weights: np.ndarray) -> float:
        """Of the patients for testing."""
        return float(((self.test_features @ weights > 0) == (self.test_labels > 0)).mean())

    def loss(self, weights: np.ndarray) -> float:
        """The mean of log(1 + exp(-margin)) of those for training."""
        return float(np.log1p(np.exp(-self.labels * (self.features @ weights))).mean())


def likelihood(margin: Any, reach: float) -> Any:
    """1 / (1 + exp(margin)), or rather the cubic polynomial next to it at Chebyshev's points in [-reach, reach]."""
    odd = np.polynomial.chebyshev.Chebyshev.interpolate(lambda u: 1 / (1 + np.exp(u)), 3, [-reach, reach])
    c = odd.convert(kind=np.polynomial.Polynomial).coef * [1, 1, 0, 1]
    return margin.polynomial(c) if isinstance(margin, sm.Tensor) else np.polynomial.polynomial.polyval(margin, c)


def within(x: Any, bound: float) -> Any:
    """The same numbers, of which we know how large they are."""
    return x.declare_bound(bound) if isinstance(x, sm.Tensor) else x


def settled(x: Any, bound: float) -> Any:
    """The numbers as they were computed: what they are off by is mended by the steps to come."""
    return within(x.as_computed(), bound) if isinstance(x, sm.Tensor) else x


def train(x: Any, y: Any, steps: int, reach: float, watch: Callable[[Any, Any], object] | None = None) -> Any:
    """Weights w that fit the labels y = 1 or -1 by the sign of x w, encrypted or not."""
    z = x * y[:, None]
    w = v = None
    t = 1.0
    for _ in range(steps):
        p = 0.5 if v is None else within(likelihood(within(z @ v, reach), reach), 1)[:, None]
        rise = RATE * (z * p).mean(axis=0)
        ahead = settled(within(rise if v is None else (1 - RATE * PENALTY) * v + rise, 1), 1)
        t, before = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        v = ahead if w is None else settled(within(ahead + (before - 1) / t * (ahead - w), 1), 1)
        w = ahead
        if watch is not None:
            watch(w, v)
    return w


def principal(x: Any, start: np.ndarray, steps: int, gain: float = 2.5) -> Any:
    """The direction in which centred rows x vary most, by power iteration; its length is held near 1 by a Newton step.

    ``gain`` times the largest variance is to be between 2/3 and 1.
    """
    v = start
    for _ in range(steps):
        v = within(gain * within((x * within(x @ v, 2)[:, None]).mean(axis=0), 1 / gain), 1)
        # v (3 - |v|^2) / 2 is nearer to length 1.
        v = settled(within(v * (1.5 - 0.5 * within((v * v).sum(), 1)), 1), 1)
    return v


def draw(patients: Patients, losses: list[list[float]], levels: list[tuple[int, int]], plan: sm.Plan, path: Path) -> None:
    """Loss over the steps, and the levels of what the plan's dry run makes, refreshes as points."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 5), width_ratios=[2, 3])
    for name, values, style in zip(("in the clear", "encrypted"), losses, ("-", "o")):
        left.plot(range(1, len(values) + 1), values, style, markersize=4, label=name)
    left.set(xlabel="step", ylabel="loss", title=f"{len(patients.labels)} encrypted patients, {patients.features.shape[1]} weights")
    left.legend()
    shown = [level for _, level, _ in plan.trace]
    right.step(range(1, len(shown) + 1), shown, where="post", linewidth=0.8, color="tab:orange")
    at = [refresh.operation for refresh in plan.refreshes if refresh.operation is not None]
    right.plot(at, [shown[k - 1] for k in at], "o", markersize=4, color="tab:blue", label="is refreshed before it is used")
    right.set(xlabel="operation", ylabel="level", title=f"{sum(r.ciphertexts for r in plan.refreshes)} refreshes in {len(levels)} steps")
    right.yaxis.get_major_locator().set_params(integer=True)
    right.legend(loc="upper right")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def run_training(patients: Patients, steps: int, secure: bool, folder: Path) -> tuple[float, float]:
    """Plans, trains, decrypts, draws; accuracies of encrypted training and of the same in the clear."""
    reach = 8.0 if patients.features.shape[1] > 8 else 4.0
    clear: list[np.ndarray] = []
    train(patients.features, patients.labels, steps, reach, lambda w, _: clear.append(w))

    # At 128 bits the levels between two refreshes that take the least time each, and no more memory than many have.
    strict: dict[str, Any] = {"max_memory_bytes": 10 << 30}
    options = strict if secure else {"security": "insecure", "depth": 8}
    shapes = [patients.features.shape, patients.labels.shape]
    plan = sm.plan(lambda x, y: train(x, y, steps, reach), shapes, precision=12, bootstrap=True, progress=True, **options)
    print(plan)
    print(plan.explain().split("\ninput:")[0], flush=True)
    context = sm.Context(plan, insecure=not secure)
    keys = context.keygen(progress=True)
    x, y = context.encrypt(patients.features), context.encrypt(patients.labels)

    losses: list[float] = []
    levels: list[tuple[int, int]] = []
    start = time.perf_counter()
    with tqdm(total=steps, desc="encrypted steps") as bar:

        def watch(w: Any, v: Any) -> None:
            # For the picture, by the owner of the key; whoever trains sees nothing of it.
            losses.append(patients.loss(keys.secret.decrypt(w)))
            levels.append((w.level, v.level))
            bar.update()

        trained = train(x, y, steps, reach, watch)
    found = keys.secret.decrypt(trained)
    print(f"trained in {time.perf_counter() - start:.1f} s; weights are off by {np.abs(found - clear[-1]).max():.2g}")
    folder.mkdir(parents=True, exist_ok=True)
    draw(patients, [[patients.loss(w) for w in clear], losses], levels, plan, folder / "training.png")
    print(f"plot: {folder / 'training.png'}")
    return patients.accuracy(found), patients.accuracy(clear[-1])


def run_principal(patients: Patients, steps: int) -> float:
    """The cosine between the encrypted power iteration's direction and NumPy's principal component."""
    x = patients.features[:, :-1]
    x = np.column_stack([(x - x.mean(axis=0)) / 1.1, np.zeros(len(x))])
    start = np.full(x.shape[1], 0.25)
    plan = sm.plan(
        lambda x: principal(x, start, steps), [x.shape], precision=12, depth=8, bootstrap=2, security="insecure"
    )
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    found = keys.secret.decrypt(principal(context.encrypt(x), start, steps))
    component = np.linalg.svd(x)[2][0]
    return float(abs(found @ component) / np.linalg.norm(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default="out", type=Path)
    parser.add_argument("--secure", action="store_true", help="128 bits, all patients for training, all features")
    parser.add_argument("--steps", type=int, default=30)
    args = parser.parse_args()
    patients = Patients.load(list(range(30)), None) if args.secure else Patients.load(FEATURES, 128)
    encrypted, clear = run_training(patients, args.steps, args.secure, args.folder)
    print(f"accuracy {encrypted:.4f}, of the same steps in the clear {clear:.4f}")
    assert abs(encrypted - clear) <= 1 / len(patients.test_labels) + 1e-9
    if not args.secure:
        cosine = run_principal(patients, 20)
        print(f"principal component by 20 encrypted steps: cosine {cosine:.6f}")
        assert cosine > 0.99


if __name__ == "__main__":
    main()
