//! Laws of a backend: what every implementation must compute, against exact integers, and bit for bit alike.
//!
//! A backend's test opens it on the ring of each toy set and calls [`all`]; it also calls [`same_bits`] against the
//! scalar CPU, which pins what the laws leave open, such as the order of slots.

use std::sync::Arc;

use num_bigint::{BigInt, BigUint};
use num_traits::{One, Signed, Zero};
use synchromesh_ring::backend::RadixDigit;
use synchromesh_ring::rns::{ConvertSpec, Overflow};
use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::scale::{Scale, ScaleSpec};
use synchromesh_ring::transcript::{self, Transcript};
use synchromesh_ring::{Backend, Coeff, ConvertMode, IndexSet, Poly, Ring, View, ViewMut};

use crate::integer;
use crate::poly::{self, IntPoly};
use crate::random::SplitMix;
use crate::rns;
use crate::toy::ToySet;

/// What a law needs: a backend, and the primes of its ring by value.
struct Bench<'a, B: Backend> {
    backend: &'a B,
    primes: Vec<u64>,
    random: SplitMix,
}

/// The ring of a toy set: its ciphertext primes, then its special primes.
///
/// # Panics
/// When the set is not one a ring can be made of.
pub fn ring(set: &ToySet) -> Arc<Ring> {
    let primes = [set.q.as_slice(), &set.p].concat();
    Arc::new(Ring::new(set.log_n, &primes).expect("a toy set makes a ring"))
}

/// A law: a check of a backend on inputs drawn from a seed.
pub type Law<B> = fn(&B, u64);

/// Every law by name.
#[must_use]
pub fn list<B: Backend>() -> [(&'static str, Law<B>); 6] {
    [
        ("transforms invert and multiply", transforms_invert_and_multiply),
        ("sums and scalars are linear", sums_and_scalars_are_linear),
        ("automorphisms agree in both domains", automorphisms_agree_in_both_domains),
        ("conversions pick their representative", conversions_pick_their_representative),
        ("scalings round and keep the multiple", scalings_round_and_keep_the_multiple),
        ("radix digits are short and recompose", radix_digits_are_short_and_recompose),
    ]
}

/// Every law, on inputs drawn from `seed`; how many there are.
///
/// # Panics
/// When a law is broken.
pub fn all<B: Backend>(backend: &B, seed: u64) -> usize {
    let laws = list::<B>();
    laws.iter().for_each(|(_, law)| law(backend, seed));
    laws.len()
}

/// forward and inverse undo each other, and the product of slots is the negacyclic product.
///
/// # Panics
/// When it is not so.
pub fn transforms_invert_and_multiply<B: Backend>(backend: &B, seed: u64) {
    let mut bench = Bench::new(backend, seed);
    let all = bench.all();
    let (a, b) = (bench.sparse(24), bench.full());
    let slots = |x: &IntPoly| bench.upload(&all, x).into_ntt(backend).expect("forward");
    let (fa, fb) = (slots(&a), slots(&b));
    let back = slots(&b).into_coeff(backend).expect("inverse");
    bench.holds(&back, &rns::decompose(&b, &bench.primes), "inverse after forward");
    let product = fa.mul(backend, &fb).and_then(|p| p.into_coeff(backend)).expect("product");
    let exact = poly::mul(&a, &b);
    bench.holds(&product, &rns::decompose(&exact, &bench.primes), "negacyclic product");
    let mut sum = slots(&b);
    sum.mul_acc(backend, &fa, &fb).expect("product and sum");
    let expected = rns::decompose(&poly::sub(&exact, &poly::scale(&b, &(-1).into())), &bench.primes);
    bench.holds(&sum.into_coeff(backend).expect("inverse"), &expected, "negacyclic product and sum");
}

/// Sums, differences, negation and multiplication by an integer are those of the integers, in [0, q).
///
/// # Panics
/// When it is not so.
pub fn sums_and_scalars_are_linear<B: Backend>(backend: &B, seed: u64) {
    let mut bench = Bench::new(backend, seed);
    let all = bench.all();
    let (a, b, factor) = (bench.full(), bench.full(), BigInt::from(bench.random.word()));
    let residues: Vec<u64> = rns::decompose(std::slice::from_ref(&factor), &bench.primes).concat();
    let mut x = bench.upload(&all, &a);
    let y = bench.upload(&all, &b);
    x.mul_scalar_assign(backend, &residues).expect("scalar product");
    x.sub_assign(backend, &y).expect("difference");
    x.neg_assign(backend).expect("negation");
    x.add_assign(backend, &y).expect("sum");
    let expected = poly::sub(&poly::scale(&b, &2.into()), &poly::scale(&a, &factor));
    bench.holds(&x, &rns::decompose(&expected, &bench.primes), "linear operations");
    // Sums that are the primes themselves.
    let mut opposite = bench.upload(&all, &b);
    opposite.neg_assign(backend).expect("negation");
    opposite.add_assign(backend, &y).expect("sum");
    bench.holds(&opposite, &rns::decompose(&vec![BigInt::zero(); b.len()], &bench.primes), "a sum with the opposite");
}

/// X -> X^g on coefficients is the definition, and on slots the same map.
///
/// # Panics
/// When it is not so.
pub fn automorphisms_agree_in_both_domains<B: Backend>(backend: &B, seed: u64) {
    let mut bench = Bench::new(backend, seed);
    let all = bench.all();
    let a = bench.full();
    let n = a.len();
    for g in [1, 3, 5, n - 1, n + 1, 2 * n - 1] {
        let expected = rns::decompose(&poly::automorphism(&a, g), &bench.primes);
        let x = bench.upload(&all, &a);
        let image = x.automorphism(backend, g).expect("automorphism of coefficients");
        bench.holds(&image, &expected, &format!("X -> X^{g} on coefficients"));
        let image = x.into_ntt(backend).and_then(|x| x.automorphism(backend, g)).and_then(|x| x.into_coeff(backend));
        bench.holds(&image.expect("automorphism of slots"), &expected, &format!("X -> X^{g} on slots"));
    }
}

/// Each overflow rule gives the integer it promises, up to the multiples of the modulus that it allows.
///
/// # Panics
/// When it does not.
pub fn conversions_pick_their_representative<B: Backend>(backend: &B, seed: u64) {
    let mut bench = Bench::new(backend, seed);
    let limbs = bench.primes.len();
    let half = limbs.div_ceil(2);
    // Few primes may have a way of their own.
    for (sources, targets) in [(half, limbs - half), (1, 2), (2, 1)] {
        if sources + targets <= limbs {
            conversions_follow_their_rule(&mut bench, sources, targets);
        }
    }
}

/// From so many primes to as many behind them.
fn conversions_follow_their_rule<B: Backend>(bench: &mut Bench<'_, B>, sources: usize, targets: usize) {
    let backend = bench.backend;
    let (src, dst): (IndexSet, IndexSet) = ((0..sources).collect(), (sources..sources + targets).collect());
    let (from, to) = (bench.primes[..sources].to_vec(), bench.primes[sources..sources + targets].to_vec());
    let modulus = rns::product(&from);
    let n = backend.ring().n();
    let x = bench.random.int_poly(n, &modulus);
    let limbs = rns::decompose(&x, &from);
    let floor = rns::compose(&limbs, &from);
    let fast: IntPoly =
        floor.iter().zip(rns::fast_conversion_overflow(&limbs, &from)).map(|(x, u)| x + &modulus * u).collect();
    let one = |set: &IndexSet| vec![1u64; set.len()];
    for (rule, expected) in [
        (Overflow::Fast, &fast),
        (Overflow::Floor, &floor),
        (Overflow::HpsFloor, &floor),
        (Overflow::Round, &x),
        (Overflow::HpsRound, &x),
    ] {
        let spec = ConvertSpec::new(backend.ring(), &src, &dst, &one(&src), &one(&dst), rule).expect("constants");
        let conversion = backend.conversion(&src, &dst, &spec).expect("a conversion");
        let input = bench.upload(&src, &x);
        let mut output = Poly::<B, Coeff>::new(backend, &dst).expect("memory");
        let (rows_in, rows_out) = (rows(src.len()), rows(dst.len()));
        let out = ViewMut::new(output.buffer_mut(), &rows_out);
        backend
            .convert(&conversion, View::new(input.buffer(), &rows_in), out, ConvertMode::Replace)
            .expect("a conversion");
        bench.holds(&output, &rns::decompose(expected, &to), &format!("{rule:?}"));
    }
}

/// Dropping primes rounds to the nearest integer whose error is 0 modulo t, in both domains. On a tie of two such
/// integers, which the overflow count may break either way, the other one is as good.
///
/// # Panics
/// When it does not.
pub fn scalings_round_and_keep_the_multiple<B: Backend>(backend: &B, seed: u64) {
    let mut bench = Bench::new(backend, seed);
    let all = bench.all();
    let x = bench.full();
    let q = rns::product(&bench.primes);
    for kept in [1, bench.primes.len().div_ceil(2), bench.primes.len() - 1] {
        let to: IndexSet = (0..kept).collect();
        let q_new = rns::product(&bench.primes[..kept]);
        for t in [BigUint::one(), 2u32.into(), 65537u32.into(), (BigUint::one() << 128u32) + 51u32] {
            let scale = Scale::new(backend, ScaleSpec::switch(&all, &to, &t)).expect("a scaling");
            let t = BigInt::from(t);
            let exact = rns::mod_switch(&x, &q, &q_new, &t);
            let input = bench.upload(&all, &x);
            let coefficients = scale.apply(backend, &input).expect("scaled coefficients");
            let slots = input.into_ntt(backend).and_then(|x| scale.apply_ntt(backend, &x));
            let slots = slots.and_then(|x| x.into_coeff(backend)).expect("scaled slots");
            bench.holds(&slots, &bench.limbs(&coefficients), &format!("{kept} primes kept, t = {t}, slots"));
            let scaled = rns::compose(&bench.limbs(&coefficients), &bench.primes[..kept]);
            for (i, (got, exact)) in scaled.iter().zip(&exact).enumerate() {
                let off = integer::centre(&(got - exact), &q_new);
                let error = (&q * exact - &q_new * &x[i]).abs();
                let tie: bool = (&t * &q - error * 2) << 30u32 < &t * &q;
                let allowed = off.is_zero() || tie && integer::centre(&t, &q_new).abs() == off.abs();
                assert!(allowed, "{kept} primes kept, t = {t}: coefficient {i} is off by {off} on {}", backend.name());
            }
        }
    }
}

/// The radix digits of residues modulo each prime are at most 2^(w-1) and sum to the centred residue.
///
/// # Panics
/// When they are not, or do not.
pub fn radix_digits_are_short_and_recompose<B: Backend>(backend: &B, seed: u64) {
    let mut bench = Bench::new(backend, seed);
    let (all, n) = (bench.all(), backend.ring().n());
    let rows = rows(all.len());
    for (from, &p) in bench.primes.clone().iter().enumerate() {
        let residues = bench.random.residues(n, p);
        let x = Poly::<B, Coeff>::from_words(backend, &IndexSet::from_iter([from]), &residues).expect("upload");
        let p = BigInt::from(p);
        for bits in [1, 7, 16, 25, 31, 61] {
            let mut sum = vec![BigInt::zero(); n];
            for index in 0..RadixDigit::count(p.bits() as u32, bits) {
                let mut digit = Poly::<B, Coeff>::new(backend, &all).expect("memory");
                let (src, dst) = (View::new(x.buffer(), &[0]), ViewMut::new(digit.buffer_mut(), &rows));
                backend.radix_digit(all.as_slice(), from, RadixDigit { bits, index }, src, dst).expect("a digit");
                for (sum, d) in sum.iter_mut().zip(rns::compose_centred(&bench.limbs(&digit), &bench.primes)) {
                    assert!(
                        d.abs() << 1u32 <= BigInt::one() << bits,
                        "digit {d} in base 2^{bits} on {}",
                        backend.name()
                    );
                    *sum += d << (bits * index);
                }
            }
            let expected: IntPoly = residues.iter().map(|&x| integer::centre(&x.into(), &p)).collect();
            assert!(sum == expected, "digits in base 2^{bits} modulo {p} do not recompose on {}", backend.name());
        }
    }
}

/// Both backends give the same bits where the laws leave a choice: slot order, samplers, fused stages; how many results
/// were compared.
///
/// # Panics
/// When they differ, or compute in different rings.
pub fn same_bits<A: Backend, B: Backend>(a: &A, b: &B, seed: u64) -> usize {
    let primitives = agree(a, b, primitives(a), primitives(b));
    agree(a, b, choices(a, seed), choices(b, seed)) + primitives + same_stages(a, b)
}

/// Both backends give the same bits in every fused stage; how many results were compared.
///
/// # Panics
/// When they differ, or compute in different rings.
pub fn same_stages<A: Backend, B: Backend>(a: &A, b: &B) -> usize {
    agree(a, b, stages(a), stages(b))
}

/// Every stage, and what the laws leave a choice in, without a judge: how many results there are. For tools that watch how
/// they come about.
///
/// # Panics
/// When the backend fails.
pub fn perform<B: Backend>(backend: &B, seed: u64) -> usize {
    choices(backend, seed).len() + stages(backend).len()
}

/// What each primitive returns, modulo all primes.
fn primitives<B: Backend>(backend: &B) -> Transcript {
    transcript::primitives(backend, &rows(backend.ring().moduli().len()).into_iter().collect()).expect("primitives")
}

/// What each stage returns, modulo all primes.
fn stages<B: Backend>(backend: &B) -> Transcript {
    let primes = rows(backend.ring().moduli().len()).into_iter().collect();
    let results = transcript::stages(backend, &primes).expect("stages");
    let lacks = |name: &&&str| results.iter().all(|(run, _)| *run != **name);
    assert_eq!(transcript::STAGES.iter().find(lacks), None, "a stage that the transcript lacks");
    results
}

fn agree<A: Backend, B: Backend>(a: &A, b: &B, ours: Transcript, theirs: Transcript) -> usize {
    assert_eq!(a.ring(), b.ring(), "two backends in one ring");
    let n = a.ring().n();
    for ((what, ours), (_, theirs)) in ours.iter().zip(&theirs) {
        let differ = ours.iter().zip(theirs).position(|(a, b)| a != b).map(|i| (i / n, i % n));
        let equal = differ.is_none() && ours.len() == theirs.len();
        assert!(equal, "{what} differs between {} and {}, first at row and place {differ:?}", a.name(), b.name());
    }
    ours.len()
}

/// Named results of a fixed list of operations.
fn choices<B: Backend>(backend: &B, seed: u64) -> Transcript {
    let mut bench = Bench::new(backend, seed);
    let all = bench.all();
    let rows = rows(all.len());
    let x = bench.full();
    let slots = bench.upload(&all, &x).into_ntt(backend).expect("forward");
    let mut uniform = Poly::<B, Coeff>::new(backend, &all).expect("memory");
    backend
        .uniform(
            all.as_slice(),
            &Seed::from_bytes([7; 32]),
            Purpose::PublicRandomness,
            3,
            ViewMut::new(uniform.buffer_mut(), &rows),
        )
        .expect("uniform residues");
    let words = |buffer: &B::Buffer| {
        let mut words = vec![0; all.len() * backend.ring().n()];
        backend.download(buffer, 0, &mut words).expect("download");
        words
    };
    vec![("the order of slots", words(slots.buffer())), ("the uniform sampler", words(uniform.buffer()))]
}

impl<'a, B: Backend> Bench<'a, B> {
    fn new(backend: &'a B, seed: u64) -> Self {
        let primes = backend.ring().moduli().iter().map(|modulus| modulus.value()).collect();
        Self { backend, primes, random: SplitMix::new(seed) }
    }

    fn all(&self) -> IndexSet {
        (0..self.primes.len()).collect()
    }

    /// A polynomial over the whole modulus, its first residues at the edges 0, 1, q-1 and about q/2 of each prime.
    fn full(&mut self) -> IntPoly {
        let n = self.backend.ring().n();
        let limbs: Vec<Vec<u64>> = self.primes.iter().map(|&q| self.random.residues(n, q)).collect();
        rns::compose_centred(&limbs, &self.primes)
    }

    /// A polynomial over the whole modulus with `count` nonzero coefficients, the first and last among them.
    fn sparse(&mut self, count: usize) -> IntPoly {
        let n = self.backend.ring().n();
        let full = self.full();
        let mut kept = vec![BigInt::default(); n];
        for i in 0..count {
            let at = [0, n - 1].get(i).copied().unwrap_or_else(|| self.random.below(n as u64) as usize);
            kept[at] = &full[at] + 1;
        }
        kept
    }

    fn upload(&self, set: &IndexSet, x: &IntPoly) -> Poly<B, Coeff> {
        let primes: Vec<u64> = set.iter().map(|i| self.primes[i]).collect();
        Poly::from_words(self.backend, set, &rns::decompose(x, &primes).concat()).expect("upload")
    }

    fn limbs(&self, x: &Poly<B, Coeff>) -> Vec<Vec<u64>> {
        let words = x.to_words(self.backend).expect("download");
        words.chunks(self.backend.ring().n()).map(<[u64]>::to_vec).collect()
    }

    /// Fails with the first residue in which `x` differs from `expected`.
    fn holds(&self, x: &Poly<B, Coeff>, expected: &[Vec<u64>], what: &str) {
        let words = x.to_words(self.backend).expect("download");
        let n = self.backend.ring().n();
        assert_eq!(words.len(), n * expected.len(), "{what}: {} limbs expected", expected.len());
        for (i, (word, expected)) in words.iter().zip(expected.iter().flatten()).enumerate() {
            let (limb, at) = (i / n, i % n);
            assert_eq!(word, expected, "{what} on {}: limb {limb}, coefficient {at}", self.backend.name());
        }
    }
}

fn rows(limbs: usize) -> Vec<usize> {
    (0..limbs).collect()
}
