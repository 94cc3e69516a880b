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


def run_all(directory, setup, *, count=1, workers=None, progress=None, **options):
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
                timeout=60.0,
                insecure=True,
                **({"format": "plain"} | options | mine),
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


def elements(path):
    """What stands behind the header of a file of MP-SPDZ, of whatever kind, by nothing of this library."""
    data = path.read_bytes()
    head = int.from_bytes(data[:8], "little")
    assert data[8:16] == b"SPDZ gfp" and int.from_bytes(data[21:37], "big") == PRIME
    words, radix = data[8 + head :], pow(2, -128, PRIME)
    return [int.from_bytes(words[at : at + 16], "little") * radix % PRIME for at in range(0, len(words), 16)]


def test_tuples_for_runs_and_threads_of_programs(tmp_path):
    setup = tmp_path / "setup"
    sm.triples.deal(setup, (3, 4, 2), more=[(1, 2, 1)], security=40, log_n=10, insecure=True)
    meeting(tmp_path)
    make = {(1, 2, 1): 2, "bits": 5, "inverses": 1, "inputs": 3}
    runs = run_all(tmp_path, setup, make=make, runs=2, program_threads=2, format="mp-spdz")
    assert all(isinstance(run, sm.triples.Run) for run in runs), runs
    assert [(made.what, made.count) for made in runs[0].made] == [
        ("1x2x1", 8),
        ("bits", 4 * 202),
        ("inverses", 4 * 101),
        ("inputs", 4 * 202),
    ]
    alpha, seen = mac_key_of(runs), set()
    for number in (1, 2):
        for thread in (0, 1):

            def shares(name, party):
                directory = tmp_path / f"out{party}" / f"run-{number}" / "Player-Data" / "2-p-128"  # noqa: B023
                return elements(directory / f"{name}-T{thread}")  # noqa: B023

            def values(name):
                sums = [sum(pair) % PRIME for pair in zip(*(shares(name.format(party), party) for party in range(2)))]
                assert all(mac == value * alpha % PRIME for value, mac in zip(sums[::2], sums[1::2]))
                return sums[::2]

            a = values("Matrix-1x2x1-P{}")
            assert len(a) == 10
            assert all((a[i] * a[i + 2] + a[i + 1] * a[i + 3] - a[i + 4]) % PRIME == 0 for i in (0, 5))
            bits = values("Bits-p-P{}")
            assert len(bits) == 202 and set(bits) == {0, 1}
            inverses = values("Inverses-p-P{}")
            assert len(inverses) == 202
            assert all(x * y % PRIME == 1 for x, y in zip(inverses[::2], inverses[1::2]))
            own = shares("Inputs-p-P0-0", 0)
            other = shares("Inputs-p-P1-0", 1)
            for at in range(202):
                value, mac, clear = own[3 * at : 3 * at + 3]
                assert (value + other[2 * at]) % PRIME == clear
                assert (mac + other[2 * at + 1]) % PRIME == clear * alpha % PRIME
            assert not seen & set(a + inverses) and len(set(a + inverses)) == len(a + inverses)
            seen |= set(a + inverses)


def mac_key_of(runs):
    """The MAC key, which is the same in the files of all runs."""
    texts = [{open(file).read() for file in run.files if "Player-MAC-Keys" in file} for run in runs]
    assert all(len(text) == 1 for text in texts)
    return sum(int(text.pop().split()[1]) for text in texts) % PRIME


def test_what_is_not_made_is_told(tmp_path):
    for what, many in [("bytes", 5), ((1, 2), 5), ("bits", 0), ((0, 1, 1), 1), ("bits", "many")]:
        with pytest.raises(errors.SynchromeshError, match="Remedy"):
            here = dict(hosts=tmp_path, setup=tmp_path, identity=tmp_path, out=tmp_path)
            sm.triples.party(0, make={what: many}, **here)
    with pytest.raises(errors.InputError, match="mac_key"):
        sm.triples.deal(tmp_path / "x", (1, 1, 1), keys="generate", mac_keys=tmp_path)


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
