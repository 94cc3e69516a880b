"""Devices: the kernels of a card on an emulator, from Python, give the CPU's results bit for bit."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import synchromesh as sm

STEPS = [s * (1 << i) for i in range(10) for s in (1, -1)]
DEVICES = sm.info()["devices"]
pytestmark = pytest.mark.skipif("emulated" not in DEVICES, reason="a build without the emulator")


class Pair:
    """The same keys in a context on the CPU and in one on the emulator."""

    def __init__(self, scheme: str) -> None:
        self.plan = sm.plan(scheme=scheme, depth=3, rotations=STEPS, swap=True, security="insecure")
        self.cpu = sm.Context(self.plan, device="cpu", insecure=True)
        self.other = sm.Context(self.plan, device="emulated", insecure=True)
        self.keys = self.cpu.keygen()
        self.other_keys = self.keys.to(self.other)
        rng = np.random.default_rng(5)
        exact = self.cpu.exact
        self.data = [rng.integers(-9, 10, 20) if exact else rng.uniform(-1, 1, 20) for _ in range(2)]


_pairs: dict[str, Pair] = {}


@pytest.fixture(params=["bfv", "bgv", "ckks"])
def pair(request: pytest.FixtureRequest) -> Pair:
    if request.param not in _pairs:
        _pairs[request.param] = Pair(request.param)
    return _pairs[request.param]


def computed(x: sm.Tensor, y: sm.Tensor) -> list[sm.Tensor]:
    return [x + y, x - 3, -x, x * y, x * x + y, (x * y) * y, x * np.arange(20), (x * y).sum()]


def test_results_are_the_bits_of_the_cpu(pair: Pair) -> None:
    here = [pair.cpu.encrypt(values) for values in pair.data]
    there = [x.to(pair.other) for x in here]
    for at_home, away in zip(computed(*here), computed(*there)):
        assert away.context.device == "emulated"
        assert away.to(pair.cpu).to_bytes() == at_home.to_bytes()
        assert np.array_equal(pair.other_keys.secret.decrypt(away), pair.keys.secret.decrypt(at_home))


def test_all_of_it_on_the_device(pair: Pair) -> None:
    keys = pair.other.keygen()
    x, y = (pair.other.encrypt(values, key=keys.public) for values in pair.data)
    found = keys.secret.decrypt(x * y + x)
    expected = pair.data[0] * pair.data[1] + pair.data[0]
    assert np.abs(found - expected).max() < (1e-3 if not pair.other.exact else 1)
    pair.other.add_keys(pair.other_keys.public, pair.other_keys.evaluation)


def test_pickles_and_files_come_back_to_their_device(pair: Pair, tmp_path: Path) -> None:
    x = pair.cpu.encrypt(pair.data[0]).to(pair.other)
    again = pickle.loads(pickle.dumps(x))
    assert again.context is pair.other
    assert np.array_equal(pair.other_keys.secret.decrypt(again), pair.other_keys.secret.decrypt(x))
    pair.other_keys.save(tmp_path / "keys")
    for context in (pair.other, None):
        read = sm.Keys.load(tmp_path / "keys", context=context)
        home = x if context is pair.other else x.to(read.secret.context)
        assert np.array_equal(read.secret.decrypt(home), pair.keys.secret.decrypt(x.to(pair.cpu)))


def test_operands_of_two_devices_are_refused(pair: Pair) -> None:
    x = pair.cpu.encrypt(pair.data[0])
    with pytest.raises(sm.errors.DeviceError) as caught:
        x + x.to(pair.other)
    assert caught.value.kind == "other_device" and "to(" in caught.value.remedy
    with pytest.raises(sm.errors.DeviceError) as caught:
        pair.keys.secret.decrypt(x.to(pair.other))
    assert caught.value.kind == "other_device"


@pytest.mark.parametrize("name", ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "CPU", "cuda:99"])
def test_devices_that_are_not_there_are_refused(pair: Pair, name: str) -> None:
    with pytest.raises(sm.errors.DeviceError) as caught:
        sm.Context(pair.plan, device=name, insecure=True)
    assert caught.value.kind == "device_unavailable"
    with pytest.raises(sm.errors.DTypeError):
        sm.Context(pair.plan, device=7, insecure=True)  # type: ignore[arg-type]


def test_the_environment_names_a_device(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNCHROMESH_DEVICE", "emulated")
    assert sm.Context(pair.plan, insecure=True).device == "emulated"
    monkeypatch.setenv("SYNCHROMESH_DEVICE", "abacus")
    with pytest.raises(sm.errors.DeviceError, match="abacus"):
        sm.Context(pair.plan, insecure=True)


def test_matrices_on_the_device() -> None:
    rng = np.random.default_rng(6)
    a, b, x = rng.uniform(-1, 1, (4, 4)), rng.uniform(-1, 1, (4, 4)), rng.uniform(-1, 1, 4)

    def function(a: object, x: object) -> object:
        return (a @ (b @ x)).sum()  # type: ignore[operator]

    plan = sm.plan(function, [(4, 4), (4,)], precision=10, security="insecure")
    made = {}
    cpu = sm.Context(plan, device="cpu", insecure=True)
    keys = cpu.keygen()
    inputs = [cpu.encrypt(a), cpu.encrypt(x)]
    for device in ("cpu", "emulated"):
        context = cpu if device == "cpu" else sm.Context(plan, device=device, insecure=True)
        if context is not cpu:
            keys.to(context)
        made[device] = function(*(x.to(context) for x in inputs)).to(cpu)  # type: ignore[attr-defined]
    assert made["cpu"].to_bytes() == made["emulated"].to_bytes()
    assert abs(keys.secret.decrypt(made["cpu"]) - (a @ (b @ x)).sum()) < 2**-10
