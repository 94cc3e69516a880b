"""Threads share contexts and keys; operations let other threads run; Ctrl-C ends a wait."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import synchromesh as sm


def test_threads_share_a_context(each):
    def work(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        x = rng.integers(-9, 10, 50) if each.exact else rng.uniform(-1, 1, 50)
        a = each.context.encrypt(x)
        each.check((a * a + a).rotate(0) - x, x * x + x - x)
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(24)))


def test_the_number_of_threads_is_the_process_s_own():
    script = (
        "import synchromesh as sm\n"
        "sm.set_threads(3)\n"
        "assert sm.threads() == sm.info()['threads'] == 3\n"
        "for count in [2, 0, 1025, 10**9]:\n"
        "    try:\n"
        "        sm.set_threads(count)\n"
        "    except sm.errors.ParamsError as error:\n"
        "        assert error.kind == 'threads', error\n"
        "    else:\n"
        "        raise AssertionError(count)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    for name, count in [("SYNCHROMESH_THREADS", "2"), ("OMP_NUM_THREADS", "5")]:
        script = "import synchromesh as sm; print(sm.threads())"
        environment = {k: v for k, v in os.environ.items() if not k.endswith("_THREADS")} | {name: count}
        run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
        assert run.stdout.strip() == count


def test_other_threads_run_during_a_long_operation():
    counter = [0]
    stop = threading.Event()

    def count() -> None:
        while not stop.is_set():
            counter[0] += 1

    plan = sm.plan(scheme="bgv", depth=4, rotations=range(1, 60), security="insecure")
    context = sm.Context(plan, insecure=True)
    thread = threading.Thread(target=count)
    thread.start()
    before = counter[0]
    context.keygen()
    during = counter[0] - before
    stop.set()
    thread.join()
    assert during > 1000


def test_ctrl_c_ends_the_planning_of_a_function():
    def slow(x):
        for _ in range(200):
            time.sleep(0.01)
        return x * x

    main = threading.get_ident()
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        sm.plan(slow, [(4,)], scheme="bgv", security="insecure")
    timer.join()


INTERRUPTED = """
import signal, threading, time
import synchromesh as sm

def slow(x):
    for _ in range(80):
        time.sleep(0.01)
    return x * x

signal.signal(signal.SIGINT, signal.default_int_handler)
main = threading.get_ident()
threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
try:
    sm.plan(slow, [(4,)], scheme="bgv", security="insecure")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_the_interpreter_ends_well_after_an_interrupted_plan():
    """The function still runs on its thread when the program comes to its end."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


@pytest.mark.skipif(os.name == "nt", reason="signals are raised otherwise there")
def test_ctrl_c_ends_key_generation():
    plan = sm.plan(scheme="bgv", depth=6, t=1073479681, rotations=range(1, 700), security="insecure")
    context = sm.Context(plan, insecure=True)
    main = threading.get_ident()
    timer = threading.Timer(0.03, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        context.keygen()
        pytest.fail(f"key generation ended after {time.monotonic() - start:.2f} s, before the signal")
    timer.join()
    # What was interrupted leaves the context usable.
    keys = context.keygen(rotations=[])
    assert keys.secret.decrypt(context.encrypt([1, 2])).tolist() == [1, 2]
