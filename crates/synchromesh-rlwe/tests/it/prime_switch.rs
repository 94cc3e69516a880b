//! Prime switching judged by decryption: every (mu, kappa), pair of domains, folding and error multiple, inside key
//! switches and alone, with counted costs against ePrint 2023/1642, section 3.7; and schedules that break the rules.

use crate::common::{self, Counted, Fixture, centred, error_bits, fixture, literal, message, set, tensor};
use num_bigint::BigInt;
use synchromesh_ring::{Coeff, Counts, IndexSet, Ntt, Poly};
use synchromesh_rlwe::key_switch::Output;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::{
    Ciphertext, DigitSizes, EvaluationKeys, MixedPoly, Noise, Operand, Params, ParamsLiteral, PrimeSwitching, Schedule,
    SecretKey, Source, SwitchDomain, SwitchKey, SwitchPlan, SwitchedChain,
};

const SPLITS: [(usize, usize); 4] = [(1, 2), (2, 3), (1, 3), (3, 5)];

/// Parameters over a chain of `depth` levels by (mu, kappa), at N = 2^10.
fn switched(mu: usize, kappa: usize, bits: u32, depth: usize, p: &[u32], t: &str) -> (ParamsLiteral, SwitchedChain) {
    let chain = PrimeSwitching::new(mu, kappa).unwrap().chain(bits + 20, bits, depth, 61).unwrap();
    let literal = ParamsLiteral { schedule: chain.schedule.clone(), ..literal(10, &chain.q_bits, p, t) };
    (literal, chain)
}

/// log2 |x|.
fn size(x: &BigInt) -> f64 {
    if x == &BigInt::from(0) { f64::NEG_INFINITY } else { common::log2(&(x * x)) / 2.0 }
}

fn bits_for(mu: usize, kappa: usize) -> u32 {
    (60 * mu as u32 / kappa as u32).min(40)
}

#[test]
fn chains_follow_the_counts_and_every_level_is_worth_as_much() {
    for (mu, kappa) in SPLITS.into_iter().chain([(4, 5), (9, 10)]) {
        for depth in 0..=3 * kappa + 1 {
            let bits = (60 * mu as u32 / kappa as u32).min(45);
            let switching = PrimeSwitching::new(mu, kappa).unwrap();
            let chain = switching.chain(bits + 15, bits, depth, 60).unwrap();
            let levels = chain.schedule.positions(&[], chain.q_bits.len()).unwrap();
            assert_eq!(levels.len(), depth + 1);
            let sum = |set: &[usize]| set.iter().map(|&i| chain.q_bits[i]).sum::<u32>();
            assert!(levels.windows(2).all(|w| sum(&w[1]) == sum(&w[0]) + bits), "({mu}, {kappa}), depth {depth}");
            assert!((bits + 15..bits + 45).contains(&sum(&levels[0])), "{} bits at level 0", sum(&levels[0]));
            // The security of a key is that of the top level's modulus: nothing is outside it.
            assert_eq!(levels[depth].len(), chain.q_bits.len());
            assert!(chain.small == kappa - 1 || depth < kappa);
            let returns = levels.windows(2).filter(|w| w[0].iter().any(|i| !w[1].contains(i))).count();
            // Whole rounds, up to the small primes that level 0 has.
            assert!(
                (returns * kappa..(returns + 2) * kappa).contains(&(depth + 1)),
                "{returns} returns in {depth} levels"
            );
            assert!(chain.q_bits.iter().filter(|&&b| b > bits).count() >= mu * returns);
        }
    }
    // The example of section 3.7: B = 60 and scaling primes of 36 bits give b = 54, and pay from log q = 145 on.
    let two_three = PrimeSwitching::new(2, 3).unwrap();
    let counts = two_three.counts(54 * 20, 60).unwrap();
    assert_eq!(
        (counts.large, counts.large_bits, counts.small, counts.small_bits, counts.primes()),
        (16, 60, 3, 40, 19)
    );
    let counts = two_three.counts(54 * 20, 54).unwrap();
    assert_eq!((counts.large, counts.large_bits, counts.small, counts.small_bits), (18, 54, 3, 36));
    for (log_q, pays) in [(54 * 3, false), (54 * 4, true), (54 * 5, true)] {
        let counts = two_three.counts(log_q, 54).unwrap();
        let naive = log_q.div_ceil(36) as usize;
        // The rule leaves the naive chain's ceiling out, so that it may be late by one prime, never early.
        assert!(two_three.pays(&counts) == pays && (!pays || counts.primes() < naive), "{log_q} bits");
    }
    for bad in [(0, 2), (2, 2), (3, 2), (1, 65)] {
        assert_eq!(PrimeSwitching::new(bad.0, bad.1).unwrap_err().kind(), "params");
    }
    assert!(two_three.counts(100, 60).is_err() && two_three.chain(60, 50, 5, 60).is_err());
    assert!(PrimeSwitching { mu: 3, kappa: 2 }.chain(60, 30, 5, 60).is_err());
}

/// One switch from another secret key, c_1 as the input and c_0 as addend, the given primes in slots.
struct Case<'a> {
    plan: &'a SwitchPlan,
    active: &'a IndexSet,
    target: &'a IndexSet,
    input_ntt: &'a IndexSet,
    output_ntt: &'a IndexSet,
    galois: usize,
}

fn mixed(f: &Fixture, poly: &Poly<Counted, Coeff>, ntt: &IndexSet) -> MixedPoly<Counted> {
    let backend = f.context.backend();
    let ntt = poly.primes().intersection(ntt);
    let coeff = poly.restrict(backend, &poly.primes().without(&ntt)).unwrap();
    MixedPoly { coeff, ntt: poly.restrict(backend, &ntt).unwrap().into_ntt(backend).unwrap() }
}

fn unmixed(f: &Fixture, part: MixedPoly<Counted>, primes: &IndexSet) -> Poly<Counted, Coeff> {
    let (backend, n) = (f.context.backend(), f.context.params().n());
    let halves = [part.ntt.into_coeff(backend).unwrap(), part.coeff];
    let words = halves.each_ref().map(|half| half.to_words(backend).unwrap());
    let limb = |i: usize| {
        let at = |h: usize| halves[h].primes().position(i).map(|r| words[h][r * n..(r + 1) * n].to_vec());
        at(0).or_else(|| at(1)).unwrap()
    };
    Poly::from_words(backend, primes, &primes.iter().flat_map(limb).collect::<Vec<_>>()).unwrap()
}

impl Case<'_> {
    fn run(
        &self,
        f: &Fixture,
        key: &synchromesh_rlwe::PreparedKey<Counted>,
        ct: &Ciphertext<Counted, Coeff>,
    ) -> (Counts, [Poly<Counted, Coeff>; 2]) {
        let [addend, input] = [0, 1].map(|i| mixed(f, &ct.parts()[i], self.input_ntt));
        let switcher = f.context.switcher(self.plan, self.active, self.target).unwrap();
        let (parts, counts) = f.context.backend().measure(|| {
            let digits = switcher.decompose(&f.context, Operand::Mixed(&input)).unwrap();
            let accumulator = switcher.gadget_product(&f.context, digits, key, None).unwrap();
            let output = Output { ntt: self.output_ntt.clone(), galois: self.galois };
            switcher.mod_down(&f.context, accumulator, [Some(Operand::Mixed(&addend)), None], &output).unwrap()
        });
        assert!(parts.iter().all(|p| p.ntt.primes() == &self.target.intersection(self.output_ntt)));
        (counts, parts.map(|p| unmixed(f, p, self.target)))
    }
}

/// phase' = (E phase + t D d) / D with |d| as the switch says.
fn judge(f: &Fixture, case: &Case<'_>, before: &[BigInt], parts: [Poly<Counted, Coeff>; 2]) {
    let params = f.context.params();
    let level = (0..=params.top_level()).find(|&l| params.level(l).unwrap() == case.target).unwrap();
    let after = Ciphertext::new(params, Vec::from(parts), level, f.secret.id(), Noise::ZERO).unwrap();
    let after = centred(&f.context, f.secret.phase(&f.context, &after).unwrap().poly());
    let product = |set: &IndexSet| BigInt::from(params.ring().product(set));
    let (leaving, coming) = (product(&case.active.without(case.target)), product(&case.target.without(case.active)));
    let t = BigInt::from(params.error_multiple().clone());
    let before = common::automorphism(before, case.galois);
    let noise = f.context.switcher(case.plan, case.active, case.target).unwrap().noise().bound(10, 128);
    for (x, y) in after.iter().zip(&before) {
        let off = x * &leaving - y * &coming;
        assert!((&off % &t) == BigInt::from(0), "not a multiple of t = {t}");
        let bits = size(&(off / &t)) - size(&leaving);
        assert!(bits <= noise + 0.01, "off by 2^{bits:.1}, certified 2^{noise:.1}");
    }
}

#[test]
fn primes_come_and_go_in_every_pair_of_domains_at_the_counts_of_the_paper() {
    for ((mu, kappa), t) in [(1, 2), (2, 3)].into_iter().flat_map(|s| ["1", "2", "65537"].map(|t| (s, t))) {
        // Six large primes, none of the small ones active; the target has mu large ones fewer and all kappa small ones.
        let large = 6usize;
        let small_bits = 54 * mu as u32 / kappa as u32;
        let q: Vec<u32> = [vec![small_bits; kappa], vec![54; large]].concat();
        let stays: Vec<usize> = (0..kappa).chain(kappa..kappa + large - mu).collect();
        let levels = vec![stays[..stays.len() - 1].to_vec(), (kappa..kappa + large).collect(), (0..q.len()).collect()];
        let mut schedule = Schedule::of(levels);
        // Equal products are only approximately equal: the level below drops one more small prime.
        schedule.levels[0] = (1..kappa).chain(kappa..kappa + large - mu).collect();
        let active: IndexSet = (kappa..kappa + large).collect();
        let omega = 2u64;
        let sizes = DigitSizes(vec![kappa + 3, 3]);
        let mut f = fixture(ParamsLiteral { schedule, ..literal(10, &q, &[61, 61, 61], t) }, 21);
        let other = SecretKey::generate(&f.context, &mut f.randomness).unwrap();
        let target = f.context.params().level(0).unwrap().clone();
        let coming = kappa as u64 - 1;
        let (_, poly) = message(&f.context, 1, 3);
        let (ct, _) = other.encrypt::<Coeff>(&f.context, &poly, 1, &mut f.randomness).unwrap();
        let before = centred(&f.context, other.phase(&f.context, &ct).unwrap().poly());
        let plan = SwitchPlan::with_digits(f.context.params(), &sizes).unwrap();
        let source = Source::Key(other.id());
        let key = SwitchKey::generate(&f.context, &f.secret, source, Some(&other), &plan, &mut f.randomness).unwrap();
        let (l, k, mu, omega_l) = (large as u64, 3u64, mu as u64, omega * (large as u64 + 3));
        let (own, _) = f.secret.encrypt::<Coeff>(&f.context, &poly, 1, &mut f.randomness).unwrap();
        let own_phase = centred(&f.context, f.secret.phase(&f.context, &own).unwrap().poly());
        let source = Source::Galois(5);
        let galois = SwitchKey::generate(&f.context, &f.secret, source, None, &plan, &mut f.randomness).unwrap();
        let plans = [plan.clone(), plan.clone().unfolded(), plan.folded_to(&active, &target)];
        for (which, plan) in plans.iter().enumerate() {
            let prepared = key.prepare(&f.context, plan).unwrap();
            let mut all_bits = Vec::new();
            let odd = set((0..q.len()).filter(|i| i % 2 == 1));
            let domains = [set([]), set(0..q.len()), odd];
            for (input_ntt, output_ntt) in domains.iter().flat_map(|i| domains.iter().map(move |o| (i, o))) {
                let case = Case { plan, active: &active, target: &target, input_ntt, output_ntt, galois: 1 };
                let (counts, parts) = case.run(&f, &prepared, &ct);
                let come_in_slots = target.without(&active).intersection(output_ntt).len() as u64;
                assert_eq!(counts.ntt, omega_l + 2 * (l + k) + 2 * come_in_slots, "{mu} {kappa} {t} {which}");
                // Own primes of both digits are extended to the six other limbs; mu + k limbs leave.
                let target_len = l - mu + coming;
                let digits = l + 2 * 3 * (l + k - 3) + 2 * omega_l;
                let down = 2 * (mu + k) * target_len + l;
                let runtime = if which == 2 { 0 } else { 2 * (mu + k) + 2 * (l - mu) };
                assert_eq!(counts.mul + counts.convert_mac, digits + down + runtime, "{mu} {kappa} {t} {which}");
                all_bits.push(parts.each_ref().map(|p| p.to_words(f.context.backend()).unwrap()));
                judge(&f, &case, &before, parts);
            }
            assert!(all_bits.windows(2).all(|w| w[0] == w[1]), "the domains changed the result");
            let prepared = galois.prepare(&f.context, plan).unwrap();
            for output_ntt in &domains {
                let case =
                    Case { plan, active: &active, target: &target, input_ntt: &domains[1], output_ntt, galois: 5 };
                let (_, parts) = case.run(&f, &prepared, &own);
                judge(&f, &case, &own_phase, parts);
            }
        }
    }
}

#[test]
fn relinearisation_merged_with_a_prime_switch_equals_both_in_turn() {
    for (mu, kappa) in SPLITS {
        for (t, folding) in [("1", 0), ("65537", 1), ("65537", 2), ("2", 0)] {
            let (literal, chain) = switched(mu, kappa, bits_for(mu, kappa), 2 * kappa + 2, &[61; 6], t);
            let mut f = fixture(literal, 22);
            let sizes = DigitSizes::balanced(&chain.q_bits, 3).unwrap();
            let plan = SwitchPlan::with_digits(f.context.params(), &sizes).unwrap();
            let keys =
                EvaluationKeys::generate(&f.context, &f.secret, [Source::Square], &plan, &mut f.randomness).unwrap();
            let keys = std::sync::Arc::new(keys);
            let top = f.context.params().top_level();
            // Every level has at most as many products as it has room for.
            for from in (kappa + 1..=top).rev().step_by(if t == "65537" { 1 } else { 2 }) {
                let (_, a) = message(&f.context, from, 1);
                let (_, b) = message(&f.context, from, 2);
                let (ca, _) = f.secret.encrypt::<Ntt>(&f.context, &a, from, &mut f.randomness).unwrap();
                let (cb, _) = f.secret.encrypt::<Ntt>(&f.context, &b, from, &mut f.randomness).unwrap();
                let three = tensor(&f, &ca, &cb);
                let exact = centred(&f.context, f.secret.phase(&f.context, &three).unwrap().poly());
                for to in [from, from - 1, from - kappa] {
                    let params = f.context.params();
                    let (active, target) = (params.level(from).unwrap(), params.level(to).unwrap());
                    let plan = match folding {
                        0 => plan.clone(),
                        1 => plan.clone().unfolded(),
                        _ => plan.clone().folded_to(active, target),
                    };
                    let switching = KeySwitching::new(std::sync::Arc::clone(&keys), plan.clone());
                    let two = switching.relinearize_to(&f.context, &three, to).unwrap();
                    let domains = [active.clone(), target.clone()];
                    let [input_ntt, output_ntt] = &domains;
                    let case = Case { plan: &plan, active, target, input_ntt, output_ntt, galois: 1 };
                    let parts = two.into_parts();
                    let [p0, p1] = [0, 1].map(|i| Ntt::to_coeff(f.context.backend(), &parts[i]).unwrap());
                    judge(&f, &case, &exact, [p0, p1]);
                    if to < from {
                        let alone = three.mod_switch_to(&f.context, to).unwrap();
                        let phase = centred(&f.context, f.secret.phase(&f.context, &alone).unwrap().poly());
                        let bound = alone.noise().bound(10, 128);
                        let t = BigInt::from(params.error_multiple().clone());
                        let product = |set: &IndexSet| BigInt::from(params.ring().product(set));
                        let (d, e) = (product(&active.without(target)), product(&target.without(active)));
                        for (x, y) in phase.iter().zip(&exact) {
                            let off = x * &d - y * &e;
                            assert!(&off % &t == BigInt::from(0));
                            assert!(size(&(off / &t)) - size(&d) <= bound);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_ciphertext_walks_the_whole_chain_in_both_domains_and_keys_work_at_every_level() {
    fn walk<D: SwitchDomain>(f: &mut Fixture, plan: &SwitchPlan) {
        let g = 3;
        let keys =
            EvaluationKeys::generate(&f.context, &f.secret, [Source::Galois(g)], plan, &mut f.randomness).unwrap();
        let switching = KeySwitching::new(keys.into(), plan.clone());
        let top = f.context.params().top_level();
        for level in 0..=top {
            let (m, poly) = message(&f.context, level, 3);
            let (ct, _) = f.secret.encrypt::<D>(&f.context, &poly, level, &mut f.randomness).unwrap();
            let rotated = switching.automorphism(&f.context, &ct, g).unwrap();
            let bound = rotated.noise().bound(10, 128);
            assert!(error_bits(&f.context, &f.secret, &rotated, &common::automorphism(&m, g)) <= bound + 0.01);
            let hoisted = switching.automorphisms_hoisted(&f.context, &ct, &[g]).unwrap();
            for (x, y) in rotated.parts().iter().zip(hoisted[0].parts()) {
                let words = |p: &Poly<Counted, D>| p.to_words(f.context.backend()).unwrap();
                assert_eq!(words(x), words(y));
            }
        }
        let (_, poly) = message(&f.context, top, 4);
        let (ct, _) = f.secret.encrypt::<D>(&f.context, &poly, top, &mut f.randomness).unwrap();
        assert!(ct.mod_switch_to(&f.context, top).is_err());
        let (mut ct, mut level) = (ct, top);
        while level > 0 {
            level -= 1;
            ct = ct.mod_switch_to(&f.context, level).unwrap();
            assert_eq!(ct.parts()[0].primes(), f.context.params().level(level).unwrap());
        }
        assert!(ct.noise().bound(10, 128) < 20.0);
    }
    for (mu, kappa) in SPLITS {
        for t in ["1", "65537"] {
            let (literal, chain) = switched(mu, kappa, bits_for(mu, kappa), kappa + 2, &[61; 4], t);
            let mut f = fixture(literal, 23);
            let l = chain.q_bits.len();
            // One prime a digit leaves holes between the active digits.
            for omega in [2, l] {
                let sizes = DigitSizes::balanced(&chain.q_bits, omega).unwrap();
                let plan = SwitchPlan::with_digits(f.context.params(), &sizes).unwrap();
                walk::<Ntt>(&mut f, &plan);
                walk::<Coeff>(&mut f, &plan.unfolded());
            }
        }
    }
}

#[test]
fn schedules_are_checked_and_the_simple_form_keeps_its_digest() {
    let simple = literal(10, &[50, 40, 40], &[50], "1");
    let text = serde_json::to_string(&simple).unwrap();
    assert!(!text.contains("schedule"), "{text}");
    let listed = ParamsLiteral { schedule: Schedule::of(vec![vec![0], vec![0, 1], vec![0, 1, 2]]), ..simple.clone() };
    let (a, b) = (Params::new(simple.clone()).unwrap(), Params::new(listed.clone()).unwrap());
    assert_ne!(a.digest(), b.digest());
    assert_eq!((a.level(1).unwrap(), a.top_level()), (b.level(1).unwrap(), b.top_level()));
    let back: ParamsLiteral = serde_json::from_str(&serde_json::to_string(&listed).unwrap()).unwrap();
    assert_eq!(back, listed);
    assert_eq!(Params::from_bytes(&b.to_bytes(None).unwrap(), None).unwrap(), b);
    let bad: [(&str, Vec<Vec<usize>>); 6] = [
        ("unused", vec![vec![0], vec![0, 1]]),
        ("empty", vec![vec![], vec![0, 1, 2]]),
        ("order", vec![vec![1, 0], vec![0, 1, 2]]),
        ("outside", vec![vec![0], vec![0, 1, 2, 3]]),
        ("repeated", vec![vec![0], vec![0, 0, 1, 2]]),
        ("no step", vec![vec![1], vec![2], vec![0, 1, 2]]),
    ];
    for (name, levels) in bad {
        let literal = ParamsLiteral { schedule: Schedule::of(levels), ..simple.clone() };
        let error = Params::new(literal).unwrap_err();
        assert_eq!(error.kind(), "params", "{name}");
    }
    let both = ParamsLiteral { level_limbs: vec![1, 2, 3], ..listed };
    assert_eq!(Params::new(both).unwrap_err().kind(), "params");
}

/// Plans on every axis for a key switch from `active` to `target`.
fn plans(params: &Params, active: &IndexSet, target: &IndexSet) -> Vec<SwitchPlan> {
    let pairs = SwitchPlan::hybrid(params, 4).unwrap();
    let single = SwitchPlan::hybrid(params, 8).unwrap();
    let mut plans = vec![
        pairs.clone(),
        single.clone(),
        single.clone().with_radix(17),
        pairs.in_extended_ring(params, 3).unwrap(),
        SwitchPlan::linear(params, 2).unwrap(),
    ];
    if active.len() == 3 {
        let digits = vec![set([0, 1]), set([3, 4]), set([5])];
        let coalesced = SwitchPlan::coalesced(params, &DigitSizes::single(8), digits, &set([2, 6, 7])).unwrap();
        plans.push(coalesced.clone());
        plans.push(coalesced.in_extended_ring(params, 2).unwrap());
        plans.push(single.up_to(active));
    }
    plans.into_iter().flat_map(|p| [p.clone(), p.clone().unfolded(), p.folded_to(active, target)]).collect()
}

#[test]
fn every_axis_takes_levels_with_gaps_and_primes_that_come_in() {
    let levels = [vec![1, 4], vec![0, 3, 5], (0..8).collect::<Vec<usize>>()];
    for t in ["2", "65537"] {
        let schedule = Schedule::of(levels.to_vec());
        let mut f = fixture(ParamsLiteral { schedule, ..literal(10, &[40; 8], &[44, 50], t) }, 23);
        let params = f.context.params().clone();
        let other = SecretKey::generate(&f.context, &mut f.randomness).unwrap();
        // Nothing stays; some stays and some comes in, none does; nothing changes.
        for (from, to) in [(1, 0), (2, 1), (1, 1), (2, 0)] {
            let (active, target) = (params.level(from).unwrap(), params.level(to).unwrap());
            let (_, poly) = message(&f.context, from, 3);
            let (ct, _) = other.encrypt::<Coeff>(&f.context, &poly, from, &mut f.randomness).unwrap();
            let before = centred(&f.context, other.phase(&f.context, &ct).unwrap().poly());
            let source = Source::Key(other.id());
            for plan in &plans(&params, active, target) {
                let key = SwitchKey::generate(&f.context, &f.secret, source, Some(&other), plan, &mut f.randomness);
                let prepared = key.unwrap().prepare(&f.context, plan).unwrap();
                let domains = [set([]), set(0..8), set([0, 1, 6])];
                for (input_ntt, output_ntt) in [(0, 1), (1, 0), (1, 1), (2, 2)] {
                    let (input_ntt, output_ntt) = (&domains[input_ntt], &domains[output_ntt]);
                    let case = Case { plan, active, target, input_ntt, output_ntt, galois: 1 };
                    judge(&f, &case, &before, case.run(&f, &prepared, &ct).1);
                }
                // The whole switch in one call, with an automorphism after it.
                let source = Source::Galois(5);
                let key = SwitchKey::generate(&f.context, &f.secret, source, None, plan, &mut f.randomness).unwrap();
                let prepared = key.prepare(&f.context, plan).unwrap();
                let (own, _) = f.secret.encrypt::<Ntt>(&f.context, &poly, from, &mut f.randomness).unwrap();
                let before = centred(&f.context, f.secret.phase(&f.context, &own).unwrap().poly());
                let switcher = f.context.switcher(plan, active, target).unwrap();
                let [c0, c1] = [&own.parts()[0], &own.parts()[1]];
                let parts = switcher.switch(&f.context, c1, &prepared, [Some(c0), None], 5).unwrap();
                let parts = parts.map(|p| Ntt::to_coeff(f.context.backend(), &p).unwrap());
                let domains = [active.clone(), target.clone()];
                let case = Case { plan, active, target, input_ntt: &domains[0], output_ntt: &domains[1], galois: 5 };
                judge(&f, &case, &before, parts);
            }
        }
    }
}
