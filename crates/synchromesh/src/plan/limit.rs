//! Requests that cannot be planned: which limit they hit, and the nearest request that works.

use super::search::Refusal;
use super::{Description, PRECISION, SchemeName, smallest_near};
use crate::error::{Error, Limit, Nearest, Result};

/// Most bits after the point that a description may ask for.
pub(super) const MOST_PRECISION: u32 = 80;

/// Most multiplications after one another that a description may ask for.
pub(super) const MOST_DEPTH: usize = 100;

/// Least bytes over all candidates that a budget refused.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Least {
    pub(super) key_bytes: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
}

impl Least {
    pub(super) fn keys(&mut self, bytes: u64) {
        self.key_bytes = Some(self.key_bytes.map_or(bytes, |least| least.min(bytes)));
    }

    pub(super) fn memory(&mut self, bytes: u64) {
        self.memory_bytes = Some(self.memory_bytes.map_or(bytes, |least| least.min(bytes)));
    }
}

impl Description {
    /// The error of a request that no degree serves, with the nearest request that one does serve.
    pub(super) fn refused(&self, refusal: Refusal) -> Error {
        let Refusal { limit, reason, least, floor } = refusal;
        let works = |changed: Self| changed.found(None).is_ok_and(|found| found.is_ok());
        let fits = |depth| works(Self { depth, ..self.clone() });
        let depth = |guess| largest(guess, self.depth, fits).map(Nearest::Depth);
        let nearest = match limit {
            // Composed rotations may need wider primes than those that the bytes were counted for.
            Limit::KeyBytes => least.key_bytes.and_then(|least| {
                let mut budgets = (0..40).map(|step| least + least / 20 * step);
                let fits = |&bytes: &u64| works(Self { max_key_bytes: Some(bytes), ..self.clone() });
                budgets.find(fits).map(Nearest::KeyBytes)
            }),
            Limit::Memory => least.memory_bytes.map(Nearest::MemoryBytes),
            Limit::Bounds => None,
            // About as many bits a level as here.
            Limit::Security => {
                let limit = self.security.max_log_qp(*super::search::DEGREES.end()) as usize;
                depth(self.depth * limit / (floor as usize).max(1)).or_else(|| self.nearest_both())
            }
            // Rotations where the plaintext modulus has slots at smaller degrees only.
            Limit::Slots if self.min_slots == 0 => depth(self.depth / 2),
            Limit::Precision => {
                self.nearest_precision().or_else(|| depth(self.depth / 2)).or_else(|| self.nearest_both())
            }
            Limit::Slots => {
                let log = self.min_slots.checked_ilog2().unwrap_or(0) as usize + 1;
                let found = largest(log / 2, log, |log| works(Self { min_slots: 1 << log, ..self.clone() }));
                found.map(|log| Nearest::Slots(1 << log))
            }
        };
        Error::NoPlan { limit, reason, nearest }
    }

    /// For CKKS where neither a smaller depth nor a smaller precision does: the largest depth at the usual precision, and
    /// the largest precision there.
    fn nearest_both(&self) -> Option<Nearest> {
        if self.scheme != SchemeName::Ckks {
            return None;
        }
        let usual = Self { precision: Some(self.precision.unwrap_or(PRECISION).min(PRECISION)), ..self.clone() };
        let works = |depth| (Self { depth, ..usual.clone() }).found(None).is_ok_and(|found| found.is_ok());
        let depth = largest(usual.depth / 2, usual.depth, works)?;
        match (Self { depth, ..self.clone() }).nearest_precision()? {
            Nearest::Precision(bits) => Some(Nearest::DepthAndPrecision(depth, bits)),
            other => Some(other),
        }
    }

    /// The largest precision below the one asked for that works.
    fn nearest_precision(&self) -> Option<Nearest> {
        let precision = self.precision.unwrap_or(PRECISION) as usize;
        let works =
            |p| (Self { precision: Some(p as u32), ..self.clone() }).found(None).is_ok_and(|found| found.is_ok());
        largest(precision / 2, precision, |p| p == 0 || works(p))
            .filter(|&p| p > 0)
            .map(|p| Nearest::Precision(p as u32))
    }

    /// Fails for numbers that no plan is made for.
    pub(super) fn check(&self) -> Result<()> {
        if self.depth > MOST_DEPTH || self.additions > 1 << 20 {
            return Err(Error::request(format!(
                "depth {} and {} additions: at most {MOST_DEPTH} and 2^20 are planned for",
                self.depth, self.additions
            )));
        }
        if let Some(width) = self.width.filter(|width| !super::WIDTHS.contains(width)) {
            return Err(Error::request(format!("primes of {width} bits: plans have from 30 to 60")));
        }
        if self.static_levels && self.scheme != SchemeName::Bgv {
            return Err(Error::request(format!("the static rule is for bgv, not for {}", self.scheme.name())));
        }
        if let Some(level) = self.rotation_level.filter(|_| self.leading_levels > 0) {
            return Err(Error::request(format!(
                "rotations up to level {level} and {} leading level(s): keys are trimmed under one secret key only",
                self.leading_levels
            )));
        }
        if let Some(step) = self.rotations.iter().find(|k| k.unsigned_abs() > super::MOST_ROTATION) {
            let most = super::MOST_ROTATION;
            return Err(Error::request(format!("a rotation by {step}: plans are made for steps of at most {most}")));
        }
        self.check_joint()?;
        let precision = self.precision.unwrap_or(PRECISION);
        if self.scheme == SchemeName::Ckks && !(1..=MOST_PRECISION).contains(&precision) {
            return Err(Error::request(format!("a precision of {precision} bits is outside 1 to {MOST_PRECISION}")));
        }
        Ok(())
    }
}

/// The largest number below `above` that `works`, which smaller ones do too, in few trials where it is near `guess`; none
/// when not even 0 does.
fn largest(guess: usize, above: usize, works: impl Fn(usize) -> bool) -> Option<usize> {
    let last = u32::try_from(above).ok()?.checked_sub(1)?;
    // The distance from `last` is the smallest that works.
    let guess = last.saturating_sub(u32::try_from(guess).unwrap_or(last));
    let found = smallest_near(guess, 0, last, |less| Ok(works((last - less) as usize)));
    found.ok().flatten().map(|less| (last - less) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_that_works_is_found() {
        for most in 0..20 {
            for guess in [0, 3, most, 19, 100] {
                assert_eq!(largest(guess, 20, |x| x <= most), Some(most.min(19)));
            }
        }
        assert_eq!((largest(0, 0, |_| true), largest(2, 5, |_| false)), (None, None));
    }
}
