# Times what Python adds to an operation of this package: the operator on tensors against the native call beneath it.
"""usage: overhead.py

BGV at a small degree, insecure, so that little but the overhead is left. Best of many rounds, both in turn. Prints one JSON
object a line: {operation, tensor_us, native_us, overhead_us}.
"""

import json
import time

import numpy as np

import synchromesh as sm
from synchromesh import _numbers

ROUNDS = 1500


def best(calls):
    """The shortest time of each call in microseconds, all of them in turn."""
    least = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            start = time.perf_counter_ns()
            call()
            least[i] = min(least[i], time.perf_counter_ns() - start)
    return [ns / 1e3 for ns in least]


def main():
    plan = sm.plan(scheme="bgv", depth=2, rotations=[1], security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    numbers = np.arange(context.slots) % 50
    x, y = context.encrypt(numbers), context.encrypt(numbers[::-1].copy())
    a, b = x._parts[0], y._parts[0]
    three, vector = _numbers.flat(np.asarray(3), True), _numbers.flat(numbers, True)
    key, public = keys.secret._native, keys.public._native
    cases = {
        "add": (lambda: x + y, lambda: a.binary("add", b)),
        "negate": (lambda: -x, a.neg),
        "multiply": (lambda: x * y, lambda: a.binary("mul", b)),
        "rotate": (lambda: x.rotate(1), lambda: a.rotate(1)),
        "times a public number": (lambda: x * 3, lambda: a.scalar("mul", three)),
        "times a public array": (lambda: x * numbers, lambda: a.plain("mul", vector)),
        "encrypt": (
            lambda: context.encrypt(numbers),
            lambda: context._native.encrypt(public, vector, 1.0, context.top_level),
        ),
        "decrypt": (lambda: keys.secret.decrypt(x), lambda: key.decrypt(a, False)),
        "slice": (lambda: x[1:100], lambda: None),
    }
    for name, calls in cases.items():
        tensor, native = best(calls)
        line = {"operation": name, "tensor_us": tensor, "native_us": native, "overhead_us": tensor - native}
        print(json.dumps({k: round(v, 2) if isinstance(v, float) else v for k, v in line.items()}), flush=True)


if __name__ == "__main__":
    main()
