//! Refreshes of BFV and BGV ciphertexts: seconds, passes, noise budgets, keys and memory; every result is compared.

use std::sync::Arc;
use std::time::Instant;

use num_bigint::{BigInt, BigUint};
use serde::Serialize;
use synchromesh::ckks;
use synchromesh::exact::bootstrap::{Bootstrap, BootstrapLiteral, Bootstrapper};
use synchromesh::exact::{Ciphertext, Context, Evaluator, Params, Plaintext, Rotations, Scheme};
use synchromesh::plan::bootstrap::{ExactBootstrapRequest, ExactForecast};
use synchromesh_ring::isa::Isa;
use synchromesh_ring::{Backend, BackendError, Cpu, Threads};
use synchromesh_rlwe::{EvaluationKeys, PublicKey, Randomness, SecretKey};

use crate::Error;
use crate::device::{Device, Measured, on_device};
use crate::memory::{fits_refresh, forget_peak, peak_bytes};
use crate::numbers::Numbers;
use crate::timing::median;

/// What `bench bootstrap --scheme bfv` reports.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The scheme.
    pub scheme: &'static str,
    /// Instruction set.
    pub isa: &'static str,
    /// Threads.
    pub threads: usize,
    /// The device.
    pub device: String,
    /// log2 of the ring degree.
    pub log_n: u32,
    /// The plaintext modulus.
    pub t: String,
    /// Integers modulo t that a refreshed message holds, its coefficients.
    pub values: usize,
    /// Products in a row between two refreshes.
    pub products: u32,
    /// log2 of the largest modulus of a key.
    pub log_qp: u32,
    /// Security in bits.
    pub security_bits: f64,
    /// What is done.
    pub bootstrap: BootstrapLiteral,
    /// What was forecast.
    pub forecast: ExactForecast,
    /// Widths of the ciphertext primes of the CKKS ring, in bits.
    pub q_bits: Vec<u32>,
    /// Widths of its special primes, in bits.
    pub p_bits: Vec<u32>,
    /// Digits of its key switches.
    pub omega: usize,
    /// The least noise budget of what was refreshed, in bits.
    pub before_bits: f64,
    /// The least noise budget afterwards, in bits.
    pub after_bits: f64,
    /// The most passes of a refresh.
    pub passes: usize,
    /// Bytes of the file of the keys of refreshes.
    pub key_bytes: u64,
    /// The most memory of this process while keys were made and ciphertexts refreshed, in bytes; none where the system does
    /// not say.
    pub peak_bytes: Option<u64>,
    /// Seconds to make the keys of refreshes.
    pub keys_s: f64,
    /// Seconds to prepare the public vectors.
    pub vectors_s: f64,
    /// Refreshes that were timed, after one that was not.
    pub iterations: usize,
    /// Median seconds of a pass.
    pub pass_s: f64,
    /// Median seconds of a refresh.
    pub seconds: f64,
}

/// All that refreshes take.
struct Made<S: Scheme, B: Backend = Cpu> {
    context: Arc<Context<S, B>>,
    secret: SecretKey<B>,
    public: PublicKey<B>,
    evaluator: Evaluator<S, B>,
    keys: Arc<EvaluationKeys<B>>,
    bootstrapper: Bootstrapper<S, B>,
    randomness: Randomness,
    keys_s: f64,
    vectors_s: f64,
}

/// A message c X^k: its square is another, whatever t is.
struct Monomial {
    number: BigUint,
    power: usize,
}

impl Monomial {
    /// The coefficients modulo t and X^N + 1.
    fn coefficients(&self, t: &BigUint, n: usize) -> Vec<BigUint> {
        let number = if self.power % (2 * n) < n { self.number.clone() } else { (t - &self.number) % t };
        let mut coefficients = vec![BigUint::default(); n];
        coefficients[self.power % n] = number;
        coefficients
    }

    fn square(&self, t: &BigUint, n: usize) -> Self {
        Self { number: &self.number * &self.number % t, power: 2 * self.power % (2 * n) }
    }
}

impl<S: Scheme, B: Measured> Made<S, B> {
    fn new(
        ring: ckks::Params,
        params: Params<S>,
        literal: BootstrapLiteral,
        progress: impl Fn(&str),
    ) -> Result<Self, Error> {
        let bootstrap = Bootstrap::new(&params, &ring, literal)?;
        let (own, inner) = (B::open(params.rlwe().ring())?, B::open(ring.rlwe().ring())?);
        let (context, inside) = (Context::with_backend(params, own)?, ckks::Context::with_backend(ring, inner)?);
        let mut randomness = Randomness::from_os();
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let own = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?;
        let evaluator = Evaluator::new(&context, Some(Arc::new(own)));
        progress("keys");
        let start = Instant::now();
        let keys = Arc::new(bootstrap.generate_keys(&inside, &secret, &mut randomness)?);
        let keys_s = start.elapsed().as_secs_f64();
        progress("public vectors");
        let start = Instant::now();
        let bootstrapper = Bootstrapper::new(&context, &inside, bootstrap, Arc::clone(&keys))?;
        let vectors_s = start.elapsed().as_secs_f64();
        Ok(Self { context, secret, public, evaluator, keys, bootstrapper, randomness, keys_s, vectors_s })
    }

    /// A fresh ciphertext of coefficients that look random, none of them 0, in these places and 0 in all others.
    fn message(
        &mut self,
        number: u64,
        places: impl FnOnce(usize, &mut Numbers) -> Vec<usize>,
    ) -> Result<(Ciphertext<S, B>, Vec<Term>), Error> {
        let (n, t, mut numbers) = (self.context.params().n(), self.context.params().t().value(), Numbers(number));
        let below = t - 1u32;
        let places = places(n, &mut numbers);
        let mut any = || BigUint::from_slice(&[(); 9].map(|()| numbers.word() as u32)) % &below + 1u32;
        let terms: Vec<Term> = places.into_iter().map(|at| (at, any())).collect();
        let mut signed = vec![BigInt::default(); n];
        terms.iter().for_each(|(at, value)| signed[*at] += BigInt::from(value.clone()));
        let plain = self.context.encode_coefficients(&signed)?;
        Ok((self.context.encrypt(&self.public, &plain, &mut self.randomness)?, terms))
    }

    /// A ciphertext that has no budget for another product, and its message.
    fn worn(&mut self, number: u64) -> Result<(Ciphertext<S, B>, Monomial), Error> {
        let (context, n) = (&self.context, self.context.params().n());
        let t = context.params().t().value();
        let mut message = Monomial { number: BigUint::from(number) % t, power: 1 };
        let signed: Vec<BigInt> = message.coefficients(t, n).into_iter().map(BigInt::from).collect();
        let plain: Plaintext = context.encode_coefficients(&signed)?;
        let mut x = context.encrypt(&self.public, &plain, &mut self.randomness)?;
        let least = self.bootstrapper.bootstrap().least_budget()?;
        while let Ok(square) = self.evaluator.square(&x) {
            if context.noise_budget(&square)? < least {
                break;
            }
            (x, message) = (square, message.square(t, n));
        }
        Ok((x, message))
    }

    fn judge(&self, x: &Ciphertext<S, B>, message: &Monomial) -> Result<(), Error> {
        let params = self.context.params();
        let found = self.context.decode_coefficients_unsigned(&self.context.decrypt(&self.secret, x)?)?;
        if found == message.coefficients(params.t().value(), params.n()) {
            return Ok(());
        }
        Err(Error::Request { reason: "a refreshed ciphertext decrypted wrongly".to_owned() })
    }
}

/// A power of X and its coefficient.
type Term = (usize, BigUint);

/// Terms of the second factor of a product: so few that N of them are multiplied in clear at once.
const TERMS: usize = 3;

/// x y modulo t and X^N + 1.
fn times(x: &[BigUint], y: &[Term], t: &BigUint) -> Vec<BigUint> {
    let n = x.len();
    let mut made = vec![BigUint::default(); n];
    for (shift, factor) in y {
        for (at, value) in x.iter().enumerate() {
            let (to, term) = (at + shift, value * factor % t);
            made[to % n] += if to < n { term } else { t - term };
        }
    }
    made.into_iter().map(|sum| sum % t).collect()
}

/// Products in a row, refreshed where another one would leave too little.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The scheme.
    pub scheme: &'static str,
    /// log2 of the ring degree.
    pub log_n: u32,
    /// The plaintext modulus.
    pub t: String,
    /// log2 of the largest modulus of a key.
    pub log_qp: u32,
    /// Security in bits.
    pub security_bits: f64,
    /// Products so far, each compared in all coefficients.
    pub products: usize,
    /// Refreshes on the way.
    pub refreshes: usize,
    /// The least noise budget of what was refreshed, in bits.
    pub before_bits: f64,
    /// The least noise budget after a refresh, in bits.
    pub after_bits: f64,
    /// Seconds of all products and refreshes.
    pub seconds: f64,
}

/// Multiplies a ciphertext of random coefficients by so many fresh ones, one after the other, and compares every product; on a
/// device, the CPU with the threads of this process. `progress` sees after each what was done until then.
///
/// # Errors
/// [`Error::Request`] for a result that is wrong, or what a search, a product or a refresh refuses.
pub fn multiply_in_a_row<S: Scheme>(
    request: &ExactBootstrapRequest,
    products: usize,
    device: Device,
    progress: impl FnMut(&Row),
) -> Result<Row, Error> {
    on_device!(device, B => multiply_on::<S, B>(request, products, progress))
}

fn multiply_on<S: Scheme, B: Measured>(
    request: &ExactBootstrapRequest,
    products: usize,
    mut progress: impl FnMut(&Row),
) -> Result<Row, Error> {
    let found = request.find::<S>(None)?;
    let (ring, params) = (ckks::Params::new(found.ring)?, Params::<S>::new(found.params)?);
    let mut made = Made::<S, B>::new(ring, params, found.bootstrap, |_| ())?;
    let least = made.bootstrapper.bootstrap().least_budget()?;
    let mut row = Row {
        scheme: S::NAME,
        log_n: request.log_n,
        t: request.t.clone(),
        log_qp: found.forecast.log_qp,
        security_bits: found.forecast.security_bits,
        products: 0,
        refreshes: 0,
        before_bits: f64::INFINITY,
        after_bits: f64::INFINITY,
        seconds: 0.0,
    };
    let (mut x, terms) = made.message(0, |n, _| (0..n).collect())?;
    let mut expected: Vec<BigUint> = terms.into_iter().map(|(_, value)| value).collect();
    for number in 0..products {
        let anywhere = |n, numbers: &mut Numbers| (0..TERMS).map(|_| numbers.word() as usize % n).collect();
        let (y, own) = made.message(1 + number as u64, anywhere)?;
        let begin = Instant::now();
        let product = made.evaluator.mul(&x, &y);
        let budget = product.as_ref().map_or(Ok(0.0), |product| made.context.noise_budget(product))?;
        x = match product {
            Ok(product) if budget >= least => product,
            _ => {
                row.before_bits = row.before_bits.min(made.context.noise_budget(&x)?);
                let refreshed = made.bootstrapper.refresh(&x)?;
                row.after_bits = row.after_bits.min(made.context.noise_budget(&refreshed)?);
                row.refreshes += 1;
                made.evaluator.mul(&refreshed, &y)?
            }
        };
        row.seconds += begin.elapsed().as_secs_f64();
        row.products += 1;
        let t = made.context.params().t().value();
        expected = times(&expected, &own, t);
        if made.context.decode_coefficients_unsigned(&made.context.decrypt(&made.secret, &x)?)? != expected {
            return Err(Error::Request { reason: format!("product {} decrypted wrongly", row.products) });
        }
        progress(&row);
    }
    Ok(row)
}

/// Measures refreshes at the parameters found for a request, on a device, the CPU with the threads of this process;
/// `progress` hears what is done.
///
/// # Errors
/// [`Error::Request`] before anything is made that does not fit, and for a result that is wrong, or what a search or a
/// refresh refuses.
pub fn measure<S: Scheme>(
    request: &ExactBootstrapRequest,
    iterations: usize,
    device: Device,
    progress: impl Fn(&str),
) -> Result<Report, Error> {
    on_device!(device, B => measure_on::<S, B>(request, iterations, device, progress))
}

fn measure_on<S: Scheme, B: Measured>(
    request: &ExactBootstrapRequest,
    iterations: usize,
    device: Device,
    progress: impl Fn(&str),
) -> Result<Report, Error> {
    progress("parameters");
    let found = request.find::<S>(None)?;
    fits_refresh(found.forecast.peak_bytes, device)?;
    forget_peak();
    let (ring, params) = (ckks::Params::new(found.ring.clone())?, Params::<S>::new(found.params.clone())?);
    let mut made = Made::<S, B>::new(ring, params, found.bootstrap.clone(), &progress)?;
    let backend = Arc::clone(&made.context);
    let backend = backend.backend();
    let (mut passes, mut totals) = (Vec::new(), Vec::new());
    let (mut before, mut after, mut most) = (f64::INFINITY, f64::INFINITY, 0);
    for round in 0..=iterations {
        progress(&format!("refresh {round} of {iterations}"));
        let (x, message) = made.worn(3 + round as u64)?;
        before = before.min(made.context.noise_budget(&x)?);
        backend.wait()?;
        let begin = Instant::now();
        let (mut last, mut own, mut waited) = (begin, Vec::new(), Ok(()));
        let refreshed = made.bootstrapper.refresh_watched(&x, |_| {
            waited = backend.wait();
            let now = Instant::now();
            own.push((now - last).as_secs_f64());
            last = now;
        })?;
        waited?;
        most = most.max(own.len());
        if round > 0 {
            totals.push(begin.elapsed().as_secs_f64());
            passes.append(&mut own);
        }
        after = after.min(made.context.noise_budget(&refreshed)?);
        made.judge(&refreshed, &message)?;
    }
    Ok(Report {
        scheme: S::NAME,
        isa: Isa::detect().map_or("unknown", Isa::name),
        threads: Threads::of_process().map_err(BackendError::from)?.count(),
        device: backend.name(),
        log_n: request.log_n,
        t: request.t.clone(),
        values: made.context.params().n(),
        products: request.products,
        log_qp: found.forecast.log_qp,
        security_bits: found.forecast.security_bits,
        bootstrap: found.bootstrap,
        q_bits: found.ring.q_bits,
        p_bits: found.ring.p_bits,
        omega: found.ring.omega,
        before_bits: before,
        after_bits: after,
        passes: most,
        key_bytes: made.keys.wire_bytes(made.bootstrapper.bootstrap().inside().rlwe()),
        peak_bytes: peak_bytes(),
        keys_s: made.keys_s,
        vectors_s: made.vectors_s,
        iterations,
        pass_s: median(passes),
        seconds: median(totals),
        forecast: found.forecast,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use synchromesh::bfv::Bfv;
    use synchromesh::bgv::Bgv;
    use synchromesh_rlwe::Security;

    fn in_a_row<S: Scheme>(t: &str, device: Device) {
        let (t, products) = (t.to_owned(), 1);
        let request =
            ExactBootstrapRequest { log_n: 10, t, products, baby_steps: Some(4), security: Security::Insecure };
        let mut seen = 0;
        let row = multiply_in_a_row::<S>(&request, 4, device, |_| seen += 1).unwrap();
        assert!(row.products == 4 && seen == 4 && (1..=4).contains(&row.refreshes), "{row:?}");
        assert!(row.after_bits > row.before_bits, "{row:?}");
    }

    #[test]
    fn products_in_a_row_are_right_where_only_refreshes_make_room_for_them() {
        in_a_row::<Bfv>("65537", Device::Cpu);
        in_a_row::<Bgv>("65537", Device::Cpu);
        // Without slots.
        in_a_row::<Bfv>("1000003", Device::Cpu);
    }

    #[cfg(feature = "emulated")]
    #[test]
    fn so_they_are_on_an_emulated_card() {
        in_a_row::<Bgv>("65537", Device::Emulated);
    }
}
