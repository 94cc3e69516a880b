//! One key switch on random data, ready to be run, counted, recorded or timed on any backend.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::domain::MixedPoly;
use synchromesh_rlwe::key_switch::Output;
use synchromesh_rlwe::ring::sampler::{Purpose, Seed};
use synchromesh_rlwe::ring::{Backend, IndexSet, Ntt, Poly, ViewMut};
use synchromesh_rlwe::{Context, Operand, PreparedKey, Randomness, SecretKey, Source, SwitchKey, SwitchPlan, Switcher};

use crate::error::{Error, Result};

/// What is switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// c_2 of a product; c_0 and c_1 are added.
    Relin,
    /// c_1 of a rotated ciphertext; c_0 is added and both are permuted.
    Rotate,
}

/// The operation, and the domains a ciphertext enters and leaves in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Relinearisation or rotation.
    pub op: Op,
    /// Slots, not coefficients, come in.
    pub input_ntt: bool,
    /// Slots, not coefficients, go out.
    pub output_ntt: bool,
    /// Ciphertexts that are switched one after another.
    pub batch: usize,
}

impl Shape {
    /// One rotation, slots to slots.
    pub const ROTATION: Self = Self { op: Op::Rotate, input_ntt: true, output_ntt: true, batch: 1 };
}

/// A key switch with its key and operands.
pub struct OneSwitch<B: Backend> {
    context: Arc<Context<B>>,
    switcher: Arc<Switcher<B>>,
    key: Arc<PreparedKey<B>>,
    /// For each ciphertext of the batch, what is switched and what is added.
    operands: Vec<[MixedPoly<B>; 3]>,
    output: Output,
    op: Op,
}

impl<B: Backend> OneSwitch<B> {
    /// Makes a key for `plan` and random operands on the primes `active`; the result will be on `target`.
    ///
    /// # Errors
    /// [`Error::Rlwe`] when the plan does not fit the parameters, or the device fails.
    pub fn new(
        context: &Arc<Context<B>>,
        plan: &SwitchPlan,
        [active, target]: [&IndexSet; 2],
        shape: Shape,
    ) -> Result<Self> {
        let mut randomness = Randomness::insecure_from_number(1);
        let secret = SecretKey::generate(context, &mut randomness)?;
        let source = match shape.op {
            Op::Relin => Source::Square,
            Op::Rotate => Source::Galois(3),
        };
        let key = SwitchKey::generate(context, &secret, source, None, plan, &mut randomness)?;
        let key = Arc::new(key.prepare(context, plan)?);
        let switcher = context.switcher(plan, active, target)?;
        let output = Output { ntt: IndexSet::empty(), galois: 1 };
        let context = Arc::clone(context);
        Self { context, switcher, key, operands: Vec::new(), output, op: shape.op }.with_shape(shape)
    }

    /// The same key and primes with other operands. What the key switches from does not matter to its cost.
    ///
    /// # Errors
    /// When the device fails.
    pub fn with_shape(mut self, shape: Shape) -> Result<Self> {
        let (context, active) = (&self.context, self.switcher.active());
        let operand = |digit: u32| uniform(context, active, shape.input_ntt, digit);
        let operands = (0..shape.batch as u32).map(|i| Ok([operand(3 * i)?, operand(3 * i + 1)?, operand(3 * i + 2)?]));
        self.operands = operands.collect::<Result<_>>()?;
        let galois = if shape.op == Op::Rotate { 3 } else { 1 };
        let ntt = if shape.output_ntt { self.switcher.target().clone() } else { IndexSet::empty() };
        (self.output, self.op) = (Output { ntt, galois }, shape.op);
        Ok(self)
    }

    /// The compiled switch.
    #[must_use]
    pub fn switcher(&self) -> &Switcher<B> {
        &self.switcher
    }

    /// The context it runs in.
    #[must_use]
    pub fn context(&self) -> &Arc<Context<B>> {
        &self.context
    }

    /// Decomposes, takes the inner product and divides P out, for every ciphertext of the batch.
    ///
    /// # Errors
    /// When the device fails.
    pub fn run(&self) -> Result<()> {
        (0..self.operands.len()).try_for_each(|i| self.run_one(i).map(|parts| drop(std::hint::black_box(parts))))
    }

    /// The same for one ciphertext of the batch: both parts of the result.
    ///
    /// # Errors
    /// When there are fewer ciphertexts, or the device fails.
    pub fn run_one(&self, index: usize) -> Result<[MixedPoly<B>; 2]> {
        let Some([input, first, second]) = self.operands.get(index) else {
            return Err(Error::argument(format!("ciphertext {index} of a batch of {}", self.operands.len())));
        };
        let second = (self.op == Op::Relin).then_some(Operand::Mixed(second));
        let addends = [Some(Operand::Mixed(first)), second];
        Ok(self.switcher.switch_mixed(&self.context, Operand::Mixed(input), &self.key, addends, &self.output)?)
    }

    /// Ciphertexts of the batch.
    #[must_use]
    pub const fn batch(&self) -> usize {
        self.operands.len()
    }
}

fn uniform<B: Backend>(context: &Context<B>, primes: &IndexSet, ntt: bool, digit: u32) -> Result<MixedPoly<B>> {
    let (backend, empty) = (context.backend(), IndexSet::empty());
    let mut x: Poly<B, Ntt> = Poly::new(backend, primes)?;
    let rows: Vec<usize> = (0..primes.len()).collect();
    let seed = Seed::from_bytes([7; 32]);
    let view = ViewMut::new(x.buffer_mut(), &rows);
    backend.uniform(primes.as_slice(), &seed, Purpose::PublicRandomness, digit, view)?;
    if ntt {
        return Ok(MixedPoly { coeff: Poly::new(backend, &empty)?, ntt: x });
    }
    let coeff = x.into_coeff(backend)?;
    Ok(MixedPoly { coeff, ntt: Poly::new(backend, &empty)? })
}
