"""Search among encrypted vectors beside the same in NumPy: what is found, what is carried, what is nearest, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import errors
from synchromesh.search import Database, Search

DIMENSION = 6
RNG = np.random.default_rng(11)


def vectors(count: int, query: np.ndarray) -> np.ndarray:
    """Unit vectors, a third of them near the query."""
    made = 0.3 * RNG.normal(size=(count, DIMENSION)) + query * np.resize([0.0, 1.0, 2.5], count)[:, None]
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


class Setting(NamedTuple):
    """A search in a context of its own."""

    search: Search
    context: sm.Context
    keys: sm.Keys

    @classmethod
    def of(cls, search: Search) -> Setting:
        context = sm.Context(search.plan(security="insecure"), insecure=True)
        return cls(search, context, context.keygen())

    def answer(self, folder: Path, records: Any, query: np.ndarray, payloads: Any = None) -> sm.Tensor:
        database = self.search.encrypt(records, folder, key=self.keys.secret, payloads=payloads)
        assert len(database) == self.search.records
        return database.find(self.search.query(query, self.keys.secret))


QUERY = RNG.normal(size=DIMENSION)
QUERY /= np.linalg.norm(QUERY)
# More than a block, so that there are two.
RECORDS = vectors(2500, QUERY)
PRODUCTS = RECORDS.astype(np.float64) @ QUERY
PAYLOADS = RNG.integers(0, 1 << 16, (len(RECORDS), 2)).astype(np.uint16)


@pytest.fixture(scope="module")
def carrying() -> Setting:
    return Setting.of(Search(RECORDS.shape, 0.8, gap=0.1, payload=PAYLOADS))


@pytest.fixture(scope="module")
def scoring() -> Setting:
    return Setting.of(Search(RECORDS.shape))


def test_what_is_found_is_what_numpy_finds_outside_the_gap(carrying, tmp_path):
    reply = carrying.answer(tmp_path / "db", RECORDS, QUERY, PAYLOADS)
    found = carrying.search.decrypt(reply, carrying.keys.secret)
    sure = np.abs(PRODUCTS - 0.8) >= 0.1
    expected = PRODUCTS > 0.8
    own = np.zeros(len(RECORDS), bool)
    own[found.indices] = True
    assert np.array_equal(own[sure], expected[sure]) and expected[sure].sum() > 100 and (~sure).sum() > 100
    # What a record carries is right wherever it counts as found.
    assert found.payloads.dtype == np.uint16 and np.array_equal(found.payloads, PAYLOADS[found.indices])
    assert len(found.undecided) and not sure[found.undecided].any()


def test_replies_and_queries_travel_as_bytes(carrying, tmp_path):
    secret = carrying.keys.secret
    carrying.search.encrypt(RECORDS, tmp_path / "db", key=secret, payloads=PAYLOADS)
    carrying.keys.save(tmp_path / "keys")
    query = carrying.search.query(QUERY, secret)
    server = sm.Context(sm.Plan.from_json(carrying.context.plan.to_json()), insecure=True)
    server.add_keys(sm.EvaluationKeys.load(tmp_path / "keys/eval.keys", server))
    with pytest.raises(errors.DecodeError, match="envelope"):
        Database(tmp_path / "db", server).find(query)
    server.add_keys(sm.EnvelopeKey.load(tmp_path / "keys/envelope.key", server))
    steps: list[tuple[int, int]] = []
    reply = Database(tmp_path / "db", server).find(query, progress=lambda *at: steps.append(at))
    assert steps[-1][0] == steps[-1][1] and [at[0] for at in steps] == sorted(at[0] for at in steps)
    search = Search.from_json(carrying.search.to_json())
    assert search == carrying.search and hash(search) == hash(carrying.search)
    found = search.decrypt(sm.Tensor.from_bytes(reply.to_bytes(), carrying.context), secret)
    assert np.array_equal(found.payloads, PAYLOADS[found.indices]) and len(found.indices) > 100


def test_records_come_from_files_and_payloads_are_of_any_kind(tmp_path):
    few = RECORDS[:40].astype(np.float64)
    np.save(tmp_path / "records.npy", few)
    mapped = np.memmap(tmp_path / "mapped", np.float32, "w+", shape=few.shape)
    mapped[:] = few
    names = np.array([f"record {i}" for i in range(40)])
    s = Setting.of(Search(few.shape, 0.5, gap=0.1, payload=names))
    for i, records in enumerate((tmp_path / "records.npy", mapped, few)):
        found = s.search.decrypt(s.answer(tmp_path / f"db{i}", records, QUERY, names), s.keys.secret)
        sure = np.flatnonzero(PRODUCTS[:40] > 0.6)
        assert set(names[sure]) <= set(found.payloads) and np.array_equal(found.payloads, names[found.indices])
    for payload in (np.zeros((3, 2, 2), complex), "M8[s]", np.dtype([("a", "i4"), ("b", "f8")])):
        search = Search((3, 2), 0.5, payload=payload)
        assert Search.from_json(search.to_json()).payload == search.payload or search.payload.fields


def test_scores_are_within_their_bound_and_the_nearest_is_named(scoring, tmp_path):
    secret = scoring.keys.secret
    reply = scoring.answer(tmp_path / "db", RECORDS, QUERY)
    off = np.abs(scoring.search.scores(reply, secret) - PRODUCTS).max()
    assert off <= reply.error_bound <= 2.0**-11
    assert scoring.context.plan.log_n <= 13 and scoring.context.plan.depth == 1
    order = np.argsort(-PRODUCTS)
    for count in (1, 5):
        found = scoring.search.nearest(reply, secret, count)
        apart = PRODUCTS[order[count - 1]] - PRODUCTS[order[count]]
        assert np.abs(found.scores - PRODUCTS[found.indices]).max() <= reply.error_bound
        assert found.certain or apart <= 4 * reply.error_bound
        assert not found.certain or set(found.indices) == set(order[:count])
    assert scoring.search.nearest(reply, secret, len(RECORDS)).certain


def test_what_is_certain_is_said(tmp_path):
    records = np.eye(DIMENSION)
    records[1] = records[0]
    s = Setting.of(Search(records.shape))
    for query, certain in ((records[0], False), (records[3], True)):
        reply = s.answer(tmp_path / str(certain), records, query)
        found = s.search.nearest(reply, s.keys.secret)
        assert found.certain is certain
        assert found.indices[0] in ((0, 1) if not certain else (3,))


def test_data_that_cannot_be_searched_is_refused_before_anything_is_encrypted(carrying, scoring, tmp_path, monkeypatch):
    def refused(kind: type, match: str, records: Any = RECORDS, payloads: Any = PAYLOADS) -> None:
        with pytest.raises(kind, match=match):
            carrying.search.encrypt(records, tmp_path / "no", key=carrying.keys.secret, payloads=payloads)
        assert not any((tmp_path / "no").glob("column*"))

    for value, row in ((np.nan, 2400), (2.0, 7), (np.inf, 0)):
        wrong = RECORDS.copy()
        wrong[row, 3] = value
        refused(errors.InputError, f"record {row} must be", wrong)
    refused(errors.ShapeError, "shape", RECORDS[:9])
    refused(errors.DTypeError, "complex", RECORDS.astype(complex))
    refused(errors.ShapeError, "payloads are", payloads=PAYLOADS[:, :1])
    refused(errors.InputError, "no payloads", payloads=None)
    refused(errors.FileError, "records", tmp_path / "none.npy")
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Disk", (), {"free": 1000})())
    refused(errors.FileError, "free in")
    monkeypatch.undo()
    for vector in (np.ones(DIMENSION), QUERY * np.nan, QUERY[:3], QUERY.astype(complex)):
        with pytest.raises(errors.InputError):
            carrying.search.query(vector, carrying.keys.secret)
    monkeypatch.setattr("synchromesh._native.available_memory", lambda: 1000)
    database = scoring.search.encrypt(RECORDS, tmp_path / "scores", key=scoring.keys.secret)
    with pytest.raises(errors.ParamsError, match="of memory"):
        database.find(scoring.search.query(QUERY, scoring.keys.secret))


@pytest.mark.parametrize(
    "arguments",
    [
        {"shape": (3,)},
        {"shape": (0, 4)},
        {"shape": (4, 1 << 20)},
        {"shape": (4, 4), "threshold": np.nan},
        {"shape": (4, 4), "threshold": "0.8"},
        {"shape": (4, 4), "payload": np.uint8},
        {"shape": (4, 4), "threshold": 0.8, "payload": object},
        {"shape": (4, 4), "threshold": 0.8, "payload": np.uint8, "tolerance": 0.1},
    ],
)
def test_searches_that_cannot_be_are_refused(arguments):
    with pytest.raises(errors.SynchromeshError):
        Search(**arguments)


def test_plans_of_what_cannot_be_are_refused():
    for search in (Search((4, 4), 2.0), Search((4, 4), 0.5, gap=0.0), Search((4, 4), 0.5, tolerance=-1.0)):
        with pytest.raises(errors.InputError):
            search.plan(security="insecure")
    for text in ("", "[]", '{"shape": 3}', json.dumps({"shape": [4, 4]})):
        with pytest.raises(errors.ParamsError):
            Search.from_json(text)


def test_files_that_are_not_whole_are_refused(scoring, carrying, tmp_path):
    secret = scoring.keys.secret
    scoring.search.encrypt(RECORDS, tmp_path / "db", key=secret)
    query = scoring.search.query(QUERY, secret)
    with pytest.raises(errors.FileError, match="exists"):
        scoring.search.encrypt(RECORDS, tmp_path / "db", key=secret)
    column = tmp_path / "db/column_0_3"
    whole = column.read_bytes()
    column.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(errors.DecodeError):
        Database(tmp_path / "db", scoring.context).find(query)
    column.write_bytes(whole[:-9])
    with pytest.raises(errors.FileError, match="column_0_3"):
        Database(tmp_path / "db", scoring.context)
    column.unlink()
    with pytest.raises(errors.FileError, match="column_0_3"):
        Database(tmp_path / "db", scoring.context)
    with pytest.raises(errors.FileError):
        Database(tmp_path / "none", scoring.context)
    # Files of other parameters than the context's.
    scoring.search.encrypt(RECORDS, tmp_path / "whole", key=secret)
    with pytest.raises(errors.DecodeError):
        Database(tmp_path / "whole", carrying.context).find(scoring.search.query(QUERY, carrying.keys.secret))


def test_an_interrupted_encryption_leaves_nothing_to_be_searched(scoring, tmp_path):
    class Stop(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        scoring.search.encrypt(RECORDS, tmp_path / "db", key=scoring.keys.secret, progress=stop)
    with pytest.raises(errors.FileError):
        Database(tmp_path / "db", scoring.context)
    database = scoring.search.encrypt(RECORDS, tmp_path / "db", key=scoring.keys.secret)
    with pytest.raises(Stop):
        database.find(scoring.search.query(QUERY, scoring.keys.secret), progress=stop)
