//! One digit of the input of a key switch: how it comes to the primes of the inner product.

use synchromesh_ring::backend::RadixDigit;
use synchromesh_ring::rns::ConvertSpec;
use synchromesh_ring::{Backend, IndexSet};

use super::ring;
use crate::context::Context;
use crate::error::Error;
use crate::switch_plan::{KeyRow, SwitchPlan};

/// One digit on the active primes: how it comes to the primes of the base, where the inner product is computed.
pub(super) struct Digit<B: Backend> {
    /// Its row in the key.
    pub(super) index: usize,
    /// Limbs of the input that are its own primes.
    pub(super) input_rows: Vec<usize>,
    /// Those that are limbs of the base too: the limb of the input and that of the base.
    pub(super) kept: Vec<(usize, usize)>,
    /// The other limbs of the base, and what fills them.
    pub(super) rest: IndexSet,
    pub(super) rest_rows: Vec<usize>,
    pub(super) fill: Fill<B>,
}

/// How the limbs of a digit that are not limbs of the input come about.
pub(super) enum Fill<B: Backend> {
    /// There are none.
    Nothing,
    /// By a base conversion.
    Convert(B::Conversion),
    /// As a radix digit of the one limb of this prime.
    Radix(usize, RadixDigit),
}

impl<B: Backend> Digit<B> {
    pub(super) fn new(
        context: &Context<B>,
        plan: &SwitchPlan,
        row: &KeyRow,
        active: &IndexSet,
        base: &IndexSet,
    ) -> Result<Self, Error> {
        let own = &row.own;
        let keeps = row.radix.is_none() && plan.keeps_limbs();
        let kept = if keeps { own.intersection(base) } else { IndexSet::empty() };
        let rest = base.without(&kept);
        let fill = match (row.radix, own.as_slice().first()) {
            (Some(radix), Some(&from)) => Fill::Radix(from, radix),
            _ if rest.is_empty() => Fill::Nothing,
            _ => {
                let (params, rule) = (context.params(), plan.digit_overflow);
                let (pre, post) = (plan.input_factors(params, own), vec![1; rest.len()]);
                let spec = ConvertSpec::new(params.ring(), own, &rest, &pre, &post, rule)?;
                Fill::Convert(context.backend().conversion(own, &rest, &spec).map_err(ring)?)
            }
        };
        Ok(Self {
            index: row.index,
            input_rows: active.rows(own)?,
            kept: active.rows(&kept)?.into_iter().zip(base.rows(&kept)?).collect(),
            rest_rows: base.rows(&rest)?,
            rest,
            fill,
        })
    }
}
