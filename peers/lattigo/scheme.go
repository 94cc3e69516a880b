// Scheme cases: encrypt, decrypt, add, multiply and relinearise, rescale, rotate in CKKS, BGV and BFV.
package main

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

func benchScheme(c Case) {
	switch c.Scheme {
	case "ckks":
		benchCKKS(c)
	case "bgv", "bfv":
		benchExact(c)
	default:
		fail("unknown scheme " + c.Scheme + "; known: ckks, bgv, bfv\n")
	}
}

func schemeFields(c Case, params rlwe.Parameters) map[string]any {
	return map[string]any{
		"bench": "scheme", "scheme": c.Scheme, "log_n": params.LogN(),
		"log_q": bitLength(params.Q()), "log_p": bitLength(params.P()),
	}
}

// benchCKKS: N = 2^15, Q = 55 + 12 x 45 bits, P = 5 x 48 bits, three digits.
func benchCKKS(c Case) {
	params, err := ckks.NewParametersFromLiteral(ckks.ParametersLiteral{
		LogN: 15, LogQ: widths(12, 45, 55), LogP: widths(5, 48), LogDefaultScale: 45,
	})
	check(err)
	keygen := rlwe.NewKeyGenerator(params)
	sk, pk := keygen.GenKeyPairNew()
	element := params.GaloisElement(1)
	keys := rlwe.NewMemEvaluationKeySet(keygen.GenRelinearizationKeyNew(sk), keygen.GenGaloisKeyNew(element, sk))
	evaluator := ckks.NewEvaluator(params, keys)
	encryptor, decryptor := rlwe.NewEncryptor(params, pk), rlwe.NewDecryptor(params, sk)

	values := make([]complex128, params.MaxSlots())
	for i := range values {
		values[i] = complex(float64(i%17)/17, 0)
	}
	level := params.MaxLevel()
	plain := ckks.NewPlaintext(params, level)
	encoder, decoded := ckks.NewEncoder(params), make([]complex128, len(values))
	check(encoder.Encode(values, plain))
	x, y := ckks.NewCiphertext(params, 1, level), ckks.NewCiphertext(params, 1, level)
	check(encryptor.Encrypt(plain, x))
	check(encryptor.Encrypt(plain, y))
	product, err := evaluator.MulRelinNew(x, y)
	check(err)
	out, three := ckks.NewCiphertext(params, 1, level), ckks.NewCiphertext(params, 2, level)
	lower, back := ckks.NewCiphertext(params, 1, level-1), ckks.NewPlaintext(params, level)

	fields := schemeFields(c, *params.GetRLWEParameters())
	line := func(op string, f func()) { emit(fields, op, 1, c.MinTime, f) }
	line("encrypt", func() { check(encryptor.Encrypt(plain, out)) })
	line("decrypt", func() { decryptor.Decrypt(x, back); check(encoder.Decode(back, decoded)) })
	line("add", func() { check(evaluator.Add(x, y, out)) })
	line("mul-norelin", func() { check(evaluator.Mul(x, y, three)) })
	line("mul", func() { check(evaluator.MulRelin(x, y, out)) })
	line("rescale", func() { check(evaluator.Rescale(product, lower)) })
	line("rotate", func() { check(evaluator.Rotate(x, 1, out)) })
}

// benchExact: N = 2^14, Q = 6 x 50 bits, P = 2 x 50 bits, t = 65537; BFV is Lattigo's scale-invariant BGV evaluator.
func benchExact(c Case) {
	params, err := bgv.NewParametersFromLiteral(bgv.ParametersLiteral{
		LogN: 14, LogQ: widths(6, 50), LogP: widths(2, 50), PlaintextModulus: 65537,
	})
	check(err)
	scaleInvariant := c.Scheme == "bfv"
	keygen := rlwe.NewKeyGenerator(params)
	sk, pk := keygen.GenKeyPairNew()
	element := params.GaloisElement(1)
	keys := rlwe.NewMemEvaluationKeySet(keygen.GenRelinearizationKeyNew(sk), keygen.GenGaloisKeyNew(element, sk))
	evaluator := bgv.NewEvaluator(params, keys, scaleInvariant)
	encryptor, decryptor := rlwe.NewEncryptor(params, pk), rlwe.NewDecryptor(params, sk)

	values := make([]uint64, params.MaxSlots())
	for i := range values {
		values[i] = uint64(i % 65537)
	}
	level := params.MaxLevel()
	plain := bgv.NewPlaintext(params, level)
	encoder, decoded := bgv.NewEncoder(params), make([]uint64, len(values))
	check(encoder.Encode(values, plain))
	x, y := bgv.NewCiphertext(params, 1, level), bgv.NewCiphertext(params, 1, level)
	check(encryptor.Encrypt(plain, x))
	check(encryptor.Encrypt(plain, y))
	out, three := bgv.NewCiphertext(params, 1, level), bgv.NewCiphertext(params, 2, level)
	back := bgv.NewPlaintext(params, level)

	fields := schemeFields(c, *params.GetRLWEParameters())
	line := func(op string, f func()) { emit(fields, op, 1, c.MinTime, f) }
	line("encrypt", func() { check(encryptor.Encrypt(plain, out)) })
	line("decrypt", func() { decryptor.Decrypt(x, back); check(encoder.Decode(back, decoded)) })
	line("add", func() { check(evaluator.Add(x, y, out)) })
	line("mul-norelin", func() { check(evaluator.Mul(x, y, three)) })
	line("mul", func() { check(evaluator.MulRelin(x, y, out)) })
	if !scaleInvariant {
		product, err := evaluator.MulRelinNew(x, y)
		check(err)
		lower := bgv.NewCiphertext(params, 1, level-1)
		line("rescale", func() { check(evaluator.Rescale(product, lower)) })
	}
	line("rotate", func() { check(evaluator.RotateColumns(x, 1, out)) })
}
