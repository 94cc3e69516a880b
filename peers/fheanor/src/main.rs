//! Times thin bootstrapping of BFV by the crate fheanor and prints one JSON object.

use std::process::ExitCode;
use std::time::Instant;

use feanor_math::homomorphism::Homomorphism;
use feanor_math::integer::{BigIntRing, int_cast};
use feanor_math::primitive_int::StaticRing;
use feanor_math::ring::{RingExtensionStore, RingStore};
use feanor_math::rings::extension::FreeAlgebraStore;
use feanor_math::rings::zn::ZnRingStore;
use feanor_math::seq::VectorView;
use fheanor::bfv::bootstrap::{SparseKeyEncapsulationKey, ThinBootstrapper};
use fheanor::bfv::{BFVInstantiation, Pow2BFV};
use fheanor::bgv::SecretKeyDistribution;
use fheanor::gadget_product::digits::RNSGadgetVectorDigitIndices;
use rand::Rng;

const USAGE: &str = "usage: peer-fheanor bootstrap [--log-n 15] [--runs 3]";
const VERSION: &str = "0.11.9";

/// The plaintext modulus, and how many values modulo it a ciphertext holds in its slots.
const T: i64 = 65537;
const MOST_SLOTS: usize = 1 << 15;

/// Of the library's own timing at this modulus (`measure_time_double_rns_pow2_bfv_thin_bootstrapping_t65537`): the range of
/// log2 Q, weights of the two secrets, digits of the relinearisation key, products by plaintexts in a linear map, and the
/// deviation of fresh errors.
const LOG2_Q: std::ops::Range<usize> = 805..820;
const WEIGHT: usize = 128;
const SPARSE_WEIGHT: usize = 32;
const SPARSE_PRIMES: usize = 2;
const RELINEARISATION_DIGITS: usize = 5;
const MAP_LEVELS: usize = 4;
const SIGMA: f64 = 3.2;

/// What is removed in each slot is a sum of 33 roundings, whose deviation is 1.66. The library's timing bounds it by 6, which
/// one coefficient in 10^4 exceeds, and one such slot leaves no noise budget at all; 12 is 7.2 deviations.
const ERROR_BOUND: i64 = 12;

struct Case {
    log_n: u32,
    runs: usize,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match parse(&args).and_then(|case| run(&case)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn parse(args: &[String]) -> Result<Case, String> {
    let mut case = Case { log_n: 15, runs: 3 };
    let (command, flags) = args.split_first().ok_or(USAGE)?;
    if command != "bootstrap" || flags.len() % 2 != 0 {
        return Err(USAGE.into());
    }
    for pair in flags.chunks_exact(2) {
        let bad = |_| format!("{} takes a number, not '{}'\n{USAGE}", pair[0], pair[1]);
        match pair[0].as_str() {
            "--log-n" => case.log_n = pair[1].parse().map_err(bad)?,
            "--runs" => case.runs = pair[1].parse().map_err(bad)?,
            // Every peer is told how long to measure; here runs are counted.
            "--min-time" => {}
            _ => return Err(USAGE.into()),
        }
    }
    if !(13..=16).contains(&case.log_n) || case.runs == 0 {
        return Err(format!("log-n is 13..=16 and runs at least 1\n{USAGE}"));
    }
    Ok(case)
}

/// What the library works out once for a set of parameters, which takes minutes.
const CACHE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/cache");

/// Refreshes one ciphertext again and again, each time from the same noise, and looks at each result.
fn run(case: &Case) -> Result<(), String> {
    std::fs::create_dir_all(CACHE).map_err(|error| format!("{CACHE}: {error}"))?;
    let n = 1usize << case.log_n;
    let rng = rand::rng;
    let scheme = Pow2BFV::new(2 * n);
    let plain = scheme.create_plaintext_ring(int_cast(T, BigIntRing::RING, StaticRing::<i64>::RING));
    let (ring, ring_of_products) = scheme.create_ciphertext_rings(LOG2_Q);
    let limbs = ring.base_ring().len();
    let rotation_digits = RNSGadgetVectorDigitIndices::select_digits(limbs.div_ceil(2), limbs);
    let relinearisation_digits = RNSGadgetVectorDigitIndices::select_digits(RELINEARISATION_DIGITS, limbs);

    let start = Instant::now();
    let bootstrapper = ThinBootstrapper::build_pow2(
        &scheme,
        &plain,
        &ring,
        1,
        Some(ERROR_BOUND),
        MAP_LEVELS,
        &rotation_digits,
        Some(CACHE),
    );
    let secret = Pow2BFV::gen_sk(&ring, rng(), SecretKeyDistribution::SparseWithHwt(WEIGHT));
    let rotations = bootstrapper.required_galois_keys(&plain);
    let keys = rotations.len();
    let rotation_keys = Pow2BFV::gen_gks(&ring, rng(), &secret, rotations, &rotation_digits, SIGMA);
    let relinearisation_key = Pow2BFV::gen_rk(&ring, rng(), &secret, &relinearisation_digits, SIGMA);
    let sparse = SparseKeyEncapsulationKey::new(
        bootstrapper.intermediate_plaintext_ring(),
        &ring,
        &secret,
        SPARSE_PRIMES,
        SPARSE_WEIGHT,
        rng(),
        SIGMA,
    );
    eprintln!("{keys} rotation keys, everything made in {:.1} s", start.elapsed().as_secs_f64());

    // What lies in the subring of powers of X^(N / slots) has an integer in each slot, which is what is refreshed.
    let gap = n / n.min(MOST_SLOTS);
    let mut random = rng();
    let message = plain.from_canonical_basis(
        (0..n)
            .map(|i| plain.base_ring().int_hom().map(if i % gap == 0 { random.random_range(0..T as i32) } else { 0 })),
    );
    let fresh = Pow2BFV::enc_sym(&plain, &ring, rng(), &message, &secret, SIGMA);
    let mut times = Vec::new();
    let mut after = usize::MAX;
    for _ in 0..case.runs {
        let copy = Pow2BFV::clone_ct(&ring, &fresh);
        let start = Instant::now();
        let refreshed = bootstrapper.bootstrap_thin(
            &ring,
            &ring_of_products,
            copy,
            &relinearisation_key,
            &rotation_keys,
            Some(&sparse),
            None,
        );
        times.push(start.elapsed());
        after = after.min(Pow2BFV::noise_budget(&plain, &ring, &refreshed, &secret));
        if !plain.eq_el(&message, &Pow2BFV::dec(&plain, &ring, refreshed, &secret)) {
            return Err(format!("a refreshed message is another one; noise budget {after} bits"));
        }
    }
    times.sort_unstable();
    let words = 2 * n * limbs * (keys * limbs.div_ceil(2) + RELINEARISATION_DIGITS);
    println!(
        r#"{{"peer":"fheanor","version":"{VERSION}","bench":"bootstrap","op":"refresh","log_n":{},"runs":{},"median_ns":{},"log_qp":{:.1},"values":{},"after_bits":{after},"key_bytes":{},"peak_bytes":{}}}"#,
        case.log_n,
        case.runs,
        times[times.len() / 2].as_nanos(),
        ring.base_ring().as_iter().map(|prime| (*prime.modulus() as f64).log2()).sum::<f64>(),
        n / gap,
        8 * words,
        peak_bytes(),
    );
    Ok(())
}

/// The most memory that this process had, as Linux says it; 0 elsewhere.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).map_or(0, |kilobytes| kilobytes << 10)
}
