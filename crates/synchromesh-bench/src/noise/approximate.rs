//! Errors of CKKS, slot by slot, given as those of coefficients.

use std::sync::Arc;

use synchromesh::ckks::{Ciphertext, Context, Evaluator, Mode, Params, ParamsLiteral, Rotations};
use synchromesh_ring::Cpu;
use synchromesh_rlwe::noise::{Estimating, FailureLimit};
use synchromesh_rlwe::{Noise, PublicKey, Randomness, SecretKey};

use super::Table;
use super::suite::{Effort, Errors};
use crate::Error;
use crate::numbers::Numbers;

/// log2 of the scale.
const SCALE: u32 = 40;

type Values = Vec<f64>;

struct Setup {
    context: Arc<Context>,
    secret: SecretKey,
    public: PublicKey,
    evaluator: Evaluator,
    randomness: Randomness,
    numbers: Numbers,
}

impl Setup {
    /// Uniform in [-1, 1].
    fn uniform(&mut self) -> Values {
        (0..self.context.params().slots()).map(|_| self.numbers.unit()).collect()
    }

    fn encrypt(&mut self, values: &Values) -> Result<Ciphertext, Error> {
        let plaintext = self.context.encode(values)?;
        Ok(self.context.encrypt(&self.public, &plaintext, &mut self.randomness)?)
    }

    /// Enters the real and imaginary errors of all slots, by which a coefficient of the same power errs.
    fn enter(
        &self,
        table: &mut Table,
        (operation, average, depth): (&'static str, bool, usize),
        ct: &Ciphertext,
        expected: &Values,
    ) -> Result<(), Error> {
        let decoded = self.context.decode_complex(&self.context.decrypt(&self.secret, ct)?)?;
        // A slot has N times the mean square of a coefficient, half of it in each part.
        let unit = ct.log2_scale().exp2() / (self.context.params().n() as f64).sqrt();
        let errors: Vec<f64> = decoded.iter().zip(expected).map(|(z, x)| (z.re - x).hypot(z.im) * unit).collect();
        table.add(operation, average, depth, ct.inner().noise(), &errors);
        Ok(())
    }
}

fn zip(x: &Values, y: &Values, f: impl Fn(f64, f64) -> f64) -> Values {
    x.iter().zip(y).map(|(&x, &y)| f(x, y)).collect()
}

fn rotate(x: &Values, k: usize) -> Values {
    (0..x.len()).map(|i| x[(i + k) % x.len()]).collect()
}

/// A context of CKKS that errors are measured in.
pub(super) struct Approximate {
    context: Arc<Context>,
}

impl Approximate {
    pub(super) fn new(log_n: u32) -> Result<Self, Error> {
        let params = Params::new(ParamsLiteral {
            log_n,
            log_scale: SCALE,
            q_bits: vec![55, 40, 40, 40],
            p_bits: vec![58, 58],
            level_limbs: Vec::new(),
            schedule: Default::default(),
            omega: 2,
            log_scales: vec![],
            mode: Mode::Auto,
            security: synchromesh_rlwe::Security::Insecure,
            primes: None,
        })?;
        let backend = Cpu::open(Arc::clone(params.rlwe().ring()))?;
        Ok(Self { context: Context::observed(params, backend, Some(Arc::new(Estimating)))? })
    }
}

impl Errors for Approximate {
    fn measure(&self, key: usize, effort: Effort) -> Result<Table, Error> {
        let (mut table, log_n) = (Table::default(), self.context.params().log_n());
        let mut randomness = Randomness::insecure_from_number(2000 * u64::from(log_n) + key as u64);
        let (secret, public) = self.context.generate_keys(&mut randomness)?;
        let rotations = Rotations::by((0..log_n - 1).map(|i| 1 << i)).and_conjugate();
        let made = Arc::new(self.context.generate_evaluation_keys(&secret, &rotations, &mut randomness)?);
        let evaluator = Evaluator::new(&self.context, Some(made));
        let context = Arc::clone(&self.context);
        let mut setup = Setup { context, secret, public, evaluator, randomness, numbers: Numbers(key as u64) };
        linear(&mut setup, &mut table)?;
        for _ in 0..effort.sums {
            slot_sum(&mut setup, &mut table)?;
        }
        products(&mut setup, &mut table)?;
        if effort.hostile {
            hostile(&mut setup, &mut table)?;
        }
        Ok(table)
    }

    /// What a slot may be off by, in the units of the measured errors.
    fn bound(&self, noise: &Noise, limit: FailureLimit) -> f64 {
        self.context.slot_bound(*noise, limit) - f64::from(self.context.params().log_n()) / 2.0
    }
}

fn linear(setup: &mut Setup, table: &mut Table) -> Result<(), Error> {
    let (a, b) = (setup.uniform(), setup.uniform());
    let (x, y) = (setup.encrypt(&a)?, setup.encrypt(&b)?);
    let plain = setup.context.encode(&b)?;
    let e = &setup.evaluator;
    setup.enter(table, ("encrypt", true, 0), &x, &a)?;
    setup.enter(table, ("x + y", true, 0), &e.add(&x, &y)?, &zip(&a, &b, |x, y| x + y))?;
    setup.enter(table, ("x + x", true, 0), &e.add(&x, &x)?, &zip(&a, &a, |x, y| x + y))?;
    setup.enter(table, ("x + plaintext", true, 0), &e.add_plain(&x, &plain)?, &zip(&a, &b, |x, y| x + y))?;
    setup.enter(table, ("x times plaintext", true, 0), &e.mul_plain(&x, &plain)?, &zip(&a, &b, |x, y| x * y))?;
    setup.enter(table, ("1000 x", true, 0), &e.mul_scalar(&x, 1000.0)?, &zip(&a, &a, |x, _| 1000.0 * x))?;
    setup.enter(table, ("2.75 x", true, 0), &e.mul_scalar(&x, 2.75)?, &zip(&a, &a, |x, _| 2.75 * x))?;
    setup.enter(table, ("rotate", true, 0), &e.rotate(&x, 1)?, &rotate(&a, 1))?;
    setup.enter(table, ("rotate, hoisted", true, 0), &e.rotate_many(&x, &[2])?[0], &rotate(&a, 2))?;
    setup.enter(table, ("conjugate", true, 0), &e.conjugate(&x)?, &a)?;
    setup.enter(table, ("modulus switch", true, 0), &e.mod_switch(&x)?, &a)
}

fn slot_sum(setup: &mut Setup, table: &mut Table) -> Result<(), Error> {
    let (mut expected, mut k) = (setup.uniform(), 1);
    let mut sum = setup.encrypt(&expected)?;
    let e = &setup.evaluator;
    while k < setup.context.params().slots() {
        sum = e.add(&sum, &e.rotate(&sum, k as i64)?)?;
        expected = zip(&expected, &rotate(&expected, k), |x, y| x + y);
        k *= 2;
    }
    setup.enter(table, ("sum of all slots", true, 0), &sum, &expected)
}

fn products(setup: &mut Setup, table: &mut Table) -> Result<(), Error> {
    let values: Vec<Values> = (0..4).map(|_| setup.uniform()).collect();
    let x = values.iter().map(|v| setup.encrypt(v)).collect::<Result<Vec<_>, _>>()?;
    let e = &setup.evaluator;
    let mul = |x: &Values, y: &Values| zip(x, y, |x, y| x * y);
    let [ab, cd] = [0, 2].map(|i| mul(&values[i], &values[i + 1]));
    setup.enter(table, ("x y, three components", true, 1), &e.mul_no_relin(&x[0], &x[1])?, &ab)?;
    let (xy, zw) = (e.mul(&x[0], &x[1])?, e.mul(&x[2], &x[3])?);
    setup.enter(table, ("x y", true, 1), &xy, &ab)?;
    setup.enter(table, ("x x", true, 1), &e.square(&x[0])?, &mul(&values[0], &values[0]))?;
    setup.enter(table, ("(x y) z", true, 2), &e.mul(&xy, &x[2])?, &mul(&ab, &values[2]))?;
    setup.enter(table, ("(x y) (z w)", true, 2), &e.mul(&xy, &zw)?, &mul(&ab, &cd))
}

/// Operands that have something in common, and messages chosen to hurt: for the certificate alone.
fn hostile(setup: &mut Setup, table: &mut Table) -> Result<(), Error> {
    let (a, b) = (setup.uniform(), setup.uniform());
    let ones = vec![1.0; a.len()];
    let (x, y, extreme) = (setup.encrypt(&a)?, setup.encrypt(&b)?, setup.encrypt(&ones)?);
    let e = &setup.evaluator;
    let mul = |x: &Values, y: &Values| zip(x, y, |x, y| x * y);
    let conjugate = e.conjugate(&x)?;
    setup.enter(table, ("x times its conjugate", false, 1), &e.mul(&x, &conjugate)?, &mul(&a, &a))?;
    let rotated = e.rotate(&x, 1)?;
    setup.enter(table, ("x times its rotation", false, 1), &e.mul(&x, &rotated)?, &mul(&a, &rotate(&a, 1)))?;
    let square = e.square(&x)?;
    let fourth = mul(&mul(&a, &a), &mul(&a, &a));
    setup.enter(table, ("(x x) (x x)", false, 2), &e.square(&square)?, &fourth)?;
    let [plus, minus] = [e.add(&x, &rotated)?, e.sub(&x, &rotated)?];
    let moved = rotate(&a, 1);
    let difference = zip(&mul(&a, &a), &mul(&moved, &moved), |x, y| x - y);
    setup.enter(table, ("(x + x') (x - x'), x' rotated", false, 1), &e.mul(&plus, &minus)?, &difference)?;
    let [xy, xz] = [e.mul(&x, &y)?, e.mul(&x, &e.add(&x, &y)?)?];
    let both = zip(&mul(&a, &a), &mul(&a, &b), |x, y| x + 2.0 * y);
    setup.enter(table, ("x y + x (x + y)", false, 1), &e.add(&xy, &xz)?, &both)?;
    let lowered = e.mod_switch(&e.add(&e.mod_switch(&x)?, &x)?)?;
    setup.enter(table, ("x + x lowered, lowered", false, 0), &lowered, &zip(&a, &a, |x, y| x + y))?;
    setup.enter(table, ("largest times y", false, 1), &e.mul(&extreme, &y)?, &b)?;
    setup.enter(table, ("largest times largest", false, 1), &e.mul(&extreme, &extreme)?, &ones)
}
