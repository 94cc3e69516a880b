//! Counted costs of every method, domain pair and operation against the formulas of the papers, on a device that
//! computes nothing.

use std::sync::Arc;

use crate::common::{self, literal};
use synchromesh_ring::{Coeff, Counting, Counts, Dry, IndexSet, Poly};
use synchromesh_rlwe::key_switch::Output;
use synchromesh_rlwe::switch_plan::{DoubleChoice, DoubleSearch};
use synchromesh_rlwe::{
    Context, MixedPoly, Operand, Params, ParamsLiteral, ProductRing, Randomness, SecretKey, Source, SwitchKey,
    SwitchPlan,
};

type Device = Counting<Dry>;

const DOMAINS: [bool; 2] = [false, true];

fn dry(literal: ParamsLiteral) -> Arc<Context<Device>> {
    let params = Params::new(literal).unwrap();
    let device = Counting::new(Dry::new(Arc::clone(params.ring())));
    Context::with_backend(params, device)
}

/// l primes of 40 bits, k special ones of 55, and auxiliary ones of 60.
fn context(l: usize, k: usize, t: &str) -> Arc<Context<Device>> {
    let mut made = literal(10, &vec![40; l], &vec![55; k], t);
    let widths = [vec![40; l], vec![55; k], vec![60; 16]].concat();
    made.aux = common::chain(10, &widths).split_off(l + k);
    dry(made)
}

/// What one switch costs: relinearisation with two addends, or a rotation with one.
fn cost(context: &Arc<Context<Device>>, plan: &SwitchPlan, relinearize: bool, [input, output]: [bool; 2]) -> Counts {
    let (backend, params) = (context.backend(), context.params());
    let mut randomness = Randomness::insecure_from_number(1);
    let secret = SecretKey::generate(context, &mut randomness).unwrap();
    let key = SwitchKey::generate(context, &secret, Source::Square, None, plan, &mut randomness).unwrap();
    let key = key.prepare(context, plan).unwrap();
    let (all, none) = (params.q().clone(), IndexSet::empty());
    let poly = |in_slots: bool| {
        let [coeff, ntt] = if in_slots { [&none, &all] } else { [&all, &none] };
        MixedPoly { coeff: Poly::new(backend, coeff).unwrap(), ntt: Poly::new(backend, ntt).unwrap() }
    };
    let (c, first, second) = (poly(input), poly(input), poly(input));
    let switcher = context.switcher(plan, &all, &all).unwrap();
    let ntt = if output { all.clone() } else { none.clone() };
    let run = || {
        let digits = switcher.decompose(context, Operand::Mixed(&c)).unwrap();
        let sum = switcher.gadget_product(context, digits, &key, None).unwrap();
        let addends = [Some(Operand::Mixed(&first)), relinearize.then_some(Operand::Mixed(&second))];
        switcher.mod_down(context, sum, addends, &Output { ntt, galois: 1 }).unwrap()
    };
    backend.measure(run).1
}

/// The factors of P's conversion are all 1 where P is one prime and t is 1.
fn down_prescale(k: usize, t: &str) -> usize {
    if k == 1 && t == "1" { 0 } else { 2 * k }
}

fn multiplications(counts: Counts) -> usize {
    (counts.mul + counts.convert_mac) as usize
}

#[test]
fn double_decomposition_costs_what_the_tables_say() {
    let mut cases = 0;
    for (l, k) in [(4, 1), (4, 2), (6, 2), (6, 3), (7, 3)] {
        for t in ["1", "65537"] {
            let context = context(l, k, t);
            for omega in [1, 2, 3, l] {
                for omega2 in [1, 2, 3, l + k] {
                    let Ok(plan) = SwitchPlan::double(context.params(), omega, omega2) else { continue };
                    let ProductRing::Extended(ring) = &plan.ring else { panic!("no extended ring") };
                    if !ring.aux.intersection(&context.params().keyed()).is_empty() {
                        continue;
                    }
                    let (omega, omega2, r) = (plan.digits.len(), ring.key_digits.len(), ring.aux.len());
                    for [input, output] in DOMAINS.into_iter().flat_map(|i| DOMAINS.map(|o| [i, o])) {
                        for relinearize in [false, true] {
                            let extra = match (relinearize, input, output) {
                                (_, false, false) => 0,
                                (_, true, true) | (true, true, false) => 3 * l,
                                _ => 2 * l,
                            };
                            let folded = cost(&context, &plan, relinearize, [input, output]);
                            // ePrint 2023/1642, Table 4.
                            assert_eq!(folded.ntt as usize, (omega + 2 * omega2) * r + extra, "{l} {k} {plan:?}");
                            // Section 4.2, with the 2 (l + k) aux_primes of the conversion from E; the text's
                            // l (2k + 3) holds 2l of the overflow correction, counted apart here.
                            let expected = (l + 2 * omega * omega2 + 2 * (l + k)) * r + l * (2 * k + 1);
                            assert_eq!(multiplications(folded), expected, "{l} {k} {plan:?}");
                            let unfolded = cost(&context, &plan.clone().unfolded(), relinearize, [input, output]);
                            assert_eq!(unfolded.ntt, folded.ntt);
                            // Table 3, whose 2 aux_primes for the conversion's prescaling are 2 omega2 of them.
                            let expected = expected + 2 * omega2 * r + 2 * l + down_prescale(k, t);
                            assert_eq!(multiplications(unfolded), expected, "{l} {k} {plan:?}");
                            cases += 1;
                        }
                    }
                }
            }
        }
    }
    println!("{cases} cases");
    assert!(cases > 300, "{cases} cases");
}

#[test]
fn linear_key_switching_is_the_corner_of_double_decomposition() {
    for l in [3, 6, 8] {
        let context = context(l, 1, "65537");
        let plan = SwitchPlan::linear(context.params(), 1).unwrap();
        let ProductRing::Extended(ring) = &plan.ring else { panic!("no extended ring") };
        assert_eq!((ring.aux.len(), ring.key_digits.len(), plan.method()), (2, l + 1, "linear"));
        // Table II of the paper, whose 8l + 4 is 9l + 4.
        let bgv = cost(&context, &plan, true, [true, true]);
        let bfv = cost(&context, &plan, true, [false, false]);
        assert_eq!((bgv.ntt as usize, bfv.ntt as usize), (9 * l + 4, 6 * l + 4));
        let conversions = 2 * l + 2 * 2 * (l + 1) + 3 * l;
        assert_eq!(multiplications(bfv) - conversions, 4 * l * (l + 1), "products with the key");
        let mut randomness = Randomness::insecure_from_number(1);
        let secret = SecretKey::generate(&context, &mut randomness).unwrap();
        let key = SwitchKey::generate(&context, &secret, Source::Square, None, &plan, &mut randomness).unwrap();
        assert_eq!(key.prepared_bytes(&context, &plan), 8 * 2 * l * (l + 1) * 2 * context.params().n());
    }
}

#[test]
fn ghs_hybrid_and_bv_cost_what_the_table_says() {
    for (l, k) in [(4, 2), (6, 1), (6, 4), (5, 5), (8, 3)] {
        for t in ["1", "65537"] {
            let context = context(l, k, t);
            for [input, output] in DOMAINS.into_iter().flat_map(|i| DOMAINS.map(|o| [i, o])) {
                // ePrint 2021/204, appendix B.3, general rows; the BGV row's 2l + 2k more for t are none here.
                let ghs = SwitchPlan::ghs(context.params()).unwrap();
                let counts = cost(&context, &ghs.clone().unfolded(), true, [input, output]);
                assert_eq!(counts.ntt as usize, 3 * (l + k));
                let down = down_prescale(k, t);
                assert_eq!(multiplications(counts), 3 * l * k + 5 * l + 2 * k + down);
                assert_eq!(multiplications(cost(&context, &ghs, true, [input, output])), 3 * l * k + 3 * l + 2 * k);
                for d in [2, l] {
                    let hybrid = SwitchPlan::hybrid(context.params(), d).unwrap();
                    let a = l / d;
                    if a * d != l {
                        continue;
                    }
                    let counts = cost(&context, &hybrid.unfolded(), true, [input, output]);
                    assert_eq!(counts.ntt as usize, (d + 2) * (l + k));
                    let expected = l * l + (3 * k + 2 * d + 3 - a) * l + 2 * d * k + down;
                    assert_eq!(multiplications(counts), expected, "{l} {k} {d}");
                }
            }
            for bits in [7, 20, 40] {
                let digits = 40usize.div_ceil(bits as usize);
                let bv = SwitchPlan::bv(context.params(), bits).unwrap();
                let (bgv, bfv) = (cost(&context, &bv, true, [true; 2]), cost(&context, &bv, true, [false; 2]));
                assert_eq!(bgv.ntt as usize, l * (l * digits + 1));
                assert_eq!(bfv.ntt as usize, l * (l * digits + 2));
                assert_eq!([bgv, bfv].map(multiplications), [2 * digits * l * l; 2]);
                assert_eq!(bv.rows(context.params(), context.params().q()).len(), digits * l);
            }
        }
    }
}

#[test]
fn key_sizes_are_those_of_the_papers() {
    let context = context(6, 3, "1");
    let params = context.params();
    let mut randomness = Randomness::insecure_from_number(2);
    let secret = SecretKey::generate(&context, &mut randomness).unwrap();
    let mut bytes = |plan: SwitchPlan| {
        let key = SwitchKey::generate(&context, &secret, Source::Square, None, &plan, &mut randomness).unwrap();
        (key.prepared_bytes(&context, &plan) / (8 * params.n()), plan)
    };
    // 2 omega (l + k); 2 omega omega2 aux_primes; 2 l l_w l without P.
    assert_eq!(bytes(SwitchPlan::ghs(params).unwrap()).0, 2 * 9);
    assert_eq!(bytes(SwitchPlan::hybrid(params, 3).unwrap()).0, 2 * 3 * 9);
    assert_eq!(bytes(SwitchPlan::bv(params, 20).unwrap()).0, 2 * 6 * 2 * 6);
    let (limbs, plan) = bytes(SwitchPlan::double(params, 2, 3).unwrap());
    let ProductRing::Extended(ring) = &plan.ring else { panic!("no extended ring") };
    assert_eq!(limbs, 2 * 2 * 3 * ring.aux.len());
}

/// (omega, omega2, aux_primes, special_primes) and transforms.
fn summary(choice: Option<DoubleChoice>) -> ((usize, usize, usize, usize), usize) {
    let c = choice.unwrap();
    ((c.omega, c.omega2, c.aux_primes, c.special_primes), c.transforms)
}

#[test]
fn the_exhaustive_optimum_has_several_primes_in_a_digit() {
    let search =
        |log_n, l, special_primes| DoubleSearch { log_n, l, width: 60, aux_width: 60, special_primes, centred: false };
    let best = |log_n, l, k| summary(search(log_n, l, k).fewest_transforms());
    assert_eq!(best(16, 15, None), ((5, 3, 10, 3), 110));
    assert_eq!(best(16, 28, None), ((7, 4, 13, 4), 195));
    assert_eq!(best(17, 29, None), ((5, 4, 16, 6), 208));
    assert_eq!(best(17, 55, None), ((11, 6, 16, 5), 368));
    assert_eq!(best(16, 28, Some(1)), ((28, 15, 4, 1), 232));
    // The paper's choice, omega = l and omega2 = round(sqrt(l (l + 1) / 2)), needs four primes, not three.
    for (log_n, l, transforms) in [(16, 15, 148), (16, 28, 272), (17, 29, 284), (17, 55, 532)] {
        let omega2 = ((l * (l + 1)) as f64 / 2.0).sqrt().round() as usize;
        let needed = |search: DoubleSearch| {
            let digits = search.width * (1 + 2) + log_n + 1 + (l as f64).log2().ceil() as u32;
            digits.div_ceil(search.aux_width) as usize
        };
        let aux = needed(search(log_n, l, Some(1)));
        assert_eq!((aux, (l + 2 * omega2) * aux), (4, transforms));
    }
}

#[test]
fn the_search_asks_for_as_many_primes_as_a_plan_does() {
    let (l, k) = (6, 6);
    let mut made = literal(10, &vec![50; l], &vec![50; k], "1");
    made.aux = common::chain(10, &vec![50; l + k + 20]).split_off(l + k);
    let context = dry(made);
    let search = DoubleSearch { log_n: 10, l, width: 50, aux_width: 50, special_primes: Some(k), centred: true };
    let mut compared = 0;
    for omega in 1..=l {
        for omega2 in 1..=l + k {
            let Some(choice) = search.choice(omega, omega2) else { continue };
            let plan = SwitchPlan::double(context.params(), omega, omega2).unwrap();
            let ProductRing::Extended(ring) = &plan.ring else { panic!("no extended ring") };
            assert_eq!(ring.aux.len(), choice.aux_primes, "omega {omega}, omega2 {omega2}");
            compared += 1;
        }
    }
    assert!(compared > 15, "{compared}");
}

/// Coefficients to coefficients; what the type of a plain ciphertext goes through.
#[test]
fn plain_polynomials_cost_the_same_as_mixed_ones() {
    let context = context(4, 2, "1");
    let plan = SwitchPlan::double(context.params(), 2, 2).unwrap();
    let mixed = cost(&context, &plan, false, [false, false]);
    let (backend, q) = (context.backend(), context.params().q().clone());
    let mut randomness = Randomness::insecure_from_number(1);
    let secret = SecretKey::generate(&context, &mut randomness).unwrap();
    let key = SwitchKey::generate(&context, &secret, Source::Square, None, &plan, &mut randomness).unwrap();
    let key = key.prepare(&context, &plan).unwrap();
    let [input, addend] = [0, 1].map(|_| Poly::<_, Coeff>::new(backend, &q).unwrap());
    let switcher = context.switcher(&plan, &q, &q).unwrap();
    let plain = backend.measure(|| switcher.switch(&context, &input, &key, [Some(&addend), None], 1).unwrap()).1;
    assert_eq!((plain.ntt, plain.mul, plain.convert_mac), (mixed.ntt, mixed.mul, mixed.convert_mac));
}

/// l primes of 40 bits and k special ones of 55, at degree 2^log_n.
fn plain(log_n: u32, l: usize, k: usize, t: &str) -> Arc<Context<Device>> {
    dry(literal(log_n, &vec![40; l], &vec![55; k], t))
}

fn pairs() -> impl Iterator<Item = [bool; 2]> {
    DOMAINS.into_iter().flat_map(|i| DOMAINS.map(|o| [i, o]))
}

fn words(params: &Params, plan: &SwitchPlan) -> usize {
    plan.prepared_bytes(params) as usize / 8 / params.n()
}

#[test]
fn single_decomposition_costs_what_the_tables_say() {
    let mut cases = 0;
    for l in [1, 2, 4, 6, 9, 12] {
        for omega in (1..=l).filter(|omega| l % omega == 0) {
            let (a, mut ks) = (l / omega, vec![l / omega, 1, 3]);
            ks.dedup();
            for (k, t) in ks.into_iter().flat_map(|k| ["1", "65537"].map(|t| (k, t))) {
                let context = plain(10, l, k, t);
                let plan = SwitchPlan::hybrid(context.params(), omega).unwrap();
                // ePrint 2023/1642, Table 2: 2 omega (l + k) words of key a coefficient.
                assert_eq!(words(context.params(), &plan), 2 * omega * (l + k));
                for (domains, relinearize) in pairs().flat_map(|p| [false, true].map(|r| (p, r))) {
                    let folded = cost(&context, &plan, relinearize, domains);
                    let unfolded = cost(&context, &plan.clone().unfolded(), relinearize, domains);
                    assert_eq!([folded.ntt, unfolded.ntt], [((omega + 2) * (l + k)) as u64; 2], "{l} {k} {omega}");
                    // ePrint 2021/204, appendix B.3, the BFV row with any P; folding saves 2l + 2k.
                    let table = l * l + (3 * k + 2 * omega + 3) * l - a * l + 2 * omega * k + 2 * k;
                    assert_eq!(multiplications(folded), table - 2 * l - 2 * k, "{l} {k} {omega} {t}");
                    assert_eq!(multiplications(unfolded), table - 2 * k + down_prescale(k, t), "{l} {k} {omega} {t}");
                    if k == a {
                        // Table 2, its BFV row. The BGV row has t and 1/t apart: 2l + 2k more.
                        assert_eq!(table, l * (l + 2 * omega + 2 * k + 5) + 2 * k);
                        assert_eq!(table + 2 * l + 2 * k, l * (l + 2 * omega + 2 * k + 7) + 4 * k);
                        // Section 4.1, folded.
                        assert_eq!(multiplications(folded), l * (l + 2 * omega + 2 * l / omega + 3));
                        assert_eq!(folded.ntt as usize, omega * l + 3 * l + 2 * l / omega);
                        assert_eq!(words(context.params(), &plan), 2 * (omega * l + l));
                    }
                    cases += 1;
                }
            }
        }
    }
    println!("{cases} cases");
    assert!(cases > 400, "{cases} cases");
}

/// ePrint 2023/1642, section 4.1: one digit costs as many transforms as two, more digits more; the fewest products are
/// at omega = sqrt(l).
#[test]
fn the_best_number_of_digits_is_that_of_the_paper() {
    let l = 16;
    let costs = [1, 2, 4, 8, 16].map(|omega| {
        let context = plain(10, l, l / omega, "65537");
        cost(&context, &SwitchPlan::hybrid(context.params(), omega).unwrap(), true, [true; 2])
    });
    let ntt = costs.map(|c| c.ntt as usize);
    assert_eq!(ntt[..2], [6 * l, 6 * l]);
    assert!(ntt[1..].windows(2).all(|w| w[0] < w[1]), "{ntt:?}");
    let least = costs.map(multiplications).into_iter().enumerate().min_by_key(|(_, m)| *m).map(|(i, _)| i);
    assert_eq!(least, Some(2));
}

/// ePrint 2023/1642, section 3.5: twice the degree with two digits takes fewer transforms, counted twice each, where
/// omega^2 - 9 omega + 2 > 0, and a smaller key where omega > 5.
#[test]
fn a_larger_degree_pays_from_nine_digits_on() {
    for omega in 1..=12 {
        let l = 2 * omega;
        let of = |log_n, omega: usize| {
            let context = plain(log_n, l, l / omega, "1");
            let plan = SwitchPlan::hybrid(context.params(), omega).unwrap();
            let ntt = cost(&context, &plan, true, [true; 2]).ntt << (log_n - 10);
            (ntt, plan.prepared_bytes(context.params()))
        };
        let (small, large) = (of(10, omega), of(11, 2));
        assert_eq!(large.0 < small.0, omega * omega + 2 > 9 * omega, "{omega} digits: {small:?} {large:?}");
        assert_eq!(large.1 < small.1, omega > 5, "{omega} digits: {small:?} {large:?}");
    }
}

#[test]
fn the_baseline_of_linear_key_switching_costs_what_its_algorithm_does() {
    for l in [2, 4, 8, 16] {
        let context = plain(10, l, 1, "65537");
        let plan = SwitchPlan::hybrid(context.params(), l).unwrap();
        // Its Table II has l^2 + 7l + 2 for slots, but a digit's own limb needs no transform, and only the limbs of P
        // an inverse one; (l + 2)(l + 1) for coefficients is right.
        for domains in pairs() {
            let counts = cost(&context, &plan, true, domains);
            assert_eq!(counts.ntt as usize, (l + 2) * (l + 1), "{domains:?}");
            let conversions = l + l * l + 2 * l;
            assert_eq!(multiplications(counts) - conversions, 2 * l * (l + 1), "products with the key");
        }
        // Linear keys are twice as large: 2 l (l + 1) words for each of the two primes of E.
        let mut made = literal(10, &vec![40; l], &[55], "65537");
        made.aux = common::chain(10, &[vec![40; l], vec![55, 60, 60]].concat()).split_off(l + 1);
        let context = dry(made);
        let linear = SwitchPlan::linear(context.params(), 1).unwrap();
        assert_eq!(words(context.params(), &linear), 2 * l * (l + 1) * 2);
    }
}
