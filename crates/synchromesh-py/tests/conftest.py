"""Contexts of each scheme, small and therefore insecure, made once."""

from __future__ import annotations

import signal

import numpy as np
import pytest

import synchromesh as sm

# A run that a shell put in the background ignores Ctrl-C; the tests of it do not.
signal.signal(signal.SIGINT, signal.default_int_handler)

STEPS = [s * (1 << i) for i in range(10) for s in (1, -1)]


class Setting:
    """A context with its keys, and how its numbers compare."""

    def __init__(self, scheme: str, depth: int, swap: bool) -> None:
        additions = 0 if scheme == "ckks" else 8
        plan = sm.plan(
            scheme=scheme, depth=depth, rotations=STEPS, swap=swap, additions=additions, security="insecure"
        )
        self.context = sm.Context(plan, insecure=True)
        self.keys = self.context.keygen()
        self.exact = self.context.exact
        self.rng = np.random.default_rng(7)

    def numbers(self, *shape: int) -> np.ndarray:
        """Small random numbers."""
        if self.exact:
            return self.rng.integers(-9, 10, shape)
        return self.rng.uniform(-1, 1, shape)

    def encrypt(self, values: np.ndarray) -> sm.Tensor:
        return self.context.encrypt(values)

    def check(self, tensor: sm.Tensor, expected: np.ndarray) -> None:
        """Decrypts and compares: exactly, or to within the certificate, which must be worth something."""
        found = self.keys.secret.decrypt(tensor)
        expected = np.asarray(expected)
        assert found.shape == expected.shape == tensor.shape
        if self.exact:
            assert np.array_equal(found, expected)
        else:
            assert tensor.error_bound < 1e-2
            assert np.abs(found - expected).max() <= tensor.error_bound + 1e-12


_made: dict[str, Setting] = {}


def setting(scheme: str) -> Setting:
    if scheme not in _made:
        _made[scheme] = Setting(scheme, 5 if scheme == "ckks" else 3, True)
    return _made[scheme]


@pytest.fixture(params=["bfv", "bgv", "ckks"])
def each(request: pytest.FixtureRequest) -> Setting:
    return setting(request.param)


@pytest.fixture(params=["bfv", "bgv"])
def exact(request: pytest.FixtureRequest) -> Setting:
    return setting(request.param)


@pytest.fixture
def ckks() -> Setting:
    return setting("ckks")


@pytest.fixture
def bgv() -> Setting:
    return setting("bgv")
