"""Homomorphic encryption on NumPy arrays: BFV, BGV and CKKS, built around key switching.

>>> import numpy as np
>>> import synchromesh as sm
>>> plan = sm.plan(lambda x, y: (x * y).sum(), [(1000,), (1000,)], precision=15)
>>> context = sm.Context(plan)
>>> keys = context.keygen()
>>> x = context.encrypt(np.full(1000, 0.5))
>>> y = context.encrypt(np.full(1000, 0.25))
>>> result = keys.secret.decrypt((x * y).sum())
>>> bool(abs(result - 125.0) < 1e-3)
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import errors
from ._native import info as _info
from ._native import set_threads, threads
from .context import Context, EnvelopeKey, EvaluationKeys, Keys, PublicKey, SecretKey
from .errors import SynchromeshError
from .matrix import PublicMatrix
from .planning import Plan, plain_modulus, plan
from .tensor import Tensor, concatenate

__all__ = [
    "Context",
    "EnvelopeKey",
    "EvaluationKeys",
    "Keys",
    "Plan",
    "PublicKey",
    "PublicMatrix",
    "SecretKey",
    "SynchromeshError",
    "Tensor",
    "concatenate",
    "errors",
    "functions",
    "info",
    "linear_model",
    "models",
    "nn",
    "parties",
    "plain_modulus",
    "plan",
    "ray",
    "search",
    "set_threads",
    "threads",
    "triples",
]

__version__: str = _info()[0]

if TYPE_CHECKING:
    from . import functions, linear_model, models, nn, parties, ray, search, triples

# Read when they are first used: a program that starts for one image has no time for the others.
_LATER = ("functions", "linear_model", "models", "nn", "parties", "ray", "search", "triples")


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def info() -> dict[str, object]:
    """Version, the instruction set in use, those that this machine has, its devices, and the threads in use."""
    version, isa, isas, devices = _info()
    return {"version": version, "isa": isa, "isas": list(isas), "devices": list(devices), "threads": threads()}
