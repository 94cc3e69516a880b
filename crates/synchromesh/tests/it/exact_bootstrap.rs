//! Bootstrapping of BFV and BGV judged by decryption, at small degrees that are marked insecure: messages come back, with
//! errors within their certificates and noise budgets as planned.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::{One, Zero};

use crate::oracle::{self, Ct, Device, Fixture, Judged, Model, fixture_in};
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::ckks;
use synchromesh::ckks::bootstrap::Chain;
use synchromesh::exact::bootstrap::{Bootstrap, BootstrapLiteral, Bootstrapper};
use synchromesh::exact::{Context, Params, ParamsLiteral, Rotations, Scheme};
use synchromesh::plain_modulus::PlainModulus;
use synchromesh::plan::bootstrap::ExactBootstrapRequest;
use synchromesh::rlwe::ring::{Counting, Cpu, Threads};
use synchromesh::rlwe::{EvaluationKeys, Noise, Security};

/// What a pass gains at the parameters here, at the least.
const GAIN: f64 = 18.0;

fn literal(budget_bits: u32) -> BootstrapLiteral {
    BootstrapLiteral {
        slots_to_coeffs: 2,
        coeffs_to_slots: 2,
        baby_steps: None,
        degree: 30,
        doublings: 4,
        arcsine: false,
        ratio_bits: 12,
        budget_bits,
    }
}

fn chain(usable: usize) -> Chain {
    Chain {
        log_n: 10,
        log_scale: 58,
        usable,
        base_bits: 60,
        log_scale_down: 58,
        log_scale_up: 58,
        widest: 49,
        omega: 4,
        weight: 32,
        security: Security::Insecure,
    }
}

/// The plaintext moduli of the suite, with levels and the budget of a product after a refresh.
fn cases() -> Vec<(String, usize, u32)> {
    let slots = PlainModulus::next_slot_prime(51, 11).unwrap().to_string();
    let composite = "1000000".to_owned();
    let case = |t: &str, usable, budget| (t.to_owned(), usable, budget);
    vec![
        case("2", 2, 45),
        case("65537", 3, 60),
        (composite, 3, 65),
        (slots, 4, 90),
        case(oracle::T128, 6, 170),
        (PlainModulus::next_slot_prime(255, 11).unwrap().to_string(), 11, 300),
    ]
}

struct Refreshing<S: Scheme> {
    f: Fixture<S>,
    inside: Arc<ckks::Context<Device>>,
    keys: Arc<EvaluationKeys<Device>>,
    bootstrapper: Bootstrapper<S, Device>,
}

fn on(params: &synchromesh::rlwe::Params, threads: usize) -> Device {
    let threads = Threads::new(threads).unwrap().with_grain(0);
    Counting::new(Cpu::open(Arc::clone(params.ring())).unwrap().with_threads(threads))
}

/// The parameters of the ring and of S.
fn parameters<S: Scheme>(t: &str, chain: Chain, literal: &BootstrapLiteral) -> (ckks::Params, Params<S>) {
    let ring = ckks::Params::new(literal.ring(&chain).unwrap()).unwrap();
    let params = Params::<S>::new(literal.literal::<S>(&ring, t).unwrap()).unwrap();
    (ring, params)
}

fn refreshing<S: Judged>(t: &str, usable: usize, budget: u32, seed: u64) -> Refreshing<S> {
    on_threads(t, usable, budget, seed, 1)
}

fn on_threads<S: Judged>(t: &str, usable: usize, budget: u32, seed: u64, threads: usize) -> Refreshing<S> {
    let literal = literal(budget);
    let (ring, params) = parameters::<S>(t, chain(usable), &literal);
    made(params, ring, literal, seed, threads)
}

fn made<S: Judged>(
    params: Params<S>,
    ring: ckks::Params,
    literal: BootstrapLiteral,
    seed: u64,
    threads: usize,
) -> Refreshing<S> {
    let context = Context::with_backend(params.clone(), on(params.rlwe(), threads)).unwrap();
    let mut f = fixture_in(context, &Rotations::none(), seed);
    let inside = ckks::Context::with_backend(ring.clone(), on(ring.rlwe(), threads)).unwrap();
    let bootstrap = Bootstrap::new(&params, &ring, literal).unwrap();
    let keys = Arc::new(bootstrap.generate_keys(&inside, &f.secret, &mut f.randomness).unwrap());
    let bootstrapper = Bootstrapper::new(&f.context, &inside, bootstrap, Arc::clone(&keys)).unwrap();
    Refreshing { f, inside, keys, bootstrapper }
}

impl<S: Judged> Refreshing<S> {
    fn budget(&self, x: &Ct<S>) -> f64 {
        self.f.context.noise_budget(x).unwrap()
    }

    fn wanted(&self) -> f64 {
        f64::from(self.bootstrapper.bootstrap().literal().budget_bits)
    }

    /// The largest error that is refreshed, about.
    fn largest_error(&self) -> BigInt {
        let (params, least) = (self.f.context.params(), self.bootstrapper.bootstrap().least_budget().unwrap());
        BigInt::one() << (S::room(params, params.top_level()).unwrap() - least).floor() as u64
    }

    /// Refreshed and judged, after each pass as well, all of which gain what they should.
    fn refresh(&self, x: &Ct<S>, m: &Model) -> Ct<S> {
        let mut budgets = vec![self.budget(x)];
        let watched = self.bootstrapper.refresh_watched(x, |pass| {
            self.f.judge(pass, m);
            budgets.push(self.budget(pass));
        });
        let refreshed = watched.unwrap();
        self.f.judge(&refreshed, m);
        assert_eq!(refreshed.level(), self.f.context.params().top_level());
        assert!(self.budget(&refreshed) >= self.wanted(), "{budgets:?} of {}", self.wanted());
        // The last one ends where its own errors are.
        assert!(budgets[..budgets.len() - 1].windows(2).all(|pair| pair[1] - pair[0] > GAIN), "{budgets:?}");
        refreshed
    }

    /// So many products in a row, refreshed where the next one would leave too little; how many refreshes there were.
    fn products(&mut self, count: usize, level: usize) -> usize {
        let (mut m, factor) = (self.f.random(), self.f.random());
        let (mut x, y) = (self.f.encrypt_at(&m, level), self.f.encrypt(&factor));
        let least = self.bootstrapper.bootstrap().least_budget().unwrap();
        let mut refreshes = 0;
        for _ in 0..count {
            let product = self.f.evaluator.mul(&x, &y).ok().filter(|product| self.budget(product) > least);
            x = match product {
                Some(product) => product,
                None => {
                    refreshes += 1;
                    self.f.evaluator.mul(&self.refresh(&x, &m), &y).unwrap()
                }
            };
            m = self.f.mul(&m, &factor);
            self.f.judge(&x, &m);
        }
        self.refresh(&x, &m);
        refreshes
    }
}

/// Products of a ciphertext that has so few levels at the beginning that it has to be refreshed at once.
fn products_of<S: Judged>(count: usize, seed: u64) {
    for (i, (t, usable, budget)) in cases().into_iter().enumerate() {
        let mut r: Refreshing<S> = refreshing(&t, usable, budget, seed + i as u64);
        let lowest = (0..usable).find(|&level| {
            let m = vec![BigInt::one(); r.f.context.params().n()];
            let plaintext = r.f.encode(&m);
            let fresh = r.f.context.encrypt_at(&r.f.public, &plaintext, level, &mut r.f.randomness);
            fresh.is_ok_and(|fresh| r.budget(&fresh) > r.bootstrapper.bootstrap().least_budget().unwrap() + 1.0)
        });
        // Wide moduli take many passes.
        let refreshes = r.products(if count < 10 && budget > 100 { 1 } else { count }, lowest.unwrap());
        assert!(refreshes > 0, "{t}");
    }
}

#[test]
fn bfv_products_go_on_without_end_for_any_modulus() {
    products_of::<Bfv>(3, 600);
}

#[test]
fn bgv_products_go_on_without_end_for_any_modulus() {
    products_of::<Bgv>(3, 610);
}

#[test]
#[ignore = "a hundred products with their refreshes at each modulus take minutes; cargo xtask verify runs them"]
fn a_hundred_products_in_a_row_are_exact() {
    products_of::<Bfv>(100, 620);
    products_of::<Bgv>(100, 630);
}

#[test]
fn certificates_hold_for_errors_at_their_bound() {
    fn judged<S: Judged>(seed: u64) {
        let mut r: Refreshing<S> = refreshing("65537", 3, 40, seed);
        let n = r.f.context.params().n();
        let m = r.f.random();
        let plaintext = r.f.encode(&m);
        let coefficients = r.f.coefficients(&plaintext);
        // The largest error that is refreshed, all of it in one direction at a root, or in one coefficient.
        let e = r.largest_error();
        let sign = |k: usize, j: usize| (std::f64::consts::PI * ((2 * k + 1) * j) as f64 / n as f64).cos() >= 0.0;
        let signed = |plus: bool| if plus { e.clone() } else { -&e };
        let errors: Vec<Vec<BigInt>> = vec![
            (0..n).map(|_| e.clone()).collect(),
            (0..n).map(|j| signed(sign(0, j))).collect(),
            (0..n).map(|j| signed(sign(77, j))).collect(),
            (0..n).map(|j| if j == 5 { e.clone() } else { BigInt::zero() }).collect(),
            (0..n).map(|_| BigInt::zero()).collect(),
        ];
        for error in errors {
            let phase: Vec<BigInt> = coefficients.iter().zip(&error).map(|(m, e)| S::phase_of(&r.f, m, e)).collect();
            let x = r.f.trivial(&phase, &(&e + 1));
            r.refresh(&x, &m);
        }
    }
    judged::<Bfv>(640);
    judged::<Bgv>(641);
}

#[test]
fn a_straightened_sine_gains_more_from_less() {
    fn gain<S: Judged>(arcsine: bool, ratio_bits: u32, seed: u64) -> f64 {
        let literal = BootstrapLiteral { arcsine, ratio_bits, degree: 62, doublings: 3, ..literal(25) };
        let (ring, params) = parameters::<S>("65537", chain(2), &literal);
        let mut r = made::<S>(params, ring, literal, seed, 1);
        let (n, e) = (r.f.context.params().n(), r.largest_error());
        let m = r.f.random();
        let coefficients = r.f.coefficients(&r.f.encode(&m));
        let phase: Vec<BigInt> =
            (0..n).map(|j| S::phase_of(&r.f, &coefficients[j], &if j % 3 == 0 { -&e } else { e.clone() })).collect();
        let x = r.f.trivial(&phase, &(&e + 1));
        let mut budgets = vec![r.budget(&x)];
        let watched = r.bootstrapper.refresh_watched(&x, |pass| {
            let spare = r.f.judge(pass, &m);
            assert!(spare < 14.0, "the certificate is {spare} bits above what is measured");
            budgets.push(r.budget(pass));
        });
        watched.unwrap();
        budgets[1] - budgets[0]
    }
    let bent = gain::<Bfv>(false, 8, 642).max(gain::<Bgv>(false, 8, 643));
    for ratio_bits in [8, 7] {
        let straight = gain::<Bfv>(true, ratio_bits, 642).min(gain::<Bgv>(true, ratio_bits, 643));
        assert!(bent > 12.0 && straight > bent + 4.0, "{ratio_bits}: {straight} after {bent}");
    }
}

#[test]
fn ciphertexts_of_any_level_are_refreshed_and_passes_go_on_to_the_budget() {
    fn judged<S: Judged>(t: &str, seed: u64) {
        let mut r: Refreshing<S> = refreshing(t, 3, 100, seed);
        for level in 0..=3 {
            let m = r.f.random();
            let x = r.f.encrypt_at(&m, level);
            if r.budget(&x) < 13.0 {
                continue;
            }
            let low = r.budget(&x);
            let refreshed = r.refresh(&x, &m);
            assert!(level == 3 || low < 100.0 || r.budget(&refreshed) >= 100.0);
        }
        // One that has what is planned for is not touched.
        let m = r.f.random();
        let x = r.f.encrypt(&m);
        let mut passes = 0;
        r.bootstrapper.refresh_watched(&x, |_| passes += 1).unwrap();
        assert_eq!(passes, 0);
    }
    judged::<Bfv>("2", 650);
    judged::<Bgv>("3", 651);
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let mut results = Vec::new();
    for threads in [1, 2, 7] {
        let mut r: Refreshing<Bgv> = on_threads("65537", 2, 40, 660, threads);
        let m = r.f.random();
        let x = r.f.encrypt_at(&m, 1);
        let refreshed = r.bootstrapper.refresh(&x).unwrap();
        let words = |i: usize| refreshed.inner().parts()[i].to_words(r.f.context.backend()).unwrap();
        results.push((words(0), words(1)));
    }
    assert!(results[0] == results[1] && results[0] == results[2]);
}

#[test]
fn what_cannot_be_refreshed_is_refused() {
    let mut r: Refreshing<Bfv> = refreshing("65537", 2, 40, 670);
    let m = r.f.random();
    let x = r.f.encrypt(&m);
    let kind = |x: &Ct<Bfv>| r.bootstrapper.refresh(x).err().map(|error| error.kind());
    // Too much noise, at the top and at a level that never had room.
    let room = Bfv::room(r.f.context.params(), 2).unwrap();
    let worn = r.f.trivial(&r.f.phase(&x), &(BigInt::one() << (room - 10.0) as u64));
    let error = r.bootstrapper.refresh(&worn).err().unwrap();
    assert!(error.kind() == "refresh_budget" && error.to_string().contains("one of 11."), "{error}");
    assert!(error.remedy().contains("11."), "{}", error.remedy());
    // Without a certificate, in three components, of another key, of other parameters.
    let none = synchromesh::rlwe::Ciphertext::new(
        r.f.context.params().rlwe(),
        x.inner().parts().iter().map(|part| part.duplicate(r.f.context.backend()).unwrap()).collect(),
        2,
        r.f.secret.id(),
        Noise::UNKNOWN,
    );
    let none = Ct::<Bfv>::from_parts(r.f.context.params(), none.unwrap(), ()).unwrap();
    assert_eq!(kind(&none), Some("unknown_noise"));
    let three = r.f.evaluator.mul_no_relin(&x, &x).unwrap();
    assert_eq!(kind(&three), Some("components"));
    let mut other = fixture_in::<Bfv>(Arc::clone(&r.f.context), &Rotations::none(), 671);
    let foreign = other.encrypt(&m);
    assert_eq!(kind(&foreign), Some("keys_differ"));
    let mut other: Fixture<Bfv> = oracle::fixture(oracle::deep(10, "65537", 60, 50, 2), &Rotations::none(), 672);
    let foreign = other.encrypt(&m);
    assert_eq!(kind(&foreign), Some("params_differ"));
    // Keys that lack some: for products alone, and those of the scheme itself.
    let secret = synchromesh::rlwe::SecretKey::from_small(r.inside.rlwe(), r.f.secret.id(), r.f.secret.small().clone());
    let made = |keys: EvaluationKeys<Device>| {
        let bootstrap = r.bootstrapper.bootstrap().clone();
        Bootstrapper::new(&r.f.context, &r.inside, bootstrap, Arc::new(keys)).err().map(|error| error.kind())
    };
    let few = r.inside.generate_evaluation_keys(&secret.unwrap(), &Rotations::none(), &mut r.f.randomness).unwrap();
    assert_eq!(made(few), Some("missing_key"));
    let own = r.f.context.generate_evaluation_keys(&r.f.secret, &Rotations::none(), &mut r.f.randomness).unwrap();
    assert!(made(own).is_some());
    // A secret key of other parameters.
    let refused = r.bootstrapper.bootstrap().generate_keys(&r.inside, &other.secret, &mut r.f.randomness);
    assert_eq!(refused.err().map(|error| error.kind()), Some("params_differ"));
}

#[test]
fn a_budget_out_of_reach_ends_with_what_is_reached() {
    let mut r: Refreshing<Bfv> = refreshing("65537", 1, 500, 680);
    let m = r.f.random();
    let x = r.f.encrypt_at(&m, 1);
    let error = r.bootstrapper.refresh(&x).err().unwrap();
    assert!(error.kind() == "refresh_stalls" && error.to_string().contains("500 are planned for"), "{error}");
    assert!(error.remedy().contains("at most"), "{}", error.remedy());
}

#[test]
fn parameters_that_do_not_go_together_are_refused() {
    let literal = literal(40);
    let (ring, params) = parameters::<Bfv>("65537", chain(2), &literal);
    let refused = |params: &Params<Bfv>, ring: &ckks::Params, literal: BootstrapLiteral| {
        let error = Bootstrap::new(params, ring, literal).err().unwrap();
        assert!(error.kind() == "params" && !error.remedy().is_empty(), "{error}");
        error.to_string()
    };
    let (longer, _) = parameters::<Bfv>("65537", chain(3), &literal);
    assert!(refused(&params, &longer, literal.clone()).contains("levels"));
    let (larger, _) = parameters::<Bfv>("65537", Chain { log_n: 11, ..chain(2) }, &literal);
    assert!(refused(&params, &larger, literal.clone()).contains("degree"));
    let (wider, _) = parameters::<Bfv>("65537", Chain { log_scale: 55, ..chain(2) }, &literal);
    assert!(refused(&params, &wider, literal.clone()).contains("the primes of level 1"));
    assert!(refused(&params.with_parties(2), &ring, literal.clone()).contains("keys"));
    let simple = Chain { widest: 60, ..chain(2) };
    let none = ckks::ParamsLiteral { schedule: Default::default(), ..literal.ring(&simple).unwrap() };
    assert!(refused(&params, &ckks::Params::new(none).unwrap(), literal.clone()).contains("sparse"));
    for (ratio_bits, degree) in [(1, 30), (31, 30), (12, 31)] {
        refused(&params, &ring, BootstrapLiteral { ratio_bits, degree, ..literal.clone() });
    }
    // A plaintext modulus that one of the primes divides, and none at all.
    let shared = literal.literal::<Bfv>(&ring, &ring.rlwe().literal().q[1].to_string()).unwrap();
    assert_eq!(Params::<Bfv>::new(shared).err().map(|error| error.kind()), Some("shared_factor"));
    assert!(literal.literal::<Bfv>(&ring, "1").is_err());
    // What was made for the one ring is not for another.
    let context = Context::with_backend(params.clone(), on(params.rlwe(), 1)).unwrap();
    let f = fixture_in::<Bfv>(context, &Rotations::none(), 690);
    let bootstrap = Bootstrap::new(&params, &ring, literal).unwrap();
    let inside = ckks::Context::with_backend(longer.clone(), on(longer.rlwe(), 1)).unwrap();
    let mut randomness = synchromesh::rlwe::Randomness::insecure_from_number(1);
    let refused = bootstrap.generate_keys(&inside, &f.secret, &mut randomness);
    assert_eq!(refused.err().map(|error| error.kind()), Some("params_differ"));
}

/// A ring of real parameters is as secure as it says, and the parameters of the scheme no less.
#[test]
fn parameters_at_a_real_degree_are_secure() {
    let literal = BootstrapLiteral { slots_to_coeffs: 3, coeffs_to_slots: 3, ..literal(60) };
    let chain = Chain { log_n: 16, omega: 3, security: Security::Bits128, ..chain(2) };
    let (ring, params) = parameters::<Bfv>("65537", chain, &literal);
    assert!(ring.rlwe().security_bits() >= 128.0 && params.rlwe().security_bits() >= 128.0);
    let same = ParamsLiteral { security: Security::Insecure, ..params.literal().clone() };
    let lax = Params::<Bfv>::new(same).unwrap();
    assert!(Bootstrap::new(&lax, &ring, literal).err().unwrap().to_string().contains("security"));
}

#[test]
fn parameters_are_found_for_products_in_a_row_and_refreshes_are_as_forecast() {
    fn judged<S: Judged>(request: &ExactBootstrapRequest, seed: u64) {
        let found = request.find::<S>(None).unwrap();
        let forecast = &found.forecast;
        assert!(forecast.left_bits >= forecast.least_bits && forecast.passes >= 2, "{forecast:?}");
        assert!(forecast.bits_per_pass > GAIN && forecast.seconds.is_none(), "{forecast:?}");
        let ring = ckks::Params::new(found.ring.clone()).unwrap();
        let params = Params::<S>::new(found.params.clone()).unwrap();
        let r = made::<S>(params, ring, found.bootstrap.clone(), seed, 1);
        assert_eq!(forecast.key_bytes, r.keys.wire_bytes(r.inside.params().rlwe()));
        assert_eq!(forecast.vector_bytes, r.bootstrapper.bytes() as u64);
        // As much noise as there may be, and products in a row until there is as much again.
        let n = r.f.context.params().n();
        let (e, zero) = (r.largest_error(), vec![BigInt::zero(); n]);
        let phase: Vec<BigInt> =
            (0..n).map(|j| S::phase_of(&r.f, &zero[j], &if j % 3 == 0 { -&e } else { e.clone() })).collect();
        let mut m = zero;
        let worn = r.f.trivial(&phase, &(&e + 1));
        let mut passes = 0;
        let refreshed = r.bootstrapper.refresh_watched(&worn, |_| passes += 1).unwrap();
        r.f.judge(&refreshed, &m);
        assert_eq!(passes, forecast.passes);
        assert_eq!(forecast.prepared_bytes, r.keys.prepared_bytes());
        assert!((r.budget(&refreshed) - forecast.budget_bits).abs() < 1.5, "{} for {forecast:?}", r.budget(&refreshed));
        let mut x = r.refresh(&refreshed, &m);
        for _ in 0..request.products {
            x = r.f.evaluator.square(&x).unwrap();
            m = r.f.mul(&m, &m);
            r.f.judge(&x, &m);
        }
        assert!(r.budget(&x) >= r.bootstrapper.bootstrap().least_budget().unwrap());
        r.refresh(&x, &m);
    }
    let request = ExactBootstrapRequest {
        log_n: 10,
        t: "65537".to_owned(),
        products: 2,
        baby_steps: Some(4),
        security: Security::Insecure,
    };
    judged::<Bfv>(&request, 700);
    judged::<Bgv>(&request, 701);
    let refused = |request: ExactBootstrapRequest| request.find::<Bfv>(None).err().map(|e| (e.kind(), e.to_string()));
    let says = |request, kind: &str, text: &str| {
        let (found, said) = refused(request).unwrap();
        assert!(found == kind && said.contains(text), "{found}: {said}");
    };
    says(ExactBootstrapRequest { log_n: 9, ..request.clone() }, "request", "from 2^10 to 2^17");
    says(ExactBootstrapRequest { products: 0, ..request.clone() }, "request", "from 1 to 64");
    says(ExactBootstrapRequest { baby_steps: Some(3), ..request.clone() }, "request", "3 baby steps");
    says(ExactBootstrapRequest { t: "1".to_owned(), ..request.clone() }, "plain_modulus_too_small", "1");
    says(ExactBootstrapRequest { security: Security::Bits128, log_n: 13, ..request }, "request", "no parameters");
}
