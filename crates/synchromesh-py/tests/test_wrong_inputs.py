"""Every entry point is fed a thousand random wrong inputs: Python exceptions, never an abort."""

from __future__ import annotations

import decimal
import random

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import errors

COUNT = 1000
ALLOWED = (errors.SynchromeshError, TypeError, ValueError, IndexError, OverflowError, ArithmeticError)


class Odd:
    """Objects that protest when they are looked at."""

    def __array__(self, *args, **kwargs):
        raise ValueError("no array here")

    def __index__(self):
        raise TypeError("no index")

    def __float__(self):
        raise ValueError("no number")


def junk(rng: random.Random, own: list):
    """One argument of any kind."""
    choices = [
        lambda: None,
        lambda: rng.choice([True, False]),
        lambda: rng.randint(-(10**rng.randint(0, 60)), 10 ** rng.randint(0, 60)),
        lambda: rng.choice([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 5e-324, 1e308, rng.gauss(0, 1e6)]),
        lambda: complex(rng.random(), float("nan")),
        lambda: rng.choice(["", "x", "\0", "1e999", "é" * 50, "{" * 1000]),
        lambda: rng.randbytes(rng.randint(0, 300)),
        lambda: [rng.random() for _ in range(rng.randint(0, 5))],
        lambda: [[1, 2], [3]],
        lambda: (),
        lambda: {},
        lambda: {1: 2},
        lambda: object(),
        lambda: Odd(),
        lambda: decimal.Decimal("1.5"),
        lambda: np.zeros(rng.randint(0, 4)),
        lambda: np.full(3, np.nan),
        lambda: np.zeros((rng.randint(0, 3), rng.randint(0, 3))),
        lambda: np.array(["a", "b"]),
        lambda: np.array([object()]),
        lambda: np.array([1, 2**70], dtype=object),
        lambda: np.array(["2026-01-01"], dtype="datetime64[D]"),
        lambda: np.zeros(2, dtype=[("a", "f8")]),
        lambda: np.array(5),
        lambda: np.arange(3, dtype=np.float16),
        lambda: np.arange(3, dtype=np.longdouble),
        lambda: np.broadcast_to(np.float64(1e300), (7,)),
        lambda: np.arange(10)[::-3],
        lambda: lambda *a: a,
        lambda: slice(rng.randint(-9, 9), rng.randint(-9, 9), rng.randint(-3, 3) or 1),
        lambda: rng.choice(own),
    ]
    return rng.choice(choices)()


def entry_points(each):
    context, keys = each.context, each.keys
    tensor = context.encrypt(each.numbers(3, 4))
    other = sm.Context(sm.plan(scheme="bfv", depth=0, security="insecure"), insecure=True)
    foreign = other.keygen()
    own = [context, other, tensor, tensor[0], other.encrypt([1, 2]), *keys, *foreign, context.plan, other.plan, sm]
    calls = {
        "encrypt": (context.encrypt, ["key", "bound", "level", "progress"]),
        "keygen": (lambda a, **k: context.keygen(_few(a), **k), ["swap"]),
        "add_keys": (context.add_keys, []),
        "read": (context.read, ["trust_certificate"]),
        "context": (sm.Context, ["device", "insecure"]),
        "decrypt": (keys.secret.decrypt, ["out", "progress"]),
        "public": (sm.PublicKey.from_bytes, ["context"]),
        "evaluation": (sm.EvaluationKeys.from_bytes, ["context"]),
        "load": (sm.SecretKey.load, ["context"]),
        "envelope": (sm.EnvelopeKey.load, ["context"]),
        "plan": (lambda a, **k: sm.plan(a, **k), ["shapes", "scheme", "t", "security", "bounds", "precision"]),
        "from_json": (sm.Plan.from_json, []),
        "add": (lambda a: tensor + a, []),
        "rsub": (lambda a: a - tensor, []),
        "mul": (lambda a: tensor * a, []),
        "div": (lambda a: tensor / a, []),
        "pow": (lambda a: tensor ** (a if not isinstance(a, int) else a % 4 - 1), []),
        "matmul": (lambda a: tensor @ a, []),
        "rmatmul": (lambda a: a @ tensor, []),
        "index": (lambda a: tensor[a], []),
        "reshape": (tensor.reshape, []),
        "transpose": (tensor.transpose, []),
        "sum": (lambda a: tensor.sum(a), []),
        "rotate": (tensor.rotate, []),
        "level": (tensor.at_level, []),
        "bound": (tensor.declare_bound, []),
        "polynomial": (tensor.polynomial, []),
        "chebyshev": (lambda a: tensor.chebyshev(a, (-1, 1), 2), []),
        "chebyshev error": (lambda a: tensor.chebyshev(np.cbrt, (-1, 1), 2, error=a), []),
        "chebyshev interval": (lambda a: tensor.chebyshev(np.sin, a, 2), []),
        "memory": (context.plan.memory, []),
        "mean": (lambda a: tensor.mean(a), []),
        "prod": (lambda a: tensor.prod(a), []),
        "var": (lambda a: tensor.var(ddof=a), []),
        "std": (lambda a: tensor.std(interval=a), []),
        "stack": (np.stack, ["axis"]),
        "roll": (lambda a: np.roll(tensor, a), []),
        "dot": (lambda a: np.dot(tensor, a), []),
        "equal": (lambda a: tensor == a, []),
        "extend": (lambda a, **k: keys.extend(_few(a), **k), ["swap"]),
        "plain modulus": (sm.plain_modulus, ["log_n"]),
        "examples": (lambda a, **k: sm.plan(lambda x: x, [a], **k), ["bounds", "scheme"]),
        "concatenate": (sm.concatenate, ["axis"]),
        "public matrix": (lambda a: sm.PublicMatrix(a) @ tensor, []),
        "encrypted matrix": (lambda a: tensor[:2, :2] @ context.encrypt(a), []),
        "linear model": (lambda a, **k: sm.linear_model.LinearRegression().fit(a, k.get("y", a)), ["y"]),
        "plan load": (sm.Plan.load, []),
        "plan save": (context.plan.save, ["replace"]),
        "tensor load": (sm.Tensor.load, ["context", "trust_certificate"]),
        "tensor save": (tensor.save, ["replace"]),
        "keys save": (keys.public.save, ["replace"]),
        "tensor": (sm.Tensor.from_bytes, ["context", "trust_certificate"]),
    }
    return own, calls


def _few(argument):
    return argument if not isinstance(argument, range) else list(argument)[:3]


@pytest.mark.parametrize("scheme", ["bgv", "ckks"])
def test_random_wrong_inputs(scheme, tmp_path, monkeypatch):
    from conftest import setting

    monkeypatch.chdir(tmp_path)
    each = setting(scheme)
    own, calls = entry_points(each)
    refused = 0
    for name, (call, keywords) in calls.items():
        rng = random.Random(name)
        # What plans or makes keys if it is not refused.
        for _ in range(COUNT // 10 if name in ("examples", "extend") else COUNT):
            argument = junk(rng, own)
            extra = {k: junk(rng, own) for k in keywords if rng.random() < 0.3}
            try:
                call(argument, **extra)
            except ALLOWED as error:
                refused += 1
                if isinstance(error, errors.SynchromeshError):
                    assert error.kind and error.kind != "internal", (name, argument, error)
    assert refused > COUNT * len(calls) / 3
    x = each.numbers(5)
    each.check(each.encrypt(x), x)


def test_messages_carry_numbers_and_remedies(each):
    with pytest.raises(errors.ShapeError, match=r"\(3,\).*\(4,\).*Remedy"):
        each.encrypt(each.numbers(3)) + each.encrypt(each.numbers(4))
    with pytest.raises(errors.MissingKeyError, match="Remedy"):
        each.encrypt(each.numbers(3)).rotate(77)
    with pytest.raises(TypeError):
        each.encrypt(np.array(["a"]))
    fresh = sm.Context(each.context.plan, insecure=True)
    with pytest.raises(errors.MissingKeyError, match="keygen"):
        fresh.encrypt([0])
    other = fresh.keygen()
    with pytest.raises(errors.SynchromeshError) as caught:
        other.secret.decrypt(each.encrypt(each.numbers(2)))
    assert caught.value.kind == "keys_differ"
    with pytest.raises(errors.SynchromeshError):
        each.encrypt(each.numbers(2)) + fresh.encrypt(each.numbers(2))


def test_bounds_and_nan_in_ckks(ckks):
    for wrong in ([2.0], [np.nan], [np.inf], [1 + 1j]):
        with pytest.raises(errors.InputError):
            ckks.encrypt(np.array(wrong))
    assert ckks.context.encrypt([2.0], bound=2.0).bound == 2.0


def test_fractions_in_exact_schemes(exact):
    with pytest.raises(errors.DTypeError, match="round"):
        exact.encrypt(np.array([0.5]))
    with pytest.raises(errors.DTypeError):
        exact.encrypt([1, 2]) * 0.5
