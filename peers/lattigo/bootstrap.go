// CKKS bootstrapping at Lattigo's own sets, whole and stage by stage.
package main

import (
	"bufio"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tuneinsight/lattigo/v6/circuits/ckks/bootstrapping"
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// sets are the literals that are timed, by name, with the ring degree that the name says.
var sets = map[string]struct {
	scheme ckks.ParametersLiteral
	boot   bootstrapping.ParametersLiteral
	logN   int
}{
	"N16QP1767H32768H32": {bootstrapping.N16QP1767H32768H32.SchemeParams, bootstrapping.N16QP1767H32768H32.BootstrappingParams, 16},
	"N16QP1546H192H32":   {bootstrapping.N16QP1546H192H32.SchemeParams, bootstrapping.N16QP1546H192H32.BootstrappingParams, 16},
	"N15QP880H16384H32":  {bootstrapping.N15QP880H16384H32.SchemeParams, bootstrapping.N15QP880H16384H32.BootstrappingParams, 15},
	"N15QP768H192H32":    {bootstrapping.N15QP768H192H32.SchemeParams, bootstrapping.N15QP768H192H32.BootstrappingParams, 15},
}

// bootstrapParameters returns the parameters that a set's name says. A literal that leaves out the ring degree, the
// special primes or the secret of bootstrapping gets defaults that are not the set's.
func bootstrapParameters(name string) (ckks.Parameters, bootstrapping.Parameters) {
	set, found := sets[name]
	if !found {
		fail("no set is called " + name + "\n")
	}
	logSlots := set.scheme.LogN - 1
	set.boot.LogN, set.boot.LogSlots, set.boot.Xs = &set.logN, &logSlots, set.scheme.Xs
	if set.boot.LogP == nil {
		set.boot.LogP = set.scheme.LogP
	}
	params, err := ckks.NewParametersFromLiteral(set.scheme)
	check(err)
	boot, err := bootstrapping.NewParametersFromLiteral(params, set.boot)
	check(err)
	return params, boot
}

// benchBootstrap times runs refreshes of one ciphertext and then one more stage by stage.
func benchBootstrap(name string, runs int) {
	params, boot := bootstrapParameters(name)
	// Making the keys would take twice their memory otherwise.
	debug.SetGCPercent(4)
	secret, public := rlwe.NewKeyGenerator(params).GenKeyPairNew()
	keys, _, err := boot.GenEvaluationKeys(secret)
	check(err)
	evaluator, err := bootstrapping.NewEvaluator(boot, keys)
	check(err)
	encoder := ckks.NewEncoder(params)
	values := make([]complex128, params.MaxSlots())
	for i := range values {
		values[i] = complex(2*rand.Float64()-1, 2*rand.Float64()-1) / complex(math.Sqrt2, 0)
	}
	plain := ckks.NewPlaintext(params, evaluator.MinimumInputLevel())
	check(encoder.Encode(values, plain))
	fresh, err := rlwe.NewEncryptor(params, public).EncryptNew(plain)
	check(err)
	runtime.GC()
	debug.SetGCPercent(8)

	var out *rlwe.Ciphertext
	var times, processor []time.Duration
	for range runs {
		x := fresh.CopyNew()
		start, before := time.Now(), processorTime()
		out, err = evaluator.Bootstrap(x)
		check(err)
		times = append(times, time.Since(start))
		processor = append(processor, processorTime()-before)
	}
	stages := refreshByStages(evaluator, fresh.CopyNew())
	slices.Sort(times)
	slices.Sort(processor)
	precision := ckks.GetPrecisionStats(params, encoder, rlwe.NewDecryptor(params, secret), values, out, 0, false)
	own := boot.BootstrappingParameters
	bits := func(level int) (sum float64) {
		for _, q := range params.Q()[:level+1] {
			sum += math.Log2(float64(q))
		}
		return
	}
	fields := map[string]any{
		"peer": "lattigo", "version": version(), "bench": "bootstrap", "set": name, "log_n": own.LogN(), "runs": runs,
		"log_qp": own.LogQP(), "slots": params.MaxSlots(), "usable_bits": bits(out.Level()) - bits(fresh.Level()),
		"measured_bits": precision.MINLog2Prec.L2, "mean_bits": precision.AVGLog2Prec.L2, "key_bytes": keys.BinarySize(),
		"peak_bytes": peakBytes(), "processor_s": processor[len(processor)/2].Seconds(),
	}
	line := func(op string, took time.Duration) {
		fields["op"], fields["median_ns"] = op, float64(took.Nanoseconds())
		check(json.NewEncoder(os.Stdout).Encode(fields))
	}
	line("refresh", times[len(times)/2])
	for op, took := range stages {
		line(op, took)
	}
}

// refreshByStages returns what each stage took; ModRaise with what scales the input down to it.
func refreshByStages(evaluator *bootstrapping.Evaluator, x *rlwe.Ciphertext) map[string]time.Duration {
	stages := map[string]time.Duration{}
	last := time.Now()
	lap := func(op string) {
		stages[op] = time.Since(last)
		last = time.Now()
	}
	x, _, err := evaluator.ScaleDown(x)
	check(err)
	x, err = evaluator.ModUp(x)
	check(err)
	lap("ModRaise")
	re, im, err := evaluator.CoeffsToSlots(x)
	check(err)
	lap("CoeffsToSlots")
	re, err = evaluator.EvalMod(re)
	check(err)
	if im != nil {
		im, err = evaluator.EvalMod(im)
		check(err)
	}
	lap("EvalMod")
	_, err = evaluator.SlotsToCoeffs(re, im)
	check(err)
	lap("SlotsToCoeffs")
	return stages
}

// processorTime is what this process has used of processors so far, on a machine with other work as well.
func processorTime() time.Duration {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// peakBytes is the most memory that this process had, as Linux says it; 0 elsewhere.
func peakBytes() int64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == "VmHWM:" {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
