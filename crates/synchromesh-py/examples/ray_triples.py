"""How blocks of matrix triples scale over Ray workers on this machine; on an idle one. usage: ray_triples.py [WORKERS ..]

Two parties make triples of 128 x 128 x 128, one of them with its products as blocks, which are kept. Then a fresh local
cluster of each size computes the same blocks; the bytes must be the same. Prints one JSON object a line: {workers, blocks,
seconds, seconds_a_block, speedup, setup_bytes, block_bytes, result_bytes}.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import threading
import time

import numpy as np
import ray

import synchromesh as sm
from synchromesh._native import TripleSetup
from synchromesh.ray import TripleWorkers

SHAPE = (128, 128, 128)
COUNT = 8
PUBLIC = ("public.key", "eval.keys", "mac.ct")


class Kept:
    """Computes blocks here and keeps them with their products."""

    count = 8

    def __init__(self, setup: str) -> None:
        with open(os.path.join(setup, "plan.json")) as file:
            plan = file.read()
        files = [np.fromfile(os.path.join(setup, name), dtype=np.uint8) for name in PUBLIC]
        self.setup = TripleSetup(plan, *files)
        self.blocks: list[bytes] = []
        self.products: list[bytes] = []

    def begin(self, number: int, block: bytes) -> None:
        self.blocks.append(block)

    def finish(self, number: int) -> bytes:
        self.products.append(self.setup.multiply_block(self.blocks[number], 1))
        return self.products[number]


def blocks_of_a_run(directory: str) -> Kept:
    """Deals keys, runs both parties, and keeps the blocks of one."""
    sm.triples.deal(directory, SHAPE, count=COUNT)
    lines = []
    for number in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        lines.append(f"{address} {sm.triples.identity(f'{directory}/{number}.identity')}\n")
    with open(f"{directory}/hosts", "w") as file:
        file.writelines(lines)
    kept = Kept(directory)

    def run(number: int) -> None:
        sm.triples.party(
            number,
            hosts=f"{directory}/hosts",
            setup=directory,
            identity=f"{directory}/{number}.identity",
            out=f"{directory}/party{number}",
            count=COUNT,
            workers=kept if number == 0 else None,
        )

    other = threading.Thread(target=run, args=(1,))
    other.start()
    run(0)
    other.join()
    return kept


def main(counts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        kept = blocks_of_a_run(directory)
        alone = None
        for count in counts:
            ray.init(num_cpus=count, object_store_memory=1 << 30, include_dashboard=False, log_to_driver=False)
            workers = TripleWorkers(directory)

            def compute(blocks: list[bytes]) -> list[bytes]:
                for number, block in enumerate(blocks):
                    workers.begin(number, block)
                return [workers.finish(number) for number in range(len(blocks))]

            # Every worker has started and holds its keys before the clock does.
            compute(kept.blocks[:count])
            start = time.perf_counter()
            products = compute(kept.blocks)
            seconds = time.perf_counter() - start
            ray.shutdown()
            assert products == kept.products
            alone = alone or seconds * count
            line = {
                "workers": count,
                "blocks": len(products),
                "seconds": round(seconds, 3),
                "seconds_a_block": round(seconds * count / len(products), 4),
                "speedup": round(alone / seconds, 3),
                "setup_bytes": sum(os.path.getsize(os.path.join(directory, name)) for name in PUBLIC),
                "block_bytes": len(kept.blocks[0]),
                "result_bytes": len(products[0]),
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [1, 2])
