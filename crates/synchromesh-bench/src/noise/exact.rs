//! Errors of BFV and BGV, coefficient by coefficient.

use std::sync::Arc;

use num_bigint::{BigInt, BigUint};
use num_traits::ToPrimitive;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::exact::{Ciphertext, Context, Evaluator, Params, ParamsLiteral, Plaintext, Rotations, Scheme};
use synchromesh_rlwe::noise::{FailureLimit, Model};
use synchromesh_rlwe::{PublicKey, Randomness, SecretKey, Security};

use super::{Row, Table};
use crate::Error;

/// 3 * 2^18 + 1, which has slots up to N = 2^17.
pub(super) const T: u64 = 786_433;

/// How keys are switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Two digits, each well below P: rounding is most of the error.
    Wide,
    /// One prime a digit, 4 bits above P: the key's errors are most of it.
    Narrow,
}

impl Plan {
    const fn name(self) -> &'static str {
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
pub trait Measured: Scheme {
    /// The error of a coefficient x of the phase modulo q, of a ciphertext with a coefficient m of the message.
    fn error(header: &Self::Header, x: &BigInt, m: &BigInt, q: &BigInt, t: &BigInt) -> f64;
}

/// The residue of x nearest to 0.
fn centred(x: BigInt, q: &BigInt) -> BigInt {
    let r = ((x % q) + q) % q;
    if &r + &r > *q { r - q } else { r }
}

impl Measured for Bfv {
    fn error((): &(), x: &BigInt, m: &BigInt, q: &BigInt, t: &BigInt) -> f64 {
        centred(t * x - q * m, &(t * q)).to_f64().unwrap_or(f64::MAX) / t.to_f64().unwrap_or(1.0)
    }
}

impl Measured for Bgv {
    fn error(header: &Self::Header, x: &BigInt, m: &BigInt, q: &BigInt, t: &BigInt) -> f64 {
        let message = centred(m * BigInt::from(header.value().clone()), t);
        ((centred(x.clone(), q) - message) / t).to_f64().unwrap_or(f64::MAX)
    }
}

/// Errors of one key's ciphertexts.
struct Setup<S: Scheme> {
    context: Arc<Context<S>>,
    secret: SecretKey,
    public: PublicKey,
    evaluator: Evaluator<S>,
    randomness: Randomness,
    state: u64,
}

type Values = Vec<u64>;

impl<S: Measured> Setup<S> {
    fn new(context: Arc<Context<S>>, rotations: &Rotations, seed: u64) -> Result<Self, Error> {
        let mut randomness = Randomness::insecure_from_number(seed);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let keys = Arc::new(context.generate_evaluation_keys(&secret, rotations, &mut randomness)?);
        let evaluator = Evaluator::new(&context, Some(keys));
        Ok(Self { context, secret, public, evaluator, randomness, state: seed })
    }

    fn uniform(&mut self) -> Values {
        let mut next = || {
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) % T
        };
        (0..self.context.params().n()).map(|_| next()).collect()
    }

    fn encrypt(&mut self, values: &Values) -> Result<Ciphertext<S>, Error> {
        let plaintext = self.context.encode(values)?;
        Ok(self.context.encrypt(&self.public, &plaintext, &mut self.randomness)?)
    }

    fn errors(&self, ct: &Ciphertext<S>, expected: &Plaintext) -> Result<Vec<f64>, Error> {
        let context = &self.context;
        let (ring, n) = (context.params().rlwe().ring(), context.params().n());
        let phase = self.secret.phase(context.rlwe(), ct.inner())?;
        let (primes, words) = (phase.poly().primes(), phase.poly().to_words(context.rlwe().backend())?);
        let q = ring.product(primes);
        let share = |i| {
            let own = BigUint::from(ring.modulus(i).value());
            let cofactor = &q / &own;
            &cofactor * cofactor.modinv(&own).unwrap_or_default()
        };
        let shares: Vec<BigUint> = primes.iter().map(share).collect();
        let (signed, t) = (BigInt::from(q.clone()), BigInt::from(context.params().t().value().clone()));
        let message = context.decode_coefficients_big(expected)?;
        let lift =
            |j: usize| shares.iter().enumerate().map(|(i, share)| share * words[i * n + j]).sum::<BigUint>() % &q;
        let error = |(j, m): (usize, &BigInt)| S::error(ct.header(), &BigInt::from(lift(j)), m, &signed, &t);
        Ok(message.iter().enumerate().map(error).collect())
    }
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

/// Every operation under `keys` keys.
///
/// # Errors
/// When a ciphertext is refused or the device fails.
pub fn exact<S: Measured>(log_n: u32, keys: usize, plan: Plan) -> Result<Vec<Row>, Error> {
    let context = Context::<S>::new(Params::new(plan.literal(log_n))?)?;
    let steps: Vec<i64> = (0..log_n - 1).map(|i| 1 << i).collect();
    let rotations = Rotations::rows(steps.clone()).with_columns();
    let mut table = Table::default();
    for key in 0..keys {
        let mut setup = Setup::new(Arc::clone(&context), &rotations, 1000 * u64::from(log_n) + key as u64)?;
        linear(&mut setup, &mut table, &steps)?;
        products(&mut setup, &mut table)?;
        hostile(&mut setup, &mut table)?;
    }
    let bound = |noise: &synchromesh_rlwe::Noise, limit: FailureLimit| noise.by(Model::Certificate(limit), log_n);
    Ok(table.rows(&format!("{}{}", S::NAME, plan.name()), log_n, keys, bound))
}

/// [`exact`] for BFV.
///
/// # Errors
/// As [`exact`].
pub fn exact_bfv(log_n: u32, keys: usize, plan: Plan) -> Result<Vec<Row>, Error> {
    exact::<Bfv>(log_n, keys, plan)
}

/// [`exact`] for BGV.
///
/// # Errors
/// As [`exact`].
pub fn exact_bgv(log_n: u32, keys: usize, plan: Plan) -> Result<Vec<Row>, Error> {
    exact::<Bgv>(log_n, keys, plan)
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

fn linear<S: Measured>(setup: &mut Setup<S>, table: &mut Table, steps: &[i64]) -> Result<(), Error> {
    let (a, b) = (setup.uniform(), setup.uniform());
    let (x, y) = (setup.encrypt(&a)?, setup.encrypt(&b)?);
    let plain = setup.context.encode(&b)?;
    let e = &setup.evaluator;
    enter(setup, table, ("encrypt", true, 0), &x, &a)?;
    let seeded = setup.context.encrypt_with_secret(&setup.secret, &plain, &mut Randomness::insecure_from_number(7))?.0;
    enter(setup, table, ("encrypt under the secret key", true, 0), &seeded, &b)?;
    enter(setup, table, ("x + y", true, 0), &e.add(&x, &y)?, &add(&a, &b))?;
    enter(setup, table, ("x + x", true, 0), &e.add(&x, &x)?, &add(&a, &a))?;
    enter(setup, table, ("x + plaintext", true, 0), &e.add_plain(&x, &plain)?, &add(&a, &b))?;
    enter(setup, table, ("x times plaintext", true, 0), &e.mul_plain(&x, &plain)?, &mul(&a, &b))?;
    enter(setup, table, ("1000 x", true, 0), &e.mul_scalar(&x, 1000)?, &zip(&a, &a, |x, _| 1000 * x))?;
    enter(setup, table, ("rotate", true, 0), &e.rotate_rows(&x, 1)?, &rotate(&a, 1))?;
    enter(setup, table, ("rotate, hoisted", true, 0), &e.rotate_rows_many(&x, &[2])?[0], &rotate(&a, 2))?;
    enter(setup, table, ("modulus switch", true, 0), &e.mod_switch(&x)?, &a)?;
    let (mut sum, mut expected) = (x.duplicate(&setup.context)?, a.clone());
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

/// Operands that have something in common, and messages chosen to hurt: for the certificate alone.
fn hostile<S: Measured>(setup: &mut Setup<S>, table: &mut Table) -> Result<(), Error> {
    let (a, b) = (setup.uniform(), setup.uniform());
    let (x, y) = (setup.encrypt(&a)?, setup.encrypt(&b)?);
    let e = &setup.evaluator;
    let conjugate = e.rotate_columns(&x)?;
    enter(setup, table, ("x times its conjugate", false, 1), &e.mul(&x, &conjugate)?, &mul(&a, &swap(&a)))?;
    let rotated = e.rotate_rows(&x, 1)?;
    enter(setup, table, ("x times its rotation", false, 1), &e.mul(&x, &rotated)?, &mul(&a, &rotate(&a, 1)))?;
    let squares = e.square(&e.square(&x)?)?;
    let fourth = mul(&mul(&a, &a), &mul(&a, &a));
    enter(setup, table, ("(x x) (x x)", false, 2), &squares, &fourth)?;
    let n = setup.context.params().n();
    // All energy on one frequency, or all coefficients the largest.
    let tone =
        |j: usize| if (std::f64::consts::PI * 3.0 * j as f64 / n as f64).cos() > 0.0 { T / 2 } else { T / 2 + 1 };
    let largest = setup.context.encode_coefficients(&vec![T / 2; n])?;
    let tone = setup.context.encode_coefficients(&(0..n).map(tone).collect::<Vec<_>>())?;
    for (name, times, message) in
        [("tone times y", "x times a tone", tone), ("largest times y", "x times the largest", largest)]
    {
        let values: Values = setup.context.decode_u64(&message)?;
        let z = setup.context.encrypt(&setup.public, &message, &mut setup.randomness)?;
        let e = &setup.evaluator;
        enter(setup, table, (name, false, 1), &e.mul(&z, &y)?, &mul(&values, &b))?;
        enter(setup, table, (times, false, 0), &e.mul_plain(&x, &message)?, &mul(&a, &values))?;
    }
    let e = &setup.evaluator;
    let file = y.inner().to_bytes(
        setup.context.rlwe(),
        synchromesh_rlwe::codec::Attached { scheme_header: &S::header_to_bytes(y.header()), seed: None },
        None,
    )?;
    let trust = synchromesh_rlwe::codec::Trust::Certificate;
    let read = synchromesh_rlwe::Ciphertext::from_bytes(setup.context.rlwe(), &file, None, trust)?.ciphertext;
    let read = Ciphertext::from_parts(setup.context.params(), read, y.header().clone())?;
    enter(setup, table, ("x times y from a file", false, 1), &e.mul(&x, &read)?, &mul(&a, &b))
}
