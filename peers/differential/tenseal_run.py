# Evaluates a batch of random circuits with TenSEAL (SEAL's BFV and CKKS): `tenseal_run.py FILE`; one JSON object a circuit.
"""Vectors of TenSEAL do not rotate, and SEAL refuses x - x, as its ciphertext says what it holds: such circuits are answered
by {"lacks": reason}, and a batch of BGV by nothing."""

import json
import sys

import tenseal as ts

SHOWN = 16
# SEAL refuses what is not secure, so that the degree is what depth 2 takes.
LOG_N = 13


def evaluate(inputs, plains, minus_one, circuit):
    registers = list(inputs)
    for op, a, b in circuit:
        # An operation may take its operands down a level.
        x = registers[a].copy()
        if op == 0:
            y = x + registers[b].copy()
        elif op == 1:
            y = x - registers[b].copy()
        elif op == 2:
            y = x * registers[b].copy()
        elif op == 4:
            y = x + plains[b]
        elif op == 5:
            y = x * plains[b]
        else:
            y = -x if minus_one is None else x * minus_one
        registers.append(y)
    return registers[-1]


def fnv(values):
    """FNV-1a over residues."""
    h = 0xCBF29CE484222325
    for v in values:
        h = (h ^ v) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def main():
    with open(sys.argv[1]) as file:
        batch = json.load(file)
    t, real = batch["t"], batch["scheme"] == "ckks"
    if real:
        context = ts.context(ts.SCHEME_TYPE.CKKS, 1 << LOG_N, coeff_mod_bit_sizes=[60, 40, 40, 60])
        context.global_scale = 2**40
        plains = [[v / 1000 for v in x] for x in batch["plains"]]
        inputs = [ts.ckks_vector(context, [v / 1000 for v in x]) for x in batch["inputs"]]
    elif batch["scheme"] == "bfv":
        context = ts.context(ts.SCHEME_TYPE.BFV, 1 << LOG_N, plain_modulus=t)
        plains = [[v - t if v > t // 2 else v for v in x] for x in batch["plains"]]
        inputs = [ts.bfv_vector(context, [v - t if v > t // 2 else v for v in x]) for x in batch["inputs"]]
    else:
        return
    slots = len(batch["inputs"][0])
    # BFV's vectors have no negation; CKKS's lose a level by a product, which the circuits do not expect.
    minus_one = None if real else [-1] * slots
    for circuit in batch["circuits"]:
        if any(op == 3 for op, _, _ in circuit):
            print(json.dumps({"lacks": "rotate"}))
            continue
        try:
            values = evaluate(inputs, plains, minus_one, circuit).decrypt()
        except RuntimeError as error:
            if "transparent" not in str(error):
                raise
            print(json.dumps({"lacks": "x - x"}))
            continue
        if real:
            print(json.dumps({"values": values[:: slots // SHOWN][:SHOWN]}))
        else:
            print(json.dumps({"hash": fnv(v % t for v in values)}))


main()
