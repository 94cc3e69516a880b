//! The parts of `cargo xtask harden`, in the order in which they run.

use super::evidence::{constant_time, differential, memory, proofs, timing};
use super::programs::Built;
use super::{Part, Work, adversary, known, supply};

const HARDEN: &str = "synchromesh-harden/synchromesh-harden";

const CRASHES: &str = "synchromesh-cli/crashes";

/// All parts. Quick ones share twenty minutes, once the programs are built.
pub(super) const PARTS: &[Part] = &[
    Part {
        name: "fuzz",
        shows: "mutants of valid inputs, with right checksums where formats have them, for every reader of bytes from others: \
                an error with a kind and a remedy, or an object that is written again to the same bytes; no panic, no abort, \
                no hang, memory at most twice the input and a constant that each target states",
        built: Built::Checked,
        quick: Work::Program(HARDEN, "fuzz --seconds 10"),
        full: Work::Program(HARDEN, "fuzz --seconds 60 --executions 100000000"),
    },
    Part {
        name: "corruption",
        shows: "every truncation, every bit of the head and random bits of each kind of file with a checksum are refused, \
                within twice the memory of the file",
        built: Built::Checked,
        quick: Work::Program(HARDEN, "corruption --bits 2000"),
        full: Work::Program(HARDEN, "corruption --bits 100000"),
    },
    Part {
        name: "known-answers",
        shows: "a seed gives the same keys, ciphertexts and files on every instruction set of the machine as on the day they \
                were written down, and the files of every version of the formats read and decrypt. The full run compares the \
                demo's digests as well, the emulated device's among them",
        built: Built::Checked,
        quick: Work::Check(known::check),
        full: Work::Check(known::check),
    },
    Part {
        name: "soak",
        shows: "mixed operations of all schemes, on sixteen threads that share one context of each, give what the clear gives, \
                and the process does not grow",
        built: Built::Checked,
        quick: Work::Program(HARDEN, "soak --operations 10000"),
        full: Work::Program(HARDEN, "soak --operations 1000000"),
    },
    Part {
        name: "crashes",
        shows: "commands that are killed, run out of disk, file size, memory or permissions, or run twice at once leave \
                the old file or the new one, lose nothing they reported, end in typed errors, and can be run again",
        built: Built::Checked,
        quick: Work::Program(CRASHES, "432"),
        full: Work::Program(CRASHES, "4320"),
    },
    Part {
        name: "supply-chain",
        shows: "every dependency has a licence that this project may be given out with, comes from the registry or from this \
                repository, and stands in the bill of materials; what is published says what it is and under which licence. \
                The full run asks `cargo deny` as well",
        built: Built::Apart,
        quick: Work::Check(supply::check),
        full: Work::Check(supply::check),
    },
    Part {
        name: "adversary",
        shows: "circuits that make errors as large as they get, on messages and plaintexts that hurt most, under random legal \
                parameters of all schemes, leave no error above its certificate at 2^-40",
        built: Built::Checked,
        quick: Work::Check(adversary::check),
        full: Work::Check(adversary::check),
    },
    Part {
        name: "constant-time",
        shows: "with the secrets undefined, Valgrind's memcheck sees no branch and no address that depends on one: key \
                generation, sampling, encryption and decryption of all schemes, flooding, shares, proofs, on scalar and AVX2 \
                kernels; leaks that are planted are found",
        built: Built::Released,
        quick: Work::Check(constant_time::run),
        full: Work::Check(constant_time::run),
    },
    Part {
        name: "timing",
        shows: "Welch's t of times on a fixed and on random secrets; it is reported and never a finding, since other work on \
                a machine shows in it",
        built: Built::Released,
        quick: Work::Check(timing::run),
        full: Work::Check(timing::run),
    },
    Part {
        name: "proofs",
        shows: "an SMT solver and complete case analysis prove the word arithmetic for every modulus; statements that are \
                wrong on purpose are refuted (docs/proofs.md)",
        built: Built::Apart,
        quick: Work::Check(proofs::run),
        full: Work::Check(proofs::run),
    },
    Part {
        name: "miri",
        shows: "the ring's scalar path does nothing undefined: words, primes and memory; in the full run every primitive and every \
                stage as well",
        built: Built::Apart,
        quick: Work::Check(memory::miri),
        full: Work::Check(memory::miri),
    },
    Part {
        name: "address",
        shows: "the ring's tests on every instruction set, and the GPU kernels on the emulator, stay inside their memory \
                under AddressSanitizer; an access beyond it that is planted is found",
        built: Built::Apart,
        quick: Work::Check(memory::address),
        full: Work::Check(memory::address),
    },
    Part {
        name: "differential",
        shows: "random circuits of BFV, BGV and CKKS give what OpenFHE, Lattigo and TenSEAL (SEAL) give: the same integers, \
                or reals within both bounds",
        built: Built::Checked,
        quick: Work::Check(differential::run),
        full: Work::Check(differential::run),
    },
];
