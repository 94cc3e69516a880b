# Evaluates a batch of random circuits with OpenFHE's wheel: `openfhe_run.py FILE`; one JSON object a circuit.
"""The batch is written by `cargo run -p synchromesh-bench --example differential -- make`."""

import json
import sys

import openfhe as fhe

SHOWN = 16


def context(batch):
    """A context of the scheme at the batch's degree, with keys; insecure, as the degree is small."""
    scheme = batch["scheme"]
    if scheme == "ckks":
        params = fhe.CCParamsCKKSRNS()
        params.SetScalingModSize(45)
        params.SetFirstModSize(57)
    else:
        params = fhe.CCParamsBFVRNS() if scheme == "bfv" else fhe.CCParamsBGVRNS()
        params.SetPlaintextModulus(batch["t"])
    params.SetRingDim(1 << batch["log_n"])
    params.SetSecurityLevel(fhe.HEStd_NotSet)
    params.SetMultiplicativeDepth(batch["depth"] + 1)
    cc = fhe.GenCryptoContext(params)
    for feature in (fhe.PKE, fhe.KEYSWITCH, fhe.LEVELEDSHE):
        cc.Enable(feature)
    keys = cc.KeyGen()
    cc.EvalMultKeyGen(keys.secretKey)
    cc.EvalRotateKeyGen(keys.secretKey, batch["steps"])
    return cc, keys


def evaluate(cc, inputs, plains, circuit):
    registers = list(inputs)
    for op, a, b in circuit:
        x = registers[a]
        if op == 0:
            y = cc.EvalAdd(x, registers[b])
        elif op == 1:
            y = cc.EvalSub(x, registers[b])
        elif op == 2:
            y = cc.EvalMult(x, registers[b])
        elif op == 3:
            y = cc.EvalRotate(x, b)
        elif op == 4:
            y = cc.EvalAdd(x, plains[b])
        elif op == 5:
            y = cc.EvalMult(x, plains[b])
        else:
            y = cc.EvalNegate(x)
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
    cc, keys = context(batch)
    t, real = batch["t"], batch["scheme"] == "ckks"

    def encode(x):
        if real:
            return cc.MakeCKKSPackedPlaintext([v / 1000 for v in x])
        return cc.MakePackedPlaintext([v - t if v > t // 2 else v for v in x])

    plains = [encode(x) for x in batch["plains"]]
    inputs = [cc.Encrypt(keys.publicKey, encode(x)) for x in batch["inputs"]]
    slots = len(batch["inputs"][0])
    for circuit in batch["circuits"]:
        plain = cc.Decrypt(evaluate(cc, inputs, plains, circuit), keys.secretKey)
        plain.SetLength(slots)
        if real:
            values = plain.GetRealPackedValue()
            print(json.dumps({"values": values[:: slots // SHOWN][:SHOWN]}))
        else:
            print(json.dumps({"hash": fnv(v % t for v in plain.GetPackedValue()[:slots])}))


main()
