# Times encrypt, multiply, rotate, decrypt of 2^14 CKKS slots by this library's Python package and by Python peers.
"""usage: bench.py [synchromesh] [tenseal] [openfhe]

Each on one thread, at N = 2^15 with two rescalable primes of 40 bits above one of 60 (synchromesh: what its plan chooses
for the same depth), at 128 bits of security or more. TenSEAL has no rotation of its vectors: its time lacks that step.
Prints one JSON object a line: {peer, version, median_ms, best_ms, steps {..}, log_qp}.
"""

import importlib.metadata
import json
import sys
import time

import numpy as np

SLOTS = 1 << 14
ROUNDS = 15
RNG = np.random.default_rng(1)
X, Y = RNG.uniform(-1, 1, SLOTS), RNG.uniform(-1, 1, SLOTS)


def report(peer, steps, check, log_qp):
    """Runs the steps in turn, each on the result of the one before; the last must give the expected numbers."""
    names = [name for name, _ in steps]
    times = []
    for _ in range(ROUNDS):
        value, row = None, []
        for _, step in steps:
            start = time.perf_counter()
            value = step(value)
            row.append(1e3 * (time.perf_counter() - start))
        times.append(row)
    error = check(np.asarray(value))
    assert error < 1e-4, error
    times = np.array(times[1:])
    total = times.sum(axis=1)
    line = {
        "peer": peer,
        "version": importlib.metadata.version(peer),
        "median_ms": round(float(np.median(total)), 3),
        "best_ms": round(float(total.min()), 3),
        "steps": {name: round(float(t), 3) for name, t in zip(names, np.median(times, axis=0))},
        "log_qp": log_qp,
        "error": error,
    }
    print(json.dumps(line), flush=True)


def rotated(values):
    return float(np.abs(values - np.roll(X * Y, -1)).max())


def straight(values):
    return float(np.abs(values - X * Y).max())


def synchromesh():
    import synchromesh as sm

    plan = sm.plan(depth=2, rotations=[1], min_slots=SLOTS, precision=20)
    context = sm.Context(plan)
    secret = context.keygen().secret
    y = context.encrypt(Y)
    steps = [
        ("encrypt", lambda _: context.encrypt(X)),
        ("multiply", lambda x: x * y),
        ("rotate", lambda x: x.rotate(1)),
        ("decrypt", lambda x: secret.decrypt(x)),
    ]
    report("synchromesh", steps, rotated, plan.log_qp)


def tenseal():
    import tenseal as ts

    bits = [60, 40, 40, 60]
    context = ts.context(ts.SCHEME_TYPE.CKKS, 2 * SLOTS, coeff_mod_bit_sizes=bits, n_threads=1)
    context.global_scale = 2**40
    y = ts.ckks_vector(context, Y)
    steps = [
        ("encrypt", lambda _: ts.ckks_vector(context, X)),
        ("multiply", lambda x: x * y),
        ("decrypt", lambda x: x.decrypt()),
    ]
    report("tenseal", steps, straight, sum(bits))


def openfhe():
    import openfhe as fhe

    params = fhe.CCParamsCKKSRNS()
    params.SetRingDim(2 * SLOTS)
    params.SetSecurityLevel(fhe.HEStd_128_classic)
    params.SetMultiplicativeDepth(2)
    params.SetScalingModSize(40)
    params.SetFirstModSize(60)
    params.SetBatchSize(SLOTS)
    cc = fhe.GenCryptoContext(params)
    for feature in (fhe.PKE, fhe.KEYSWITCH, fhe.LEVELEDSHE):
        cc.Enable(feature)
    keys = cc.KeyGen()
    cc.EvalMultKeyGen(keys.secretKey)
    cc.EvalRotateKeyGen(keys.secretKey, [1])
    xs, ys = X.tolist(), Y.tolist()
    y = cc.Encrypt(keys.publicKey, cc.MakeCKKSPackedPlaintext(ys))

    def decrypt(x):
        plaintext = cc.Decrypt(x, keys.secretKey)
        plaintext.SetLength(SLOTS)
        return plaintext.GetRealPackedValue()

    steps = [
        ("encrypt", lambda _: cc.Encrypt(keys.publicKey, cc.MakeCKKSPackedPlaintext(xs))),
        ("multiply", lambda x: cc.EvalMult(x, y)),
        ("rotate", lambda x: cc.EvalRotate(x, 1)),
        ("decrypt", decrypt),
    ]
    report("openfhe", steps, rotated, None)


if __name__ == "__main__":
    for name in sys.argv[1:] or ["synchromesh", "tenseal", "openfhe"]:
        globals()[name]()
