//! The second decomposition of a key: each row, modulo each digit of QP, as an integer polynomial in R_E.

use synchromesh_ring::rns::{ConvertSpec, Overflow};
use synchromesh_ring::{Backend, ConvertMode, IndexSet, Ntt, Poly, View, ViewMut};

use crate::context::Context;
use crate::error::Error;
use crate::prepared_key::PreparedKey;
use crate::switch_key::SwitchKey;
use crate::switch_plan::{ExtendedRing, Folding, SwitchPlan};

/// One digit of QP: its limbs there, and the conversion that takes it, centred, to E.
struct Lift<B: Backend> {
    rows: Vec<usize>,
    conversion: B::Conversion,
}

/// Prepares `key` in R_E: each row of `plan`, coalesced if it is so, times `factors` modulo QP, and where the plan folds
/// also those of the conversion from E (ePrint 2023/1642, sections 3.3 and 4.2).
pub(super) fn prepare<B: Backend>(
    key: &SwitchKey<B>,
    context: &Context<B>,
    plan: &SwitchPlan,
    numbers: Vec<usize>,
    extended: &ExtendedRing,
    factors: &[u64],
) -> Result<PreparedKey<B>, Error> {
    let (backend, params) = (context.backend(), context.params());
    let primes = plan.key_primes();
    let folded = matches!(plan.folding, Folding::Folded { .. });
    let plan_rows = plan.rows(params, params.q());
    let (groups, width) = (extended.key_digits.len(), extended.aux.len());
    let lifts = lifts(context, extended, &primes)?;
    let (out_factors, _) = extended.way_out(params, &IndexSet::empty())?.fold();
    let repeated: Vec<usize> = (0..groups).flat_map(|_| extended.aux.iter()).collect();
    let out_factors: Vec<u64> = (0..groups).flat_map(|_| out_factors.iter().copied()).collect();
    let omega = plan_rows.len();
    let size = omega * groups * width;
    let all: Vec<usize> = (0..primes.len()).collect();
    let mut columns = [backend.alloc(size)?, backend.alloc(size)?];
    for (j, row) in plan_rows.iter().enumerate() {
        let (mut b, mut a) = (Poly::<B, Ntt>::new(backend, &primes)?, Poly::<B, Ntt>::new(backend, &primes)?);
        let both = [b.buffer_mut(), a.buffer_mut()];
        key.sum_row_into(context, (&row.stored, &primes), Some(factors), both, &all)?;
        for (column, poly) in columns.iter_mut().zip([b, a]) {
            let poly = poly.into_coeff(backend)?;
            let first = j * groups * width;
            for (m, lift) in lifts.iter().enumerate() {
                let to: Vec<usize> = (0..width).map(|r| first + m * width + r).collect();
                let (src, dst) = (View::new(poly.buffer(), &lift.rows), ViewMut::new(column, &to));
                backend.convert(&lift.conversion, src, dst, ConvertMode::Replace)?;
            }
            let rows: Vec<usize> = (first..first + groups * width).collect();
            backend.ntt_forward(&repeated, ViewMut::new(column, &rows))?;
            if folded {
                backend.mul_scalar_assign(&repeated, ViewMut::new(column, &rows), &out_factors)?;
            }
        }
    }
    Ok(PreparedKey {
        source: key.source(),
        target: key.target(),
        numbers,
        groups,
        primes: extended.aux.clone(),
        columns,
    })
}

fn lifts<B: Backend>(context: &Context<B>, extended: &ExtendedRing, primes: &IndexSet) -> Result<Vec<Lift<B>>, Error> {
    let lift = |digit: &IndexSet| {
        let ones = |set: &IndexSet| vec![1; set.len()];
        let (to, ring) = (&extended.aux, context.params().ring());
        let spec = ConvertSpec::new(ring, digit, to, &ones(digit), &ones(to), Overflow::Round)?;
        let conversion = context.backend().conversion(digit, to, &spec)?;
        Ok(Lift { rows: primes.rows(digit)?, conversion })
    };
    extended.key_digits.iter().map(lift).collect()
}
