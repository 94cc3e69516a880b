// The sign of all slots outside a gap in CKKS: Lattigo's minimax composites (circuits/ckks/minimax, comparison).
package main

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"time"

	"github.com/tuneinsight/lattigo/v6/circuits/ckks/bootstrapping"
	"github.com/tuneinsight/lattigo/v6/circuits/ckks/comparison"
	"github.com/tuneinsight/lattigo/v6/circuits/ckks/minimax"
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils/bignum"
)

// composite returns Lattigo's minimax composite of the sign, and the degrees it was asked for.
func composite(gapBits int, degrees []int) minimax.Polynomial {
	// The search prints what it does.
	stdout := os.Stdout
	reader, writer, err := os.Pipe()
	check(err)
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	os.Stdout = writer
	coefficients := minimax.GenMinimaxCompositePolynomial(256, gapBits, 20, degrees, bignum.Sign)
	os.Stdout = stdout
	check(writer.Close())
	polynomials := make(minimax.Polynomial, len(coefficients))
	for i, c := range coefficients {
		polynomials[i] = bignum.NewPolynomial(bignum.Chebyshev, c, [2]float64{-1, 1})
	}
	return polynomials
}

// benchSign: N = 2^LogN, two polynomials of degree 31, the levels they take and one more, 45 bits each, four digits.
func benchSign(c Case) {
	degrees := []int{31, 31}
	polynomials := composite(c.GapBits, degrees)
	depth := 0
	for _, polynomial := range polynomials {
		depth += polynomial.Depth()
	}
	params, err := ckks.NewParametersFromLiteral(ckks.ParametersLiteral{
		LogN: c.LogN, LogQ: widths(depth+1, 45, 55), LogP: widths(3, 55), LogDefaultScale: 45,
	})
	check(err)
	keygen := rlwe.NewKeyGenerator(params)
	sk, pk := keygen.GenKeyPairNew()
	conjugation := keygen.GenGaloisKeyNew(params.GaloisElementForComplexConjugation(), sk)
	keys := rlwe.NewMemEvaluationKeySet(keygen.GenRelinearizationKeyNew(sk), conjugation)
	evaluator := ckks.NewEvaluator(params, keys)
	// Never called: the levels suffice.
	refresh := bootstrapping.NewSecretKeyBootstrapper(params, sk)
	signs := comparison.NewEvaluator(params, minimax.NewEvaluator(params, evaluator, refresh), polynomials)

	gap, slots := math.Exp2(-float64(c.GapBits)), params.MaxSlots()
	values := make([]float64, slots)
	for i := range values {
		values[i] = math.Pow(gap, 1-float64(i)/float64(slots-1)) * float64(1-2*(i%2))
	}
	encoder, plain := ckks.NewEncoder(params), ckks.NewPlaintext(params, params.MaxLevel())
	check(encoder.Encode(values, plain))
	x := ckks.NewCiphertext(params, 1, params.MaxLevel())
	check(rlwe.NewEncryptor(params, pk).Encrypt(plain, x))
	result, err := signs.Sign(x)
	check(err)
	found := make([]float64, slots)
	check(encoder.Decode(rlwe.NewDecryptor(params, sk).DecryptNew(result), found))
	worst := 0.0
	for i := range found {
		worst = math.Max(worst, math.Abs(found[i]-float64(1-2*(i%2))))
	}

	start := time.Now()
	_, err = signs.Sign(x)
	check(err)
	line := schemeFields(c, *params.GetRLWEParameters())
	for key, value := range map[string]any{
		"bench": "sign", "peer": "lattigo", "version": version(), "op": "sign", "runs": 1,
		"median_ns": float64(time.Since(start).Nanoseconds()), "degrees": degrees, "depth": depth,
		"levels_used": x.Level() - result.Level(), "worst": worst,
	} {
		line[key] = value
	}
	check(json.NewEncoder(os.Stdout).Encode(line))
}
