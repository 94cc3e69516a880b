"""Models that scikit-learn fitted in the clear, applied to encrypted samples; CKKS.

:func:`from_sklearn` takes a fitted model apart into what encrypted numbers know: weighted sums, squares, functions on
intervals, comparisons. What it returns is called on a tensor of samples, a row each, or on an array, where it computes the
same in the clear; :meth:`Model.read` makes predictions of what was decrypted. Nothing of scikit-learn is imported: what
counts is what a fitted model holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import functions
from .errors import InputError, ShapeError
from .tensor import Tensor, concatenate

__all__ = ["Model", "from_sklearn"]

Reals = NDArray[np.float64]
# A step on samples, a row each: on a tensor or an array.
Step = Callable[[Any], Any]


class Model:
    """Steps that samples go through, and what their results say."""

    def __init__(self, shape: tuple[int, ...], steps: Sequence[Step], read: Callable[[Reals], Any], what: str) -> None:
        self.shape = shape
        """Of a sample."""
        self.what = what
        """What is computed: values, scores, components, distances or weights."""
        self._steps = tuple(steps)
        self._read = read

    def __call__(self, samples: Any) -> Any:
        """What is computed of samples (n, ..): an array, or a number, for each; encrypted if they are."""
        x = samples if isinstance(samples, Tensor) else np.asarray(samples, dtype=np.float64)
        if x.ndim == 0 or tuple(x.shape[1:]) != self.shape:
            wanted = ", ".join(map(str, self.shape))
            raise ShapeError(
                f"an array of shape {x.shape}, the model takes samples of shape {self.shape}",
                kind="shape",
                remedy=f"pass them as (n, {wanted})",
            )
        return reduce(lambda x, step: step(x), self._steps, x)

    def read(self, results: Any) -> Any:
        """Predictions, as the model's own ``predict`` or ``transform`` makes them, of decrypted results."""
        return self._read(np.asarray(results, dtype=np.float64))

    def __repr__(self) -> str:
        return f"Model(samples of shape {self.shape} to {self.what})"


def from_sklearn(model: Any, *, tolerance: float | None = None, gap: float | None = None) -> Model:
    """A fitted model of scikit-learn for encrypted samples.

    Linear models, regressions and classifiers (scores); ``StandardScaler``, ``MinMaxScaler`` and other scalers that shift
    and divide; ``PCA``; ``KMeans`` (squared distances); ``MLPRegressor`` and ``MLPClassifier``; decision trees for either
    (comparisons: samples within ``gap`` of a threshold are undecided there); and a ``Pipeline`` of these. ``tolerance`` and
    ``gap`` are those of :mod:`synchromesh.functions`. Intervals follow from the bounds of the samples, so that samples and
    weights of moderate size give shallow circuits.
    """
    steps: list[Any] = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    found = [_taken_apart(step, tolerance, gap) for step in steps if not isinstance(step, str) and step is not None]
    if not found:
        raise _unknown(model)
    last = found[-1]
    return Model(found[0].shape, [step for each in found for step in each._steps], last._read, last.what)


def _unknown(model: Any) -> InputError:
    return InputError(
        f"{type(model).__name__} is no fitted model that is known",
        kind="model",
        remedy="fit it first; linear models, scalers, PCA, KMeans, MLPs, single decision trees and pipelines are known: of "
        "others take what they compute, and write it with tensors",
    )


def _taken_apart(model: Any, tolerance: float | None, gap: float | None) -> Model:
    if hasattr(model, "coefs_"):
        return _network(model, tolerance)
    if hasattr(model, "tree_"):
        return _tree(model, tolerance, gap)
    if hasattr(model, "cluster_centers_"):
        return _distances(np.asarray(model.cluster_centers_, dtype=np.float64))
    if hasattr(model, "components_") and hasattr(model, "explained_variance_") and hasattr(model, "mean_"):
        return _components(model)
    if hasattr(model, "coef_") and hasattr(model, "intercept_"):
        return _linear(model)
    if hasattr(model, "scale_") or (hasattr(model, "mean_") and hasattr(model, "with_mean")):
        return _scaled(model)
    raise _unknown(model)


def _affine(weights: Reals, constants: Any) -> Step:
    """x W + c, where nothing is added if c is 0."""
    c = np.asarray(constants, dtype=np.float64)

    def step(x: Any) -> Any:
        y = x @ weights
        return y + c if np.any(c) else y

    return step


def _linear(model: Any) -> Model:
    weights = np.asarray(model.coef_, dtype=np.float64)
    alone = weights.ndim == 1 or (weights.shape[0] == 1 and hasattr(model, "classes_"))
    weights = weights.reshape(-1) if alone else weights.T
    constants = np.asarray(model.intercept_, dtype=np.float64)
    step = _affine(weights, constants.reshape(-1)[0] if alone else constants)
    read: Callable[[Reals], Any] = _same
    what = "values"
    if hasattr(model, "classes_"):
        read, what = _classes(model.classes_, 0.0), "scores"
    return Model((weights.shape[0],), [step], read, what)


def _same(results: Reals) -> Any:
    return results


def _classes(classes: Any, threshold: float) -> Callable[[Reals], Any]:
    """The class of the largest score; of one score for two, whether it is above a threshold."""

    def read(scores: Reals) -> Any:
        chosen = (scores > threshold).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(classes)[chosen]

    return read


def _scaled(model: Any) -> Model:
    if hasattr(model, "min_"):
        # Of MinMaxScaler: a factor, and what is added after it.
        factor, added = np.asarray(model.scale_), np.asarray(model.min_)
    else:
        scale, mean = (getattr(model, name, None) for name in ("scale_", "mean_"))
        center = getattr(model, "center_", mean if getattr(model, "with_mean", True) else None)
        count = int(model.n_features_in_)
        factor = np.ones(count) if scale is None else 1.0 / np.asarray(scale)
        added = np.zeros(count) if center is None else -np.asarray(center) * factor
    clipped = getattr(model, "clip", False)

    def step(x: Any) -> Any:
        y = x * factor + added
        return functions.clip(y, *model.feature_range) if clipped else y

    return Model((len(factor),), [step], _same, "values")


def _components(model: Any) -> Model:
    components = np.asarray(model.components_, dtype=np.float64)
    if getattr(model, "whiten", False):
        components = components / np.sqrt(np.asarray(model.explained_variance_))[:, None]
    mean = np.asarray(model.mean_, dtype=np.float64)
    return Model((components.shape[1],), [_affine(components.T, -mean @ components.T)], _same, "components")


def _distances(centers: Reals) -> Model:
    """|x - c|^2 for each center: of x there is one square for all."""

    def step(x: Any) -> Any:
        own = (x * x).sum(axis=1, keepdims=True)
        return own @ np.ones((1, len(centers))) - x @ (2.0 * centers.T) + (centers**2).sum(axis=1)

    return Model((centers.shape[1],), [step], lambda results: results.argmin(axis=1), "distances")


def _network(model: Any, tolerance: float | None) -> Model:
    activations: dict[str, Step] = {
        "identity": lambda x: x,
        "relu": lambda x: functions.relu(x, tolerance=tolerance),
        "logistic": lambda x: functions.sigmoid(x, tolerance=tolerance),
        "tanh": lambda x: functions.tanh(x, tolerance=tolerance),
    }
    if model.activation not in activations:
        raise InputError(
            f"activation {model.activation!r}", kind="model", remedy=f"fit with one of {', '.join(activations)}"
        )
    steps: list[Step] = []
    for at, (weights, constants) in enumerate(zip(model.coefs_, model.intercepts_)):
        last = at + 1 == len(model.coefs_)
        alone = last and weights.shape[1] == 1
        w, c = (np.asarray(z, dtype=np.float64) for z in (weights, constants))
        steps.append(_affine(w.reshape(-1) if alone else w, c[0] if alone else c))
        if not last:
            steps.append(activations[model.activation])
    # The last activation turns scores into probabilities, and changes no order.
    read: Callable[[Reals], Any] = _same
    what = "values"
    if hasattr(model, "classes_"):
        read, what = _classes(model.classes_, 0.0), "scores"
    return Model((model.coefs_[0].shape[0],), steps, read, what)


def _tree(model: Any, tolerance: float | None, gap: float | None) -> Model:
    tree = model.tree_
    left, right = np.asarray(tree.children_left), np.asarray(tree.children_right)
    inner = np.flatnonzero(left >= 0)
    feature, threshold = np.asarray(tree.feature)[inner], np.asarray(tree.threshold, dtype=np.float64)[inner]
    values = np.asarray(tree.value, dtype=np.float64)[:, 0, :]
    classifier = hasattr(model, "classes_")
    if classifier:
        values = values / values.sum(axis=1, keepdims=True)
    place = {int(node): at for at, node in enumerate(inner)}
    leaves = list(_leaves(0, left, right, place))
    if not len(inner):
        raise InputError("a tree of one leaf", kind="model", remedy="its prediction is the same for all samples")

    def step(x: Any) -> Any:
        # 1 where a sample goes to the right, past a node's threshold.
        beyond = functions.step(x[:, feature] - threshold, tolerance=tolerance, gap=gap)
        ways = [(1.0 - beyond[:, at], beyond[:, at]) for at in range(len(inner))]
        reached = [(reduce(_times, (ways[at][to] for at, to in path)), values[leaf]) for leaf, path in leaves]
        counts = range(values.shape[1])
        total: Any = [sum(way * float(value[k]) for way, value in reached if value[k]) for k in counts]
        if len(total) == 1:
            return total[0]
        columns = [column.reshape(-1, 1) for column in total]
        return concatenate(columns, axis=1) if isinstance(x, Tensor) else np.concatenate(columns, axis=1)

    read = _classes(model.classes_, 0.5) if classifier else _same
    return Model((int(model.n_features_in_),), [step], read, "weights" if classifier else "values")


def _times(x: Any, y: Any) -> Any:
    return x * y


def _leaves(
    node: int, left: NDArray[Any], right: NDArray[Any], place: dict[int, int]
) -> Iterable[tuple[int, list[tuple[int, int]]]]:
    """Each leaf with its path: the nodes above it by their places, and whether it goes to the right there."""
    if left[node] < 0:
        yield node, []
        return
    for to, child in ((0, left[node]), (1, right[node])):
        for leaf, path in _leaves(int(child), left, right, place):
            yield leaf, [(place[node], to), *path]
