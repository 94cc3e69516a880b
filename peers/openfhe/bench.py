# Times one case of OpenFHE's wheel and prints one JSON object a line: {peer, version, bench, op, median_ns, ...}.
"""usage:
    bench.py key-switch --log-n 16 --bits 56 --limbs 20 --omega 2
    bench.py scheme --scheme ckks|bgv|bfv
    bench.py products --log-n 15 --depth 10
    bench.py circuit --scheme bgv|bfv --circuit product|polynomial|inner-product --k 16
    bench.py bootstrap --log-n 16 --levels 9 --runs 3
    bench.py sign --log-n 16 --gap-bits 7 --sign-bits 10
    bench.py plan --scheme ckks|bgv|bfv --depth 5 --security 128|192|256

OpenFHE chooses its own special primes (60 bits) and, in BFV, its own ciphertext modulus. Its decryption includes
decoding, which no option separates.
"""

import argparse
import importlib.metadata
import json
import math
import os
import sys
import tempfile
import time

import openfhe as fhe


def median_ns(f, min_time):
    """Median of at least seven runs that together last min_time seconds, after one to warm up."""
    f()
    times = []
    while len(times) < 7 or (sum(times) < min_time * 1e9 and len(times) < 2001):
        start = time.perf_counter_ns()
        result = f()
        times.append(time.perf_counter_ns() - start)
        del result
    times.sort()
    return times[len(times) // 2], len(times)


def emit(fields, op, min_time, f):
    """Prints one line: the fields of the case and the time of one operation."""
    ns, runs = median_ns(f, min_time)
    line = {"peer": "openfhe", "version": importlib.metadata.version("openfhe"), "op": op, "median_ns": ns, "runs": runs}
    print(json.dumps({**fields, **line}), flush=True)


def context(params):
    """A context with encryption, key switching and levelled operations switched on."""
    cc = fhe.GenCryptoContext(params)
    for feature in (fhe.PKE, fhe.KEYSWITCH, fhe.LEVELEDSHE):
        cc.Enable(feature)
    return cc


def ckks(log_n, depth, scale_bits, first_bits, omega):
    """CKKS at fixed ring degree and chain, rescaled by hand."""
    params = fhe.CCParamsCKKSRNS()
    params.SetRingDim(1 << log_n)
    params.SetSecurityLevel(fhe.HEStd_NotSet)
    params.SetMultiplicativeDepth(depth)
    params.SetScalingModSize(scale_bits)
    params.SetFirstModSize(first_bits)
    params.SetNumLargeDigits(omega)
    params.SetKeySwitchTechnique(fhe.HYBRID)
    params.SetScalingTechnique(fhe.FIXEDMANUAL)
    cc = context(params)
    return cc, cc.MakeCKKSPackedPlaintext([0.5] * (1 << (log_n - 1)))


def bgv():
    """BGV at N = 2^14, six primes of 50 bits, t = 65537, three digits, modulus switched by hand."""
    params = fhe.CCParamsBGVRNS()
    params.SetRingDim(1 << 14)
    params.SetSecurityLevel(fhe.HEStd_NotSet)
    params.SetPlaintextModulus(65537)
    params.SetMultiplicativeDepth(5)
    params.SetScalingModSize(50)
    params.SetFirstModSize(50)
    params.SetNumLargeDigits(3)
    params.SetKeySwitchTechnique(fhe.HYBRID)
    params.SetScalingTechnique(fhe.FIXEDMANUAL)
    cc = context(params)
    return cc, cc.MakePackedPlaintext(list(range(1 << 14)))


def bfv(log_n=14, depth=7, technique=fhe.HPSPOVERQ):
    """BFV at the modulus that OpenFHE chooses for this depth: 300 bits for N = 2^14 and depth 7."""
    params = fhe.CCParamsBFVRNS()
    params.SetRingDim(1 << log_n)
    params.SetSecurityLevel(fhe.HEStd_NotSet)
    params.SetPlaintextModulus(65537)
    params.SetMultiplicativeDepth(depth)
    params.SetNumLargeDigits(3)
    params.SetKeySwitchTechnique(fhe.HYBRID)
    params.SetMultiplicationTechnique(technique)
    cc = context(params)
    return cc, cc.MakePackedPlaintext(list(range(1 << log_n)))


def bench_key_switch(args):
    """A rotation and a relinearisation at args.limbs primes of args.bits bits and args.omega digits."""
    cc, plain = ckks(args.log_n, args.limbs - 1, args.bits, args.bits, args.omega)
    pair = cc.KeyGen()
    cc.EvalMultKeyGen(pair.secretKey)
    cc.EvalRotateKeyGen(pair.secretKey, [1])
    x = cc.Encrypt(pair.publicKey, plain)
    three = cc.EvalMultNoRelin(x, x)
    fields = {
        "bench": "key-switch", "log_n": args.log_n, "log_q": args.limbs * args.bits, "omega": args.omega,
        "limbs": args.limbs, "bits": args.bits,
    }
    emit(fields, "rotate", args.min_time, lambda: cc.EvalRotate(x, 1))
    emit(fields, "relin", args.min_time, lambda: cc.Relinearize(three))


def bench_scheme(args):
    """Each operation of one scheme."""
    make = {"ckks": lambda: ckks(15, 12, 45, 55, 3), "bgv": bgv, "bfv": bfv}[args.scheme]
    cc, plain = make()
    pair = cc.KeyGen()
    cc.EvalMultKeyGen(pair.secretKey)
    cc.EvalRotateKeyGen(pair.secretKey, [1])
    x, y = cc.Encrypt(pair.publicKey, plain), cc.Encrypt(pair.publicKey, plain)
    log_q = {"ckks": 595, "bgv": 300}.get(args.scheme) or math.ceil(math.log2(cc.GetModulus()))
    fields = {"bench": "scheme", "scheme": args.scheme, "log_n": int(math.log2(cc.GetRingDimension())), "log_q": log_q}

    def line(op, f):
        emit(fields, op, args.min_time, f)

    line("encrypt", lambda: cc.Encrypt(pair.publicKey, plain))
    line("decrypt", lambda: cc.Decrypt(pair.secretKey, x))
    line("add", lambda: cc.EvalAdd(x, y))
    line("mul-norelin", lambda: cc.EvalMultNoRelin(x, y))
    line("mul", lambda: cc.EvalMult(x, y))
    product = cc.EvalMult(x, y)
    if args.scheme == "ckks":
        line("rescale", lambda: cc.Rescale(product))
    elif args.scheme == "bgv":
        line("rescale", lambda: cc.ModReduce(product))
    line("rotate", lambda: cc.EvalRotate(x, 1))


def bench_products(args):
    """BFV products one after another, each in the faster of P-over-Q and leveled multiplication."""
    medians = {}
    fields = {"bench": "products", "scheme": "bfv", "log_n": args.log_n, "depth": args.depth}
    for name, technique in (("P-over-Q", fhe.HPSPOVERQ), ("leveled", fhe.HPSPOVERQLEVELED)):
        cc, plain = bfv(args.log_n, args.depth, technique)
        pair = cc.KeyGen()
        cc.EvalMultKeyGen(pair.secretKey)
        x, y = cc.Encrypt(pair.publicKey, plain), cc.Encrypt(pair.publicKey, plain)
        fields["log_q"] = math.ceil(math.log2(cc.GetModulus()))
        for product in range(1, args.depth + 1):
            ns, runs = median_ns(lambda: cc.EvalMult(x, y), args.min_time)
            medians.setdefault(product, []).append((ns, runs, name))
            x, y = cc.EvalMult(x, x), cc.EvalMult(y, y)
    for product, measured in medians.items():
        ns, runs, name = min(measured)
        line = {"peer": "openfhe", "version": importlib.metadata.version("openfhe"), "op": f"product {product}"}
        print(json.dumps({**fields, **line, "technique": name, "median_ns": ns, "runs": runs}), flush=True)


def peak_bytes():
    """The most memory that this process had, as Linux says it; None elsewhere."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines["VmHWM"].split()[0]) << 10
    except (OSError, KeyError):
        return None


def bench_bootstrap(args):
    """Refreshes of all slots, with OpenFHE's sparse encapsulation, scales of 50 bits, maps of three levels and 4 digits."""
    secret, budget, slots = fhe.SPARSE_ENCAPSULATED, [3, 3], 1 << (args.log_n - 1)
    params = fhe.CCParamsCKKSRNS()
    params.SetRingDim(1 << args.log_n)
    params.SetSecurityLevel(fhe.HEStd_NotSet)
    params.SetSecretKeyDist(secret)
    params.SetCKKSDataType(fhe.COMPLEX)
    params.SetScalingModSize(50)
    params.SetFirstModSize(53)
    params.SetNumLargeDigits(4)
    params.SetKeySwitchTechnique(fhe.HYBRID)
    params.SetScalingTechnique(fhe.FLEXIBLEAUTO)
    depth = args.levels + fhe.CryptoContext.GetBootstrapDepth(budget, secret)
    params.SetMultiplicativeDepth(depth)
    cc = context(params)
    for feature in (fhe.ADVANCEDSHE, fhe.FHE):
        cc.Enable(feature)
    cc.EvalBootstrapSetup(budget, [0, 0], slots)
    pair = cc.KeyGen()
    cc.EvalMultKeyGen(pair.secretKey)
    cc.EvalBootstrapKeyGen(pair.secretKey, slots)
    values = [complex(math.sin(i * 0.37), math.cos(i * 1.1)) / math.sqrt(2) for i in range(slots)]
    x = cc.Encrypt(pair.publicKey, cc.MakeCKKSPackedPlaintext(values, 1, depth - 1, None, slots))
    times = []
    for _ in range(args.runs):
        start = time.perf_counter_ns()
        out = cc.EvalBootstrap(x)
        times.append(time.perf_counter_ns() - start)
    decrypted = cc.Decrypt(pair.secretKey, out)
    decrypted.SetLength(slots)
    errors = [abs(a - b) for a, b in zip(decrypted.GetCKKSPackedValue(), values)]
    special, log_q = log_p(cc)
    left = depth - out.GetLevel() - (out.GetNoiseScaleDeg() - 1)
    line = {"peer": "openfhe", "version": importlib.metadata.version("openfhe"), "bench": "bootstrap", "op": "refresh"}
    line |= {"log_n": args.log_n, "slots": slots, "log_qp": log_q + special, "usable_bits": 50 * left}
    line |= {"measured_bits": -math.log2(max(errors)), "mean_bits": -math.log2(sum(errors) / slots)}
    line |= {"median_ns": sorted(times)[len(times) // 2], "runs": len(times), "peak_bytes": peak_bytes()}
    print(json.dumps(line), flush=True)


def circuit_context(scheme, depth):
    """128 bits of security at t = 65537 for this depth, by OpenFHE's own choice of degree and modulus."""
    params = {"bgv": fhe.CCParamsBGVRNS, "bfv": fhe.CCParamsBFVRNS}[scheme]()
    params.SetPlaintextModulus(65537)
    params.SetMultiplicativeDepth(depth)
    params.SetSecurityLevel(fhe.HEStd_128_classic)
    params.SetKeySwitchTechnique(fhe.HYBRID)
    if scheme == "bfv":
        params.SetMultiplicationTechnique(fhe.HPSPOVERQ)
    return context(params)


def planned(scheme, depth, security):
    """OpenFHE's own parameters for a depth: products alone, CKKS with scale 2^40."""
    params = {"bgv": fhe.CCParamsBGVRNS, "bfv": fhe.CCParamsBFVRNS, "ckks": fhe.CCParamsCKKSRNS}[scheme]()
    params.SetMultiplicativeDepth(depth)
    params.SetSecurityLevel({128: fhe.HEStd_128_classic, 192: fhe.HEStd_192_classic, 256: fhe.HEStd_256_classic}[security])
    params.SetKeySwitchTechnique(fhe.HYBRID)
    if scheme == "ckks":
        params.SetScalingModSize(40)
        params.SetFirstModSize(50)
    else:
        params.SetPlaintextModulus(65537)
        params.SetEvalAddCount(0)
        params.SetKeySwitchCount(0)
    return context(params)


def log_p(cc):
    """Bits of the special primes of hybrid key switching, which no call tells: digits and widths are in the context's
    text form, and P has as many primes of the auxiliary width as the widest digit needs."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "context.json")
        fhe.SerializeToFile(path, cc, fhe.JSON)
        with open(path, encoding="utf-8") as file:
            data = json.load(file)["value0"]["ptr_wrapper"]["data"]["cc"]["ptr_wrapper"]["data"]["value0"]
    base = data["value0"]["value0"]["elp"]["ptr_wrapper"]["data"]["p"]
    primes = [int(prime["ptr_wrapper"]["data"]["value0"]["cm"]["v"]) for prime in base]
    alpha = math.ceil(len(primes) / data["dnum"])
    widest = max(math.prod(primes[i : i + alpha]).bit_length() for i in range(0, len(primes), alpha))
    return math.ceil(widest / data["ab"]) * data["ab"], math.prod(primes).bit_length()


def bench_plan(args):
    """Degree and moduli, nothing timed."""
    cc = planned(args.scheme, args.depth, args.security)
    special, log_q = log_p(cc)
    line = {"peer": "openfhe", "version": importlib.metadata.version("openfhe"), "op": "plan", "scheme": args.scheme}
    line |= {"log_n": int(math.log2(cc.GetRingDimension())), "log_q": log_q, "log_qp": log_q + special}
    print(json.dumps(line), flush=True)


def tree(cc, factors):
    """The product of a list, pair by pair."""
    while len(factors) > 1:
        pairs = zip(factors[::2], factors[1::2])
        factors = [cc.EvalMult(x, y) for x, y in pairs] + factors[len(factors) // 2 * 2 :]
    return factors[0]


def polynomial(cc, x, coefficients):
    """All powers by halving their exponent, then the weighted sum (ePrint 2021/204, appendix G.2)."""
    powers = [None, x]
    for i in range(2, len(coefficients)):
        powers.append(cc.EvalMult(powers[i - i // 2], powers[i // 2]))
    total = cc.EvalMult(powers[1], coefficients[1])
    for power, coefficient in zip(powers[2:], coefficients[2:]):
        total = cc.EvalAdd(total, cc.EvalMult(power, coefficient))
    return cc.EvalAdd(total, coefficients[0])


def inner_product(cc, xs, ys):
    """Products without key switches, summed, then one relinearisation."""
    total = cc.EvalMultNoRelin(xs[0], ys[0])
    for x, y in zip(xs[1:], ys[1:]):
        total = cc.EvalAdd(total, cc.EvalMultNoRelin(x, y))
    return cc.Relinearize(total)


def bench_circuit(args):
    """One circuit at parameters for its depth."""
    k = args.k
    depth = {"product": k, "polynomial": max(1, math.ceil(math.log2(k))), "inner-product": 1}[args.circuit]
    cc = circuit_context(args.scheme, depth)
    pair = cc.KeyGen()
    cc.EvalMultKeyGen(pair.secretKey)
    plain = cc.MakePackedPlaintext([i * i % 251 - 125 for i in range(4096)])
    count = {"product": 1 << k, "polynomial": 1, "inner-product": 2 * k}[args.circuit]
    xs = [cc.Encrypt(pair.publicKey, plain) for _ in range(count)]
    numbers = [cc.MakePackedPlaintext([i * 7 % 15 + 1] * cc.GetRingDimension()) for i in range(k + 1)]
    run = {
        "product": lambda: tree(cc, xs),
        "polynomial": lambda: polynomial(cc, xs[0], numbers),
        "inner-product": lambda: inner_product(cc, xs[:k], xs[k:]),
    }[args.circuit]
    log_q = math.ceil(math.log2(cc.GetModulus()))
    fields = {"bench": "circuit", "scheme": args.scheme, "circuit": args.circuit, "k": k}
    fields |= {"log_n": int(math.log2(cc.GetRingDimension())), "log_q": log_q}
    emit(fields, args.circuit, args.min_time, run)


def erf_degree(gap, tolerance):
    """A steepness k and a degree at which Chebyshev interpolation of erf(k x) is that near the sign outside the gap."""
    points = [gap ** (1 - i / 4000) for i in range(4001)]
    k = next(k for k in range(1, 1 << 20) if math.erf(k * gap) >= 1 - tolerance / 2)

    def worst(degree):
        count = degree + 1
        angles = [math.pi * (j + 0.5) / count for j in range(count)]
        values = [math.erf(k * math.cos(angle)) for angle in angles]
        odd = range(1, count, 2)
        coefficients = [2 / count * sum(v * math.cos(n * a) for v, a in zip(values, angles)) for n in odd]
        places = points[:: max(1, len(points) // 200)]
        return max(
            abs(sum(c * math.cos(n * math.acos(x)) for c, n in zip(coefficients, odd)) - 1) for x in places
        )

    # The least odd one: errors fall as degrees rise.
    low, high = 1, 4031
    while high - low > 2:
        middle = (low + high) // 4 * 2 + 1
        low, high = (low, middle) if worst(middle) <= tolerance else (middle, high)
    return k, high


# The largest degrees that OpenFHE evaluates in so many levels.
DEPTHS = {7: 119, 8: 247, 9: 495, 10: 1007, 11: 2031, 12: 4031}


def bench_sign(args):
    """The sign of all slots outside a gap by EvalChebyshevFunction of erf(k x), one run after one to warm up."""
    gap, tolerance = 2.0**-args.gap_bits, 2.0**-args.sign_bits
    k, degree = erf_degree(gap, tolerance)
    depth = next(depth for depth, most in DEPTHS.items() if degree <= most)
    params = fhe.CCParamsCKKSRNS()
    params.SetRingDim(1 << args.log_n)
    params.SetSecurityLevel(fhe.HEStd_128_classic)
    params.SetMultiplicativeDepth(depth)
    params.SetScalingModSize(45)
    params.SetFirstModSize(55)
    params.SetKeySwitchTechnique(fhe.HYBRID)
    params.SetScalingTechnique(fhe.FLEXIBLEAUTO)
    cc = context(params)
    cc.Enable(fhe.ADVANCEDSHE)
    pair = cc.KeyGen()
    cc.EvalMultKeyGen(pair.secretKey)
    slots = 1 << (args.log_n - 1)
    numbers = [gap ** (1 - i / (slots - 1)) * (1 - 2 * (i % 2)) for i in range(slots)]
    x = cc.Encrypt(pair.publicKey, cc.MakeCKKSPackedPlaintext(numbers))

    def run():
        return cc.EvalChebyshevFunction(lambda v: math.erf(k * v), x, -1, 1, degree)

    found = cc.Decrypt(pair.secretKey, run())
    found.SetLength(slots)
    worst = max(abs(value - (1 - 2 * (i % 2))) for i, value in enumerate(found.GetRealPackedValue()))
    start = time.perf_counter_ns()
    result = run()
    ns = time.perf_counter_ns() - start
    line = {"peer": "openfhe", "version": importlib.metadata.version("openfhe"), "bench": "sign", "op": "sign"}
    line |= {"log_n": args.log_n, "log_q": math.ceil(math.log2(cc.GetModulus())), "degrees": [degree], "steepness": k}
    line |= {"depth": result.GetLevel() - x.GetLevel(), "worst": worst, "median_ns": ns, "runs": 1}
    print(json.dumps(line), flush=True)


def main():
    """Reads the command line and runs the case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", choices=["key-switch", "scheme", "products", "circuit", "sign", "plan", "bootstrap"])
    parser.add_argument("--log-n", type=int, default=16)
    parser.add_argument("--bits", type=int, default=56)
    parser.add_argument("--limbs", type=int, default=20)
    parser.add_argument("--omega", type=int, default=2)
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--scheme", choices=["ckks", "bgv", "bfv"], default="ckks")
    parser.add_argument("--circuit", choices=["product", "polynomial", "inner-product"], default="product")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--gap-bits", type=int, default=7)
    parser.add_argument("--sign-bits", type=int, default=10)
    parser.add_argument("--security", type=int, choices=[128, 192, 256], default=128)
    parser.add_argument("--levels", type=int, default=9)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--min-time", type=lambda text: float(text.rstrip("s")), default=1.0)
    args = parser.parse_args()
    benches = {"key-switch": bench_key_switch, "scheme": bench_scheme}
    benches |= {"products": bench_products, "circuit": bench_circuit, "sign": bench_sign, "plan": bench_plan}
    benches |= {"bootstrap": bench_bootstrap}
    benches[args.bench](args)


if __name__ == "__main__":
    sys.exit(main())
