//! Key switching over the product of all its choices: random ciphertexts decrypt right in every coefficient, and the
//! error stays below the bound.
//!
//! The structure of a plan (digits, radix, P, the ring of the product, folding) is gone through in full; the other
//! axes (error multiple, level, target, domains, overflow rule, source, way of summing) turn at coprime strides, so
//! that each value of each axis meets many of the others. A new value of an axis is one entry in its list.

mod common;

use std::collections::BTreeMap;

use common::{Counted, Fixture, automorphism, centred, fixture, literal, log2, message};
use num_bigint::BigInt;
use num_traits::{Signed, Zero};
use synchromesh_ring::rns::Overflow;
use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::{Backend, Coeff, IndexSet, Poly, ViewMut};
use synchromesh_rlwe::key_switch::Output;
use synchromesh_rlwe::{
    Ciphertext, DigitSizes, Folding, MixedPoly, Noise, Operand, Params, PreparedKey, ProductRing, SecretKey, Source,
    SwitchKey, SwitchPlan,
};

const LOG_N: u32 = 10;
const G: usize = 5;

/// Widths of q, P and the auxiliary primes.
const CHAINS: [(&[u32], &[u32], &[u32]); 4] = [
    (&[45, 45, 45, 45, 45], &[50, 50], &[60; 9]),
    (&[60, 30, 55, 40, 49, 61], &[61, 61, 60], &[61; 10]),
    (&[36, 54, 45], &[], &[50; 5]),
    (&[55], &[50], &[61; 3]),
];

const MULTIPLES: [&str; 5] = [
    "1",
    "65537",
    "2",
    "340282366920938463463374607431759953921",
    "57896044618658097711785492504343953926634992332820282019728792003956564819949",
];

#[derive(Debug, Clone, Copy)]
enum Digits {
    Omega(usize),
    Uneven,
    Radix(u32),
}

#[derive(Debug, Clone, Copy)]
enum Special {
    All,
    First,
    None,
}

#[derive(Debug, Clone, Copy)]
enum Product {
    Base,
    Extended(usize),
    Linear,
}

const DIGITS: [Digits; 7] = [
    Digits::Omega(1),
    Digits::Omega(2),
    Digits::Omega(usize::MAX),
    Digits::Uneven,
    Digits::Radix(9),
    Digits::Radix(22),
    Digits::Radix(61),
];
const SPECIALS: [Special; 3] = [Special::All, Special::First, Special::None];
const PRODUCTS: [Product; 4] = [Product::Base, Product::Extended(1), Product::Extended(3), Product::Linear];
const RULES: [Overflow; 6] =
    [Overflow::Round, Overflow::Fast, Overflow::Floor, Overflow::Behz, Overflow::HpsFloor, Overflow::HpsRound];
/// Which limbs are in slots: none, all, those with an odd number.
const DOMAINS: [&str; 3] = ["coefficients", "slots", "mixed"];
const SOURCES: [&str; 3] = ["square", "rotation", "other key"];
const WAYS: [&str; 3] = ["once", "hoisted", "summed"];
const TARGETS: [&str; 3] = ["same level", "merged", "merged and folded"];

fn base_plan(params: &Params, digits: Digits, special: Special, product: Product) -> Option<SwitchPlan> {
    let l = params.q().len();
    let plan = match digits {
        Digits::Omega(omega) => SwitchPlan::hybrid(params, omega.min(l)).ok()?,
        Digits::Uneven => {
            SwitchPlan::with_digits(params, &DigitSizes(vec![l.checked_sub(1).filter(|&n| n > 0)?, 1])).ok()?
        }
        Digits::Radix(bits) => SwitchPlan::hybrid(params, l).ok()?.with_radix(bits),
    };
    let plan = plan.with_special(match special {
        Special::All => params.p().clone(),
        Special::First => params.p().iter().take(1).collect(),
        Special::None => IndexSet::empty(),
    });
    let keyed = l + plan.special.len();
    match product {
        Product::Base => Some(plan),
        Product::Extended(omega2) => plan.in_extended_ring(params, omega2.min(keyed)).ok(),
        Product::Linear => plan.in_extended_ring(params, keyed).ok(),
    }
}

/// One choice on every axis.
#[derive(Debug)]
struct Case {
    plan: SwitchPlan,
    level: usize,
    target: usize,
    source: usize,
    way: usize,
    input: usize,
    output: usize,
}

fn slots_of(domain: usize, primes: &IndexSet) -> IndexSet {
    primes.iter().filter(|i| domain == 1 || domain == 2 && i % 2 == 1).collect()
}

fn mixed(f: &Fixture, poly: &Poly<Counted, Coeff>, domain: usize) -> MixedPoly<Counted> {
    let (backend, ntt) = (f.context.backend(), slots_of(domain, poly.primes()));
    let coeff = poly.restrict(backend, &poly.primes().without(&ntt)).unwrap();
    MixedPoly { coeff, ntt: poly.restrict(backend, &ntt).unwrap().into_ntt(backend).unwrap() }
}

fn whole(f: &Fixture, poly: MixedPoly<Counted>, primes: &IndexSet) -> Poly<Counted, Coeff> {
    let (backend, n) = (f.context.backend(), f.context.params().n());
    let slots = poly.ntt.primes().clone();
    let halves =
        [poly.ntt.into_coeff(backend).unwrap().to_words(backend).unwrap(), poly.coeff.to_words(backend).unwrap()];
    let words: Vec<u64> = primes
        .iter()
        .flat_map(|i| {
            let (half, row) = match slots.position(i) {
                Some(row) => (0, row),
                None => (1, poly.coeff.primes().position(i).unwrap()),
            };
            halves[half][row * n..(row + 1) * n].to_vec()
        })
        .collect();
    Poly::from_words(backend, primes, &words).unwrap()
}

fn uniform(f: &Fixture, primes: &IndexSet, salt: u64) -> Poly<Counted, Coeff> {
    let mut out = Poly::new(f.context.backend(), primes).unwrap();
    let rows: Vec<usize> = (0..primes.len()).collect();
    let (seed, dst) = (Seed::from_bytes([9; 32]), ViewMut::new(out.buffer_mut(), &rows));
    f.context.backend().uniform(primes.as_slice(), &seed, Purpose::PublicRandomness, salt as u32, dst).unwrap();
    out
}

/// A uniform ciphertext of `m` under `key`, of `count` components.
fn ciphertext(
    f: &Fixture,
    key: &SecretKey<Counted>,
    m: &Poly<Counted, Coeff>,
    level: usize,
    count: usize,
    salt: u64,
) -> Vec<Poly<Counted, Coeff>> {
    let (backend, params) = (f.context.backend(), f.context.params());
    let mut parts = vec![Poly::zero(backend, m.primes()).unwrap()];
    parts.extend((1..count).map(|i| uniform(f, m.primes(), salt * 4 + i as u64)));
    let copies = parts.iter().map(|p| p.duplicate(backend).unwrap()).collect();
    let ct = Ciphertext::new(params, copies, level, key.id(), Noise::ZERO).unwrap();
    parts[0] = m.duplicate(backend).unwrap();
    parts[0].sub_assign(backend, key.phase(&f.context, &ct).unwrap().poly()).unwrap();
    parts
}

/// Runs the switch of `case`, twice the message where its way sums; returns the phase of the result.
fn run(
    f: &Fixture,
    other: &SecretKey<Counted>,
    key: &PreparedKey<Counted>,
    case: &Case,
    salt: u64,
) -> (Vec<BigInt>, Vec<BigInt>) {
    let (context, params) = (&f.context, f.context.params());
    let (from, to) = (params.level(case.level).unwrap().clone(), params.level(case.target).unwrap().clone());
    let (m, poly) = message(context, case.level, salt);
    let (components, under) = match case.source {
        0 => (3, &f.secret),
        1 => (2, &f.secret),
        _ => (2, other),
    };
    let parts = ciphertext(f, under, &poly, case.level, components, salt);
    let parts: Vec<_> = parts.iter().map(|p| mixed(f, p, case.input)).collect();
    let operands: Vec<_> = parts.iter().map(Operand::Mixed).collect();
    let addends = [Some(operands[0]), (components == 3).then(|| operands[1])];
    let switcher = context.switcher(&case.plan, &from, &to).unwrap();
    let digits = || switcher.decompose(context, *operands.last().unwrap()).unwrap();
    let accumulator = match case.way {
        0 => switcher.gadget_product(context, digits(), key, None).unwrap(),
        1 => {
            let hoisted = switcher.hoist(context, digits()).unwrap();
            switcher.inner_product(context, &hoisted, key, None).unwrap()
        }
        _ => {
            let first = switcher.gadget_product(context, digits(), key, None).unwrap();
            let hoisted = switcher.hoist(context, digits()).unwrap();
            switcher.inner_product(context, &hoisted, key, Some(first)).unwrap()
        }
    };
    let galois = if case.source == 1 { G } else { 1 };
    let output = Output { ntt: slots_of(case.output, &to), galois };
    let out = switcher.mod_down(context, accumulator, addends, &output).unwrap();
    let mut out = Vec::from(out.map(|p| whole(f, p, &to)));
    if case.way == 2 {
        // The addends joined once, the switched part twice: take (c_0, c_1) off, doubled, and put it back.
        let once = switcher.gadget_product(context, digits(), key, None).unwrap();
        let once = switcher.mod_down(context, once, [None, None], &output).unwrap().map(|p| whole(f, p, &to));
        for (out, once) in out.iter_mut().zip(&once) {
            out.sub_assign(context.backend(), once).unwrap();
        }
    }
    let ct = Ciphertext::new(params, out, case.target, f.secret.id(), Noise::ZERO).unwrap();
    let m = if case.source == 1 { automorphism(&m, G) } else { m };
    (centred(context, f.secret.phase(context, &ct).unwrap().poly()), m)
}

/// What came of a case: the gap between bound and error in bits, or why there was none.
enum Outcome {
    Gap(f64),
    NoRoom,
}

fn check(f: &Fixture, other: &SecretKey<Counted>, case: &Case, key: &SwitchKey<Counted>, salt: u64) -> Outcome {
    let (context, params) = (&f.context, f.context.params());
    let (from, to) = (params.level(case.level).unwrap(), params.level(case.target).unwrap());
    let noise = context.switcher(&case.plan, from, to).unwrap().noise();
    // A sum holds the error of one switch from each of two accumulated products and of the one taken off again.
    let noise = if case.way == 2 { noise.plus(noise).plus(noise) } else { noise };
    let bound = noise.bound(LOG_N, 128);
    let t = BigInt::from(params.error_multiple().clone());
    let message = if t == BigInt::from(1) { 20.0 } else { log2(&t) };
    if (bound + log2(&t)).max(message) + 2.0 > params.ring().log2(to) {
        return Outcome::NoRoom;
    }
    let prepared = key.prepare(context, &case.plan).unwrap();
    let (phase, m) = run(f, other, &prepared, case, salt);
    let dropped = BigInt::from(params.ring().product(&from.without(to)));
    let mut largest = BigInt::zero();
    for (x, m) in phase.iter().zip(&m) {
        // The phase is (m + t e) / dropped.
        let off = x * &dropped - m;
        assert!((&off % &t).is_zero(), "the error is no multiple of t: {case:?}");
        largest = largest.max((off / &t).abs());
    }
    let measured = log2(&largest) - params.ring().log2(&from.without(to));
    assert!(measured <= bound + 0.01, "error 2^{measured:.2} above the bound 2^{bound:.2}: {case:?}");
    Outcome::Gap(bound - measured)
}

#[test]
fn every_legal_combination_decrypts_below_its_bound() {
    let mut seen: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let (mut turn, mut done, mut no_room, mut illegal) = (0usize, 0usize, 0, 0);
    let mut widest = (0f64, String::new());
    for (ci, (q, p, aux)) in CHAINS.into_iter().enumerate() {
        for (ti, t) in MULTIPLES.iter().enumerate() {
            let mut f = fixture(with_aux(q, p, aux, t), 40 + ti as u64);
            let other = SecretKey::generate(&f.context, &mut f.randomness).unwrap();
            for (i, (digits, special, product, folded)) in structures().enumerate() {
                // Each structure at one of the multiples, another one in each chain.
                if (i + ci) % MULTIPLES.len() != ti {
                    continue;
                }
                let params = f.context.params().clone();
                let Some(mut plan) = base_plan(&params, digits, special, product) else {
                    illegal += 1;
                    continue;
                };
                turn += 1;
                let top = params.top_level();
                let rule = RULES[turn % RULES.len()];
                let down = if rule == Overflow::Behz { Overflow::Behz } else { Overflow::Round };
                plan = plan.with_overflow(rule, down);
                if plan.require_capacity(&params, params.q()).is_err() {
                    // The aux primes were counted for centred digits.
                    plan = plan.with_overflow(Overflow::Round, down);
                }
                let mut way_out = Overflow::Round;
                if let ProductRing::Extended(ring) = &mut plan.ring {
                    way_out = [Overflow::Round, Overflow::HpsRound, Overflow::Behz][turn % 3];
                    ring.overflow = way_out;
                }
                let level = top - if turn % 3 == 0 { turn / 3 % (top + 1) } else { 0 };
                let merge = if level == 0 { 0 } else { turn % 4 % 3 };
                let target = level - usize::from(merge > 0);
                match (folded, merge) {
                    (false, _) => plan = plan.unfolded(),
                    (true, 2) => {
                        let [from, to] = [level, target].map(|l| params.level(l).unwrap());
                        plan.folding = Folding::Folded { dropped: from.without(to), coming: IndexSet::empty() };
                    }
                    _ => {}
                }
                let case = Case {
                    plan,
                    level,
                    target,
                    source: turn % 3,
                    way: turn / 2 % 3,
                    input: turn / 5 % 3,
                    output: turn / 7 % 3,
                };
                let source = [Source::Square, Source::Galois(G), Source::Key(other.id())][case.source];
                let key =
                    SwitchKey::generate(&f.context, &f.secret, source, Some(&other), &case.plan, &mut f.randomness)
                        .unwrap();
                match check(&f, &other, &case, &key, turn as u64) {
                    Outcome::NoRoom => no_room += 1,
                    Outcome::Gap(gap) => {
                        done += 1;
                        if case.plan.digit_overflow == Overflow::Round && gap > widest.0 {
                            widest = (gap, format!("{t} {case:?}"));
                        }
                        let mut count = |axis, value: String| *seen.entry((axis, value)).or_default() += 1;
                        count("method", case.plan.method().to_owned());
                        count("digits", format!("{digits:?}"));
                        count("P", format!("{special:?}"));
                        count("ring", format!("{product:?}"));
                        count("folded", folded.to_string());
                        count("target", TARGETS[merge].to_owned());
                        count("input", DOMAINS[case.input].to_owned());
                        count("output", DOMAINS[case.output].to_owned());
                        count("domain pair", format!("{} to {}", DOMAINS[case.input], DOMAINS[case.output]));
                        count("source", SOURCES[case.source].to_owned());
                        count("way", WAYS[case.way].to_owned());
                        count("rule", format!("{:?}", case.plan.digit_overflow));
                        count("rule out of E", format!("{way_out:?}"));
                        count("multiple", format!("{} bits", params.error_multiple().bits()));
                        count("level", if level == top { "top".to_owned() } else { "lower".to_owned() });
                        count("primes left", params.level(level).unwrap().len().to_string());
                    }
                }
            }
        }
    }
    println!("{done} combinations decrypt, {no_room} have no room for their noise, {illegal} are not legal");
    for ((axis, value), count) in &seen {
        println!("{axis:>12} {value:<24} {count}");
    }
    let (widest, case) = widest;
    println!("widest gap between bound and error: {widest:.1} bits, for {case}");
    assert!(done >= 300, "only {done} combinations");
    let values = |axis: &str| seen.keys().filter(|(a, _)| *a == axis).count();
    for (axis, expected) in [
        ("digits", DIGITS.len()),
        ("P", SPECIALS.len()),
        ("ring", PRODUCTS.len()),
        ("folded", 2),
        ("target", TARGETS.len()),
        ("domain pair", 9),
        ("source", SOURCES.len()),
        ("way", WAYS.len()),
        ("rule", RULES.len()),
        ("rule out of E", 3),
        ("multiple", MULTIPLES.len()),
        ("method", 6),
    ] {
        assert_eq!(values(axis), expected, "not every value of {axis} was met");
    }
    assert!(widest < 8.0, "a bound exceeds its error by {widest} bits");
}

fn with_aux(q: &[u32], p: &[u32], aux: &[u32], t: &str) -> synchromesh_rlwe::ParamsLiteral {
    let mut made = literal(LOG_N, q, &[p, aux].concat(), t);
    made.aux = made.p.split_off(p.len());
    made
}

/// Every structure of a plan.
fn structures() -> impl Iterator<Item = (Digits, Special, Product, bool)> {
    DIGITS.into_iter().flat_map(|digits| {
        SPECIALS.into_iter().flat_map(move |special| {
            PRODUCTS.into_iter().flat_map(move |product| [true, false].map(|folded| (digits, special, product, folded)))
        })
    })
}
