//! Bootstrapping of BFV and BGV judged by decryption, at small degrees that are marked insecure: messages come back, with
//! errors within their certificates and noise budgets as planned.

use std::sync::Arc;

use crate::oracle::{self, Ct, Device, Fixture, Judged, Model, fixture_in};
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::ckks;
use synchromesh::ckks::bootstrap::Chain;
use synchromesh::exact::bootstrap::{Bootstrap, BootstrapLiteral, Bootstrapper};
use synchromesh::exact::{Context, Params, Rotations, Scheme};
use synchromesh::rlwe::ring::{Counting, Cpu};
use synchromesh::rlwe::{EvaluationKeys, Security};

/// 2^51 - 239 * 2^12 + 1 and the like are found when they are needed.
fn prime(bits: u32) -> String {
    synchromesh::plain_modulus::PlainModulus::next_slot_prime(bits, 11).unwrap().to_string()
}

fn literal(budget_bits: u32) -> BootstrapLiteral {
    BootstrapLiteral {
        slots_to_coeffs: 2,
        coeffs_to_slots: 2,
        baby_steps: None,
        degree: 30,
        doublings: 4,
        ratio_bits: 12,
        budget_bits,
    }
}

fn chain(log_n: u32, usable: usize) -> Chain {
    Chain {
        log_n,
        log_scale: 58,
        usable,
        base_bits: 60,
        log_scale_down: 58,
        log_scale_up: 58,
        omega: 4,
        weight: 32,
        security: Security::Insecure,
    }
}

struct Refreshing<S: Scheme> {
    f: Fixture<S>,
    inside: Arc<ckks::Context<Device>>,
    keys: Arc<EvaluationKeys<Device>>,
    bootstrapper: Bootstrapper<S, Device>,
}

fn on(ring: &synchromesh::rlwe::Params) -> Device {
    Counting::new(Cpu::open(Arc::clone(ring.ring())).unwrap())
}

fn refreshing<S: Judged>(t: &str, chain: Chain, literal: BootstrapLiteral, seed: u64) -> Refreshing<S> {
    let ring = ckks::Params::new(literal.ring(&chain).unwrap()).unwrap();
    let params = Params::<S>::new(literal.literal::<S>(&ring, t).unwrap()).unwrap();
    let context = Context::with_backend(params.clone(), on(params.rlwe())).unwrap();
    let mut f = fixture_in(context, &Rotations::none(), seed);
    let inside = ckks::Context::with_backend(ring.clone(), on(ring.rlwe())).unwrap();
    let bootstrap = Bootstrap::new(&params, &ring, literal).unwrap();
    let keys = Arc::new(bootstrap.generate_keys(&inside, &f.secret, &mut f.randomness).unwrap());
    let bootstrapper = Bootstrapper::new(&f.context, &inside, bootstrap, Arc::clone(&keys)).unwrap();
    Refreshing { f, inside, keys, bootstrapper }
}

impl<S: Judged> Refreshing<S> {
    fn budget(&self, x: &Ct<S>) -> f64 {
        self.f.context.noise_budget(x).unwrap()
    }

    /// Refreshed and judged, with the noise budget after each pass.
    fn refresh(&self, x: &Ct<S>, m: &Model) -> (Ct<S>, Vec<f64>) {
        let mut budgets = Vec::new();
        let refreshed = self
            .bootstrapper
            .refresh_watched(x, |pass| {
                let spare = self.f.judge(pass, m);
                println!("  pass: budget {:.1}, certificate {spare:.1} above measured", self.budget(pass));
                budgets.push(self.budget(pass));
            })
            .unwrap();
        self.f.judge(&refreshed, m);
        assert_eq!(refreshed.level(), self.f.context.params().top_level());
        (refreshed, budgets)
    }

    /// So many products in a row, refreshed where the next one would have no room.
    fn products(&mut self, count: usize) {
        let mut m = self.f.random();
        let factor = self.f.random();
        let (mut x, y) = (self.f.encrypt(&m), self.f.encrypt(&factor));
        let mut refreshes = 0;
        for i in 0..count {
            x = match self.f.evaluator.mul(&x, &y) {
                Ok(product) if self.budget(&product) > self.needed() => product,
                _ => {
                    refreshes += 1;
                    let refreshed = self.refresh(&x, &m).0;
                    self.f.evaluator.mul(&refreshed, &y).unwrap()
                }
            };
            m = self.f.mul(&m, &factor);
            let spare = self.f.judge(&x, &m);
            println!("product {i}: budget {:.1}, certificate {spare:.1} above measured", self.budget(&x));
        }
        assert!(refreshes > 0 || count < 3);
    }

    fn needed(&self) -> f64 {
        f64::from(self.bootstrapper.bootstrap().literal().ratio_bits)
    }
}

#[test]
fn bfv_65537() {
    let mut r: Refreshing<Bfv> = refreshing("65537", chain(10, 5), literal(70), 600);
    r.products(14);
}

#[test]
fn bgv_65537() {
    let mut r: Refreshing<Bgv> = refreshing("65537", chain(10, 5), literal(70), 601);
    r.products(14);
}

#[test]
fn bfv_2() {
    let mut r: Refreshing<Bfv> = refreshing("2", chain(10, 3), literal(50), 602);
    r.products(14);
}

#[test]
fn bgv_2() {
    let mut r: Refreshing<Bgv> = refreshing("2", chain(10, 3), literal(50), 603);
    r.products(14);
}

#[test]
fn bfv_51() {
    let mut r: Refreshing<Bfv> = refreshing(&prime(51), chain(10, 5), literal(100), 604);
    r.products(8);
}

#[test]
fn bgv_51() {
    let mut r: Refreshing<Bgv> = refreshing(&prime(51), chain(10, 5), literal(100), 605);
    r.products(8);
}

#[test]
fn bfv_128() {
    let mut r: Refreshing<Bfv> = refreshing(oracle::T128, chain(10, 7), literal(180), 606);
    r.products(5);
}

#[test]
fn bgv_128() {
    let mut r: Refreshing<Bgv> = refreshing(oracle::T128, chain(10, 7), literal(180), 607);
    r.products(5);
}
