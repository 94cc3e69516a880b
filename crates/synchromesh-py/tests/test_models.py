"""Models that scikit-learn fitted, on encrypted samples: what they compute is what they compute in the clear."""

from __future__ import annotations

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import errors, models

pytest.importorskip("sklearn")
from sklearn import cluster, decomposition, linear_model, neural_network, pipeline, preprocessing, svm, tree

RNG = np.random.default_rng(7)
X = RNG.uniform(-1, 1, (60, 3))
VALUES = X @ np.array([0.5, -0.8, 0.3]) + 0.2
TWO = np.where(VALUES > 0.1, "ill", "well")
THREE = np.digitize(VALUES, [-0.2, 0.4])
SAMPLES = X[:16]


def encrypted(model, samples, precision=6):
    """What a model makes of encrypted samples, decrypted, and its certificate."""
    plan = sm.plan(model, [samples], precision=precision, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    found = model(context.encrypt(samples, key=keys.public, bound=float(np.abs(samples).max())))
    return keys.secret.decrypt(found), found.error_bound


LINEAR = [
    (linear_model.LinearRegression(), VALUES),
    (linear_model.LinearRegression(), np.column_stack([VALUES, X[:, 0]])),
    (linear_model.Ridge(alpha=0.1), VALUES),
    (linear_model.LogisticRegression(), TWO),
    (linear_model.LogisticRegression(), THREE),
    (svm.LinearSVC(), TWO),
    (neural_network.MLPRegressor(hidden_layer_sizes=(4,), activation="identity", max_iter=50, random_state=1), VALUES),
    (tree.DecisionTreeRegressor(max_depth=2, random_state=1), VALUES),
    (tree.DecisionTreeClassifier(max_depth=2, random_state=1), THREE),
    (neural_network.MLPClassifier(hidden_layer_sizes=(4,), activation="tanh", max_iter=200, random_state=1), THREE),
    (neural_network.MLPClassifier(hidden_layer_sizes=(4,), activation="logistic", max_iter=200, random_state=1), TWO),
    (neural_network.MLPRegressor(hidden_layer_sizes=(4,), activation="relu", max_iter=200, random_state=1), VALUES),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("fitted", "target"), LINEAR, ids=lambda x: type(x).__name__)
def test_predictions_are_the_model_s_own(fitted, target):
    fitted = fitted.fit(X, target)
    # What is off in a layer is off by as much as weights make of it.
    coarse = getattr(fitted, "activation", "") == "relu"
    model = models.from_sklearn(fitted, tolerance=2.0**-9 if coarse else None)
    clear = model(SAMPLES)
    real = np.asarray(target).dtype.kind == "f"
    same = np.testing.assert_allclose if real else np.testing.assert_array_equal
    same(model.read(clear), fitted.predict(SAMPLES))
    samples = away(fitted, SAMPLES)
    found, bound = encrypted(model, samples)
    own = np.abs(found - model(samples)).max()
    assert own <= bound + 2**-6
    if real:
        np.testing.assert_allclose(model.read(found), fitted.predict(samples), atol=2**-5)
    else:
        near = np.sort(np.atleast_2d(model(samples).T).T, axis=1)
        margin = np.abs(near[:, 0]) if near.shape[1] == 1 else near[:, -1] - near[:, -2]
        sure = margin > 4 * 2**-6
        assert sure.sum() > 4
        np.testing.assert_array_equal(model.read(found)[sure], fitted.predict(samples)[sure])


def away(fitted, samples):
    """Samples that are no nearer to a tree's thresholds than its gap."""
    if not hasattr(fitted, "tree_"):
        return samples
    inner = fitted.tree_.children_left >= 0
    thresholds = list(zip(fitted.tree_.feature[inner], fitted.tree_.threshold[inner]))
    kept = [s for s in samples if all(abs(s[f] - t) > 0.05 for f, t in thresholds)]
    assert len(kept) >= 8
    return np.array(kept)


def test_what_only_transforms():
    for fitted in (
        decomposition.PCA(2).fit(X),
        decomposition.PCA(2, whiten=True).fit(X),
        preprocessing.StandardScaler().fit(X),
        preprocessing.MinMaxScaler().fit(X),
        preprocessing.RobustScaler().fit(X),
    ):
        model = models.from_sklearn(fitted)
        np.testing.assert_allclose(model(SAMPLES), fitted.transform(SAMPLES), atol=1e-12)
        found, bound = encrypted(model, SAMPLES, 10)
        assert np.abs(model.read(found) - fitted.transform(SAMPLES)).max() <= bound <= 2**-10


def test_distances_choose_clusters():
    fitted = cluster.KMeans(3, n_init=2, random_state=1).fit(X)
    model = models.from_sklearn(fitted)
    np.testing.assert_allclose(model(SAMPLES), fitted.transform(SAMPLES) ** 2, atol=1e-12)
    found, bound = encrypted(model, SAMPLES, 10)
    assert np.abs(found - fitted.transform(SAMPLES) ** 2).max() <= bound <= 2**-10
    np.testing.assert_array_equal(model.read(found), fitted.predict(SAMPLES))


def test_pipelines_are_their_steps():
    steps = [preprocessing.StandardScaler(), decomposition.PCA(2), linear_model.LogisticRegression()]
    fitted = pipeline.make_pipeline(*steps).fit(10 * X + 3, TWO)
    model = models.from_sklearn(fitted)
    samples = 10 * SAMPLES + 3
    np.testing.assert_array_equal(model.read(model(samples)), fitted.predict(samples))
    found, _ = encrypted(model, samples)
    np.testing.assert_allclose(found, fitted.decision_function(samples), atol=2**-6)
    assert repr(model) == "Model(samples of shape (3,) to scores)"


def test_what_is_no_model_is_named():
    with pytest.raises(errors.InputError, match=r"KMeans is no fitted model.*Remedy: fit it"):
        models.from_sklearn(cluster.KMeans(3))
    with pytest.raises(errors.InputError, match="list"):
        models.from_sklearn([1, 2])
    fitted = models.from_sklearn(linear_model.LinearRegression().fit(X, VALUES))
    for wrong in (np.ones(3), np.ones((2, 4)), np.ones((2, 2, 3))):
        with pytest.raises(errors.ShapeError, match=r"\(n, 3\)"):
            fitted(wrong)
    with pytest.raises(errors.InputError, match="one leaf"):
        models.from_sklearn(tree.DecisionTreeRegressor().fit(X, np.ones(60)))
