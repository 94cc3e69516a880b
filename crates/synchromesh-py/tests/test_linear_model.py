"""Models on real data: fitted in the clear, applied to encrypted patients."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import synchromesh as sm

DATA = Path(__file__).parents[2] / "synchromesh-cli/data/breast_cancer_wisconsin.csv"


def patients():
    table = np.loadtxt(DATA, delimiter=",", skiprows=1)
    test = np.arange(len(table)) % 5 == 0
    return (table[~test, :-1], table[~test, -1]), (table[test, :-1], table[test, -1])


def test_logistic_scores_of_encrypted_patients():
    (x, y), (test_x, test_y) = patients()
    model = sm.linear_model.LogisticRegression(clamp=1.5, alpha=10.0).fit(x, y)
    clear = model.transform(test_x)[:20]
    assert (model.predict(model.transform(test_x)) == test_y).mean() > 0.95
    plan = sm.plan(model.predict_proba, [clear.shape], precision=8, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    scores = keys.secret.decrypt(model.predict_proba(context.encrypt(clear)))
    assert np.abs(scores - model.predict_proba(clear)).max() < 0.1
    assert ((scores > 0.5) == (model.predict_proba(clear) > 0.5)).all()


def test_linear_predictions_of_encrypted_samples():
    (x, _), _ = patients()
    model = sm.linear_model.LinearRegression(alpha=1e-6).fit(x[:, :5], x[:, 6])
    clear = model.transform(x[:30, :5])
    plan = sm.plan(model.predict, [clear.shape], precision=12, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    found = keys.secret.decrypt(model.predict(context.encrypt(clear)))
    assert np.abs(found - model.predict(clear)).max() < 1e-3
