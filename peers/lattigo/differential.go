// Evaluates a batch of random circuits with Lattigo: `bench differential FILE`; one JSON object a circuit.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// Batch is what `cargo run -p synchromesh-bench --example differential -- make` writes.
type Batch struct {
	Scheme   string     `json:"scheme"`
	LogN     int        `json:"log_n"`
	T        uint64     `json:"t"`
	Depth    int        `json:"depth"`
	Steps    []int      `json:"steps"`
	Inputs   [][]int64  `json:"inputs"`
	Plains   [][]int64  `json:"plains"`
	Circuits [][][3]int `json:"circuits"`
}

const shown = 16

// machine is what an evaluator must offer for a circuit.
type machine struct {
	two    func(op int, x, y *rlwe.Ciphertext) *rlwe.Ciphertext
	plain  func(op int, x *rlwe.Ciphertext, p int) *rlwe.Ciphertext
	rotate func(x *rlwe.Ciphertext, k int) *rlwe.Ciphertext
	neg    func(x *rlwe.Ciphertext) *rlwe.Ciphertext
}

func (m machine) run(inputs []*rlwe.Ciphertext, circuit [][3]int) *rlwe.Ciphertext {
	registers := append([]*rlwe.Ciphertext{}, inputs...)
	for _, o := range circuit {
		x := registers[o[1]]
		var y *rlwe.Ciphertext
		switch o[0] {
		case 0, 1, 2:
			y = m.two(o[0], x, registers[o[2]])
		case 3:
			y = m.rotate(x, o[2])
		case 4, 5:
			y = m.plain(o[0], x, o[2])
		default:
			y = m.neg(x)
		}
		registers = append(registers, y)
	}
	return registers[len(registers)-1]
}

func differential(path string) {
	bytes, err := os.ReadFile(path)
	check(err)
	var batch Batch
	check(json.Unmarshal(bytes, &batch))
	if batch.Scheme == "ckks" {
		differentialCKKS(batch)
	} else {
		differentialExact(batch)
	}
}

func galoisKeys(keygen *rlwe.KeyGenerator, sk *rlwe.SecretKey, steps []int, element func(int) uint64) rlwe.EvaluationKeySet {
	keys := make([]*rlwe.GaloisKey, len(steps))
	for i, k := range steps {
		keys[i] = keygen.GenGaloisKeyNew(element(k), sk)
	}
	return rlwe.NewMemEvaluationKeySet(keygen.GenRelinearizationKeyNew(sk), keys...)
}

func differentialExact(batch Batch) {
	params, err := bgv.NewParametersFromLiteral(bgv.ParametersLiteral{
		LogN: batch.LogN, LogQ: widths(4, 50), LogP: widths(1, 55), PlaintextModulus: batch.T,
	})
	check(err)
	scaleInvariant := batch.Scheme == "bfv"
	keygen := rlwe.NewKeyGenerator(params)
	sk, pk := keygen.GenKeyPairNew()
	evaluator := bgv.NewEvaluator(params, galoisKeys(keygen, sk, batch.Steps, params.GaloisElement), scaleInvariant)
	encryptor, decryptor, encoder := rlwe.NewEncryptor(params, pk), rlwe.NewDecryptor(params, sk), bgv.NewEncoder(params)
	unsigned := func(x []int64) []uint64 {
		out := make([]uint64, len(x))
		for i, v := range x {
			out[i] = uint64(v)
		}
		return out
	}
	plains := make([][]uint64, len(batch.Plains))
	for i, x := range batch.Plains {
		plains[i] = unsigned(x)
	}
	inputs := make([]*rlwe.Ciphertext, len(batch.Inputs))
	for i, x := range batch.Inputs {
		plain := bgv.NewPlaintext(params, params.MaxLevel())
		check(encoder.Encode(unsigned(x), plain))
		inputs[i], err = encryptor.EncryptNew(plain)
		check(err)
	}
	must := func(x *rlwe.Ciphertext, err error) *rlwe.Ciphertext { check(err); return x }
	down := func(x *rlwe.Ciphertext) *rlwe.Ciphertext {
		if !scaleInvariant {
			check(evaluator.Rescale(x, x))
		}
		return x
	}
	m := machine{
		two: func(op int, x, y *rlwe.Ciphertext) *rlwe.Ciphertext {
			switch op {
			case 0:
				return must(evaluator.AddNew(x, y))
			case 1:
				return must(evaluator.SubNew(x, y))
			}
			return down(must(evaluator.MulRelinNew(x, y)))
		},
		plain: func(op int, x *rlwe.Ciphertext, p int) *rlwe.Ciphertext {
			if op == 4 {
				return must(evaluator.AddNew(x, plains[p]))
			}
			return down(must(evaluator.MulNew(x, plains[p])))
		},
		rotate: func(x *rlwe.Ciphertext, k int) *rlwe.Ciphertext { return must(evaluator.RotateColumnsNew(x, k)) },
		// MulNew of a scalar forgets the scale in v6.2.0 (a product has one that is not 1); Mul into a copy keeps it.
		neg: func(x *rlwe.Ciphertext) *rlwe.Ciphertext {
			out := x.CopyNew()
			check(evaluator.Mul(x, -1, out))
			return out
		},
	}
	decoded := make([]uint64, params.MaxSlots())
	for _, circuit := range batch.Circuits {
		check(encoder.Decode(decryptor.DecryptNew(m.run(inputs, circuit)), decoded))
		h := uint64(0xcbf29ce484222325)
		for _, v := range decoded {
			h = (h ^ v) * 0x100000001b3
		}
		fmt.Printf("{\"hash\":\"%016x\"}\n", h)
	}
}

func differentialCKKS(batch Batch) {
	params, err := ckks.NewParametersFromLiteral(ckks.ParametersLiteral{
		LogN: batch.LogN, LogQ: widths(batch.Depth, 45, 57), LogP: widths(1, 60), LogDefaultScale: 45,
	})
	check(err)
	keygen := rlwe.NewKeyGenerator(params)
	sk, pk := keygen.GenKeyPairNew()
	evaluator := ckks.NewEvaluator(params, galoisKeys(keygen, sk, batch.Steps, params.GaloisElement))
	encryptor, decryptor, encoder := rlwe.NewEncryptor(params, pk), rlwe.NewDecryptor(params, sk), ckks.NewEncoder(params)
	complexes := func(x []int64) []complex128 {
		out := make([]complex128, len(x))
		for i, v := range x {
			out[i] = complex(float64(v)/1000, 0)
		}
		return out
	}
	plains := make([][]complex128, len(batch.Plains))
	for i, x := range batch.Plains {
		plains[i] = complexes(x)
	}
	inputs := make([]*rlwe.Ciphertext, len(batch.Inputs))
	for i, x := range batch.Inputs {
		plain := ckks.NewPlaintext(params, params.MaxLevel())
		check(encoder.Encode(complexes(x), plain))
		inputs[i], err = encryptor.EncryptNew(plain)
		check(err)
	}
	must := func(x *rlwe.Ciphertext, err error) *rlwe.Ciphertext { check(err); return x }
	down := func(x *rlwe.Ciphertext) *rlwe.Ciphertext { check(evaluator.Rescale(x, x)); return x }
	m := machine{
		two: func(op int, x, y *rlwe.Ciphertext) *rlwe.Ciphertext {
			switch op {
			case 0:
				return must(evaluator.AddNew(x, y))
			case 1:
				return must(evaluator.SubNew(x, y))
			}
			return down(must(evaluator.MulRelinNew(x, y)))
		},
		plain: func(op int, x *rlwe.Ciphertext, p int) *rlwe.Ciphertext {
			if op == 4 {
				return must(evaluator.AddNew(x, plains[p]))
			}
			return down(must(evaluator.MulNew(x, plains[p])))
		},
		rotate: func(x *rlwe.Ciphertext, k int) *rlwe.Ciphertext { return must(evaluator.RotateNew(x, k)) },
		neg:    func(x *rlwe.Ciphertext) *rlwe.Ciphertext { return must(evaluator.MulNew(x, -1)) },
	}
	decoded := make([]complex128, params.MaxSlots())
	for _, circuit := range batch.Circuits {
		check(encoder.Decode(decryptor.DecryptNew(m.run(inputs, circuit)), decoded))
		values := make([]float64, shown)
		for i := range values {
			values[i] = real(decoded[i*len(decoded)/shown])
		}
		line, err := json.Marshal(map[string]any{"values": values})
		check(err)
		fmt.Println(string(line))
	}
}
