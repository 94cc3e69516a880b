//! Key switching over the product of all its choices: random ciphertexts decrypt right in every coefficient, and the
//! error stays below the bound.
//!
//! The structure of a plan (digits, radix, P, the ring of the product, folding) is gone through in full; the other
//! axes (error multiple, level, target, domains, overflow rule, source, way of summing) turn at coprime strides, so
//! that each value of each axis meets many of the others. A new value of an axis is one entry in its list.

use std::collections::BTreeMap;

use crate::common::{Counted, Fixture, automorphism, centred, fixture, literal, log2, message};
use num_bigint::BigInt;
use num_traits::{Signed, Zero};
use synchromesh_ring::rns::Overflow;
use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::{Backend, Coeff, IndexSet, Poly, ViewMut};
use synchromesh_rlwe::key_switch::Output;
use synchromesh_rlwe::{
    Ciphertext, DigitSizes, Gadget, MixedPoly, Noise, Operand, Params, PreparedKey, ProductRing, Schedule, SecretKey,
    Source, SwitchKey, SwitchPlan,
};

const G: usize = 5;

/// Widths of q, P and the auxiliary primes, and the primes of each level where they are not prefixes that end with q.
struct Chain {
    q: &'static [u32],
    p: &'static [u32],
    aux: &'static [u32],
    levels: &'static [&'static [usize]],
}

const CHAINS: [Chain; 6] = [
    Chain { q: &[45, 45, 45, 45, 45], p: &[50, 50], aux: &[60; 9], levels: &[] },
    Chain { q: &[60, 30, 55, 40, 49, 61], p: &[61, 61, 60], aux: &[61; 10], levels: &[] },
    Chain { q: &[36, 54, 45], p: &[], aux: &[50; 5], levels: &[] },
    Chain { q: &[55], p: &[50], aux: &[61; 3], levels: &[] },
    // The highest level lacks two primes, which P may borrow.
    Chain {
        q: &[50, 45, 58, 44, 55, 60, 49],
        p: &[],
        aux: &[60; 8],
        levels: &[&[0, 1], &[0, 1, 2], &[0, 1, 2, 3], &[0, 1, 2, 3, 4]],
    },
    // Where two primes of 54 bits leave, two of 36 come in.
    Chain {
        q: &[36, 36, 55, 54, 54, 54, 54],
        p: &[60, 61],
        aux: &[60; 8],
        levels: &[
            &[0, 1, 2],
            &[2, 3, 4],
            &[0, 2, 3, 4],
            &[0, 1, 2, 3, 4],
            &[2, 3, 4, 5, 6],
            &[0, 2, 3, 4, 5, 6],
            &[0, 1, 2, 3, 4, 5, 6],
        ],
    },
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
    /// The first of those that the key is stored with.
    Part,
    None,
    /// What the highest level lacks, besides P.
    Borrowed,
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
const SPECIALS: [Special; 5] = [Special::All, Special::First, Special::Part, Special::None, Special::Borrowed];
const PRODUCTS: [Product; 4] = [Product::Base, Product::Extended(1), Product::Extended(3), Product::Linear];
const RULES: [Overflow; 6] =
    [Overflow::Round, Overflow::Fast, Overflow::Floor, Overflow::Behz, Overflow::HpsFloor, Overflow::HpsRound];
/// Which limbs are in slots: none, all, those with an odd number.
const DOMAINS: [&str; 3] = ["coefficients", "slots", "mixed"];
const SOURCES: [&str; 3] = ["square", "rotation", "other key"];
const WAYS: [&str; 3] = ["once", "hoisted", "summed"];
const TARGETS: [&str; 3] = ["same level", "merged", "merged and folded"];

/// A plan of this structure; digits are sums of stored ones, of one prime each, if `summed` and where they can be.
fn base_plan(
    params: &Params,
    (digits, special, product): (Digits, Special, Product),
    summed: bool,
) -> Option<SwitchPlan> {
    let q = params.q();
    let kept = if matches!(special, Special::Borrowed) { params.level(params.top_level()).unwrap() } else { q };
    let l = kept.len();
    let sizes = match digits {
        Digits::Omega(omega) => DigitSizes::equal(l, omega.min(l)).ok()?,
        Digits::Uneven => DigitSizes(vec![l.checked_sub(1).filter(|&n| n > 0)?, 1]),
        Digits::Radix(_) => DigitSizes::equal(l, l).ok()?,
    };
    let plan = match (digits, special) {
        (Digits::Radix(bits), Special::All | Special::First | Special::None) => {
            SwitchPlan::with_digits(params, &sizes).ok()?.with_radix(bits)
        }
        (Digits::Radix(_), Special::Part | Special::Borrowed) => return None,
        (_, Special::Borrowed) if kept.len() == q.len() => return None,
        (_, Special::Borrowed) => {
            let (stored, digits) = (DigitSizes::single(q.len()), sizes.split(kept).ok()?);
            SwitchPlan::coalesced(params, &stored, digits, &q.without(kept)).ok()?
        }
        (_, Special::All | Special::Part) if summed => {
            let (stored, digits) = (DigitSizes::single(l), sizes.split(q).ok()?);
            SwitchPlan::coalesced(params, &stored, digits, &IndexSet::empty()).ok()?
        }
        _ => SwitchPlan::with_digits(params, &sizes).ok()?,
    };
    let plan = match special {
        Special::All | Special::Borrowed => plan,
        Special::First => plan.with_special(params.p().iter().take(1).collect()),
        Special::Part if params.p().len() < 2 => return None,
        Special::Part => plan.dividing_by(params.p().iter().take(1).collect()).ok()?,
        Special::None => plan.with_special(IndexSet::empty()),
    };
    let keyed = plan.key_primes().len();
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
    let bound = noise.bound(params.ring().log_n(), 128);
    let t = BigInt::from(params.error_multiple().clone());
    let message = if t == BigInt::from(1) { 20.0 } else { log2(&t) };
    if (bound + log2(&t)).max(message) + 2.0 > params.ring().log2(to) {
        return Outcome::NoRoom;
    }
    let prepared = key.prepare(context, &case.plan).unwrap();
    let (phase, m) = run(f, other, &prepared, case, salt);
    let product = |set: &IndexSet| BigInt::from(params.ring().product(set));
    let (dropped, coming) = (product(&from.without(to)), product(&to.without(from)));
    let mut largest = BigInt::zero();
    for (x, m) in phase.iter().zip(&m) {
        // The phase is (coming m + t e) / dropped.
        let off = x * &dropped - m * &coming;
        assert!((&off % &t).is_zero(), "the error is no multiple of t: {case:?}");
        largest = largest.max((off / &t).abs());
    }
    let measured = log2(&largest) - params.ring().log2(&from.without(to));
    assert!(measured <= bound + 0.01, "error 2^{measured:.2} above the bound 2^{bound:.2}: {case:?}");
    Outcome::Gap(bound - measured)
}

#[test]
fn every_legal_combination_decrypts_below_its_bound() {
    go_through(10);
}

#[test]
#[ignore = "a real degree; cargo xtask verify runs it"]
fn every_legal_combination_decrypts_at_a_real_degree() {
    go_through(14);
}

/// How a combination reaches its target.
fn target_name(merge: usize, from: &IndexSet, to: &IndexSet) -> String {
    let coming = if to.without(from).is_empty() { "" } else { ", primes come in" };
    format!("{}{coming}", TARGETS[merge])
}

fn go_through(log_n: u32) {
    let mut seen: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let (mut turn, mut done, mut no_room, mut illegal) = (0usize, 0usize, 0, 0);
    let mut widest = (0f64, String::new());
    for (ci, chain) in CHAINS.iter().enumerate() {
        for (ti, t) in MULTIPLES.iter().enumerate() {
            let mut f = fixture(with_aux(log_n, chain, t), 40 + ti as u64);
            let other = SecretKey::generate(&f.context, &mut f.randomness).unwrap();
            for (i, (digits, special, product, folded)) in structures().enumerate() {
                // Each structure at one of the multiples, another one in each chain.
                if (i + ci) % MULTIPLES.len() != ti {
                    continue;
                }
                let params = f.context.params().clone();
                let Some(mut plan) = base_plan(&params, (digits, special, product), turn % 2 == 0) else {
                    illegal += 1;
                    continue;
                };
                turn += 1;
                let top = params.top_level();
                let rule = RULES[turn % RULES.len()];
                let down = if rule == Overflow::Behz { Overflow::Behz } else { Overflow::Round };
                plan = plan.with_overflow(rule, down);
                if plan.require_capacity(&params, params.level(top).unwrap()).is_err() {
                    // The aux primes were counted for centred digits.
                    plan = plan.with_overflow(Overflow::Round, down);
                }
                let mut way_out = Overflow::Round;
                if let ProductRing::Extended(ring) = &mut plan.ring {
                    way_out = [Overflow::Round, Overflow::HpsRound, Overflow::Behz][turn % 3];
                    ring.overflow = way_out;
                }
                let lower = if chain.levels.is_empty() { turn % 3 == 0 } else { turn % 4 > 0 };
                let level = top - if lower { turn / 3 % (top + 1) } else { 0 };
                let merge = if level == 0 { 0 } else { turn % 4 % 3 };
                let target = level - usize::from(merge > 0);
                match (folded, merge) {
                    (false, _) => plan = plan.unfolded(),
                    (true, 2) => {
                        let [from, to] = [level, target].map(|l| params.level(l).unwrap());
                        plan = plan.folded_to(from, to);
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
                        let [from, to] = [level, target].map(|l| params.level(l).unwrap());
                        count("target", target_name(merge, from, to));
                        let summed = matches!(case.plan.gadget, Gadget::Coalesced { .. });
                        count("gadget", if summed { "coalesced" } else { "idempotent" }.to_owned());
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
        ("gadget", 2),
        // Without and with primes that come in.
        ("target", 2 * TARGETS.len() - 1),
        ("domain pair", 9),
        ("source", SOURCES.len()),
        ("way", WAYS.len()),
        ("rule", RULES.len()),
        ("rule out of E", 3),
        ("multiple", MULTIPLES.len()),
        // bv, rns_bv, ghs, hybrid, double, linear and level-aware.
        ("method", 7),
    ] {
        assert_eq!(values(axis), expected, "not every value of {axis} was met");
    }
    assert!(widest < 8.0, "a bound exceeds its error by {widest} bits");
}

fn with_aux(log_n: u32, chain: &Chain, t: &str) -> synchromesh_rlwe::ParamsLiteral {
    let mut made = literal(log_n, chain.q, &[chain.p, chain.aux].concat(), t);
    made.aux = made.p.split_off(chain.p.len());
    made.schedule = Schedule::of(chain.levels.iter().map(|level| level.to_vec()).collect());
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
