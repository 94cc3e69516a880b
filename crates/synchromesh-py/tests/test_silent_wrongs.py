"""What looks like an answer and is none is refused: comparisons, arguments outside, sums that wrap, arrays of tensors."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import errors
from test_tensor import keys_for


def test_comparisons_have_no_answer(each):
    x = each.encrypt(each.numbers(4))
    # Those that order give numbers from 0 to 1, of integers and integers 0 and 1 (test_functions).
    unordered = (None, "2", 0.5, np.ones(4)) if x.context.exact else (None, "2")
    ordering = (operator.lt, operator.le, operator.gt, operator.ge)
    for compare in (operator.eq, operator.ne, *ordering):
        for other in unordered if compare in ordering else (2, np.ones(4), x, None, np.float64(1)):
            with pytest.raises(errors.DTypeError, match="Remedy: decrypt"):
                compare(x, other)
            with pytest.raises(errors.DTypeError, match="Remedy: decrypt"):
                compare(other, x)
    for wrong in (
        lambda: 2 in x,
        lambda: np.where(x == 2, 1, 0),
        lambda: np.where(x, 1, 0),
        lambda: [x].index(2),
        lambda: bool(x),
        lambda: 1 if x else 0,
        lambda: np.array_equal(x, x),
        lambda: np.equal(x, 2),
        lambda: np.asarray(x),
        lambda: np.array([x, x]),
        lambda: float(x),
        lambda: [1, 2][x[0]],
        lambda: x % 2,
        lambda: 7 // x,
        lambda: 2**x,
        lambda: round(x),
    ):
        with pytest.raises(errors.DTypeError, match="Remedy"):
            wrong()
    if x.context.exact:
        for wrong in (lambda: abs(x), lambda: np.exp(x), lambda: np.clip(x, 0, 1)):
            with pytest.raises(errors.DTypeError, match="Remedy"):
                wrong()
        # Of levels there are too few, or else an encrypted bit is no bool.
        with pytest.raises(errors.SynchromeshError, match="Remedy"):
            max(x, x)


def test_arguments_outside_the_interval_are_refused(ckks):
    x = ckks.context.encrypt(np.linspace(-2, 2, 9), bound=2.0)
    with pytest.raises(errors.InputError, match=r"-2 to 2.*-1 to 1.*declare_bound"):
        x.chebyshev(np.tanh, (-1, 1), 9)
    # A largest absolute value that fits says nothing of the sign.
    with pytest.raises(errors.InputError, match=r"-2 to 2.*0 to 2"):
        x.chebyshev(np.sqrt, (0, 2), 9)
    with pytest.raises(errors.InputError, match="complex"):
        ckks.encrypt(np.array([0.5j])).chebyshev(np.tanh, (-1, 1), 3)
    real = ckks.encrypt(np.array([0.5j]) * 0 + 0.5).declare_bound((0, 1))
    ckks.check(real.chebyshev(np.tanh, (0, 1), 5), np.tanh([0.5]))
    with pytest.raises(errors.InputError):
        sm.plan(lambda t: t.chebyshev(np.tanh, (-1, 1), 9), [(4,)], bounds=2, security="insecure")
    half = ckks.context.encrypt(np.linspace(-0.5, 0.5, 9), bound=2.0)
    ckks.check(half.declare_bound(1.0).chebyshev(np.tanh, (-1, 1), 9), np.tanh(np.linspace(-0.5, 0.5, 9)))
    # Ranges follow operations.
    y = ckks.encrypt(np.linspace(-1, 1, 9))
    root = (y * y + 1).chebyshev(lambda v: 0.5 * np.sqrt(v), (0.5, 2), 5)
    ckks.check(root, 0.5 * np.sqrt(np.linspace(-1, 1, 9) ** 2 + 1))
    with pytest.raises(errors.InputError, match="0 to 1.*0.5 to 2"):
        (y * y).chebyshev(np.sqrt, (0.5, 2), 9)


def test_slots_beside_the_elements_stay_in_the_interval(ckks):
    x = np.linspace(3, 4, 5)
    a = ckks.context.encrypt(x, bound=(3, 4))
    found = a.chebyshev(lambda v: 1 / v, (3, 4), 15)
    ckks.check(found, 1 / x)
    assert found.bound < 1e6
    shifted = (a - 3.5).chebyshev(np.exp, (-3.5, 0.5), 15)
    ckks.check(shifted, np.exp(x - 3.5))
    # What is no zero there and outside the interval costs a level.
    narrow = (a - 3.5).chebyshev(np.exp, (-0.6, 0.6), 7)
    ckks.check(narrow, np.exp(x - 3.5))
    wide = (a - 3.5).chebyshev(np.exp, (-3.5, 0.5), 7)
    assert narrow.level == wide.level - 1


def test_what_lies_beside_declared_elements_does_not_matter(ckks):
    """Sums of other elements lie beside those of x, and zeros; both are far outside of what is declared of the elements."""
    x = np.zeros((8, 32))
    x[1::2] = 1.0
    x[::2, :16] = 1.0

    def function(a):
        return a.sum(axis=1)[::2].declare_bound((15.5, 16.5)).chebyshev(lambda v: 16 / v, (15.5, 16.5), 31)

    keyed = keys_for(ckks, function, (8, 32))
    found = function(keyed.encrypt(x))
    keyed.check(found, np.ones(4))

    def power(a, **options):
        return (a.sum(axis=1)[::2] * (1 / 16)).declare_bound(1.0, **options) ** 16

    keyed = keys_for(ckks, power, (8, 32))
    keyed.check(power(keyed.encrypt(x)), np.ones(4))
    # The zeros come with the scale, in one level; by themselves they take one.
    assert power(keyed.encrypt(x / 2), everywhere=True).level == power(keyed.encrypt(x / 2)).level
    sums = keyed.encrypt(x / 2).sum(axis=1)[::2]
    assert sums.declare_bound(9.0, everywhere=True).level == sums.declare_bound(9.0).level + 1
    # Weighted sums of rows in one stretch are known all over: no level is spent.
    w = np.full(32, 1 / 32)
    y = keyed.encrypt(x) @ w
    assert y.chebyshev(np.tanh, (-1, 1), 3).level == (y - 0).chebyshev(np.tanh, (-1, 1), 3).level == y.level - 2


def test_ranges_are_sound():
    """Ranges of fractions stay fractions where zeros come in, and those of wide integers do not overflow."""
    from synchromesh._ranges import Held, Range

    r = Range(3.0, 4.7)
    assert r.and_zero() == Range(0.0, 4.7) and isinstance(r.and_zero().low, float)
    assert r.and_zero().weighted(np.array([[0.5, -1.0], [1.0, 1.0]])) == Range(-4.7, 9.4)
    big = Range(-(10**30), 10**30)
    assert big.weighted(np.array([[2**40, 2**41]])).high == 10**30 * 3 * 2**40
    assert Range(-3, 2).square() == Range(0, 9) and Range(-3, 2).polynomial(np.array([1, 0, 1, 1])) == Range(1 - 27, 18)
    assert Range(-3, 2).mul(Range(-5, 7)) == Range(-21, 15) and Range(1, 2).sub(Range(3, 5)) == Range(-4, -1)
    wide = big
    for _ in range(40):
        wide = wide.square()
    assert wide.reach < 1 << 1001 and wide.low == 0
    assert Range(-1e200, 1e200).square().mul(Range(0.0, 0.0)).reach == np.inf
    rng = np.random.default_rng(1)
    for _ in range(200):
        low = rng.integers(-9, 9, 2)
        x, y = (Range(int(a), int(a + b)) for a, b in zip(low, rng.integers(0, 9, 2)))
        values = [rng.integers(z.low, z.high + 1, 50) for z in (x, y)]
        c = rng.integers(-3, 4, 5)
        for held, found in [
            (x.add(y), values[0] + values[1]),
            (x.sub(y), values[0] - values[1]),
            (x.mul(y), values[0] * values[1]),
            (x.square(), values[0] ** 2),
            (x.polynomial(c), np.polynomial.polynomial.polyval(values[0], c)),
            (x.weighted(c.reshape(1, -1)), values[0].reshape(10, 5) @ c),
            (x.total(5), values[0].reshape(10, 5).sum(axis=1)),
            (x.hull(y), np.concatenate(values)),
        ]:
            assert held.low <= found.min() and found.max() <= held.high
    assert Held.alone(x).combined("add", Held.everywhere(y)).beside == y


def test_errors_of_approximations_count(ckks):
    x = np.linspace(-1, 1, 50)
    for function, degree in [(np.exp, 3), (np.tanh, 3), (lambda v: 1 / (2 + v), 5), (np.abs, 7)]:
        y = ckks.encrypt(x).chebyshev(function, (-1, 1), degree)
        off = np.abs(ckks.keys.secret.decrypt(y) - function(x)).max()
        assert off <= y.error_bound <= 2 * off
    # It goes on through what follows.
    y = 3 * ckks.encrypt(x).chebyshev(np.abs, (-1, 1), 5)
    off = np.abs(ckks.keys.secret.decrypt(y) - 3 * np.abs(x)).max()
    assert off <= y.error_bound
    # The plan counts it too.
    with pytest.raises(errors.ParamsError, match="degree 7.*precision 12.*raise its degree"):
        sm.plan(lambda t: t.chebyshev(np.abs, (-1, 1), 7), [(4,)], precision=12, security="insecure")


def test_errors_that_cannot_be_bounded_are_the_callers_word(ckks):
    def step(v):
        return np.where(np.asarray(v) > 0, 1.0, 0.0)

    x = ckks.encrypt(np.linspace(-1, 1, 9))
    with pytest.raises(errors.InputError, match="cannot be bounded.*was seen.*error="):
        x.chebyshev(step, (-1, 1), 7)
    with pytest.raises(errors.InputError, match="somewhere"):
        x.chebyshev(step, (-1, 1), 7, error=0.01)
    assert 0.6 < x.chebyshev(step, (-1, 1), 7, error=0.6).error_bound < 0.61
    assert x.chebyshev(step, (-1, 1), 7, error=0).error_bound < 1e-3
    for wrong in (-1, np.nan, np.inf, "x"):
        with pytest.raises(errors.InputError):
            x.chebyshev(step, (-1, 1), 7, error=wrong)


FUNCTIONS = [
    (np.tanh, -1, 1, 9),
    (np.exp, -3, 2, 12),
    (np.sin, -10, 10, 40),
    (np.cos, -5, 1, 9),
    (np.sqrt, 0.01, 4, 30),
    (np.log, 0.1, 3, 20),
    (np.log1p, -0.5, 3, 8),
    (np.arctan, -4, 4, 11),
    (np.sinh, -2, 2, 5),
    (np.cosh, -2, 2, 5),
    (np.cbrt, 0.5, 8, 6),
    (np.reciprocal, 0.1, 4, 30),
    (np.abs, -1, 1, 31),
    (lambda v: 1 / (1 + np.exp(-v)), -8, 8, 31),
    (lambda v: np.maximum(v, 0), -1, 1, 15),
    (lambda v: np.minimum(v, 0.3) - 2**v, -1, 1, 15),
    (lambda v: v**3 - v**-2 + v**0.5, 1, 2, 9),
    (lambda v: v * v * 0.5 * (1 + np.tanh(v + 0.04 * v**3)), -4, 4, 15),
    (lambda v: np.exp(-30 * v**2), -1, 1, 60),
    (lambda v: 0 * v + 3, -1, 1, 3),
]


@pytest.mark.parametrize("function, low, high, degree", FUNCTIONS)
def test_bounds_of_approximations_hold_and_are_near(function, low, high, degree):
    from synchromesh import _chebyshev

    series = _chebyshev.interpolated(function, low, high, degree)
    x = np.concatenate([np.linspace(low, high, 20011), low + (high - low) * np.logspace(-12, 0, 200)])
    u = np.clip((2 * x - low - high) / (high - low), -1, 1)
    values = np.polynomial.chebyshev.chebval(u, series.coefficients)
    off = np.abs(values - function(x)).max()
    assert off <= series.error <= 1.3 * off + 1e-8 * np.abs(series.coefficients).sum()
    assert series.low <= values.min() and values.max() <= series.high


def test_sums_that_may_wrap_are_refused(exact):
    t = exact.context.plan.t
    x = np.full(1000, 40)
    a = exact.encrypt(x)
    total = a.sum()
    with pytest.raises(errors.InputError, match=rf"40000.*t = {t}.*declare_bound"):
        exact.keys.secret.decrypt(total)
    ones = exact.context.encrypt(np.ones(1000, dtype=int), bound=(0, 1))
    exact.check(ones.sum(), 1000)
    for wraps in (a * a * a, a**3, a.polynomial([0, 0, 0, 1]), (a * np.full(1000, 999)), a * 999, a.square() * 40):
        with pytest.raises(errors.InputError, match="may lie"):
            exact.keys.secret.decrypt(wraps[:3])
    # What wraps on the way and comes back is right.
    exact.check((a * 999 - a * 998)[:3].declare_bound(40), x[:3])
    for held in (a + 1, a - 100, -a, a * 3, a[5:20], a[::-1], a.reshape(10, 100).T, 7 - a, a.square()):
        exact.keys.secret.decrypt(held)
    with pytest.raises(errors.InputError, match="declared"):
        exact.context.encrypt(x, bound=39)
    with pytest.raises(errors.InputError):
        ones.declare_bound((3, 4))


def test_products_with_matrices_that_may_wrap_are_refused(bgv):
    for function, shape in [(lambda x: np.full((2, 8), 500) @ x, (8,)), (lambda x: x @ np.full((8, 2), 500), (3, 8))]:
        keyed = keys_for(bgv, function, shape)
        x = np.full(shape, 9)
        with pytest.raises(errors.InputError, match="36000"):
            keyed.keys.secret.decrypt(function(keyed.encrypt(x)))
    keyed = keys_for(bgv, lambda x, y: x @ y, (3, 4), (4, 2))
    p, q = np.full((3, 4), 100), np.full((4, 2), 100)
    with pytest.raises(errors.InputError, match="40000"):
        keyed.keys.secret.decrypt(keyed.encrypt(p) @ keyed.encrypt(q))


@pytest.mark.parametrize("scheme", ["bfv", "bgv"])
def test_t_is_chosen_for_declared_numbers(scheme):
    def function(x):
        return (x * x).sum()

    plan = sm.plan(function, [(100,)], scheme=scheme, bounds=100, security="insecure")
    assert plan.t > 2 * 10**6 and "1000000" in plan.explain()
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    assert keys.secret.decrypt(function(context.encrypt(np.full(100, -100), bound=100))) == 10**6
    with pytest.raises(errors.ParamsError, match="1000000.*plain_modulus"):
        sm.plan(function, [(100,)], scheme=scheme, bounds=100, t=65537, security="insecure")
    assert "modulo t" in sm.plan(function, [(100,)], scheme=scheme, security="insecure").explain()


def test_copies_know_what_the_tensor_knows(exact):
    total = exact.encrypt(np.full(8, 10**4)).sum()
    for twin in (copy.copy(total), copy.deepcopy([total])[0]):
        with pytest.raises(errors.InputError, match="80000"):
            exact.keys.secret.decrypt(twin)


def test_declared_ranges_travel_and_seen_ones_stay(exact, tmp_path):
    context, secret = exact.context, exact.keys.secret
    for tensor, known in [(context.encrypt([1, 7], bound=100), 100), (context.encrypt([1, 7]), np.inf)]:
        for again in (context.read(tensor.to_bytes()), pickle.loads(pickle.dumps(tensor))):
            assert again.bound == known
            assert (secret.decrypt(again) == [1, 7]).all()
        assert (b"range" in tensor.to_bytes()) == (known == 100)
    big = context.read((context.encrypt([1, 7], bound=100) * 1000).to_bytes())
    with pytest.raises(errors.InputError, match="100000"):
        secret.decrypt(big)


# Functions of NumPy that a tensor does not take, as called.
REFUSED = {
    "save": lambda x, path: np.save(path, x),
    "savetxt": lambda x, path: np.savetxt(path, x),
    "savez": lambda x, path: np.savez(path, x),
    "einsum": lambda x, _: np.einsum("ij,ij->i", x, x),
    "tensordot": lambda x, _: np.tensordot(x, x),
    "where": lambda x, _: np.where(np.ones((4, 6), bool), x, 0),
    "sort": lambda x, _: np.sort(x),
    "max": lambda x, _: np.max(x),
    "argmax": lambda x, _: np.argmax(x),
    "median": lambda x, _: np.median(x),
    "std": lambda x, _: np.std(x),
    "corrcoef": lambda x, _: np.corrcoef(x),
    "linalg.norm": lambda x, _: np.linalg.norm(x),
    "fft": lambda x, _: np.fft.fft(x),
    "cumsum": lambda x, _: np.cumsum(x),
    "power": lambda x, _: np.power(2.0, x),
    "mixed": lambda x, _: np.stack([x, np.ones((4, 6))]),
    "out": lambda x, _: operator.iadd(np.ones((4, 6)), x),
    "dtype": lambda x, _: np.sum(x, dtype=np.float32),
    "slots into an array": lambda x, _: np.stack([x, x], out=np.zeros((2, 4, 6), int)),
    "slots as floats": lambda x, _: np.concatenate([x, x], dtype=float),
    "division": lambda x, _: x / x,
    "right division": lambda x, _: 1 / x,
    "no axis": lambda x, _: np.roll(x, 1, axis=7),
    "by secrets": lambda x, _: np.take(np.arange(9), x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_functions_of_numpy_that_are_not_taken_say_what_to_write(name, ckks, tmp_path):
    x = ckks.encrypt(ckks.numbers(4, 6))
    with pytest.raises(errors.SynchromeshError, match="Remedy: .{10}") as caught:
        REFUSED[name](x, str(tmp_path / "x.npy"))
    assert isinstance(caught.value, (errors.DTypeError, errors.ShapeError))
    assert not list(tmp_path.iterdir())


def test_no_function_of_numpy_takes_a_tensor_apart(ckks):
    """Every function that dispatches either computes on the tensor as a whole or raises."""
    x = ckks.encrypt(ckks.numbers(2, 2))
    for name in dir(np):
        function = getattr(np, name)
        if not hasattr(function, "__wrapped__") or inspect.isclass(function) or name in ("copyto", "put", "place"):
            continue
        try:
            found = function(x)
        except (TypeError, ValueError, errors.SynchromeshError):
            continue
        listed = found if isinstance(found, (list, tuple)) else [found]
        for each in listed:
            assert not (isinstance(each, np.ndarray) and each.dtype == object), name


def test_deep_circuits_get_a_modulus_with_slots():
    for rotations in ([], [1]):
        plan = sm.plan(scheme="bgv", depth=20, rotations=rotations)
        assert plan.slots == 1 << plan.log_n and f"t = {plan.t}" in plan.explain()
    assert sm.plan(scheme="bgv", depth=2).t == 65537
    deep = {"function": lambda x: (x**4096) ** 256, "shapes": [(4,)], "scheme": "bgv"}
    assert sm.plan(**deep).slots >= 1 << 16
    with pytest.raises(errors.ParamsError, match="no slots.*plain_modulus"):
        sm.plan(t=65537, **deep)


def test_ranges_hold_after_random_operations(each):
    """Every slot, those beside the elements included, lies where the tensor says."""
    rng = np.random.default_rng(11)
    seen, exact, secret = set(), each.exact, each.keys.secret

    def held(tensor):
        values = np.concatenate([np.asarray(v) for v in secret._native.decrypt(tensor._parts, False)])
        beside = np.ones(len(values), dtype=bool)
        beside[tensor._at.reshape(-1)] = False
        slack = 0 if exact else tensor.error_bound + 1e-9
        for found, known in ((values[~beside], tensor._held.elements), (values[beside], tensor._held.beside)):
            if exact and known.reach > each.context.plan.t // 2 or not found.size:
                continue
            assert known.low - slack <= found.min() and found.max() <= known.high + slack

    def numbers(*shape):
        return rng.integers(-3, 4, shape) if exact else rng.uniform(-1, 1, shape)

    operations = {
        "scalar": lambda x: x + (2 if exact else 0.5),
        "times": lambda x: x * (-3 if exact else -0.75),
        "array": lambda x: x + numbers(*x.shape),
        "weights": lambda x: x * numbers(*x.shape),
        "less": lambda x: 1 - x,
        "square": lambda x: x.square(),
        "itself": lambda x: x * x,
        "product": lambda x: x * (x + 1),
        "slice": lambda x: x[1:] if len(x) > 2 else x,
        "half": lambda x: x[: len(x) // 2] if len(x) > 3 else x,
        "rows": lambda x: x[::2] if len(x) > 3 else x,
        "sum": lambda x: x.sum(axis=0, keepdims=True),
        "sums": lambda x: x.sum(axis=-1, keepdims=True),
        "all": lambda x: x.sum().reshape(1, 1),
        "rotate": lambda x: x.rotate(int(2 ** rng.integers(0, 6))),
        "both": lambda x: sm.concatenate([x, x + 1]),
        "polynomial": lambda x: x.polynomial([1, -2, 1] if exact else [0.5, -0.25, 0.5]),
        "declared": lambda x: x.declare_bound(x.bound),
        "inner": lambda x: (x @ numbers(x.shape[1])).reshape(-1, 1),
        "turned": lambda x: x.T,
        "level": lambda x: x.at_level(x.level),
        "function": lambda x: x if exact else (x * 0.01).chebyshev(np.tanh, (-0.5, 1), 2),
    }
    for _ in range(60):
        shape = [(8, 16), (3, 5), (40, 60), (1, 7)][rng.integers(4)]
        bound = [None, (-1, 1), (0, 1)][rng.integers(3)]
        data = numbers(*shape) if bound is None else rng.integers(0, 2, shape) * (1 if exact else 1.0)
        x = each.context.encrypt(data, bound=bound)
        for name in rng.permutation(list(operations))[:6]:
            try:
                x = operations[name](x)
            except errors.SynchromeshError:
                continue
            seen.add(name)
            held(x)
    assert seen == set(operations)


def test_elements_that_are_left_out_do_not_join_those_that_are_repeated(each):
    """As many elements as before, some more than once: the others were taken to be zeros, and were added to them."""
    rng = np.random.default_rng(5)
    chosen = [np.array([1, 1, 1]), *(rng.integers(0, 3, size=rng.integers(1, 5)) for _ in range(6))]
    rows = [np.array([2, 2, 5, 5, 5, 0, 0, 7]), *(rng.integers(0, 8, size=rng.integers(1, 10)) for _ in range(6))]

    def function(x):
        return [x[:, columns] for columns in chosen] + [x[of] for of in rows]

    keyed = keys_for(each, function, (8, 3))
    values = each.numbers(8, 3)
    for found, expected in zip(function(keyed.encrypt(values)), function(values)):
        keyed.check(found, expected)
