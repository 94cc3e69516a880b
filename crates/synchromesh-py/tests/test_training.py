"""Training on encrypted data, as the example does it, and where its plan refreshes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import synchromesh as sm

EXAMPLE = Path(__file__).parents[1] / "examples/training.py"


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("matplotlib")
    pytest.importorskip("tqdm")
    spec = importlib.util.spec_from_file_location("training", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    # Its classes look themselves up there.
    import sys

    sys.modules["training"] = module
    spec.loader.exec_module(module)
    return module


def test_thirty_encrypted_steps_are_those_in_the_clear(example, tmp_path, capsys):
    patients = example.Patients.load(example.FEATURES, 128)
    encrypted, clear = example.run_training(patients, 30, False, tmp_path)
    assert clear > 0.9 and abs(encrypted - clear) <= 1 / len(patients.test_labels) + 1e-9
    assert (tmp_path / "training.png").stat().st_size > 10_000
    said = capsys.readouterr().out
    # Where, and why.
    assert "\nrefresh 1: value " in said and "without which value " in said and "; after operation " in said


def test_a_principal_component(example):
    assert example.run_principal(example.Patients.load(example.FEATURES, 128), 20) > 0.999


def test_places_of_refreshes_are_data():
    def settle(x):
        for _ in range(6):
            x = x * x - 0.5
            x = x.declare_bound(1)
        return x

    plan = sm.plan(settle, [(8,)], precision=8, depth=4, bootstrap=True, security="insecure", min_slots=1024)
    assert plan.refreshes and all(refresh.ciphertexts == 1 for refresh in plan.refreshes)
    after = [refresh.operation for refresh in plan.refreshes]
    assert all(operation is None or 1 <= operation <= len(plan.trace) for operation in after)
    again = sm.Plan.from_json(plan.to_json())
    assert [refresh.made_by for refresh in again.refreshes] == [refresh.made_by for refresh in plan.refreshes]
    assert sum(line.startswith("refresh ") for line in again.explain().split("\n")) == len(plan.refreshes)


def test_refreshes_keep_real_numbers_or_complex_ones_as_planned():
    def turned(x):
        return (x * (0.6 + 0.8j)).refresh()

    given = dict(precision=8, depth=2, bootstrap=True, security="insecure", min_slots=1024)
    with pytest.raises(sm.errors.DTypeError, match="real ones") as refused:
        sm.plan(turned, [(8,)], **given)
    assert refused.value.remedy == 'make the plan with numbers="complex"'
    plan = sm.plan(turned, [(8,)], numbers="complex", **given)
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    x = np.linspace(-0.9, 0.9, 8)
    found = keys.secret.decrypt(turned(context.encrypt(x)))
    assert found.dtype == np.complex128 and np.abs(found - x * (0.6 + 0.8j)).max() < 2**-8
    real = sm.Context(sm.plan(lambda x: x.refresh(), [(8,)], **given), insecure=True)
    owner = real.keygen()
    with pytest.raises(sm.errors.DTypeError, match="real ones"):
        real.encrypt(x + 0.1j, key=owner.public)
    assert np.abs(owner.secret.decrypt(real.encrypt(x, key=owner.public).refresh()) - x).max() < 2**-8
    with pytest.raises(sm.errors.ParamsError, match="numbers 'whole'"):
        sm.plan(numbers="whole", bootstrap=True)


def test_numbers_as_they_were_computed():
    def twice(x):
        return (x * x).as_computed() * 0.5

    plan = sm.plan(twice, [(8,)], precision=12, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    x = np.linspace(-1, 1, 8)
    square = context.encrypt(x) * context.encrypt(x)
    exact = square.as_computed()
    assert exact.error_bound < square.error_bound / 100 and exact.level == square.level
    assert np.abs(keys.secret.decrypt(exact) - x * x).max() <= square.error_bound
    assert np.abs(keys.secret.decrypt(twice(context.encrypt(x))) - x * x / 2).max() < 2**-12
    integers = sm.Context(sm.plan(scheme="bfv", depth=1, security="insecure"), insecure=True)
    owner = integers.keygen()
    with pytest.raises(sm.errors.MismatchError):
        integers.encrypt(np.arange(4), key=owner.public).as_computed()
