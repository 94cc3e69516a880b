//! The backend against exact integers, on every instruction set: conversions, scalings, automorphisms, products.

use std::sync::Arc;

use num_bigint::{BigInt, BigUint, ToBigInt};
use num_traits::{One, Zero};
use synchromesh_ring::backend::{Backend, DigitLimb, GadgetDigits, Stage};
use synchromesh_ring::cpu::CpuBuffer;
use synchromesh_ring::isa::Isa;
use synchromesh_ring::rns::{ConvertSpec, Overflow};
use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::scale::{Scale, ScaleSpec};
use synchromesh_ring::{Coeff, ConvertMode, Cpu, IndexSet, Ntt, Poly, Ring, View, ViewMut, repeated};
use synchromesh_testing::random::SplitMix;
use synchromesh_testing::{integer, poly, rns, toy};

const LOG_N: u32 = 10;
const N: usize = 1 << LOG_N;

fn open(widths: &[u32]) -> (Vec<u64>, Vec<Cpu>) {
    let primes = toy::distinct_primes(widths, LOG_N);
    let ring = Arc::new(Ring::new(LOG_N, &primes).unwrap());
    let cpus = Isa::available().into_iter().map(|isa| Cpu::with_isa(Arc::clone(&ring), isa).unwrap()).collect();
    (primes, cpus)
}

fn some(primes: &[u64], set: &IndexSet) -> Vec<u64> {
    set.iter().map(|i| primes[i]).collect()
}

fn upload(cpu: &Cpu, primes: &[u64], set: &IndexSet, x: &[BigInt]) -> Poly<Cpu, Coeff> {
    let words: Vec<u64> = rns::decompose(x, &some(primes, set)).concat();
    Poly::from_words(cpu, set, &words).unwrap()
}

fn download(cpu: &Cpu, x: &Poly<Cpu, Coeff>) -> Vec<Vec<u64>> {
    x.to_words(cpu).unwrap().chunks(N).map(<[u64]>::to_vec).collect()
}

/// Random integers modulo the product, with 0, 1, Q-1 and values next to Q/2 among them.
fn sample(random: &mut SplitMix, primes: &[u64]) -> Vec<BigInt> {
    let q = rns::product(primes);
    let mut x = random.int_poly(N, &q);
    let half: BigInt = &q / 2;
    for (slot, edge) in x.iter_mut().zip([BigInt::zero(), BigInt::one(), &q - 1, half.clone(), &half + 1, &half - 1]) {
        *slot = edge;
    }
    x
}

#[test]
fn every_scaling_rounds_to_the_nearest_integer_that_keeps_the_multiple() {
    let widths = [60, 45, 50, 36, 61, 30, 49, 55];
    let (primes, cpus) = open(&widths);
    let set = |v: &[usize]| v.iter().copied().collect::<IndexSet>();
    let cases = [
        (set(&[0, 1, 2, 3]), set(&[0, 1, 2])),    // modulus switch by one prime
        (set(&[0, 1, 2, 3]), set(&[0])),          // by three
        (set(&[0, 1, 2]), set(&[4, 5, 6])),       // to a coprime base
        (set(&[0, 1, 2, 3]), set(&[0, 1, 5, 6])), // two out, two in
        (set(&[0, 1]), set(&[0, 1, 2])),          // up, nothing leaves
    ];
    let mut random = SplitMix::new(5);
    let multiples = ["1", "2", "65537", "340282366920938463463374607431759953921"];
    for (from, to) in &cases {
        for (numerator, multiple) in
            [("1", multiples[0]), ("1", multiples[1]), ("1", multiples[2]), ("1", multiples[3]), ("65537", "1")]
        {
            let (numerator, t): (BigUint, BigUint) = (numerator.parse().unwrap(), multiple.parse().unwrap());
            let mut x = sample(&mut random, &some(&primes, from));
            // Exactly between two integers the fixed-point count may pick either: part of its definition.
            x[1..6].fill(BigInt::zero());
            let (leaving, coming) = (from.without(to), to.without(from));
            let d = rns::product(&some(&primes, &leaving));
            let f = rns::product(&some(&primes, &coming)) * numerator.to_bigint().unwrap();
            let t_big = t.to_bigint().unwrap();
            // f x / D rounded to the nearest y with D y = f x modulo t.
            let expected: Vec<BigInt> = x
                .iter()
                .map(|x| {
                    let fx = &f * x;
                    let inverse = if d.is_one() { BigInt::one() } else { integer::inverse(&t_big, &d) };
                    let delta = &t_big * integer::centre(&(inverse * &fx), &d);
                    integer::exact_quotient(&(fx - delta), &d)
                })
                .collect();
            let expected = rns::decompose(&expected, &some(&primes, to));
            for cpu in &cpus {
                let mut spec = ScaleSpec::switch(from, to, &t);
                spec.numerator = numerator.clone();
                let scale = Scale::new(cpu, spec).unwrap();
                let input = upload(cpu, &primes, from, &x);
                let out = scale.apply(cpu, &input).unwrap();
                assert!(download(cpu, &out) == expected, "{} {from:?} to {to:?}, t = {t}", cpu.name());
                let slots = scale.apply_ntt(cpu, &input.into_ntt(cpu).unwrap()).unwrap();
                assert!(download(cpu, &slots.into_coeff(cpu).unwrap()) == expected, "{} in slots", cpu.name());
            }
        }
    }
}

#[test]
fn every_overflow_rule_picks_its_representative() {
    let (primes, cpus) = open(&[45, 60, 36, 50, 61, 49]);
    let (src, dst): (IndexSet, IndexSet) = ((0..3).collect(), (3..6).collect());
    let (p, q) = (some(&primes, &src), some(&primes, &dst));
    let s = rns::product(&p);
    let mut random = SplitMix::new(6);
    // Away from the boundaries, where each rule is exact.
    let x: Vec<BigInt> = (0..N).map(|_| integer::reduce(&(random.integer(&(&s / 2)) - &s / 4), &s)).collect();
    for overflow in
        [Overflow::Fast, Overflow::Floor, Overflow::Round, Overflow::HpsFloor, Overflow::HpsRound, Overflow::Behz]
    {
        for cpu in &cpus {
            let spec = ConvertSpec::new(cpu.ring(), &src, &dst, &[1; 3], &[1; 3], overflow).unwrap();
            let conversion = cpu.conversion(&src, &dst, &spec).unwrap();
            let input = upload(cpu, &primes, &src, &x);
            let mut out = Poly::<Cpu, Coeff>::new(cpu, &dst).unwrap();
            let rows = [0, 1, 2];
            let view = View::new(input.buffer(), &rows);
            cpu.convert(&conversion, view, ViewMut::new(out.buffer_mut(), &rows), ConvertMode::Replace).unwrap();
            let got = download(cpu, &out);
            let values = rns::compose_centred(&got, &q);
            for (x, got) in x.iter().zip(&values) {
                let centred = integer::centre(x, &s);
                let error = match overflow {
                    Overflow::Floor | Overflow::HpsFloor => got - x,
                    Overflow::Round | Overflow::HpsRound | Overflow::Behz => got - &centred,
                    _ => {
                        let excess = got - x;
                        assert!((&excess % &s).is_zero() && excess >= BigInt::zero() && excess < &s * 3);
                        BigInt::zero()
                    }
                };
                assert!(error.is_zero(), "{overflow:?} on {}: off by {error}", cpu.name());
            }
        }
    }
}

#[test]
fn automorphisms_agree_in_both_domains_with_exact_integers() {
    let (primes, cpus) = open(&[50, 60, 30]);
    let all: IndexSet = (0..3).collect();
    let x = sample(&mut SplitMix::new(7), &primes);
    for g in [3, 9, 2 * N - 1, 5, N + 1] {
        let expected = rns::decompose(&poly::automorphism(&x, g), &primes);
        for cpu in &cpus {
            let input = upload(cpu, &primes, &all, &x);
            assert_eq!(download(cpu, &input.automorphism(cpu, g).unwrap()), expected);
            let slots: Poly<Cpu, Ntt> = input.into_ntt(cpu).unwrap();
            let out = slots.automorphism(cpu, g).unwrap().into_coeff(cpu).unwrap();
            assert_eq!(download(cpu, &out), expected);
        }
    }
    assert!(upload(&cpus[0], &primes, &all, &x).automorphism(&cpus[0], 2).is_err());
}

#[test]
fn slot_products_are_negacyclic_products_and_fused_stages_equal_primitives() {
    let (primes, cpus) = open(&[50, 60, 36, 49]);
    let all: IndexSet = (0..4).collect();
    let mut random = SplitMix::new(8);
    let (a, b) = (sample(&mut random, &primes), sample(&mut random, &primes));
    let expected = rns::decompose(&poly::reduce(&poly::mul(&a, &b), &rns::product(&primes)), &primes);
    let mut digests = Vec::new();
    for cpu in &cpus {
        let slots = |x: &[BigInt]| upload(cpu, &primes, &all, x).into_ntt(cpu).unwrap();
        let product = slots(&a).mul(cpu, &slots(&b)).unwrap();
        assert_eq!(download(cpu, &product.into_coeff(cpu).unwrap()), expected);
        digests.push(gadget_both_ways(cpu, &all));
    }
    for (cpu, digest) in cpus.iter().zip(&digests) {
        let differ = digest.iter().zip(&digests[0]).position(|(a, b)| a != b);
        assert_eq!(differ.map(|i| (i / N, i % N)), None, "{} against {}", cpu.name(), cpus[0].name());
    }
}

const DIGITS: usize = 3;

fn digit_view<'a>(buffer: &'a mut CpuBuffer, rows: &'a [usize]) -> ViewMut<'a, Cpu> {
    ViewMut { buffer, batch: DIGITS, batch_stride: rows.len(), rows }
}

/// The fused gadget product and the one made of primitives, which must be equal; returns the result.
fn gadget_both_ways(cpu: &Cpu, all: &IndexSet) -> Vec<u64> {
    let (digits, limbs) = (DIGITS, all.len());
    let fill = |digit: u32| {
        let mut buffer = cpu.alloc(digits * limbs).unwrap();
        let rows: Vec<usize> = (0..limbs).collect();
        for j in 0..digits {
            let at: Vec<usize> = rows.iter().map(|r| j * limbs + r).collect();
            let view = ViewMut::new(&mut buffer, &at);
            let seed = Seed::from_bytes([9; 32]);
            cpu.uniform(all.as_slice(), &seed, Purpose::PublicRandomness, digit + j as u32, view).unwrap();
        }
        buffer
    };
    let rows: Vec<usize> = (0..limbs).collect();
    let state = |j: usize, r: usize| match (r + j) % 3 {
        0 => DigitLimb::Coefficients,
        1 => DigitLimb::Slots,
        _ => DigitLimb::Input(r),
    };
    let state: Vec<Vec<DigitLimb>> = (0..digits).map(|j| (0..limbs).map(|r| state(j, r)).collect()).collect();
    let input = fill(30);
    let (k0, k1) = (fill(10), fill(20));
    let key = |buffer| View { buffer, batch: digits, batch_stride: limbs, rows: &rows };
    let run = |fused: bool| {
        let mut buffer = fill(0);
        let mut out = cpu.alloc(2 * limbs).unwrap();
        out.words_mut().fill(0);
        let outputs = ViewMut { buffer: &mut out, batch: 2, batch_stride: limbs, rows: &rows };
        let gadget = GadgetDigits { digits: digit_view(&mut buffer, &rows), limbs: &state, input: Some(&input) };
        let keys = [key(&k0), key(&k1)];
        let product = Stage::GadgetProduct { gadget, keys, out: outputs, accumulate: true };
        if fused { cpu.stage(all.as_slice(), product) } else { product.apart(cpu, all.as_slice()) }.unwrap();
        out.words().to_vec()
    };
    let fused = run(true);
    assert_eq!(fused, run(false));
    fused
}

#[test]
fn a_ring_refuses_what_it_cannot_compute_in() {
    let good = toy::distinct_primes(&[50], LOG_N)[0];
    for (log_n, primes) in [
        (9, vec![good]),
        (19, vec![good]),
        (LOG_N, vec![good, good]),
        (LOG_N, vec![good + 2 * N as u64]),
        (LOG_N, vec![1 << 40]),
        (LOG_N, vec![12289]),
        (LOG_N, vec![u64::MAX]),
        (LOG_N, vec![0]),
    ] {
        assert!(Ring::new(log_n, &primes).is_err(), "{log_n} {primes:?}");
    }
}

#[test]
fn slots_of_polynomials_in_x_to_the_8_repeat_and_those_of_others_do_not() {
    let (primes, cpus) = open(&[50, 60, 36]);
    let all: IndexSet = (0..primes.len()).collect();
    for cpu in &cpus {
        for step in [1, 4, 8, 16, 256, N / 2] {
            let coefficient =
                |i: usize| if i.is_multiple_of(step) { BigInt::from(7919 * i + 3) } else { BigInt::zero() };
            let x: Vec<BigInt> = (0..N).map(coefficient).collect();
            let slots = upload(cpu, &primes, &all, &x).into_ntt(cpu).unwrap().to_words(cpu).unwrap();
            for row in slots.chunks(N) {
                let kept = repeated::pack(row);
                assert_eq!(kept.is_some(), step >= 8, "X^{step}");
                if let Some(kept) = kept {
                    let mut again = vec![0; N];
                    repeated::unpack(&kept, &mut again);
                    assert!(kept.len() == repeated::words(N) && again == row, "X^{step}");
                }
            }
        }
    }
}
