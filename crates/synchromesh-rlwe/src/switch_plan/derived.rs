//! How keys are switched under the derived secret keys: the second and the sparse one.

use super::{DigitSizes, SwitchPlan};
use crate::error::Error;
use crate::params::Params;
use crate::schedule::SparseSet;

/// Bits that P' has beyond the widest digit, where the number of digits is left open: a digit's error is then below
/// the rounding error.
const SPARE_BITS: f64 = 4.0;

impl SwitchPlan {
    /// How keys are switched under the second secret key; none where there is no such key.
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] when the schedule names more digits than there are primes, or none.
    pub fn second(params: &Params) -> Result<Option<Self>, Error> {
        let Some(second) = params.second() else { return Ok(None) };
        let ring = params.ring();
        let widths: Vec<u32> = second.q.iter().map(|i| ring.modulus(i).bits()).collect();
        let wanted = params.literal().schedule.second.as_ref().and_then(|key| key.omega);
        let room = ring.log2(&second.special) - SPARE_BITS;
        for omega in wanted.unwrap_or(1)..=wanted.unwrap_or(widths.len()) {
            let plan = Self::over(&second.q, &second.special, &DigitSizes::balanced(&widths, omega)?)?;
            let fits = plan.digits.iter().all(|digit| ring.log2(digit) <= room);
            if fits || wanted.is_some() || omega == widths.len() {
                return Ok(Some(plan));
            }
        }
        Err(Error::switch_plan("a second secret key switches keys with one digit or more"))
    }

    /// How keys are switched to the sparse secret key, at level 0 in one digit; none where there is no such key.
    ///
    /// # Errors
    /// As [`Self::over`].
    pub fn sparse(params: &Params) -> Result<Option<Self>, Error> {
        let plan = |sparse: &SparseSet| Self::over(&sparse.q, &sparse.special, &DigitSizes(vec![sparse.q.len()]));
        params.sparse().map(plan).transpose()
    }
}
