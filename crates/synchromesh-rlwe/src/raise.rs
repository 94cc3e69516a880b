//! A ciphertext raised to a higher level: its residues, taken as centred integers, modulo more primes (ePrint 2018/153).
//!
//! What was c_0 + c_1 s = m modulo Q_0 is m + Q_0 I there, with I a polynomial of small integers: the components are at
//! most Q_0 / 2, so that |m + Q_0 I| is at most Q_0 (1 + h) / 2 in each coefficient, h the number of coefficients of s
//! that are not 0. Under a sparse secret that is little.

use synchromesh_ring::backend::ConvertMode;
use synchromesh_ring::rns::{ConvertSpec, Overflow};
use synchromesh_ring::{Backend, Coeff, IndexSet, Poly, View, ViewMut};

use crate::ciphertext::Ciphertext;
use crate::context::{Constant, Context};
use crate::domain::SwitchDomain;
use crate::error::Error;

/// The primes a ciphertext has and those it lacks.
#[derive(PartialEq, Eq, Hash)]
struct Spec {
    have: IndexSet,
    lacking: IndexSet,
}

/// The base conversion from the ones to the others.
struct Raise<B: Backend>(B::Conversion);

impl<B: Backend> Constant<B> for Raise<B> {
    type Spec = Spec;

    fn make(context: &Context<B>, Spec { have, lacking }: &Spec) -> Result<Self, Error> {
        let ring = context.params().ring();
        let ones = |set: &IndexSet| vec![1; set.len()];
        let spec = ConvertSpec::new(ring, have, lacking, &ones(have), &ones(lacking), Overflow::Round)?;
        Ok(Self(context.backend().conversion(have, lacking, &spec)?))
    }
}

impl<B: Backend, D: SwitchDomain> Ciphertext<B, D> {
    /// The ciphertext of m + Q I at a higher level, Q the modulus it has; see the module. The certificate is of m still.
    ///
    /// # Errors
    /// [`Error::Level`] unless `level` is above this one's and holds all its primes, or when the device fails.
    pub fn raise_to(&self, context: &Context<B>, level: usize) -> Result<Self, Error> {
        let params = context.params();
        let (have, want) = (params.level(self.level())?, params.level(level)?);
        if level <= self.level() || !have.without(want).is_empty() {
            return Err(Error::Level { needed: self.level() + 1, have: level, top: params.top_level() });
        }
        let lacking = want.without(have);
        let raise = context.constant::<Raise<B>>(Spec { have: have.clone(), lacking: lacking.clone() })?;
        let backend = context.backend();
        let raised = |part: &Poly<B, D>| -> Result<Poly<B, D>, Error> {
            let own = D::to_coeff(backend, part)?;
            let mut out = Poly::<B, Coeff>::new(backend, want)?;
            let all: Vec<usize> = (0..have.len()).collect();
            let rows = want.rows(have)?;
            backend.copy(View::new(own.buffer(), &all), ViewMut::new(out.buffer_mut(), &rows))?;
            let rows = want.rows(&lacking)?;
            let (from, to) = (View::new(own.buffer(), &all), ViewMut::new(out.buffer_mut(), &rows));
            backend.convert(&raise.0, from, to, ConvertMode::Replace)?;
            D::from_coeff(backend, out)
        };
        let parts = self.parts().iter().map(raised).collect::<Result<_, _>>()?;
        Self::new(params, parts, level, self.key(), self.noise())
    }
}
