//! The product of ePrint 2021/204, algorithm 2: one operand goes to a second base P about Q, the tensor product is
//! taken modulo QP and scaled by t/P back to Q. 14 k transforms for k primes.

use std::sync::OnceLock;

use num_bigint::BigUint;
use num_traits::One;
use synchromesh_rlwe::ring::rns::{ConvertSpec, Overflow};
use synchromesh_rlwe::ring::scale::{Scale, ScaleSpec};
use synchromesh_rlwe::ring::{Backend, Coeff, ConvertMode, IndexSet, Ntt, Poly, View, ViewMut};

use super::{Ciphertext, Context, noise};
use crate::error::Result;

/// The second base of one level: how polynomials go to it, over both and back.
pub struct SecondBase<B: Backend> {
    /// Q, then P.
    both: IndexSet,
    q_rows: Vec<usize>,
    p_rows: Vec<usize>,
    /// x mod Q, centred, modulo P; and the reverse.
    extend_to_p: B::Conversion,
    extend_to_q: B::Conversion,
    /// round(P x / Q), from Q to P.
    switch: Scale<B>,
    /// round(t x / P), from QP to Q.
    down: Scale<B>,
}

/// The second bases of all levels, made at first use.
pub(super) struct Levels<B: Backend>(Vec<OnceLock<SecondBase<B>>>);

impl<B: Backend> Levels<B> {
    pub(super) fn new(levels: usize) -> Self {
        Self((0..levels).map(|_| OnceLock::new()).collect())
    }

    fn get(&self, context: &Context<B>, level: usize) -> Result<&SecondBase<B>> {
        if let Some(made) = self.0[level].get() {
            return Ok(made);
        }
        let made = SecondBase::new(context, level)?;
        Ok(self.0[level].get_or_init(|| made))
    }
}

impl<B: Backend> SecondBase<B> {
    fn new(context: &Context<B>, level: usize) -> Result<Self> {
        let (params, backend) = (context.params(), context.backend());
        let (q, p) = (params.rlwe().level(level)?, params.second_base(level)?);
        let both = q.union(&p);
        let extend = |from: &IndexSet, to: &IndexSet| -> Result<B::Conversion> {
            let ones = |set: &IndexSet| vec![1; set.len()];
            let spec = ConvertSpec::new(backend.ring(), from, to, &ones(from), &ones(to), Overflow::Round)?;
            Ok(backend.conversion(from, to, &spec)?)
        };
        let down = ScaleSpec {
            from: both.clone(),
            to: q.clone(),
            numerator: params.t().value().clone(),
            multiple: BigUint::one(),
            overflow: Overflow::Round,
        };
        Ok(Self {
            q_rows: both.rows(q)?,
            p_rows: both.rows(&p)?,
            extend_to_p: extend(q, &p)?,
            extend_to_q: extend(&p, q)?,
            switch: Scale::new(backend, ScaleSpec::switch(q, &p, &BigUint::one()))?,
            down: Scale::new(backend, down)?,
            both,
        })
    }

    /// A polynomial on `own` rows of the common base, extended to the `other` rows, in slots.
    fn extend(
        &self,
        backend: &B,
        x: &Poly<B, Coeff>,
        conversion: &B::Conversion,
        (own, other): (&[usize], &[usize]),
    ) -> Result<Poly<B, Ntt>> {
        let mut out = Poly::<B, Coeff>::new(backend, &self.both)?;
        let rows: Vec<usize> = (0..x.primes().len()).collect();
        let source = View::new(x.buffer(), &rows);
        backend.copy(source, ViewMut::new(out.buffer_mut(), own))?;
        backend.convert(conversion, source, ViewMut::new(out.buffer_mut(), other), ConvertMode::Replace)?;
        Ok(out.into_ntt(backend)?)
    }

    /// x over QP.
    fn extended(&self, backend: &B, x: &Poly<B, Coeff>) -> Result<Poly<B, Ntt>> {
        self.extend(backend, x, &self.extend_to_p, (&self.q_rows, &self.p_rows))
    }

    /// round(P x / Q) over QP.
    fn switched(&self, backend: &B, x: &Poly<B, Coeff>) -> Result<Poly<B, Ntt>> {
        let x = self.switch.apply(backend, x)?;
        self.extend(backend, &x, &self.extend_to_q, (&self.p_rows, &self.q_rows))
    }
}

/// The product in three components; both operands are at one level and have two.
pub(super) fn tensor<B: Backend>(context: &Context<B>, a: &Ciphertext<B>, b: &Ciphertext<B>) -> Result<Ciphertext<B>> {
    let (params, backend, level) = (context.params(), context.backend(), a.level());
    let base = context.tables().products.get(context, level)?;
    let error = noise::product(params, level, a.noise(), b.noise())?;
    let [a, b] = [a.inner(), b.inner()];
    let (a0, a1) = (base.extended(backend, &a.parts()[0])?, base.extended(backend, &a.parts()[1])?);
    let (b0, b1) = (base.switched(backend, &b.parts()[0])?, base.switched(backend, &b.parts()[1])?);
    let mut middle = a0.mul(backend, &b1)?;
    middle.mul_acc(backend, &a1, &b0)?;
    let mut parts = Vec::with_capacity(3);
    for part in [a0.mul(backend, &b0)?, middle, a1.mul(backend, &b1)?] {
        parts.push(base.down.apply(backend, &part.into_coeff(backend)?)?);
    }
    let inner = synchromesh_rlwe::Ciphertext::new(params.rlwe(), parts, level, a.key(), error)?;
    Ok(Ciphertext::new(inner, ()))
}
