// Ring and RLWE cases: the negacyclic NTT of one limb, and one hybrid rotation or relinearisation.
package main

import (
	"math/big"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
)

// benchNTT times one limb in place, hot, as a mean over enough transforms to outlast the clock.
func benchNTT(c Case) {
	generator := ring.NewNTTFriendlyPrimesGenerator(uint64(c.Bits), uint64(2)<<c.LogN)
	q, err := generator.NextDownstreamPrime()
	check(err)
	r, err := ring.NewRing(1<<c.LogN, []uint64{q})
	check(err)
	poly := r.NewPoly()
	for i := range poly.Coeffs[0] {
		poly.Coeffs[0][i] = uint64(i) * 0x9e3779b97f4a7c15 % q
	}
	repeats := max(1, 1<<(18-c.LogN))
	fields := map[string]any{"bench": "ntt", "log_n": c.LogN, "bits": c.Bits}
	emit(fields, "forward", repeats, c.MinTime, func() {
		for range repeats {
			r.NTT(poly, poly)
		}
	})
	emit(fields, "inverse", repeats, c.MinTime, func() {
		for range repeats {
			r.INTT(poly, poly)
		}
	})
}

// benchKeySwitch times a rotation and a relinearisation, NTT domain to NTT domain.
func benchKeySwitch(c Case) {
	params, err := rlwe.NewParametersFromLiteral(rlwe.ParametersLiteral{
		LogN: c.LogN, LogQ: widths(c.Limbs, c.Bits), LogP: widths(c.Special, c.Bits), NTTFlag: true,
	})
	check(err)
	keygen := rlwe.NewKeyGenerator(params)
	sk := keygen.GenSecretKeyNew()
	element := params.GaloisElement(1)
	relin, galois := keygen.GenRelinearizationKeyNew(sk), keygen.GenGaloisKeyNew(element, sk)
	evaluator := rlwe.NewEvaluator(params, rlwe.NewMemEvaluationKeySet(relin, galois))

	level := params.MaxLevel()
	two := rlwe.NewCiphertext(params, 1, level)
	check(rlwe.NewEncryptor(params, sk).EncryptZero(two))
	three := rlwe.NewCiphertext(params, 2, level)
	for i, part := range []int{0, 1, 1} {
		three.Value[i].CopyLvl(level, two.Value[part])
	}
	out := rlwe.NewCiphertext(params, 1, level)
	fields := map[string]any{
		"bench": "key-switch", "log_n": c.LogN, "log_q": bitLength(params.Q()), "log_p": bitLength(params.P()),
		"omega": (c.Limbs + c.Special - 1) / c.Special, "limbs": c.Limbs, "special": c.Special, "bits": c.Bits,
	}
	emit(fields, "rotate", 1, c.MinTime, func() { check(evaluator.Automorphism(two, element, out)) })
	emit(fields, "relin", 1, c.MinTime, func() { check(evaluator.Relinearize(three, out)) })
}

func bitLength(primes []uint64) int {
	product := big.NewInt(1)
	for _, prime := range primes {
		product.Mul(product, new(big.Int).SetUint64(prime))
	}
	return product.BitLen()
}
