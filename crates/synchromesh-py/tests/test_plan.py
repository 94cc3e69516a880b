"""Plans: of descriptions and of functions, explained, drawn, kept in files."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import _text, errors


@pytest.mark.parametrize("scheme", ["bfv", "bgv", "ckks"])
def test_a_function_is_planned_with_its_rotations_and_then_runs(scheme):
    def function(x, y):
        return ((x * y).sum(axis=1) + x[:, 0]).sum(), x.T[1:]

    plan = sm.plan(function, {"x": (4, 8), "y": (8,)}, scheme=scheme, security="insecure", precision=12)
    assert plan.depth >= 1 and plan.rotations
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-5, 6, (4, 8)), rng.integers(-5, 6, 8))
    if scheme == "ckks":
        x, y = x / 5, y / 5
    total, rest = function(context.encrypt(x), context.encrypt(y))
    expected, other = function(x, y)
    assert np.abs(keys.secret.decrypt(total) - expected).max() < 1e-2
    assert np.abs(keys.secret.decrypt(rest) - other).max() < 1e-2


def test_precision_is_kept():
    plan = sm.plan(lambda x: (x * x).sum(), [(100,)], precision=18, security="insecure")
    context = sm.Context(plan, insecure=True)
    context.keygen()
    result = context.encrypt(np.full(100, 0.5))
    assert (result * result).sum().error_bound <= 2**-18


def test_plans_are_secure_unless_told_otherwise():
    plan = sm.plan(lambda x: x * x, [(10,)], precision=10)
    assert plan.security_bits >= 128
    weak = sm.plan(lambda x: x * x, [(10,)], precision=10, security="insecure")
    assert weak.security_bits < 128
    for word in (False, "yes", 1):
        with pytest.raises(errors.InsecureError):
            sm.Context(weak, insecure=word)


def test_explanations_memory_and_files(tmp_path):
    plan = sm.plan(lambda x: (x * x + 1).rotate(2), [(10,)], scheme="bgv", security="insecure")
    text = plan.explain()
    assert "log QP" in text and "mul" in text and "rotate" in text
    assert [step[0] for step in plan.trace] == ["input", "mul", "add", "rotate"]
    memory = plan.memory(ciphertexts=4)
    parts = ["ciphertexts", "keys", "prepared_keys", "tables", "working", "maps", "kept"]
    assert memory["total"] == sum(memory[part] for part in parts) > plan.memory()["total"]
    # Told once, and the same.
    assert f"memory: {_text.size(plan.memory()['total'])}: " in text and text.count("memory: ") == 1
    assert pickle.loads(pickle.dumps(plan)).memory() == plan.memory()
    assert plan.memory()["maps"] == 0
    matrix = np.arange(12).reshape(3, 4)
    mapped = sm.plan(lambda x: matrix @ x, [(4,)], scheme="bgv", security="insecure")
    # Twelve entries, and at least as many diagonals of numbers as there are rows.
    assert mapped.memory()["maps"] >= 12 * 24 + 3 * 16 * mapped.slots
    wide = sm.plan(lambda x: x * x, [(5000,)], scheme="bgv", security="insecure")
    assert wide.memory()["ciphertexts"] == wide.memory(-(-5000 // wide.slots) - 1)["ciphertexts"] > 0
    plan.save(tmp_path / "plan.json")
    assert sm.Plan.load(tmp_path / "plan.json") == plan
    with pytest.raises(errors.DecodeError):
        sm.Plan.from_json("{}")


@pytest.mark.parametrize("scheme", ["bgv", "ckks"])
def test_a_failure_probability_is_asked_for_by_name_and_told(scheme, tmp_path):
    def function(x):
        return x * x

    options = {"scheme": scheme, "security": "insecure"}
    usual = sm.plan(function, [(8,)], **options)
    often = sm.plan(function, [(8,)], failure=2**-40, **options)
    assert (usual.failure, often.failure) == (2**-128, 2**-40)
    assert "failure probability 2^-40" in often.explain() and "failure probability 2^-128" in usual.explain()
    assert "2^-40" in often._repr_html_() and "2^-128" in usual._repr_html_()
    context = sm.Context(often, insecure=True)
    keys = context.keygen()
    numbers = np.arange(8) / (8 if scheme == "ckks" else 1)
    x = context.encrypt(numbers.astype(int) if scheme == "bgv" else numbers)
    for said in (often, context, x, keys.secret.context):
        assert "failure 2^-40" in repr(said)
    assert "failure" not in repr(usual)
    # A file says it, and a context that reads it is of that plan, whatever others have its parameters.
    other = sm.Context(sm.Plan.from_json(often.to_json().replace('"log2_p_fail": -40.0', '"log2_p_fail": -128.0')), insecure=True)
    other.keygen()
    assert "2^-40" not in repr(other) and not other.plan._same_parameters(often)
    read = sm.Tensor.from_bytes(x.to_bytes(), trust_certificate=True)
    assert read.context.plan.failure == 2**-40
    y = other.encrypt(numbers.astype(int) if scheme == "bgv" else numbers)
    with pytest.raises(errors.MismatchError):
        x + y
    if scheme == "ckks":
        assert x.error_bound < 0.8 * y.error_bound
    else:
        assert x.noise_budget > y.noise_budget
    for wrong in (2**-50, 0, "2^-40", None, True):
        with pytest.raises(errors.ParamsError, match="2\\*\\*-40"):
            sm.plan(function, [(8,)], failure=wrong, **options)
    with pytest.raises(errors.ParamsError, match="failure"):
        sm.plan(bootstrap=True, failure=2**-40, precision=10, security="insecure")


def test_deep_plans_of_few_bits():
    for depth in (8, 24, 32):
        plan = sm.plan(depth=depth, precision=8)
        assert plan.levels == depth + 1
    # Beside many digits at one degree two at the next are weighed, for time and bytes of keys.
    for rotations in ((), range(1, 41)):
        for depth in (12, 13):
            plan = sm.plan(depth=depth, precision=20, rotations=rotations)
            assert plan._fields["switch"][-1]["omega"] < 9


def test_what_repeats_is_told_once():
    plan = sm.plan(lambda x: sum((x * k for k in range(2, 60)), x), [(8,)], scheme="bgv", security="insecure")
    assert len(plan.trace) > 100
    lines = [line for line in plan.explain().splitlines() if "noise budget" in line]
    assert len(lines) <= 4 and any("58 times mul, add" in line for line in lines)
    name, level, bits = plan.trace[-1]
    assert lines[-1].endswith(f"level {level}, {bits:.1f} bits of noise budget")


def test_sizes_and_tables_are_for_people(each):
    plan = each.context.plan
    assert "MiB" in repr(plan) or "KiB" in repr(plan)
    x = each.encrypt(each.numbers(3))
    for shown, rows in ((plan, 4), (x, 4), (x.context, 4), *((key, 1) for key in each.keys)):
        page = shown._repr_html_()
        assert page.startswith("<table>") and page.count("<tr>") >= rows and plan.scheme in page


def test_plots_need_matplotlib_alone(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    long = sm.plan(lambda x: sum((x[k % 8] * k for k in range(2, 80)), x), [(8,)], scheme="bgv", security="insecure")
    for plan in (sm.plan(scheme="bfv", depth=1), sm.plan(lambda x: x * x, [(4,)], security="insecure"), long):
        figure = plan.plot().figure
        assert len(figure.axes[0].get_xticks()) <= 41
        figure.canvas.draw()
        low, high = figure.axes[0].get_xlim()
        for tick, label in zip(figure.axes[0].get_xticks(), figure.axes[0].get_xticklabels()):
            box = label.get_window_extent()
            assert not low <= tick <= high or (box.x0 >= 0 and box.y0 >= 0), label
        figure.savefig(tmp_path / "plan.png")
        assert (tmp_path / "plan.png").stat().st_size > 5000


def test_the_functions_own_exceptions_pass_through():
    class Own(Exception):
        pass

    def fails(x):
        raise Own("mine")

    with pytest.raises(Own, match="mine"):
        sm.plan(fails, [(4,)], security="insecure")
    with pytest.raises(errors.DTypeError):
        sm.plan(lambda x: 3, [(4,)], security="insecure")
    with pytest.raises(errors.MismatchError):
        sm.plan(lambda x: x.context.encrypt([1.0]), [(4,)], security="insecure")
    with pytest.raises(errors.ShapeError):
        sm.plan(lambda x: x + np.ones(3), [(4,)], security="insecure")


def test_what_cannot_be_says_why():
    with pytest.raises(errors.ParamsError, match="precision|fit|parameters"):
        sm.plan(depth=2, precision=60)
    for wrong in ({"scheme": "rsa"}, {"security": 64}, {"scheme": "bfv", "t": 1}):
        with pytest.raises(errors.ParamsError):
            sm.plan(depth=1, **wrong)


def test_keys_for_rotations_low_down_are_trimmed():
    plan = sm.plan(scheme="bgv", depth=2, rotations=[1], security="insecure")
    low = sm.plan(scheme="bgv", depth=2, rotations=[1], security="insecure", rotation_level=0)
    whole, trimmed = sm.Context(plan, insecure=True), sm.Context(low, insecure=True)
    keys = trimmed.keygen()
    assert keys.evaluation.nbytes < whole.keygen().evaluation.nbytes
    x = trimmed.encrypt(np.arange(8))
    assert (keys.secret.decrypt(x.at_level(0).rotate(1))[:7] == np.arange(1, 8)).all()
    with pytest.raises(errors.MissingKeyError, match="trimmed"):
        x.rotate(1)


OPTIONS = [
    {},
    {"rotations": [1, -2], "swap": True},
    {"additions": 3},
    {"min_slots": 600},
    {"max_key_bytes": 280_000, "rotations": [1, 2, 3, 5]},
    {"max_memory_bytes": 100_000_000},
    {"max_digits": 2},
    {"width": 40},
    {"prime_switching": (1, 2)},
    {"leading_levels": 1},
    {"leading_levels": 2, "rotations": [1]},
    {"leading_levels": 3},
    {"prime_switching": (1, 2), "leading_levels": 1, "rotations": [1], "swap": True},
    {"rotation_level": 1, "rotations": [1]},
    {"t": 12289, "static_levels": True},
    {"precision": 15},
]


@pytest.mark.parametrize("scheme", ["bfv", "bgv", "ckks"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_computes_in_several_steps(scheme, options, tmp_path):
    exact = scheme != "ckks"
    only = {"t": exact, "static_levels": scheme == "bgv", "precision": not exact}
    if not all(only.get(name, True) for name in options):
        pytest.skip("not for this scheme")
    coarse = {"precision": 12} if "additions" in options and not exact else {}
    plan = sm.plan(scheme=scheme, depth=3, security="insecure", **({"additions": 1} | coarse | options))
    client = sm.Context(plan, insecure=True)
    keys = client.keygen()
    if "max_key_bytes" in options:
        assert keys.evaluation.nbytes <= options["max_key_bytes"]
    keys.save(tmp_path)
    values = np.array([3, -4, 5, 0, 2])
    values = values if exact else values / 8
    client.encrypt(values).save(tmp_path / "x.ct")
    # Each step reads what the one before wrote.
    server = sm.Context(plan, insecure=True)
    server.add_keys(sm.EvaluationKeys.load(tmp_path / "eval.keys", server))
    server.add_keys(sm.EnvelopeKey.load(tmp_path / "envelope.key", server))

    def step(name, work, *inputs):
        work(*(sm.Tensor.load(tmp_path / f"{i}.ct", server) for i in inputs)).save(tmp_path / f"{name}.ct")

    step("y", lambda x: x * x, "x")
    step("z", lambda x, y: x * y + x, "x", "y")
    step("w", lambda y, z: y * z, "y", "z")
    y, z = values**2, values**3 + values
    for name, expected in (("y", y), ("z", z), ("w", y * z)):
        found = keys.secret.decrypt(sm.Tensor.load(tmp_path / f"{name}.ct", client))
        assert np.abs(found - expected).max() <= (0 if exact else 1e-3)
    if 1 in options.get("rotations", []):
        step("r", lambda x: x.at_level(min(x.level, 1)).rotate(1), "x")
        found = keys.secret.decrypt(sm.Tensor.load(tmp_path / "r.ct", client))
        assert np.abs(found[:4] - values[1:]).max() <= (0 if exact else 1e-3)


@pytest.mark.parametrize(
    "field, value",
    [
        ("scheme", "bfv"),
        ("slots", 99),
        ("key_bytes", 1),
        ("depth", 1 << 20),
        ("security_bits", 300.0),
        ("rotations", [-(1 << 62)]),
        ("log2_p_fail", -1000.0),
    ],
)
def test_fields_that_the_parameters_do_not_make_are_refused(field, value):
    fields = json.loads(sm.plan(scheme="bgv", depth=1, security="insecure").to_json())
    with pytest.raises(errors.SynchromeshError, match=field) as caught:
        sm.Plan.from_json(json.dumps(fields | {field: value}))
    assert caught.value.kind == "plan_field"
    # A forecast that is gone is made anew.
    del fields["memory"]
    assert sm.Plan.from_json(json.dumps(fields)).depth == 1


def test_progress_counts_runs_keys_and_operations():
    """Callbacks see every step; a bar appears for none of what takes milliseconds."""
    seen = {"plan": [], "keys": [], "operations": []}
    function = lambda x: (x * x).sum()  # noqa: E731
    plan = sm.plan(function, [(8,)], security="insecure", progress=lambda *at: seen["plan"].append(at))
    context = sm.Context(plan, insecure=True)
    keys = context.keygen(progress=lambda *at: seen["keys"].append(at))
    x = context.encrypt(np.ones(8) / 2)
    with context.watched(lambda *at: seen["operations"].append(at)):
        found = function(x)
    function(x)
    assert [done for done, _ in seen["plan"]] == list(range(1, len(seen["plan"]) + 1)) and seen["plan"]
    count = len(plan.rotations)
    assert seen["keys"] == [(min(k, count), count) for k in range(4, count + 4, 4)] and count > 4
    # The planned function has its input and the same operations.
    assert [done for done, _ in seen["operations"]] == list(range(1, len(plan.trace)))
    assert abs(keys.secret.decrypt(found) - 2) < 1e-3
    assert len(keys.evaluation) == 1 + len(plan.rotations)


def test_no_bar_on_milliseconds(capsys):
    plan = sm.plan(lambda x: x.sum(), [(8,)], security="insecure", progress=True)
    context = sm.Context(plan, insecure=True)
    keys = context.keygen(progress=True)
    with context.watched():
        keys.secret.decrypt(context.encrypt(np.ones(8), progress=True).sum(), progress=True)
    captured = capsys.readouterr()
    assert captured.out.strip() == captured.err.strip() == ""


def test_a_product_with_0_is_planned_and_has_no_noise():
    plan = sm.plan(lambda x: x * 0.0 + x, [(8,)], precision=6, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    values = np.linspace(-1, 1, 8)
    x = context.encrypt(values)
    assert np.abs(keys.secret.decrypt(x * 0.0 + x) - values).max() < 2**-6
