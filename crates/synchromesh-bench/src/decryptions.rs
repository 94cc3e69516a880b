//! Random circuits at planned parameters: every one of them must decrypt to what it computes.
//!
//! A circuit is a product tree with shared branches: each node multiplies two random nodes of the layer below, up to a
//! sign; the last layer's nodes are the circuits. What they compute is followed in the clear at a few points: for BFV and
//! BGV at random roots of X^N + 1 in the field of t^2 elements, where a ring of any degree N has them and where two
//! different messages agree with probability about t^-2; for CKKS in every slot, on the unit circle, where products keep
//! their size.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::ckks::{self, Complex64};
use synchromesh::exact::{self, Scheme};
use synchromesh::plan::{Description, Plan, SchemeName};
use synchromesh_rlwe::{Randomness, Security};

use crate::Error;
use crate::numbers::Numbers;

/// The plaintext modulus of BFV and BGV; 3 has no square root modulo it.
const T: u64 = 65_537;
const NON_RESIDUE: u64 = 3;

/// Points at which messages are compared.
const POINTS: usize = 4;

/// Circuits under one set of keys.
const BATCH: usize = 100;

/// Bits of precision that CKKS is planned for and judged by.
const PRECISION: u32 = 20;

/// How many circuits decrypted rightly at a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decryptions {
    /// The scheme.
    pub scheme: &'static str,
    /// Security asked for.
    pub security: u32,
    /// Multiplications after one another.
    pub depth: usize,
    /// log2 N.
    pub log_n: u32,
    /// Bits of the largest ciphertext modulus.
    pub log_q: u32,
    /// Bits of the largest modulus of a key.
    pub log_qp: u32,
    /// The most that the table allows.
    pub limit: u32,
    /// Circuits evaluated and decrypted.
    pub circuits: usize,
    /// Of them right.
    pub right: usize,
    /// Seconds, planning and keys included.
    pub seconds: f64,
}

/// An element a + b w of the field of T^2 elements, w^2 = 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair(u64, u64);

impl Pair {
    fn mul(self, y: Self) -> Self {
        Self((self.0 * y.0 + NON_RESIDUE * (self.1 * y.1 % T)) % T, (self.0 * y.1 + self.1 * y.0) % T)
    }

    fn neg(self) -> Self {
        Self((T - self.0) % T, (T - self.1) % T)
    }

    fn pow(self, mut exponent: u64) -> Self {
        let (mut base, mut out) = (self, Self(1, 0));
        while exponent > 0 {
            if exponent & 1 == 1 {
                out = out.mul(base);
            }
            base = base.mul(base);
            exponent >>= 1;
        }
        out
    }

    /// Random roots of X^N + 1.
    fn roots(n: u64, numbers: &mut Numbers) -> Result<Vec<Self>, Error> {
        let order = T * T - 1;
        if !order.is_multiple_of(2 * n) {
            return Err(Error::Request { reason: format!("X^{n} + 1 has no root in the field of {T}^2 elements") });
        }
        let primitive = loop {
            let root = Self(numbers.word() % T, numbers.word() % T).pow(order / (2 * n));
            if root.pow(n) == Self(1, 0).neg() {
                break root;
            }
        };
        Ok((0..POINTS).map(|_| primitive.pow(2 * (numbers.word() % n) + 1)).collect())
    }

    /// The value of a polynomial.
    fn value(self, coefficients: &[u64]) -> Self {
        coefficients.iter().rev().fold(Self(0, 0), |sum, &c| {
            let moved = sum.mul(self);
            Self((moved.0 + c) % T, moved.1)
        })
    }
}

/// A scheme's ciphertexts beside what they hold in the clear.
trait Cleartext {
    type Ciphertext;
    /// What is known of a message: its values at some points.
    type Values: Clone;

    fn encrypt(&mut self, numbers: &mut Numbers) -> Result<(Self::Ciphertext, Self::Values), Error>;
    fn mul(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> Result<Self::Ciphertext, Error>;
    fn neg(&self, x: &Self::Ciphertext) -> Result<Self::Ciphertext, Error>;
    fn mul_values(x: &Self::Values, y: &Self::Values, negated: bool) -> Self::Values;
    /// Whether the ciphertext decrypts to a message with these values.
    fn decrypts(&self, x: &Self::Ciphertext, values: &Self::Values) -> Result<bool, Error>;
}

struct Exact<S: Scheme> {
    context: Arc<exact::Context<S>>,
    secret: synchromesh_rlwe::SecretKey,
    public: synchromesh_rlwe::PublicKey,
    evaluator: exact::Evaluator<S>,
    randomness: Randomness,
    roots: Vec<Pair>,
}

impl<S: Scheme> Exact<S> {
    fn new(params: exact::Params<S>, seed: u64, numbers: &mut Numbers) -> Result<Self, Error> {
        let roots = Pair::roots(params.n() as u64, numbers)?;
        let context = exact::Context::new(params)?;
        let mut randomness = Randomness::insecure_from_number(seed);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let keys = context.generate_evaluation_keys(&secret, &exact::Rotations::none(), &mut randomness)?;
        let evaluator = exact::Evaluator::new(&context, Some(Arc::new(keys)));
        Ok(Self { context, secret, public, evaluator, randomness, roots })
    }
}

impl<S: Scheme> Cleartext for Exact<S> {
    type Ciphertext = exact::Ciphertext<S>;
    type Values = Vec<Pair>;

    fn encrypt(&mut self, numbers: &mut Numbers) -> Result<(Self::Ciphertext, Self::Values), Error> {
        let message: Vec<u64> = (0..self.context.params().n()).map(|_| numbers.word() % T).collect();
        let values = self.roots.iter().map(|root| root.value(&message)).collect();
        let plaintext = self.context.encode_coefficients(&message)?;
        Ok((self.context.encrypt(&self.public, &plaintext, &mut self.randomness)?, values))
    }

    fn mul(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> Result<Self::Ciphertext, Error> {
        Ok(self.evaluator.mul(x, y)?)
    }

    fn neg(&self, x: &Self::Ciphertext) -> Result<Self::Ciphertext, Error> {
        Ok(self.evaluator.neg(x)?)
    }

    fn mul_values(x: &Self::Values, y: &Self::Values, negated: bool) -> Self::Values {
        let products = x.iter().zip(y).map(|(x, y)| x.mul(*y));
        products.map(|z| if negated { z.neg() } else { z }).collect()
    }

    fn decrypts(&self, x: &Self::Ciphertext, values: &Self::Values) -> Result<bool, Error> {
        let message = self.context.decode_coefficients_u64(&self.context.decrypt(&self.secret, x)?)?;
        Ok(self.roots.iter().zip(values).all(|(root, value)| root.value(&message) == *value))
    }
}

struct Approximate {
    context: Arc<ckks::Context>,
    secret: synchromesh_rlwe::SecretKey,
    public: synchromesh_rlwe::PublicKey,
    evaluator: ckks::Evaluator,
    randomness: Randomness,
}

impl Approximate {
    fn new(params: ckks::Params, seed: u64) -> Result<Self, Error> {
        let context = ckks::Context::new(params)?;
        let mut randomness = Randomness::insecure_from_number(seed);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let keys = context.generate_evaluation_keys(&secret, &ckks::Rotations::none(), &mut randomness)?;
        let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
        Ok(Self { context, secret, public, evaluator, randomness })
    }
}

impl Cleartext for Approximate {
    type Ciphertext = ckks::Ciphertext;
    type Values = Vec<Complex64>;

    fn encrypt(&mut self, numbers: &mut Numbers) -> Result<(Self::Ciphertext, Self::Values), Error> {
        let mut unit = || {
            let (im, re) = ((numbers.word() >> 11) as f64 * 2f64.powi(-53) * std::f64::consts::TAU).sin_cos();
            Complex64::new(re, im)
        };
        let values: Vec<Complex64> = (0..self.context.params().slots()).map(|_| unit()).collect();
        let plaintext = self.context.encode_complex(&values, 1.0)?;
        Ok((self.context.encrypt(&self.public, &plaintext, &mut self.randomness)?, values))
    }

    fn mul(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> Result<Self::Ciphertext, Error> {
        Ok(self.evaluator.mul(x, y)?)
    }

    fn neg(&self, x: &Self::Ciphertext) -> Result<Self::Ciphertext, Error> {
        Ok(self.evaluator.neg(x)?)
    }

    fn mul_values(x: &Self::Values, y: &Self::Values, negated: bool) -> Self::Values {
        let sign = if negated { -1.0 } else { 1.0 };
        let product = |(x, y): (&Complex64, &Complex64)| {
            Complex64::new(sign * (x.re * y.re - x.im * y.im), sign * (x.re * y.im + x.im * y.re))
        };
        x.iter().zip(y).map(product).collect()
    }

    fn decrypts(&self, x: &Self::Ciphertext, values: &Self::Values) -> Result<bool, Error> {
        let decoded = self.context.decode_complex(&self.context.decrypt(&self.secret, x)?)?;
        let most = (-f64::from(PRECISION)).exp2();
        Ok(decoded.iter().zip(values).all(|(z, x)| (z.re - x.re).hypot(z.im - x.im) <= most))
    }
}

/// Nodes of each layer: few where products are dear, `last` at the end.
fn widths(depth: usize, last: usize) -> Vec<usize> {
    (1..=depth)
        .map(|layer| if layer == depth { last } else { (last >> (depth - layer).min(16)).clamp(4, 64) })
        .collect()
}

/// A random product of two nodes of `layer`.
fn node<C: Cleartext>(
    scheme: &C,
    layer: &[(C::Ciphertext, C::Values)],
    numbers: &mut Numbers,
) -> Result<(C::Ciphertext, C::Values), Error> {
    let [(x, a), (y, b)] = [0, 1].map(|_| &layer[numbers.below(layer.len())]);
    let negated = numbers.below(2) == 1;
    let product = if negated { scheme.mul(&scheme.neg(x)?, y)? } else { scheme.mul(x, y)? };
    Ok((product, C::mul_values(a, b, negated)))
}

/// Evaluates `circuits` circuits; how many decrypted rightly.
fn batch<C: Cleartext>(
    mut scheme: C,
    depth: usize,
    circuits: usize,
    numbers: &mut Numbers,
    progress: &mut dyn FnMut(),
) -> Result<usize, Error> {
    let mut layer = (0..4).map(|_| scheme.encrypt(numbers)).collect::<Result<Vec<_>, _>>()?;
    let widths = widths(depth, circuits);
    let (last, inner) = widths.split_last().map_or((circuits, &[][..]), |(last, inner)| (*last, inner));
    for &width in inner {
        layer = (0..width).map(|_| node(&scheme, &layer, numbers)).collect::<Result<Vec<_>, _>>()?;
    }
    let mut right = 0;
    for _ in 0..last {
        let (ciphertext, values) = node(&scheme, &layer, numbers)?;
        right += usize::from(scheme.decrypts(&ciphertext, &values)?);
        progress();
    }
    Ok(right)
}

/// Plans for `depth` multiplications with t = 65537 or 20 bits of precision, and runs random circuits of that depth there;
/// `progress` hears of each.
///
/// # Errors
/// When there is no plan, an operation is refused, or the device fails.
pub fn decryptions(
    scheme: SchemeName,
    security: Security,
    depth: usize,
    circuits: usize,
    progress: &mut dyn FnMut(),
) -> Result<Decryptions, Error> {
    let start = Instant::now();
    let mut description = Description::new(scheme, depth);
    description.security = security;
    match scheme {
        SchemeName::Ckks => description.precision = Some(PRECISION),
        SchemeName::Bfv | SchemeName::Bgv => description.t = Some(T.to_string()),
    }
    let plan: Plan = description.plan()?;
    let mut numbers = Numbers(depth as u64);
    let (mut done, mut right) = (0, 0);
    while done < circuits {
        let (count, seed) = (BATCH.min(circuits - done), done as u64);
        right += match scheme {
            SchemeName::Bfv => {
                let exact = Exact::<Bfv>::new(plan.bfv()?, seed, &mut numbers)?;
                batch(exact, depth, count, &mut numbers, progress)?
            }
            SchemeName::Bgv => {
                let exact = Exact::<Bgv>::new(plan.bgv()?, seed, &mut numbers)?;
                batch(exact, depth, count, &mut numbers, progress)?
            }
            SchemeName::Ckks => batch(Approximate::new(plan.ckks()?, seed)?, depth, count, &mut numbers, progress)?,
        };
        done += count;
    }
    Ok(Decryptions {
        scheme: scheme.name(),
        security: security.level().map_or(0, |level| level.bits()),
        depth,
        log_n: plan.log_n,
        log_q: plan.q_bits.iter().sum(),
        log_qp: plan.log_qp,
        limit: security.max_log_qp(plan.log_n),
        circuits,
        right,
        seconds: start.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_at_roots_follow_products_of_polynomials() {
        let mut numbers = Numbers(1);
        for n in [8u64, 1 << 16] {
            for root in Pair::roots(n, &mut numbers).unwrap() {
                assert_eq!(root.pow(n), Pair(T - 1, 0));
            }
        }
        // (1 + 2 X^7)(3 X) = 3 X + 6 X^8 = -6 + 3 X modulo X^8 + 1.
        for root in Pair::roots(8, &mut numbers).unwrap() {
            let x = root.value(&[1, 0, 0, 0, 0, 0, 0, 2]).mul(root.value(&[0, 3]));
            assert_eq!(x, root.value(&[T - 6, 3]));
            assert_ne!(x, root.value(&[T - 6, 4]));
        }
        assert!(Pair::roots(1 << 17, &mut numbers).is_err());
    }

    #[test]
    fn circuits_decrypt_at_their_plans_and_another_result_is_found_wrong() {
        for scheme in [SchemeName::Bfv, SchemeName::Bgv, SchemeName::Ckks] {
            let mut heard = 0;
            let found = decryptions(scheme, Security::Insecure, 2, 12, &mut || heard += 1).unwrap();
            assert_eq!((found.right, found.circuits, heard), (12, 12, 12), "{found:?}");
        }
        let mut description = Description::new(SchemeName::Bgv, 0);
        (description.security, description.t) = (Security::Insecure, Some(T.to_string()));
        let mut numbers = Numbers(7);
        let params = description.plan().unwrap().bgv().unwrap();
        let mut exact = Exact::<Bgv>::new(params, 1, &mut numbers).unwrap();
        let (x, mut values) = exact.encrypt(&mut numbers).unwrap();
        assert!(exact.decrypts(&x, &values).unwrap() && !exact.decrypts(&exact.neg(&x).unwrap(), &values).unwrap());
        values[POINTS - 1].1 ^= 1;
        assert!(!exact.decrypts(&x, &values).unwrap());
    }

    #[test]
    fn layers_are_narrow_where_products_are_dear() {
        assert_eq!(widths(10, 100), [4, 4, 4, 4, 4, 6, 12, 25, 50, 100]);
        assert_eq!((widths(1, 7), widths(0, 7)), (vec![7], vec![]));
    }
}
