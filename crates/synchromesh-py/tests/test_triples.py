"""Matrix triples between two parties of one process; what they write is opened here, with NumPy and Python's integers."""

from __future__ import annotations

import json
import os
import socket
import threading

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import errors

PRIME = 0xFFFFFFFFFFFFFFFFFFFFFFFFFF820001


def meeting(directory, parties=2):
    """Identities and the list of parties."""
    sockets = [socket.socket() for _ in range(parties)]
    lines = []
    for number, each in enumerate(sockets):
        each.bind(("127.0.0.1", 0))
        fingerprint = sm.triples.identity(directory / f"{number}.identity")
        lines.append(f"127.0.0.1:{each.getsockname()[1]} {fingerprint}\n")
    for each in sockets:
        each.close()
    (directory / "hosts").write_text("".join(lines))


def run_all(directory, setup, *, count=1, workers=None, progress=None):
    """Both parties; the first may have workers. Returns runs, or exceptions."""
    made: list = [None, None]

    def run(number):
        mine = {"workers": workers, "progress": progress} if number == 0 else {}
        try:
            made[number] = sm.triples.party(
                number,
                hosts=directory / "hosts",
                setup=setup,
                identity=directory / f"{number}.identity",
                out=directory / f"out{number}",
                count=count,
                format="plain",
                timeout=60.0,
                insecure=True,
                **mine,
            )
        except BaseException as error:
            made[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made


def opened(runs, shape, count):
    """A, B and C of each triple, each with its MAC: the sums of the parties' shares."""
    rows, inner, columns = shape
    sizes = [rows * inner, inner * columns, rows * columns]
    total = [[0, 0] for _ in range(count * sum(sizes))]
    for run in runs:
        (path,) = [file for file in run.files if file.endswith(".bin")]
        with open(path, "rb") as file:
            head = json.loads(file.readline())
        assert head["count"] == count and head["prime"] == str(PRIME)
        words = np.fromfile(path, "<u8", offset=head["offset"]).reshape(-1, 2, head["words"])
        for at, element in enumerate(words):
            for part in range(2):
                total[at][part] += sum(int(word) << (64 * i) for i, word in enumerate(element[part]))
    total = [[value % PRIME, mac % PRIME] for value, mac in total]
    triples, at = [], 0
    for _ in range(count):
        parts = []
        for size in sizes:
            parts.append(total[at : at + size])
            at += size
        triples.append(parts)
    return triples


def mac_key(runs):
    shares = []
    for run in runs:
        (path,) = [file for file in run.files if "Player-MAC-Keys" in file]
        with open(path) as file:
            parties, share = file.read().split()
        assert parties == "2"
        shares.append(int(share))
    return sum(shares) % PRIME


def hold(runs, shape, count):
    rows, inner, columns = shape
    alpha = mac_key(runs)
    for a, b, c in opened(runs, shape, count):
        assert all(mac == value * alpha % PRIME for value, mac in a + b + c)
        for i in range(rows):
            for j in range(columns):
                product = sum(a[i * inner + k][0] * b[k * columns + j][0] for k in range(inner))
                assert product % PRIME == c[i * columns + j][0]


class Here:
    """Workers that compute each block when it is asked for."""

    count = 6

    def __init__(self, setup):
        read = lambda name: np.fromfile(os.path.join(setup, name), dtype=np.uint8)  # noqa: E731
        from synchromesh._native import TripleSetup

        self.setup = TripleSetup((setup / "plan.json").read_text(), read("public.key"), read("eval.keys"), read("mac.ct"))
        self.blocks: dict[int, bytes] = {}

    def begin(self, number, block):
        self.blocks[number] = block

    def finish(self, number):
        return self.setup.multiply_block(self.blocks[number], 1)


@pytest.fixture(scope="module")
def dealt(tmp_path_factory):
    setup = tmp_path_factory.mktemp("setup")
    sm.triples.deal(setup, (12, 3, 9), security=40, log_n=10, insecure=True)
    return setup


def test_triples_hold_when_opened(dealt, tmp_path):
    meeting(tmp_path)
    workers, seen = Here(dealt), []
    runs = run_all(tmp_path, dealt, count=2, workers=workers, progress=lambda *at: seen.append(at))
    hold(runs, (12, 3, 9), 2)
    assert len(workers.blocks) > 1
    assert {phase.name for phase in runs[0].phases} >= {"multiply", "decrypt", "check"}
    assert {phase for phase, _, _ in seen} >= {"multiply", "check"}
    assert all(0 <= done <= total for _, done, total in seen)


def test_exceptions_of_workers_and_of_progress_arrive(dealt, tmp_path):
    class Broken(Here):
        def finish(self, number):
            raise ZeroDivisionError("a worker's own")

    class Wrong(Here):
        def finish(self, number):
            return b"no products"

    def stop(phase, done, total):
        raise KeyboardInterrupt

    cases = [
        ({"workers": Broken(dealt)}, ZeroDivisionError),
        ({"workers": Wrong(dealt)}, errors.ProtocolError),
        ({"progress": stop}, KeyboardInterrupt),
    ]
    for number, (options, kind) in enumerate(cases):
        place = tmp_path / str(number)
        place.mkdir()
        meeting(place)
        runs = run_all(place, dealt, **options)
        assert isinstance(runs[0], kind), runs[0]
        # The other party gets no triple either.
        assert isinstance(runs[1], errors.ProtocolError) and runs[1].kind == "abort", runs[1]
        assert not list(place.glob("out*/*.bin"))


def test_wrong_inputs(dealt, tmp_path):
    for wrong in [dict(shape=(1, 2)), dict(shape=5), dict(shape=(0, 1, 1)), dict(shape=(1, 1, 1), prime=10**40)]:
        with pytest.raises(errors.SynchromeshError, match="Remedy"):
            sm.triples.deal(tmp_path / "none", **wrong)
    with pytest.raises(errors.FileError):
        sm.triples.party(0, hosts=tmp_path / "none", setup=dealt, identity=tmp_path / "none", out=tmp_path)
    # A plan for tests is not taken without a word.
    meeting(tmp_path)
    with pytest.raises(errors.ProtocolError, match="27|26|25|computational") as refused:
        sm.triples.party(0, hosts=tmp_path / "hosts", setup=dealt, identity=tmp_path / "0.identity", out=tmp_path)
    assert refused.value.kind == "below_floor" and "insecure" in str(refused.value)
    with pytest.raises(errors.SynchromeshError):
        sm.triples.deal(dealt, (12, 3, 9), security=40, log_n=10, insecure=True)
    with pytest.raises(errors.ProtocolError):
        Here(dealt).setup.multiply_block(b"no block", 1)
