// Times one case of Lattigo v6 and prints one JSON object a line: {peer, version, bench, op, median_ns, ...}.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"
)

// Case is what the command line asks for.
type Case struct {
	LogN    int
	Bits    int
	Limbs   int
	Special int
	Scheme  string
	Set     string
	Runs    int
	GapBits int
	Level   int
	MinTime time.Duration
}

const usage = `usage:
  lattigo ntt        -log-n 16 -bits 50
  lattigo key-switch -log-n 16 -bits 56 -limbs 20 -special 10
  lattigo scheme     -scheme ckks|bgv|bfv
  lattigo bootstrap  -set N16QP1767H32768H32 -runs 3
  lattigo sign       -log-n 16 -gap-bits 7
  lattigo joint      -scheme bgv|ckks -level 1
  lattigo differential FILE
`

func main() {
	if len(os.Args) < 2 {
		fail(usage)
	}
	if os.Args[1] == "differential" && len(os.Args) == 3 {
		differential(os.Args[2])
		return
	}
	var c Case
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.IntVar(&c.LogN, "log-n", 16, "log2 of the ring degree")
	flags.IntVar(&c.Bits, "bits", 50, "width of each prime")
	flags.IntVar(&c.Limbs, "limbs", 20, "primes in Q")
	flags.IntVar(&c.Special, "special", 10, "primes in P")
	flags.StringVar(&c.Scheme, "scheme", "ckks", "ckks, bgv or bfv")
	flags.StringVar(&c.Set, "set", "N16QP1767H32768H32", "parameters of bootstrapping")
	flags.IntVar(&c.Runs, "runs", 3, "refreshes that are timed")
	flags.IntVar(&c.GapBits, "gap-bits", 7, "sign: decided from 2^-gap-bits on")
	flags.IntVar(&c.Level, "level", 1, "joint: level of what is decrypted")
	flags.DurationVar(&c.MinTime, "min-time", time.Second, "least time spent on one line")
	check(flags.Parse(os.Args[2:]))
	switch os.Args[1] {
	case "ntt":
		benchNTT(c)
	case "key-switch":
		benchKeySwitch(c)
	case "scheme":
		benchScheme(c)
	case "bootstrap":
		benchBootstrap(c.Set, c.Runs)
	case "sign":
		benchSign(c)
	case "joint":
		benchJoint(c)
	default:
		fail(usage)
	}
}

func check(err error) {
	if err != nil {
		fail(err.Error() + "\n")
	}
}

func fail(message string) {
	fmt.Fprint(os.Stderr, message)
	os.Exit(2)
}

// median runs f once to warm up, then at least seven times and for minTime, and returns the median in nanoseconds.
func median(minTime time.Duration, f func()) (float64, int) {
	f()
	var times []time.Duration
	var total time.Duration
	for len(times) < 7 || (total < minTime && len(times) < 2001) {
		start := time.Now()
		f()
		elapsed := time.Since(start)
		times = append(times, elapsed)
		total += elapsed
	}
	slices.Sort(times)
	return float64(times[len(times)/2].Nanoseconds()), len(times)
}

// emit prints one line: the fields of the case and the time of one operation, divided by repeats.
func emit(fields map[string]any, op string, repeats int, minTime time.Duration, f func()) {
	ns, runs := median(minTime, f)
	line := map[string]any{"peer": "lattigo", "version": version(), "op": op, "median_ns": ns / float64(repeats), "runs": runs}
	for key, value := range fields {
		line[key] = value
	}
	check(json.NewEncoder(os.Stdout).Encode(line))
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/tuneinsight/lattigo/v6" {
				return module.Version
			}
		}
	}
	return "unknown"
}

// widths returns count copies of width, after first.
func widths(count, width int, first ...int) []int {
	return append(slices.Clone(first), slices.Repeat([]int{width}, count)...)
}
