"""How batched evaluation scales over Ray workers on this machine; on an idle one. usage: ray_scaling.py [WORKERS ..]

For each number of workers a fresh local cluster evaluates the same batch; each result is decrypted and compared. Prints one
JSON object a line: {workers, blocks, seconds, seconds_a_block, speedup, key_bytes, task_bytes, result_bytes}.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import ray

import synchromesh as sm
from synchromesh.ray import Pool

BLOCKS = 16
SIDE = 48


def block(a: sm.Tensor, b: sm.Tensor) -> sm.Tensor:
    """What a worker computes: a product of two encrypted matrices."""
    return a @ b


def main(counts: list[int]) -> None:
    plan = sm.plan(block, [(SIDE, SIDE), (SIDE, SIDE)], scheme="bgv", t=65537)
    context = sm.Context(plan)
    keys = context.keygen()
    rng = np.random.default_rng(2)
    clear = [(rng.integers(-9, 10, (SIDE, SIDE)), rng.integers(-9, 10, (SIDE, SIDE))) for _ in range(BLOCKS)]
    left, right = ([context.encrypt(pair[side]) for pair in clear] for side in (0, 1))
    alone = None
    for workers in counts:
        ray.init(num_cpus=workers, object_store_memory=1 << 30, include_dashboard=False, log_to_driver=False)
        pool = Pool(keys.evaluation)
        # Every worker has started and holds its keys before the clock does.
        pool.map(block, left[: 2 * workers], right[: 2 * workers])
        start = time.perf_counter()
        results = pool.map(block, left, right, progress=sys.stderr.isatty())
        seconds = time.perf_counter() - start
        ray.shutdown()
        for (a, b), result in zip(clear, results):
            assert np.array_equal(keys.secret.decrypt(result), a @ b)
        alone = alone or seconds * workers
        line = {
            "workers": workers,
            "blocks": BLOCKS,
            "seconds": round(seconds, 3),
            "seconds_a_block": round(seconds * workers / BLOCKS, 4),
            "speedup": round(alone / seconds, 3),
            "key_bytes": keys.evaluation.nbytes,
            "task_bytes": len(left[0].to_bytes()) + len(right[0].to_bytes()),
            "result_bytes": len(results[0].to_bytes()),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [1, 2])
