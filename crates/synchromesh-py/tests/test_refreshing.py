"""Refreshes in BFV and BGV: functions without end, keys in files, and what is refused."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import synchromesh as sm

STEPS = 7


def loop(x, y):
    for _ in range(STEPS):
        x = x * y + np.roll(x, 1)
    return x


@pytest.mark.parametrize("scheme", ["bfv", "bgv"])
def test_a_loop_of_any_length_refreshes_by_itself(scheme, tmp_path):
    plan = sm.plan(loop, [(8,), (8,)], scheme=scheme, bootstrap=True, security="insecure")
    said = plan.explain()
    assert "passes of" in said and f"{plan.depth} products in a row between two refreshes" in said
    assert sm.Plan.from_json(plan.to_json()) == plan and plan.depth <= 2
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    x, y = np.arange(1, 9), np.arange(8) - 3
    a, b = context.encrypt(x), context.encrypt(y)
    t = plan.t
    expected = (loop(x.astype(object), y) + t // 2) % t - t // 2
    # Numbers that count modulo t.
    result = loop(a, b).declare_bound(math.inf)
    assert (keys.secret.decrypt(result) == expected).all()
    # By hand, and by keys from a file in a context of their own.
    refreshed = result.refresh()
    assert refreshed.noise_budget > result.noise_budget and (keys.secret.decrypt(refreshed) == expected).all()
    data = keys.evaluation.to_bytes()
    assert plan.key_bytes < len(data) < plan.key_bytes + 100_000
    keys.secret.save(tmp_path / "secret.key")
    keys.envelope.save(tmp_path / "envelope.key")
    sealed = [tensor.to_bytes() for tensor in (a, b)]
    own = sm.Context(plan, insecure=True)
    own.add_keys(sm.EnvelopeKey.load(tmp_path / "envelope.key", own), sm.EvaluationKeys.from_bytes(data, own))
    found = loop(*(sm.Tensor.from_bytes(tensor, own) for tensor in sealed)).declare_bound(math.inf)
    secret = sm.SecretKey.load(tmp_path / "secret.key", own)
    assert (secret.decrypt(found) == expected).all()
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_what_exact_schemes_do_not_take():
    with pytest.raises(sm.errors.ParamsError, match="a bound of 2.0") as refused:
        sm.plan(scheme="bfv", bootstrap=2.0)
    assert "bootstrap=True" in refused.value.remedy
    with pytest.raises(sm.errors.SynchromeshError) as refused:
        sm.plan(scheme="bgv", bootstrap=True, max_key_bytes=1000, security="insecure")
    assert refused.value.kind == "plan_key_bytes"
    plain = sm.Context(sm.plan(depth=1, scheme="bfv", security="insecure"), insecure=True)
    plain.keygen()
    with pytest.raises(sm.errors.SynchromeshError) as refused:
        plain.encrypt([1]).refresh()
    assert refused.value.kind == "no_bootstrap" and "bootstrap" in refused.value.remedy
