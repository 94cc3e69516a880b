"""What a line of NumPy becomes: right in every scheme, with few rotations, and as the layouts promise."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import _layout, _moves, errors

BENCHES = pathlib.Path(__file__).parent.parent / "benches"


def load(name):
    spec = importlib.util.spec_from_file_location(name, BENCHES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def of(matrix):
    """A public matrix as the scheme takes it."""
    return lambda exact: np.round(9 * matrix).astype(int) if exact else matrix / matrix.shape[-1]


M = {shape: of(np.random.default_rng(3).uniform(-1, 1, shape)) for shape in [
    (300, 24), (3000, 24), (24, 300), (3000, 6), (64, 10), (16, 64), (12, 7), (40, 40), (18, 5),
]}  # fmt: skip


def banded(exact):
    return np.eye(200, dtype=int if exact else float) * 2 - np.eye(200, k=1, dtype=int if exact else float)


# Expressions of tensors, shapes, and the most rotations that the plan may have.
LINES = {
    "sum of rows": (lambda e, x: x.sum(0), [(300, 5)], 17),
    "sum of rows in several ciphertexts": (lambda e, x: x.sum(0), [(1500, 5)], 20),
    "sum of rows beside other numbers": (lambda e, x: (x + 1).sum(0), [(1500, 5)], 30),
    "sum of columns": (lambda e, x: x.sum(1), [(300, 5)], 3),
    "sum over two axes": (lambda e, x: x.sum((0, 2)), [(4, 8, 8)], 6),
    "sum of all": (lambda e, x: x.sum() + x.sum((0, 1)), [(30, 50)], 11),
    "sum that repeats itself": (lambda e, x: x.sum(0) * x, [(64, 8)], 7),
    "sum from a row": (lambda e, x: x - x.sum(0), [(300, 5)], 18),
    "sum from a row in several ciphertexts": (lambda e, x: x - x.sum(0), [(1500, 5)], 20),
    "sum from a column": (lambda e, x: x - x.sum(1, keepdims=True), [(300, 5)], 5),
    "times a row": (lambda e, x, y: x * y, [(300, 5), (5,)], 12),
    "times a column": (lambda e, x, y: x * y, [(300, 5), (300, 1)], 40),
    "times one": (lambda e, x, y: x * y[0], [(300, 5), (3,)], 12),
    "products of columns": (lambda e, x: x.T @ x, [(100, 5)], 17),
    "products of two tables": (lambda e, x, y: x.T @ y, [(100, 5), (100, 5)], 17),
    "table and vector": (lambda e, x, w: (x + 1) @ w, [(128, 8), (8,)], 11),
    "transposed table and vector": (lambda e, x, v: x.T @ v, [(64, 8), (64,)], 40),
    "tall": (lambda e, x: M[300, 24](e) @ x, [(24,)], 18),
    "taller than a ciphertext": (lambda e, x: M[3000, 24](e) @ (x + 1), [(24,)], 18),
    "wide": (lambda e, x: M[24, 300](e) @ x, [(300,)], 16),
    "square": (lambda e, x: M[40, 40](e) @ x, [(40,)], 20),
    "vector of several ciphertexts": (lambda e, x: x @ M[3000, 6](e), [(3000,)], 18),
    "every other element": (lambda e, x: M[18, 5](e) @ x[1::2], [(10,)], 18),
    "backwards": (lambda e, x: M[18, 5](e) @ x[::-1], [(5,)], 18),
    "rows": (lambda e, x: x @ M[64, 10](e), [(30, 64)], 16),
    "rows in several ciphertexts": (lambda e, x: x @ M[64, 10](e), [(50, 64)], 16),
    "rows that become longer": (lambda e, x: x @ M[16, 64](e), [(10, 16)], 14),
    "columns": (lambda e, x: M[12, 7](e) @ x, [(7, 9)], 16),
    "stack of channels": (
        lambda e, x: np.stack([x[:, :4, :4], x[:, 2:, 2:]], axis=1).reshape(3, -1)[:, :12] @ M[12, 7](e).T.T[:, :7],
        [(3, 6, 6)], 20,
    ),  # fmt: skip
    "band": (lambda e, x: banded(e) @ x, [(200,)], 3),
    "outer product": (lambda e, x, y: np.outer(x, y), [(20,), (20,)], 30),
    "repeated": (lambda e, x: np.repeat(x, 4), [(64,)], 30),
    "tiled": (lambda e, x: np.tile(x, 4), [(64,)], 4),
    "transposed": (lambda e, x, y: x.T + y, [(16, 16), (16, 16)], 14),
    "reversed": (lambda e, x: x[::-1] + x, [(64,)], 24),
    "distances": (lambda e, x, c: ((x[:, None] - c[None]) ** 2).sum(-1), [(16, 4), (5, 4)], 30),
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("scheme", ["bgv", "ckks"])
def test_lines_are_right_with_few_rotations(scheme, name):
    expression, shapes, most = LINES[name]
    exact = scheme != "ckks"
    check(lambda *x: expression(exact, *x), shapes, scheme, most)


@pytest.mark.parametrize("name", ["sum of rows", "sum from a row", "tall", "vector of several ciphertexts", "rows"])
def test_lines_in_bfv(name):
    expression, shapes, most = LINES[name]
    check(lambda *x: expression(True, *x), shapes, "bfv", most)


def check(function, shapes, scheme, most):
    rng = np.random.default_rng(5)
    exact = scheme != "ckks"
    plan = sm.plan(function, shapes, scheme=scheme, security="insecure", bounds=2 if exact else 1.0)
    assert len(plan.rotations) <= most, plan.rotations
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    clear = [rng.integers(-2, 3, shape) if exact else rng.uniform(-1, 1, shape) for shape in shapes]
    found = function(*(context.encrypt(x) for x in clear))
    decrypted, expected = keys.secret.decrypt(found), function(*clear)
    assert decrypted.shape == expected.shape == found.shape
    if exact:
        assert np.array_equal(decrypted, expected)
        held = found._held
        assert held is None or (held.elements.low <= expected.min() and expected.max() <= held.elements.high)
    else:
        assert np.abs(decrypted - expected).max() <= found.error_bound <= 2**-20
        assert np.abs(expected).max() <= found.bound + found.error_bound
    everything_is_as_it_is_said_to_be(found, keys)


def everything_is_as_it_is_said_to_be(tensor, keys):
    """What a tensor says of the slots in which no element lies."""
    slots, row = tensor.context.slots, tensor.context.row
    count = len(tensor._parts) * slots
    whole = sm.Tensor._made(tensor.context, "", tensor._parts, np.arange(count), tensor.dtype)
    values = keys.secret.decrypt(whole)
    beside = np.ones(count, dtype=bool)
    beside[tensor._at.reshape(-1)] = False
    slack = 0 if tensor.context.exact else tensor.error_bound
    if tensor._rest == _layout.ZERO:
        assert np.abs(values[beside]).max(initial=0) <= slack
    if tensor._rest >= _layout.SAME:
        period = tensor._rest + 1 - _layout.SAME
        rows = values.reshape(len(tensor._parts), -1, period)
        assert np.abs(rows - rows[:, :1]).max() <= 2 * slack
        assert row % period == 0


def test_random_moves(each):
    """Elements brought to random places, one stretch or many, each once or several times."""
    rng = np.random.default_rng(11)
    slots = _layout.Slots(each.context.slots, each.context.row)
    for trial in range(60):
        count = int(rng.integers(1, 20))
        source = rng.choice(2 * slots.total, count, replace=False)
        copies = int(rng.choice([1, 1, 2, 3, 4]))
        if trial % 2:
            start, stride = int(rng.integers(0, 50)), int(rng.integers(1, 9))
            source = start + stride * np.arange(count)
            first = int(rng.integers(0, 50)) + int(rng.integers(1, 9)) * copies * np.arange(count)
            target = first[:, None] + np.arange(copies)
        else:
            target = rng.choice(2 * slots.total, (count, copies), replace=False)
            target = np.where(rng.random() < 0.5, target % slots.row, target)
            if len(np.unique(target)) < target.size:
                continue
        used = np.unique(target // slots.total)
        target = np.searchsorted(used, target // slots.total) * slots.total + target % slots.total
        of = np.broadcast_to(source[:, None], target.shape)
        if len(np.unique(target)) < target.size:
            continue
        for rest in (_layout.FREE, _layout.ZERO):
            way = _moves.cheapest(of.reshape(-1), target.reshape(-1), slots, rest)
            held = np.zeros(2 * slots.total) if rest == _layout.ZERO else rng.normal(size=2 * slots.total)
            held[source] = rng.normal(size=count)
            found = simulated(way, held.reshape(2, -1), slots)
            assert np.allclose(found.reshape(-1)[target], held[of]), (way, rest)
            if way.rest == _layout.ZERO:
                beside = np.ones(found.size, dtype=bool)
                beside[target.reshape(-1)] = False
                assert np.allclose(found.reshape(-1)[beside], 0), way


def simulated(way, parts, slots):
    """What a way makes of numbers in the clear."""

    def rows(part):
        return part.reshape(slots.rows, slots.row)

    def turned(part, step, swap):
        part = rows(part)[::-1] if swap else rows(part)
        return np.roll(part, -step, axis=1).reshape(-1)

    if isinstance(way, _moves.Turn):
        if way.kept is not None:
            mask = np.zeros(parts.size)
            mask[way.kept] = 1
            parts = parts * mask.reshape(parts.shape)
        return np.array([turned(parts[origin], step, swap) for origin, step, swap in way.turns])
    if isinstance(way, _moves.Diagonals):
        made = np.zeros((int(way.target.max()) // slots.total + 1) * slots.total)
        made[way.target] = parts.reshape(-1)[way.source]
        return made.reshape(-1, slots.total)
    if isinstance(way, _moves.Maps):
        for each in way.ways:
            parts = simulated(each, parts, slots)
        return parts
    if isinstance(way, _moves.Copies):
        parts = simulated(way.last, parts, slots)
        for count, stride in way.sums:
            parts = np.array([sum(turned(part, i * stride, False) for i in range(count)) for part in parts])
        if way.swap:
            parts = np.array([part + turned(part, 0, True) for part in parts])
    return np.array([parts[origin] for origin in way.origins])


def test_blocks_stay_in_rows(each):
    slots = _layout.Slots(each.context.slots, each.context.row)
    for shape in [(5000, 5), (3, 300, 7), (40, 60), (2, 3, 400), (2000,), (3, slots.row), (2, slots.row + 1)]:
        at = _layout.canonical(shape, slots)
        assert at.shape == shape and len(np.unique(at)) == at.size
        size = _layout.block(shape, slots.row)
        rows = at.reshape(-1, size) // slots.row
        assert (rows == rows[:, :1]).all()
        assert at.max() // slots.total <= 1.6 * at.size / slots.total + 1
    x = each.numbers(800, 3)
    tensor = each.encrypt(x)
    each.check(tensor, x)
    read = each.context.read(tensor.to_bytes(), trust_certificate=True)
    each.check(read, x)
    assert np.array_equal(read._at, tensor._at)
    each.check(tensor.reshape(-1)[700:720], x.reshape(-1)[700:720])


def test_a_scale_and_a_mask_take_one_level(ckks):
    x = ckks.numbers(60, 5)
    tensor = ckks.encrypt(x)
    scaled = (tensor + 1) * 0.25
    masked = scaled * np.ones((60, 5))
    assert masked.level == scaled.level
    ckks.check(masked * 2.0, (x + 1) * 0.5)
    ckks.check(scaled[3:5] * np.array([1, 2, 3, 4, 5.0]), (x[3:5] + 1) * 0.25 * np.array([1, 2, 3, 4, 5]))


def test_large_results_widen_level_0():
    """A sum above 1 takes bits of level 0, and no level."""
    plan = sm.plan(lambda x: x.sum(0), [(300, 5)], security="insecure")
    assert plan.depth == 0 and "results above 1" in plan.explain()
    assert sm.plan(lambda x: x + x, [(300,)], security="insecure").depth == 0
    assert sm.plan(lambda x: x.sum(0) * x.sum(0), [(300, 5)], security="insecure").depth == 1


def test_a_tensor_takes_a_plan_without_its_circuit(each):
    plan = sm.plan(lambda x: sum(x * k for k in range(2, 40)), [(8,)], scheme=each.context.scheme, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    x = context.encrypt([1, 0, 1])
    data = x.to_bytes()
    assert '"nodes"' in plan.to_json() and b'"nodes"' not in data
    # Of this one, or of another that lives and has the same parameters.
    assert sm.Tensor.from_bytes(data, trust_certificate=True).context.plan._same_parameters(plan)
    read = context.read(data)
    assert np.allclose(keys.secret.decrypt(read), [1, 0, 1], atol=1e-3)


@pytest.mark.parametrize("name", sorted(load("tasks").TASKS))
def test_tasks(name):
    """The tasks that documentation has numbers of, small."""
    row = load("tasks").measured(name, True)
    assert float(row["error"]) <= float(row["error_bound"]) < 1e-3
    assert row["rotations"] < 40


@pytest.mark.skipif(not pathlib.Path("/proc/self/clear_refs").exists(), reason="peaks of memory are Linux's")
@pytest.mark.parametrize("name", ["lookup", "table @ query"])
def test_memory_is_what_was_forecast(name):
    """At parameters of 128 bits, in a process of its own."""
    row = load("tasks").apart(name, alone=True)
    assert 0.8 <= row["forecast_mb"] / row["running_mb"] <= 1.25, row
    # Where keys are few, arrays of a large table's entries while it is planned for are most of it.
    assert row["peak_mb"] <= (4 if name == "lookup" else 6) * (row["keys_mb"] + row["ciphertexts_mb"]), row


def test_other_packages_are_given_what_they_compute():
    peers = load("peers")
    tasks = load("tasks").TASKS
    assert all(name in tasks for found in peers.PEERS.values() for name in found)
    assert peers.seconds("openfhe", "convolutions", [], np.zeros(1)) == ""


def test_expressions():
    bench = load("expressions")
    assert len(bench.EXPRESSIONS) == 30
    for name in ["x.sum(0) of 1000 x 5", "A @ x, public 1000 x 64"]:
        expression = bench.EXPRESSIONS[name]
        assert len(sm.plan(expression.function, expression.shapes, security="insecure").rotations) < 30


def test_products_too_large_are_refused_before_anything_is_encoded():
    x = load("tasks")._random(4)
    with pytest.raises(errors.ShapeError, match="terms"):
        sm.plan(lambda t: np.zeros((1 << 22, 4)) @ t, [x.shape], security="insecure")
