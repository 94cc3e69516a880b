// Keys that several parties make together, and decryptions under them: Lattigo's multiparty package, semi-honest, n of n.
package main

import (
	"encoding/json"
	"math"
	"os"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/multiparty"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"
)

const (
	parties     = 3
	rotations   = 20
	ciphertexts = 100
)

// joint is what both schemes share: parameters, the parties' secrets and what they have made.
type joint struct {
	params  rlwe.Parameters
	secrets []*rlwe.SecretKey
	public  *rlwe.PublicKey
	relin   *rlwe.RelinearizationKey
	galois  []*rlwe.GaloisKey
	// Bytes that one party sends.
	bytes int
}

// generate makes a public key, a relinearisation key and keys of rotations. Shares are added up once, as by a helper.
func generate(params rlwe.Parameters) *joint {
	j := &joint{params: params}
	crs, err := sampling.NewKeyedPRNG([]byte("common reference string"))
	check(err)
	keygen := rlwe.NewKeyGenerator(params)
	for range parties {
		j.secrets = append(j.secrets, keygen.GenSecretKeyNew())
	}
	j.publicKey(crs)
	j.relinearisationKey(crs)
	for k := 1; k <= rotations; k++ {
		j.rotationKey(crs, params.GaloisElement(k))
	}
	return j
}

func (j *joint) publicKey(crs multiparty.CRS) {
	protocol := multiparty.NewPublicKeyGenProtocol(j.params)
	crp, sum := protocol.SampleCRP(crs), protocol.AllocateShare()
	for _, secret := range j.secrets {
		share := protocol.AllocateShare()
		protocol.GenShare(secret, crp, &share)
		protocol.AggregateShares(sum, share, &sum)
	}
	j.public = rlwe.NewPublicKey(j.params)
	protocol.GenPublicKey(sum, crp, j.public)
	j.bytes += sum.BinarySize()
}

func (j *joint) relinearisationKey(crs multiparty.CRS) {
	protocol := multiparty.NewRelinearizationKeyGenProtocol(j.params)
	crp := protocol.SampleCRP(crs)
	_, first, second := protocol.AllocateShare()
	ephemeral := make([]*rlwe.SecretKey, parties)
	for i, secret := range j.secrets {
		own, share, _ := protocol.AllocateShare()
		ephemeral[i] = own
		protocol.GenShareRoundOne(secret, crp, ephemeral[i], &share)
		protocol.AggregateShares(first, share, &first)
	}
	for i, secret := range j.secrets {
		_, _, share := protocol.AllocateShare()
		protocol.GenShareRoundTwo(ephemeral[i], secret, first, &share)
		protocol.AggregateShares(second, share, &second)
	}
	j.relin = rlwe.NewRelinearizationKey(j.params)
	protocol.GenRelinearizationKey(first, second, j.relin)
	j.bytes += first.BinarySize() + second.BinarySize()
}

func (j *joint) rotationKey(crs multiparty.CRS, element uint64) {
	protocol := multiparty.NewGaloisKeyGenProtocol(j.params)
	crp, sum := protocol.SampleCRP(crs), protocol.AllocateShare()
	sum.GaloisElement = element
	for _, secret := range j.secrets {
		share := protocol.AllocateShare()
		check(protocol.GenShare(secret, element, crp, &share))
		check(protocol.AggregateShares(sum, share, &sum))
	}
	key := rlwe.NewGaloisKey(j.params)
	check(protocol.GenGaloisKey(sum, crp, key))
	j.galois = append(j.galois, key)
	j.bytes += sum.BinarySize()
}

// decrypt has every party learn what is in the ciphertexts; decode is called for each ciphertext and party. Noise of 2^sigma
// hides what the errors say of the key.
func (j *joint) decrypt(given []*rlwe.Ciphertext, sigma float64, decode func(*rlwe.Plaintext)) (bytes int) {
	flooding := ring.DiscreteGaussian{Sigma: math.Exp2(sigma), Bound: 6 * math.Exp2(sigma)}
	protocol, err := multiparty.NewKeySwitchProtocol(j.params, flooding)
	check(err)
	nothing := rlwe.NewSecretKey(j.params)
	for _, x := range given {
		shares := make([]multiparty.KeySwitchShare, parties)
		for i, secret := range j.secrets {
			shares[i] = protocol.AllocateShare(x.Level())
			protocol.GenShare(secret, nothing, x, &shares[i])
		}
		bytes += shares[0].BinarySize()
		for range j.secrets {
			sum := protocol.AllocateShare(x.Level())
			for _, share := range shares {
				check(protocol.AggregateShares(sum, share, &sum))
			}
			opened := rlwe.NewCiphertext(j.params, 1, x.Level())
			protocol.KeySwitch(x, sum, opened)
			plain := rlwe.NewPlaintext(j.params, x.Level())
			*plain.MetaData = *opened.MetaData
			plain.Value = opened.Value[0]
			decode(plain)
		}
	}
	return bytes
}

// benchJoint: the parameters of the scheme as ours has them; ciphertexts at the level that ours are brought to.
func benchJoint(c Case) {
	var j *joint
	var given []*rlwe.Ciphertext
	var decode func(*rlwe.Plaintext)
	var params rlwe.Parameters
	var begin time.Time
	var generated, sigma float64
	made := func(of rlwe.ParameterProvider) {
		params = *of.GetRLWEParameters()
		begin = time.Now()
		j = generate(params)
		generated = float64(time.Since(begin).Nanoseconds())
	}
	switch c.Scheme {
	case "bgv":
		sigma = 30
		p, err := bgv.NewParametersFromLiteral(bgv.ParametersLiteral{
			LogN: 14, LogQ: widths(4, 55, 56), LogP: widths(2, 58), PlaintextModulus: 65537,
		})
		check(err)
		made(p)
		encoder, plain := bgv.NewEncoder(p), bgv.NewPlaintext(p, p.MaxLevel())
		check(encoder.Encode([]uint64{1, 2, 3, 4}, plain))
		evaluator := bgv.NewEvaluator(p, rlwe.NewMemEvaluationKeySet(j.relin, j.galois...))
		for range ciphertexts {
			x := bgv.NewCiphertext(p, 1, p.MaxLevel())
			check(rlwe.NewEncryptor(p, j.public).Encrypt(plain, x))
			x, err = evaluator.RotateColumnsNew(x, 1)
			check(err)
			x, err = evaluator.MulRelinNew(x, x)
			check(err)
			for x.Level() > c.Level {
				check(evaluator.Rescale(x, x))
			}
			given = append(given, x)
		}
		decode = func(plain *rlwe.Plaintext) {
			values := make([]uint64, p.MaxSlots())
			check(encoder.Decode(plain, values))
			if values[0] != 4 || values[1] != 9 || values[2] != 16 {
				fail("what was decrypted is not what was computed\n")
			}
		}
	case "ckks":
		// More leaves less than ten bits of the message.
		sigma = 20
		p, err := ckks.NewParametersFromLiteral(ckks.ParametersLiteral{
			LogN: 15, LogQ: widths(10, 40, 50, 50), LogP: widths(3, 60), LogDefaultScale: 40,
		})
		check(err)
		made(p)
		encoder, plain := ckks.NewEncoder(p), ckks.NewPlaintext(p, p.MaxLevel())
		check(encoder.Encode([]float64{1, 2, 3, 4}, plain))
		evaluator := ckks.NewEvaluator(p, rlwe.NewMemEvaluationKeySet(j.relin, j.galois...))
		for range ciphertexts {
			x := ckks.NewCiphertext(p, 1, p.MaxLevel())
			check(rlwe.NewEncryptor(p, j.public).Encrypt(plain, x))
			x, err = evaluator.RotateNew(x, 1)
			check(err)
			x, err = evaluator.MulRelinNew(x, x)
			check(err)
			check(evaluator.Rescale(x, x))
			evaluator.DropLevel(x, x.Level()-c.Level)
			given = append(given, x)
		}
		decode = func(plain *rlwe.Plaintext) {
			values := make([]float64, p.MaxSlots())
			check(encoder.Decode(plain, values))
			if math.Abs(values[0]-4) > 0.01 || math.Abs(values[1]-9) > 0.01 || math.Abs(values[2]-16) > 0.01 {
				fail("what was decrypted is not what was computed\n")
			}
		}
	default:
		fail("unknown scheme " + c.Scheme + "; known: bgv, ckks\n")
	}
	begin = time.Now()
	sent := j.decrypt(given, sigma, decode)
	decrypted := float64(time.Since(begin).Nanoseconds())
	for _, line := range []map[string]any{
		{"op": "generate", "median_ns": generated},
		{"op": "decrypt", "median_ns": decrypted},
	} {
		for key, value := range schemeFields(c, params) {
			line[key] = value
		}
		line["bench"], line["peer"], line["version"], line["runs"], line["level"] = "joint", "lattigo", version(), 1, c.Level
		line["generate_bytes"], line["decrypt_bytes"] = j.bytes, sent
		check(json.NewEncoder(os.Stdout).Encode(line))
	}
}
