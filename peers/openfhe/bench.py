# Times one case of OpenFHE's wheel and prints one JSON object a line: {peer, version, bench, op, median_ns, ...}.
"""usage:
    bench.py key-switch --log-n 16 --bits 56 --limbs 20 --omega 2
    bench.py scheme --scheme ckks|bgv|bfv

OpenFHE chooses its own special primes (60 bits) and, in BFV, its own ciphertext modulus. Its decryption includes
decoding, which no option separates.
"""

import argparse
import importlib.metadata
import json
import math
import sys
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


def bfv():
    """BFV at N = 2^14 and the depth (7) at which OpenFHE's own modulus has 300 bits; P-over-Q, its fastest product."""
    params = fhe.CCParamsBFVRNS()
    params.SetRingDim(1 << 14)
    params.SetSecurityLevel(fhe.HEStd_NotSet)
    params.SetPlaintextModulus(65537)
    params.SetMultiplicativeDepth(7)
    params.SetNumLargeDigits(3)
    params.SetKeySwitchTechnique(fhe.HYBRID)
    params.SetMultiplicationTechnique(fhe.HPSPOVERQ)
    cc = context(params)
    return cc, cc.MakePackedPlaintext(list(range(1 << 14)))


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


def main():
    """Reads the command line and runs the case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", choices=["key-switch", "scheme"])
    parser.add_argument("--log-n", type=int, default=16)
    parser.add_argument("--bits", type=int, default=56)
    parser.add_argument("--limbs", type=int, default=20)
    parser.add_argument("--omega", type=int, default=2)
    parser.add_argument("--scheme", choices=["ckks", "bgv", "bfv"], default="ckks")
    parser.add_argument("--min-time", type=lambda text: float(text.rstrip("s")), default=1.0)
    args = parser.parse_args()
    (bench_key_switch if args.bench == "key-switch" else bench_scheme)(args)


if __name__ == "__main__":
    sys.exit(main())
