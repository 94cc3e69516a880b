"""Linear and logistic models in the manner of scikit-learn: fitted in the clear, applied to encrypted samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError, ShapeError
from .functions import logistic
from .tensor import Tensor

__all__ = ["LinearRegression", "LogisticRegression"]

Reals = NDArray[np.float64]


class _Linear:
    """Features in [-1, 1]: each is centred, divided by ``clamp`` deviations, and clipped."""

    def __init__(self, *, clamp: float = 3.0, alpha: float = 1.0) -> None:
        self.clamp = float(clamp)
        self.alpha = float(alpha)
        self.coef_: Reals = np.zeros(0)
        self.intercept_ = 0.0
        self.mean_: Reals = np.zeros(0)
        self.scale_: Reals = np.zeros(0)

    def _prepared(self, features: ArrayLike, labels: ArrayLike) -> tuple[Reals, Reals]:
        x, y = np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.float64)
        if x.ndim != 2 or y.shape != x.shape[:1] or x.size == 0:
            raise ShapeError(f"features {x.shape} and labels {y.shape}", kind="shape", remedy="pass (n, k) and (n,)")
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise InputError("a feature or label is not finite", kind="not_finite", remedy="remove NaN and infinities")
        self.mean_ = x.mean(axis=0)
        deviation = x.std(axis=0)
        self.scale_ = self.clamp * np.where(deviation > 0, deviation, 1.0)
        return self.transform(x), y

    def transform(self, features: ArrayLike) -> Reals:
        """Raw features as the model takes them, in [-1, 1]: what the owner of the data encrypts."""
        x = np.asarray(features, dtype=np.float64)
        if x.shape[-1:] != self.mean_.shape:
            raise ShapeError(f"{x.shape[-1:]} features, the model has {self.mean_.shape}", kind="shape", remedy="fit")
        return np.clip((x - self.mean_) / self.scale_, -1.0, 1.0)

    @property
    def reach(self) -> float:
        """No sample's score exceeds it."""
        return float(np.abs(self.coef_).sum() + abs(self.intercept_))

    def decision_function(self, samples: Any) -> Any:
        """<w, x> + b of transformed samples, encrypted or not."""
        if isinstance(samples, Tensor):
            return samples @ self.coef_ + self.intercept_
        return np.asarray(samples) @ self.coef_ + self.intercept_


class LinearRegression(_Linear):
    """Least squares with the penalty ``alpha |w|^2``."""

    def fit(self, features: ArrayLike, labels: ArrayLike) -> LinearRegression:
        """Fits weights in the clear."""
        x, y = self._prepared(features, labels)
        full = np.column_stack([x, np.ones(len(x))])
        penalty = np.diag([self.alpha] * x.shape[1] + [0.0])
        solution = np.linalg.lstsq(full.T @ full + penalty, full.T @ y, rcond=None)[0]
        self.coef_, self.intercept_ = solution[:-1], float(solution[-1])
        return self

    def predict(self, samples: Any) -> Any:
        """Predictions for transformed samples, encrypted or not."""
        return self.decision_function(samples)


class LogisticRegression(_Linear):
    """P(y = 1 | x) = 1 / (1 + exp(-<w, x> - b)); on encrypted samples a Chebyshev polynomial of ``degree``."""

    def __init__(self, *, clamp: float = 3.0, alpha: float = 1.0, degree: int = 7) -> None:
        super().__init__(clamp=clamp, alpha=alpha)
        self.degree = int(degree)

    def fit(self, features: ArrayLike, labels: ArrayLike) -> LogisticRegression:
        """Fits weights in the clear, by Newton's method."""
        x, y = self._prepared(features, labels)
        full = np.column_stack([x, np.ones(len(x))])
        penalty = np.diag([self.alpha] * x.shape[1] + [1e-9])
        w = np.zeros(full.shape[1])
        for _ in range(30):
            p = logistic(full @ w)
            step = np.linalg.solve((full * (p * (1 - p))[:, None]).T @ full + penalty, full.T @ (p - y) + penalty @ w)
            w -= step
            if np.abs(step).max() < 1e-10:
                break
        self.coef_, self.intercept_ = w[:-1], float(w[-1])
        return self

    def predict_proba(self, samples: Any) -> Any:
        """The probability of label 1 of transformed samples; of encrypted ones what the polynomial says.

        ``error_bound`` counts from the polynomial's value, not from the probability.
        """
        if not isinstance(samples, Tensor):
            return logistic(self.decision_function(samples))
        reach = max(self.reach, 1e-9)
        scaled = samples @ (self.coef_ / reach) + self.intercept_ / reach
        return scaled.chebyshev(lambda u: logistic(reach * u), (-1.0, 1.0), self.degree, error=0)

    def predict(self, samples: ArrayLike) -> NDArray[np.int64]:
        """Labels of transformed samples in the clear."""
        return np.asarray(self.predict_proba(np.asarray(samples)) > 0.5, dtype=np.int64)
