"""A Ray cluster on this machine: two workers, 200 MB of object store, one worker killed in mid-run."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import errors

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster():
    path = os.environ.get("PYTHONPATH", "")
    ray.init(
        num_cpus=2,
        object_store_memory=200 * 2**20,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    yield
    ray.shutdown()


def planned(function, shapes, **options):
    plan = sm.plan(function, shapes, security="insecure", **options)
    context = sm.Context(plan, insecure=True)
    return context, context.keygen()


def killed_once(marker: str):
    """A function that takes its worker down the first time that anybody runs it."""

    def square(x):
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return x * x + 1
        os.kill(os.getpid(), signal.SIGKILL)
        return x

    return square


def test_batches_survive_the_loss_of_a_worker(cluster, tmp_path):
    context, keys = planned(lambda x: x * x + 1, [(100,)], scheme="bgv")
    batch = [np.arange(i, i + 100) for i in range(8)]
    from synchromesh.ray import Pool

    seen: list[int] = []
    pool = Pool(keys.evaluation)
    tensors = [context.encrypt(x) for x in batch]
    results = pool.map(killed_once(str(tmp_path / "killed")), tensors, progress=lambda done, total: seen.append(done))
    assert (tmp_path / "killed").exists()
    assert seen == list(range(1, 9))
    for x, result in zip(batch, results):
        assert np.array_equal(keys.secret.decrypt(result), x * x + 1)


def test_matrices_in_blocks(cluster):
    rng = np.random.default_rng(5)
    matrix, x = rng.integers(-3, 4, (12, 16)), rng.integers(-3, 4, 16)
    context, keys = planned(lambda v: sm.concatenate([matrix[:6] @ v, matrix[6:] @ v]), [(16,)], scheme="bfv")
    from synchromesh.ray import matmul

    result = matmul(matrix, context.encrypt(x), keys.evaluation, blocks=2)
    assert np.array_equal(keys.secret.decrypt(result), matrix @ x)
    with pytest.raises(errors.ShapeError):
        matmul(matrix[:, :3], context.encrypt(x), keys.evaluation)


def test_errors_of_workers_arrive(cluster):
    context, keys = planned(lambda x: x + 1, [(4,)], scheme="bgv")
    from synchromesh.ray import Pool

    pool = Pool(keys.evaluation)
    with pytest.raises(errors.MissingKeyError, match="Remedy"):
        pool.map(lambda x: x.rotate(5), [context.encrypt([1, 2])])
    other = context.keygen()
    with pytest.raises(errors.MismatchError):
        pool.map(lambda x: x, [context.encrypt([1], other.public)])


def test_what_travels_is_read_on_workers(cluster):
    context, keys = planned(lambda x: x + x, [(4,)], scheme="bgv")
    twice = ray.remote(
        lambda context, evaluation, x: (evaluation.key_id, context.add_keys(evaluation).plan, (x + x).to_bytes())
    )
    key_id, plan, data = ray.get(twice.remote(context, keys.evaluation, context.encrypt([1, 2, 3, 4])))
    # A worker may hold a context of another plan with these parameters, which serves.
    assert key_id == keys.evaluation.key_id and plan._same_parameters(context.plan)
    result = sm.Tensor.from_bytes(data, context, trust_certificate=True)
    assert np.array_equal(keys.secret.decrypt(result), [2, 4, 6, 8])


def test_a_database_is_searched_by_workers(cluster, tmp_path, monkeypatch):
    from test_search import QUERY, RECORDS, Setting

    from synchromesh.search import Database, Search

    payloads = np.arange(len(RECORDS), dtype=np.uint16)
    setting = Setting.of(Search(RECORDS.shape, 0.8, gap=0.1, payload=payloads))
    search, context, keys = setting
    keys.save(tmp_path / "keys")
    monkeypatch.chdir(tmp_path)
    database = search.encrypt(RECORDS, "db", key=keys.secret, payloads=payloads)
    query = search.query(QUERY, keys.secret)
    # What is authenticated needs the key, on workers too.
    with pytest.raises(errors.DecodeError, match="envelope"):
        database.find(query, workers=sm.ray.Pool(keys.evaluation))
    pool = sm.ray.Pool(keys.evaluation, envelope="keys/envelope.key")
    assert pool.count == 2
    seen: list[tuple[int, int]] = []
    reply = database.find(query, workers=pool, progress=lambda *at: seen.append(at))
    assert seen == [(1, 2), (2, 2)]
    found = search.decrypt(reply, keys.secret)
    here = search.decrypt(database.find(query), keys.secret)
    assert np.array_equal(found.indices, here.indices) and np.array_equal(found.payloads, found.indices)
    assert len(found.indices) > 100 and found.indices.max() > 2 * context.slots

    with pytest.raises(errors.MismatchError):
        database.find(query, workers=sm.ray.Pool(planned(lambda x: x + 1, [(4,)])[1].evaluation))
    monkeypatch.setattr(Database, "_memory", 1 << 60)
    with pytest.raises(errors.ParamsError, match="largest machine"):
        database.find(query, workers=pool)


def dying_once(marker: str, block):
    """Computes blocks, and takes its worker down the first time."""

    def compute(*arguments):
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return block(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)
        return b""

    return compute


def test_blocks_of_triples_survive_the_loss_of_a_worker(cluster, tmp_path, monkeypatch):
    from test_triples import hold, meeting, run_all

    shape = (12, 3, 9)
    sm.triples.deal(tmp_path / "setup", shape, security=40, log_n=10, insecure=True)
    meeting(tmp_path)
    monkeypatch.setattr(sm.ray, "_block", dying_once(str(tmp_path / "killed"), sm.ray._block))
    workers = sm.ray.TripleWorkers(tmp_path / "setup")
    assert workers.count == 2
    runs = run_all(tmp_path, tmp_path / "setup", count=2, workers=workers)
    assert (tmp_path / "killed").exists()
    hold(runs, shape, 2)


def test_the_page_on_ray_runs(cluster):
    from test_documentation import BOOK, run_blocks

    run_blocks(BOOK / "ray.md")
