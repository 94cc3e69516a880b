"""Tensors compute what NumPy computes: element by element, over axes, across ciphertexts."""

from __future__ import annotations

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import errors


def test_round_trip_of_every_shape(each):
    slots = each.context.slots
    for shape in [(), (1,), (5,), (3, 4), (2, 3, 4), (slots,), (slots + 1,), (3, slots - 5)]:
        x = each.numbers(*shape)
        tensor = each.encrypt(x)
        assert tensor.shape == shape and tensor.ciphertexts == max(1, -(-x.size // slots))
        each.check(tensor, x)


def test_operators_are_numpys(each):
    x, y = each.numbers(3, 5), each.numbers(3, 5)
    a, b = each.encrypt(x), each.encrypt(y)
    for found, expected in [
        (a + b, x + y),
        (a - b, x - y),
        (a * b, x * y),
        (-a, -x),
        (a.square(), x * x),
        (a**3, x**3),
        (a + 3, x + 3),
        (3 - a, 3 - x),
        (2 * a, 2 * x),
        (a + y, x + y),
        (y - a, y - x),
        (a * y, x * y),
        (a * y[0], x * y[0]),
        (a + y[:, :1], x + y[:, :1]),
        (a * 0, x * 0),
        (a * np.zeros((3, 5), dtype=int), x * 0),
    ]:
        each.check(found, expected)


def test_across_ciphertexts(each):
    n = 2 * each.context.slots + 17
    x, y = each.numbers(n), each.numbers(n)
    a, b = each.encrypt(x), each.encrypt(y)
    each.check(a * b + x - 2, x * y + x - 2)
    each.check(a.sum().declare_bound(1 << 14), x.sum())
    each.check((a * b)[n - 40 : n - 3], (x * y)[n - 40 : n - 3])


def test_slices_transposes_and_reshapes_move_nothing(each):
    x = each.numbers(6, 4, 5)
    a = each.encrypt(x)
    for key in [0, slice(1, 4), slice(None, None, -2), (slice(None), 2), (Ellipsis, slice(1, 3)), [4, 1], (0, 1, 2)]:
        each.check(a[key], x[key])
    each.check(a.T, x.T)
    each.check(a.transpose(1, 0, 2), x.transpose(1, 0, 2))
    each.check(a.reshape(8, -1), x.reshape(8, -1))
    assert a[2:4].level == a.level
    assert [part.shape for part in a] == [(4, 5)] * 6


def test_elements_that_lie_elsewhere_are_brought_together(each):
    x = each.numbers(40)
    a = each.encrypt(x)
    each.check(a[8:24] + a[16:32], x[8:24] + x[16:32])
    each.check(a[0] * a[1:5], x[0] * x[1:5])


def test_tensors_side_by_side(each):
    x, y = each.numbers(3, 4), each.numbers(2, 4)
    both = sm.concatenate([each.encrypt(x), each.encrypt(y)])
    each.check(both, np.concatenate([x, y]))
    each.check(both[2:4] * 2, np.concatenate([x, y])[2:4] * 2)
    each.check(both * np.concatenate([x, y]), np.concatenate([x, y]) ** 2)
    with pytest.raises(errors.ShapeError):
        sm.concatenate([each.encrypt(x), each.encrypt(y)], axis=1)


def test_sums_over_axes(each):
    x = each.numbers(8, 16)
    a = each.encrypt(x)
    each.check(a.sum(), x.sum())
    each.check(a.sum(axis=0), x.sum(axis=0))
    each.check(a.sum(axis=1), x.sum(axis=1))
    each.check(a.sum(axis=-1, keepdims=True), x.sum(axis=-1, keepdims=True))
    each.check((a + 1).sum(), (x + 1).sum())
    each.check(a.T.sum(axis=0), x.sum(axis=1))
    each.check(a[::2].sum(axis=0), x[::2].sum(axis=0))


def test_sums_of_odd_counts_and_over_both_rows(each):
    row = 1024
    for part in (slice(0, 7), slice(3, 14), slice(row - 4, row + 4)):
        keyed = keys_for(each, lambda t, part=part: (t + 1)[part].sum(), (row + 8,))
        assert keyed.context.row == row
        x = each.numbers(row + 8)
        keyed.check((keyed.encrypt(x) + 1)[part].sum(), (x + 1)[part].sum())


def test_means_and_what_follows_from_them(ckks):
    x = ckks.numbers(128)
    a = ckks.encrypt(x)
    ckks.check(a.mean(), x.mean())
    centred = a - a.mean()
    ckks.check(centred, x - x.mean())
    ckks.check((centred * centred).mean(), x.var())
    y = ckks.numbers(4, 8)
    ckks.check(ckks.encrypt(y).mean(axis=0), y.mean(axis=0))
    ckks.check(ckks.encrypt(y) / 4, y / 4)


def test_public_matrices(each):
    m, x = each.numbers(5, 8), each.numbers(8)
    a = each.encrypt(x)
    keyed = keys_for(each, lambda t: m @ t, (8,))
    keyed.check(m @ keyed.encrypt(x), m @ x)
    each.check(a @ x, x @ x)
    y = each.numbers(3, 8)
    each.check(each.encrypt(y) @ x, y @ x)
    w = each.numbers(8, 4)
    keyed = keys_for(each, lambda t: t @ w, (3, 8))
    keyed.check(keyed.encrypt(y) @ w, y @ w)
    keyed = keys_for(each, lambda t: x @ t, (8, 3))
    keyed.check(x @ keyed.encrypt(y.T), x @ y.T)


def test_public_matrices_are_encoded_once(each):
    m, x = each.numbers(6, 8), each.numbers(8)
    matrix = sm.PublicMatrix(m)
    keyed = keys_for(each, lambda t: matrix @ t, (8,))
    matrix.clear()
    a = keyed.encrypt(x)
    for k in (1, 2):
        keyed.check(matrix @ (a * k), m @ (x * k))
        assert matrix.encodings == 1
    keyed.check(matrix @ a.at_level(a.level), m @ x)
    with pytest.raises(errors.DTypeError):
        matrix @ x


def keys_for(each, function, *shapes):
    """The setting with keys for the rotations of a function, at parameters planned for it."""
    plan = sm.plan(function, list(shapes), scheme=each.context.scheme, security="insecure", bounds=1.0)

    class Keyed(type(each)):
        def __init__(self):
            self.context = sm.Context(plan, insecure=True)
            self.keys = self.context.keygen()
            self.exact = each.exact

    return Keyed()


def test_encrypted_inner_products(each):
    x, y = each.numbers(4, 16), each.numbers(16)
    a, b = each.encrypt(x), each.encrypt(y)
    each.check(a[1] @ b, x[1] @ y)
    keyed = keys_for(each, lambda s, t: (s @ t, t[:, 0] @ s.T), (3, 4), (4, 2))
    p, q = each.numbers(3, 4), each.numbers(4, 2)
    ep, eq = keyed.encrypt(p), keyed.encrypt(q)
    keyed.check(ep @ eq, p @ q)
    keyed.check(eq[:, 0] @ ep.T, q[:, 0] @ p.T)
    with pytest.raises(errors.ShapeError):
        a @ a


def test_products_of_encrypted_matrices(each):
    """Shapes that divide nothing, operands with other numbers beside their elements, a product that is used again."""

    def products(a, b, c, d, e):
        return (a + 1) @ (b + 1), c @ d, (e.T @ a)[:2, 1:] @ b[1:]

    shapes = [(12, 13), (13, 9), (9, 2), (2, 17), (12, 3)]
    keyed = keys_for(each, products, *shapes)
    clear = [each.rng.integers(-1, 2, s) if each.exact else each.numbers(*s) / 8 for s in shapes]
    found = products(*(keyed.encrypt(x) for x in clear))
    for product, expected in zip(found, products(*clear)):
        keyed.check(product, expected)


def test_what_lies_beside_a_factor_does_not_matter(bgv):
    """Both factors lie where they are wanted, with other numbers in the slots that make a block of 8 x 8 of 5."""

    def product(a, b):
        return (a + 1) @ (b + 5)[:, :1]

    keyed = keys_for(bgv, product, (1, 5), (5, 128))
    p, q = bgv.numbers(1, 5), bgv.numbers(5, 128)
    keyed.check(product(keyed.encrypt(p), keyed.encrypt(q)), product(p, q))


def test_matrices_of_several_ciphertexts(bgv):
    keyed = keys_for(bgv, lambda s, t: s[33:36] @ t, (40, 60), (60, 2))
    p, q = bgv.numbers(40, 60), bgv.numbers(60, 2)
    a, b = keyed.encrypt(p), keyed.encrypt(q)
    assert a[33:36].ciphertexts == 2
    keyed.check(a[33:36] @ b, p[33:36] @ q)


def test_layouts_of_products(bgv):
    native, slots = bgv.context._native, bgv.context.slots
    column = bgv.encrypt(np.zeros(4096, dtype=int)).reshape(4096, 1)
    with pytest.raises(errors.LayoutError, match="4096 x 1.*Remedy"):
        column @ column.T
    with pytest.raises(errors.ShapeError):
        column @ column
    for shape in [(3, 5, 2), (12, 12, 12), (1, 40, 9), (100, 3, 7)]:
        sizes = [(shape[0], shape[1]), (shape[1], shape[2])]
        made = native.matrix_product(shape, *(np.arange(r * c) for r, c in sizes), float("inf"))
        for right, (rows, columns) in enumerate(sizes):
            moves = made.moves(bool(right))
            diagonals = [len(np.unique((source - target) % bgv.context.row)) for source, target in moves]
            assert sum(diagonals) < 40 * max(shape) ** 0.5, (shape, made)
            held = np.arange(rows * columns)
            for source, target in moves:
                spread = np.full(int(target.max()) // slots * slots + slots, -1)
                spread[target] = held[source]
                held = spread
            assert set(held) - {-1} == set(range(rows * columns))
        assert len(np.unique(made.places())) == shape[0] * shape[2]


def test_polynomials(each):
    x = each.numbers(20)
    c = np.array([1, -2, 0, 3]) if each.exact else np.array([0.5, -0.25, 0.0, 0.125])
    each.check(each.encrypt(x).polynomial(c), sum(k * x**i for i, k in enumerate(c)))


def test_chebyshev_meets_its_function(ckks):
    x = ckks.numbers(50)
    y = ckks.encrypt(x).chebyshev(np.exp, (-1, 1), 5)
    assert np.abs(ckks.keys.secret.decrypt(y) - np.exp(x)).max() < 1e-3


def test_complex_numbers(ckks):
    z = ckks.rng.uniform(-0.5, 0.5, 30) + 1j * ckks.rng.uniform(-0.5, 0.5, 30)
    a = ckks.encrypt(z)
    assert a.dtype == np.complex128
    ckks.check(a * a, z * z)
    ckks.check(a.conjugate(), z.conj())
    ckks.check(a * (0.5 + 1j), z * (0.5 + 1j))
    ckks.check(a + 1j * z, z + 1j * z)


def test_rotations_turn_rows(each):
    context = each.context
    x = each.numbers(context.slots)
    rows = x.reshape(-1, context.row)
    each.check(each.encrypt(x).rotate(4), np.roll(rows, -4, axis=1).reshape(-1))
    if each.exact:
        each.check(each.encrypt(x).swap_rows(), rows[::-1].reshape(-1))


def test_levels_fall_and_run_out(each):
    a = each.encrypt(each.numbers(4))
    low = a.at_level(0)
    assert (a.level, low.level) == (each.context.top_level, 0)
    with pytest.raises((errors.LevelError, errors.NoiseError)) as caught:
        for _ in range(40):
            a = a * a
            a = a.declare_bound(1.0)
    assert caught.value.remedy and caught.value.kind in ("level", "noise")


def test_progress_is_told(each):
    seen: list[tuple[int, int]] = []
    x = each.numbers(each.context.slots + 1)
    tensor = each.context.encrypt(x, progress=lambda done, total: seen.append((done, total)))
    each.keys.secret.decrypt(tensor, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)] * 2
    each.check(each.context.encrypt(x, progress=True), x)


def test_out_is_filled(each):
    x = each.numbers(6)
    out = np.empty(6, dtype=np.int64 if each.exact else np.float64)
    assert each.keys.secret.decrypt(each.encrypt(x), out=out) is out
    assert np.abs(out - x).max() < 1e-3
    with pytest.raises(errors.ShapeError):
        each.keys.secret.decrypt(each.encrypt(x), out=np.empty(7))


def test_integers_modulo_t_wrap_and_have_limits(exact):
    t = exact.context.plan.t
    a = exact.encrypt(np.array([t // 2, -(t // 2)]))
    with pytest.raises(errors.InputError, match="32769.*Remedy"):
        exact.keys.secret.decrypt(a + 1)
    residues = exact.context.encrypt([t // 2, -(t // 2)], bound=np.inf) + 1
    assert exact.keys.secret.decrypt(residues).tolist() == [-(t // 2), 1 - t // 2]
    assert exact.keys.secret.decrypt((a + 1).declare_bound(np.inf)).tolist() == [-(t // 2), 1 - t // 2]
    for wrong in (np.array([t]), np.array([-t // 2 - 1]), np.array([2**63], dtype=np.uint64), [10**70]):
        with pytest.raises(errors.InputError):
            exact.encrypt(wrong)


def test_moduli_of_200_bits():
    t = int(sm.plan(scheme="bgv", depth=0, t=65537, security="insecure").t)
    assert t == 65537
    wide = 0xFFFFFFFFFFFFFFFFFFFFFFFFFF820001
    plan = sm.plan(scheme="bgv", depth=1, t=wide, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    x = np.array([wide // 2, -5, 10**30, -(10**30)], dtype=object)
    found = keys.secret.decrypt(context.encrypt(x, bound=np.inf) * context.encrypt(np.array([1, 2, 3, 4])))
    centred = [(int(a) * b + wide // 2) % wide - wide // 2 for a, b in zip(x, [1, 2, 3, 4])]
    assert found.tolist() == centred
