"""Functions of encrypted real numbers: within their certificates, refused where nothing is known, the same in the clear."""

from __future__ import annotations

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import errors, functions

# Name, where its argument lies, and NumPy's own.
SMOOTH = [
    ("exp", (-1.0, 1.0), np.exp),
    ("log", (0.5, 2.0), np.log),
    ("sigmoid", (-4.0, 4.0), lambda x: 1 / (1 + np.exp(-x))),
    ("tanh", (-2.0, 2.0), np.tanh),
    ("sqrt", (0.25, 4.0), np.sqrt),
    ("rsqrt", (0.25, 4.0), lambda x: 1 / np.sqrt(x)),
    ("inverse", (-2.0, -0.5), lambda x: 1 / x),
    ("gelu", (-3.0, 3.0), functions.gelu),
]


def computed(function, *arrays, bounds=None, precision=8):
    """What a function of tensors gives for these, decrypted, and the tensor itself; at a plan of its own."""
    plan = sm.plan(function, [a.shape for a in arrays], bounds=bounds, precision=precision, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    encrypted = [context.encrypt(a, key=keys.public, bound=b) for a, b in zip(arrays, bounds or [1.0] * len(arrays))]
    found = function(*encrypted)
    return keys.secret.decrypt(found), found


@pytest.mark.parametrize(("name", "interval", "value"), SMOOTH)
def test_smooth_functions_are_within_their_certificates(name, interval, value):
    x = np.linspace(*interval, 33)
    found, y = computed(lambda x: getattr(functions, name)(x), x, bounds=[interval])
    off = np.abs(found - value(x)).max()
    assert off <= y.error_bound <= 2**-8
    held = y._known().elements
    assert held.low - y.error_bound <= found.min() and found.max() <= held.high + y.error_bound
    np.testing.assert_allclose(getattr(functions, name)(x), value(x), rtol=1e-12)


def test_numpy_s_names_call_them():
    x = np.linspace(0.5, 2.0, 16)

    def lines(x):
        return np.exp(-x) + np.log(x) + np.sqrt(x) + 1 / x + np.tanh(x) + 3 * x / x

    found, y = computed(lines, x, bounds=[(0.5, 2.0)])
    assert np.abs(found - lines(x)).max() <= y.error_bound <= 2**-8


def test_what_bends_and_what_jumps():
    x, y = np.linspace(-1, 1, 41), np.linspace(0.7, -0.9, 41)
    coarse = {"tolerance": 2.0**-6}
    pairs = [
        (lambda x, y: functions.absolute(x, **coarse), np.abs(x)),
        (lambda x, y: functions.relu(x, **coarse), np.maximum(x, 0)),
        (lambda x, y: functions.clip(x, -0.5, 0.25, **coarse), np.clip(x, -0.5, 0.25)),
        (lambda x, y: functions.maximum(x, y, **coarse), np.maximum(x, y)),
        (lambda x, y: functions.minimum(x, y, **coarse), np.minimum(x, y)),
        (lambda x, y: functions.minimum(x, 0.3, **coarse), np.minimum(x, 0.3)),
    ]
    for function, expected in pairs:
        found, z = computed(function, x, y, precision=4)
        assert np.abs(found - expected).max() <= z.error_bound <= 2**-4
        np.testing.assert_allclose(function(x, y), expected, rtol=1e-12)
        held = z._known().elements
        assert held.low - z.error_bound <= found.min() and found.max() <= held.high + z.error_bound

    far = np.abs(x - y) > 0.1
    found, z = computed(lambda x, y: functions.compare(x, y, gap=0.1, **coarse), x, y, precision=4)
    assert np.abs(found - (x > y))[far].max() <= 2**-6 + z.error_bound
    assert found.min() > -0.05 and found.max() < 1.05


def test_comparisons_of_real_tensors_are_numbers_between_0_and_1():
    x = np.array([-0.9, -0.3, 0.1, 0.5, 0.75, 0.85, 1.0])
    for function in (lambda x: x > 0.6, lambda x: 0.6 < x, lambda x: np.greater(x, 0.6)):
        found, _ = computed(function, x, precision=4)
        np.testing.assert_allclose(found, x > 0.6, atol=0.01)
    found, _ = computed(lambda x: (x <= 0.6) * x, x, precision=4)
    np.testing.assert_allclose(found, (x <= 0.6) * x, atol=0.01)


def test_softmax_and_argmax():
    x = np.array([[0.2, -0.7, 0.9, 0.1], [-1.0, 1.0, 0.0, 0.5]])
    found, y = computed(lambda x: functions.softmax(x, tolerance=2.0**-7), x, precision=5)
    expected = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    assert np.abs(found - expected).max() <= y.error_bound <= 2**-5
    assert np.abs(found - expected).max() < 2**-7
    np.testing.assert_allclose(functions.softmax(x), expected)

    found, _ = computed(lambda x: functions.argmax(x, gap=0.15, tolerance=2.0**-5), x[0], precision=4)
    np.testing.assert_allclose(found, functions.argmax(x[0]), atol=0.05)


def test_what_is_refused(ckks, bgv):
    x = ckks.encrypt(np.linspace(-1, 1, 8))
    with pytest.raises(errors.InputError, match="interval"):
        functions.exp(x, (-0.5, 0.5))
    with pytest.raises(errors.SynchromeshError) as caught:
        functions.inverse(x)
    assert caught.value.kind == "singular"
    with pytest.raises(errors.DTypeError, match="declare_bound"):
        1 / x
    with pytest.raises(errors.SynchromeshError) as caught:
        functions.absolute(x, tolerance=1e-12)
    assert caught.value.kind == "tolerance" and "nearest" in str(caught.value) or "ask for" in str(caught.value)
    for wrong in ((1.0, -1.0), (0.0, 0.0), 3, (1, 2, 3)):
        with pytest.raises(errors.SynchromeshError):
            functions.tanh(x, wrong)
    with pytest.raises(errors.InputError):
        functions.clip(x, 1, 0)
    with pytest.raises(errors.ShapeError):
        functions.argmax(x.reshape(2, 4))
    with pytest.raises(errors.MismatchError, match="ckks"):
        functions.exp(bgv.encrypt(bgv.numbers(4)))
    with pytest.raises(errors.DTypeError):
        functions.exp("x")
    assert functions.approximation("sigmoid", (-8.0, 8.0)).depth > 3
    with pytest.raises(errors.SynchromeshError) as caught:
        functions.approximation("sine", (-1.0, 1.0))
    assert caught.value.kind == "argument"


@pytest.mark.parametrize("scheme", ["bfv", "bgv"])
def test_integers_are_compared_and_looked_up_exactly(scheme):
    x, y = (pair.reshape(-1) for pair in np.meshgrid(np.arange(-3, 6), np.arange(-3, 6)))
    table = np.array([7, -500, 3, 3, 9, 0, 100_000, -2, 8])

    def several(x, y):
        chosen = functions.lookup(x, table, -3)
        compared = functions.equal(x, y) + 2 * (x < y) + 4 * (x >= 2)
        # A sum over what stands beside the elements would be wrong if it were taken for zeros.
        return compared, chosen * functions.less(y, x), compared.sum()

    def clear(x, y):
        compared = (x == y) + 2 * (x < y) + 4 * (x >= 2)
        return compared, table[x + 3] * (y < x), compared.sum()

    plan = sm.plan(several, [x.shape, y.shape], bounds=[(-3, 5), (-3, 5)], scheme=scheme, security="insecure")
    assert plan.t > 200_000
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    found = several(*(context.encrypt(z, bound=(-3, 5)) for z in (x, y)))
    for z, expected, same in zip(found, clear(x, y), several(x, y)):
        np.testing.assert_array_equal(keys.secret.decrypt(z), expected)
        np.testing.assert_array_equal(same, expected)
        held = z._known().elements
        assert held.low <= expected.min() and expected.max() <= held.high


def test_comparisons_of_integers_out_of_range_are_refused(bgv, ckks):
    x = bgv.context.encrypt(np.arange(4), bound=(0, 3))
    unknown = bgv.context.encrypt(np.arange(4), bound=np.inf)
    for wrong in (lambda: functions.lookup(x, [1, 2, 3]), lambda: functions.less(x, 5, (0, 9)), lambda: unknown < 2,
                  lambda: functions.equal(x * x * 10_000, x), lambda: functions.equal(x, 1, 3)):
        with pytest.raises(errors.InputError):
            wrong()
    with pytest.raises(errors.DTypeError, match="equal"):
        x == 2
    with pytest.raises(errors.DTypeError):
        x < 0.5
    for wrong in ([], [[1, 2]], [0.5, 1.0], np.zeros(5000, int)):
        with pytest.raises(errors.InputError):
            functions.lookup(x, wrong)
    with pytest.raises(errors.InputError):
        functions.lookup(np.array([5]), [1, 2])
    with pytest.raises(errors.MismatchError, match="compare"):
        functions.less(ckks.encrypt(np.zeros(4)), 1)
    with pytest.raises(errors.DTypeError):
        functions.less(0.5, 1)
