//! What computations will take on a machine: a ledger of what a device is asked for, priced by a measured profile.
//!
//! No formula of a cost stands here. The computation itself runs on a dry backend that writes down each operation
//! ([`synchromesh_rlwe::ring::Ledger`]); a [`Profile`] says what each takes on a machine, by degree, prime width and
//! how much memory is in use; [`IndexMap`] picks key-switching plans level by level (ePrint 2023/1642, section 4.4;
//! level-aware key switching, section 4.3).

mod candidates;
mod circuit;
mod index_map;
mod one_switch;
mod profile;

pub use self::candidates::{Candidate, candidates, choices};
pub use self::circuit::{predict_ckks, predict_exact};
pub use self::index_map::{Choice, IndexMap};
pub use self::one_switch::{OneSwitch, Op, Shape};
pub use self::profile::{Entry, Point, Profile, Streaming};

use std::sync::Arc;

use synchromesh_rlwe::ring::{Dry, IndexSet, Ledger, Ring};
use synchromesh_rlwe::{Context, Params, SwitchPlan};

use crate::error::Result;

/// A dry device that writes down what it is asked for.
pub type DryLedger = Ledger<Dry>;

/// A dry, recording device for `params`.
#[must_use]
pub fn recorder(params: &Params) -> DryLedger {
    recorder_on(params.ring())
}

/// A dry, recording device for a ring.
pub(crate) fn recorder_on(ring: &Arc<Ring>) -> DryLedger {
    Ledger::new(Dry::new(Arc::clone(ring)))
}

/// Seconds of one key switch by `plan` from the primes `active` to `target`, as `profile` has it.
///
/// # Errors
/// As [`OneSwitch::new`], and [`Profile::seconds`].
pub fn predict(
    profile: &Profile,
    params: &Params,
    plan: &SwitchPlan,
    [active, target]: [&IndexSet; 2],
    shape: Shape,
) -> Result<f64> {
    let context = Context::with_backend(params.clone(), recorder(params));
    let switch = OneSwitch::new(&context, plan, [active, target], shape)?;
    context.backend().take();
    switch.run()?;
    let (entries, peak) = context.backend().take();
    profile.seconds(&entries, params.ring().log_n(), peak + table_bytes(params, &active.union(&plan.special)))
}

/// Bytes of twiddle factors that transforms of these primes read: two words a coefficient in each direction.
pub(crate) fn table_bytes(params: &Params, primes: &IndexSet) -> usize {
    TABLE_BYTES * primes.len() * params.n()
}

/// Bytes of both directions' twiddle factors per prime and coefficient, as far as working sets go.
pub const TABLE_BYTES: usize = 32;
