//! Errors of BFV and BGV, coefficient by coefficient.

mod hostile;

use std::sync::Arc;

use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::exact::{Ciphertext, Context, Evaluator, Params, ParamsLiteral, Plaintext, Rotations, Scheme};
use synchromesh_ring::Cpu;
use synchromesh_ring::modulus::Modulus;
use synchromesh_rlwe::noise::{Estimating, FailureLimit};
use synchromesh_rlwe::{Noise, PublicKey, Randomness, SecretKey, Security};

use super::Table;
use super::suite::{Effort, Errors};
use crate::Error;
use crate::numbers::Numbers;

/// 3 * 2^18 + 1, which has slots up to N = 2^17.
pub(super) const T: u64 = 786_433;

/// How keys are switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Plan {
    /// Two digits, each well below P: rounding is most of the error.
    Wide,
    /// One prime a digit, 4 bits above P: the key's errors are most of it.
    Narrow,
}

impl Plan {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Wide => "",
            Self::Narrow => ", digits above P",
        }
    }

    fn literal(self, log_n: u32) -> ParamsLiteral {
        let (p_bits, omega) = match self {
            Self::Wide => (vec![58, 58], 2),
            Self::Narrow => (vec![46], 4),
        };
        ParamsLiteral {
            log_n,
            t: T.to_string(),
            q_bits: vec![50; 4],
            p_bits,
            level_limbs: Vec::new(),
            schedule: Default::default(),
            omega,
            security: Security::Insecure,
            primes: None,
        }
    }
}

/// A scheme whose errors can be taken from its phases.
pub(super) trait Measured: Scheme {
    /// The number that messages are multiplied by, where they are in the low digits of a phase; none in BFV.
    fn factor(header: &Self::Header) -> Option<u64>;
}

impl Measured for Bfv {
    fn factor((): &()) -> Option<u64> {
        None
    }
}

impl Measured for Bgv {
    fn factor(header: &Self::Header) -> Option<u64> {
        (header.value() % T).to_u64()
    }
}

/// Centred integers from their residues modulo up to three primes, as floating-point numbers.
struct Lift(Vec<Modulus>);

impl Lift {
    /// The integer of these residues nearest to 0, by mixed radix: v_1 + q_1 v_2 + q_1 q_2 v_3 with v_k centred last.
    fn centred(&self, residues: &[u64]) -> f64 {
        let (mut low, mut product) = (0i128, 1i128);
        for (k, (q, &r)) in self.0.iter().zip(residues).enumerate() {
            let signed = i128::from(q.value());
            let below = |x: i128| x.rem_euclid(signed) as u64;
            let inverse = q.inv(below(product)).unwrap_or_default();
            let digit = i128::from(q.mul(q.sub(r, below(low)), inverse));
            let last = k + 1 == self.0.len();
            let digit = if last && 2 * digit > signed { digit - signed } else { digit };
            match product.checked_mul(digit).and_then(|x| x.checked_add(low)) {
                Some(sum) => low = sum,
                // Only the last digit can be as large.
                None => return digit as f64 * product as f64 + low as f64,
            }
            product = product.saturating_mul(signed);
        }
        low as f64
    }
}

/// Errors of one key's ciphertexts.
struct Setup<S: Scheme> {
    context: Arc<Context<S>>,
    secret: SecretKey,
    public: PublicKey,
    evaluator: Evaluator<S>,
    randomness: Randomness,
    numbers: Numbers,
}

type Values = Vec<u64>;

impl<S: Measured> Setup<S> {
    fn new(context: Arc<Context<S>>, rotations: &Rotations, seed: u64) -> Result<Self, Error> {
        let mut randomness = Randomness::insecure_from_number(seed);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let keys = Arc::new(context.generate_evaluation_keys(&secret, rotations, &mut randomness)?);
        let evaluator = Evaluator::new(&context, Some(keys));
        Ok(Self { context, secret, public, evaluator, randomness, numbers: Numbers(seed) })
    }

    fn uniform(&mut self) -> Values {
        (0..self.context.params().n()).map(|_| self.numbers.word() % T).collect()
    }

    fn encrypt(&mut self, values: &Values) -> Result<Ciphertext<S>, Error> {
        let plaintext = self.context.encode(values)?;
        Ok(self.context.encrypt(&self.public, &plaintext, &mut self.randomness)?)
    }

    /// The errors of a ciphertext of `expected`, which it must decrypt to: t e modulo q is t times the phase in BFV, and
    /// e is the phase less the message, over t, in BGV.
    fn errors(&self, ct: &Ciphertext<S>, expected: &Plaintext) -> Result<Vec<f64>, Error> {
        let context = &self.context;
        let (ring, n) = (context.params().rlwe().ring(), context.params().n());
        let message = context.decode_coefficients_u64(expected)?;
        if context.decode_coefficients_u64(&context.decrypt(&self.secret, ct)?)? != message {
            return Err(Error::Request { reason: format!("a ciphertext of {} decrypts wrongly", S::NAME) });
        }
        let phase = self.secret.phase(context.rlwe(), ct.inner())?;
        let (primes, words) = (phase.poly().primes(), phase.poly().to_words(context.rlwe().backend())?);
        let lift = Lift(primes.iter().take(3).map(|i| ring.modulus(i)).collect());
        let factor = S::factor(ct.header());
        let multipliers: Vec<u64> =
            lift.0.iter().map(|q| if factor.is_some() { q.inv(T).unwrap_or(0) } else { T }).collect();
        let unit = if factor.is_some() { 1.0 } else { 1.0 / T as f64 };
        let error = |(j, &m): (usize, &u64)| {
            let low = factor.map_or(0, |f| centred(f * m % T));
            let residues: [u64; 3] = std::array::from_fn(|i| match lift.0.get(i) {
                Some(q) => q.mul(q.sub(words[i * n + j], low.rem_euclid(q.value() as i64) as u64), multipliers[i]),
                None => 0,
            });
            lift.centred(&residues) * unit
        };
        Ok(message.iter().enumerate().map(error).collect())
    }
}

/// The residue modulo T nearest to 0.
fn centred(x: u64) -> i64 {
    if 2 * x > T { x as i64 - T as i64 } else { x as i64 }
}

fn zip(x: &Values, y: &Values, f: impl Fn(u64, u64) -> u64) -> Values {
    x.iter().zip(y).map(|(&x, &y)| f(x, y) % T).collect()
}

fn add(x: &Values, y: &Values) -> Values {
    zip(x, y, |x, y| x + y)
}

fn mul(x: &Values, y: &Values) -> Values {
    zip(x, y, |x, y| x * y)
}

fn rotate(x: &Values, k: usize) -> Values {
    let half = x.len() / 2;
    (0..x.len()).map(|i| x[i / half * half + (i % half + k) % half]).collect()
}

fn swap(x: &Values) -> Values {
    let half = x.len() / 2;
    x[half..].iter().chain(&x[..half]).copied().collect()
}

/// A context of BFV or BGV that errors are measured in.
pub(super) struct Exact<S: Scheme> {
    context: Arc<Context<S>>,
    rotations: Rotations,
    steps: Vec<i64>,
}

impl<S: Measured> Exact<S> {
    pub(super) fn new(log_n: u32, plan: Plan) -> Result<Self, Error> {
        let params = Params::<S>::new(plan.literal(log_n))?;
        let backend = Cpu::open(Arc::clone(params.rlwe().ring()))?;
        let context = Context::observed(params, backend, Some(Arc::new(Estimating)))?;
        let steps: Vec<i64> = (0..log_n - 1).map(|i| 1 << i).collect();
        Ok(Self { context, rotations: Rotations::by(steps.clone()).and_swap(), steps })
    }
}

impl<S: Measured> Errors for Exact<S> {
    fn measure(&self, key: usize, effort: Effort) -> Result<Table, Error> {
        let mut table = Table::default();
        let seed = 1000 * u64::from(self.context.params().log_n()) + key as u64;
        let mut setup = Setup::new(Arc::clone(&self.context), &self.rotations, seed)?;
        linear(&mut setup, &mut table)?;
        for _ in 0..effort.sums {
            slot_sum(&mut setup, &mut table, &self.steps)?;
        }
        products(&mut setup, &mut table)?;
        if effort.hostile {
            hostile::operands(&mut setup, &mut table)?;
            hostile::messages(&mut setup, &mut table)?;
        }
        Ok(table)
    }

    fn bound(&self, noise: &Noise, limit: FailureLimit) -> f64 {
        noise.bound(self.context.params().log_n(), limit.log2_failure())
    }
}

/// Enters the errors of a ciphertext of `expected`.
fn enter<S: Measured>(
    setup: &Setup<S>,
    table: &mut Table,
    (operation, average, depth): (&'static str, bool, usize),
    ct: &Ciphertext<S>,
    expected: &Values,
) -> Result<(), Error> {
    let errors = setup.errors(ct, &setup.context.encode(expected)?)?;
    table.add(operation, average, depth, ct.noise(), &errors);
    Ok(())
}

fn linear<S: Measured>(setup: &mut Setup<S>, table: &mut Table) -> Result<(), Error> {
    let (a, b) = (setup.uniform(), setup.uniform());
    let (x, y) = (setup.encrypt(&a)?, setup.encrypt(&b)?);
    let plain = setup.context.encode(&b)?;
    enter(setup, table, ("encrypt", true, 0), &x, &a)?;
    let seeded = setup.context.encrypt_with_secret(&setup.secret, &plain, &mut setup.randomness)?.0;
    enter(setup, table, ("encrypt under the secret key", true, 0), &seeded, &b)?;
    let e = &setup.evaluator;
    enter(setup, table, ("x + y", true, 0), &e.add(&x, &y)?, &add(&a, &b))?;
    enter(setup, table, ("x + x", true, 0), &e.add(&x, &x)?, &add(&a, &a))?;
    enter(setup, table, ("x + plaintext", true, 0), &e.add_plain(&x, &plain)?, &add(&a, &b))?;
    enter(setup, table, ("x times plaintext", true, 0), &e.mul_plain(&x, &plain)?, &mul(&a, &b))?;
    enter(setup, table, ("1000 x", true, 0), &e.mul_scalar(&x, 1000)?, &zip(&a, &a, |x, _| 1000 * x))?;
    enter(setup, table, ("rotate", true, 0), &e.rotate_rows(&x, 1)?, &rotate(&a, 1))?;
    enter(setup, table, ("rotate, hoisted", true, 0), &e.rotate_rows_many(&x, &[2])?[0], &rotate(&a, 2))?;
    enter(setup, table, ("modulus switch", true, 0), &e.mod_switch(&x)?, &a)
}

fn slot_sum<S: Measured>(setup: &mut Setup<S>, table: &mut Table, steps: &[i64]) -> Result<(), Error> {
    let mut expected = setup.uniform();
    let mut sum = setup.encrypt(&expected)?;
    let e = &setup.evaluator;
    for &k in steps {
        sum = e.add(&sum, &e.rotate_rows(&sum, k)?)?;
        expected = add(&expected, &rotate(&expected, k as usize));
    }
    enter(setup, table, ("sum of a row of slots", true, 0), &sum, &expected)
}

fn products<S: Measured>(setup: &mut Setup<S>, table: &mut Table) -> Result<(), Error> {
    let values: Vec<Values> = (0..4).map(|_| setup.uniform()).collect();
    let x = values.iter().map(|v| setup.encrypt(v)).collect::<Result<Vec<_>, _>>()?;
    let e = &setup.evaluator;
    let [ab, cd] = [0, 2].map(|i| mul(&values[i], &values[i + 1]));
    enter(setup, table, ("x y, three components", true, 1), &e.mul_no_relin(&x[0], &x[1])?, &ab)?;
    let (xy, zw) = (e.mul(&x[0], &x[1])?, e.mul(&x[2], &x[3])?);
    enter(setup, table, ("x y", true, 1), &xy, &ab)?;
    enter(setup, table, ("x x", true, 1), &e.square(&x[0])?, &mul(&values[0], &values[0]))?;
    enter(setup, table, ("x y, modulus switch", true, 1), &e.mod_switch(&xy)?, &ab)?;
    let pairs = [[&x[0], &x[1]], [&x[2], &x[3]]];
    enter(setup, table, ("x y + z w, one key switch", true, 1), &e.sum_of_products(&pairs)?, &add(&ab, &cd))?;
    enter(setup, table, ("(x y) z", true, 2), &e.mul(&xy, &x[2])?, &mul(&ab, &values[2]))?;
    enter(setup, table, ("(x y) (z w)", true, 2), &e.mul(&xy, &zw)?, &mul(&ab, &cd))
}
