//! How much memory of the host a plan takes, before any of it is allocated.

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::ring::IndexSet;
use synchromesh_rlwe::{Params, SwitchPlan};

use super::SchemeParams;
use super::prediction::peak_bytes;
use super::refreshing::KeyForecast;
use crate::error::Result;

/// Bytes of the twiddle factors of one prime and coefficient, both directions with their companions.
const TABLE_BYTES: u64 = 32;

/// Bytes of memory while a plan's keys are held and its circuit runs, two operands at a time. Further ciphertexts, the
/// program itself, and a file of keys while it is read come on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Forecast {
    /// Tables of the ring: twiddle factors of every prime.
    pub table_bytes: u64,
    /// Evaluation keys as they are held.
    pub key_bytes: u64,
    /// Evaluation keys as they are computed with, each prepared once for all levels, or, where levels switch keys in
    /// different ways, once for each of these.
    pub prepared_key_bytes: u64,
    /// Ciphertexts, the secret and the public key, and all temporaries of a multiplication and a rotation at the top level.
    pub working_bytes: u64,
    /// All of these.
    pub total_bytes: u64,
}

impl Forecast {
    /// For these parameters with `keys` evaluation keys, to multiply or not.
    pub(super) fn new(multiplies: bool, params: &SchemeParams, rlwe: &Params, keys: usize) -> Result<Self> {
        let peak = peak_bytes(params, multiplies)?;
        let plan = params.check()?.1;
        let (held, prepared) = (held_bytes(rlwe, &plan), plan.prepared_bytes(rlwe));
        let table_bytes = table_bytes(rlwe);
        // The record has one key, and that prepared once.
        let working_bytes = (peak as u64).saturating_sub(held + if multiplies { prepared } else { 0 });
        let (key_bytes, prepared_key_bytes) = (keys as u64 * held, keys as u64 * prepared);
        let total_bytes = table_bytes + key_bytes + prepared_key_bytes + working_bytes;
        Ok(Self { table_bytes, key_bytes, prepared_key_bytes, working_bytes, total_bytes })
    }

    /// For a plan with these keys for refreshes, which may run in a ring of their own.
    pub(super) fn for_refreshes(
        params: &SchemeParams,
        rlwe: &Params,
        keys: &KeyForecast,
        ring: Option<&Params>,
    ) -> Result<Self> {
        let mut all = Self::new(true, params, rlwe, 0)?;
        all.table_bytes += ring.map_or(0, table_bytes);
        (all.key_bytes, all.prepared_key_bytes) = (keys.held, keys.prepared);
        all.raise(0);
        Ok(all)
    }
}

impl Forecast {
    /// At least for a circuit that has so many bytes of buffers at once, all its keys among them.
    pub(super) fn raise(&mut self, peak: u64) {
        self.working_bytes = self.working_bytes.max(peak.saturating_sub(self.key_bytes + self.prepared_key_bytes));
        self.total_bytes = self.table_bytes + self.key_bytes + self.prepared_key_bytes + self.working_bytes;
    }

    /// With so many bytes of prepared keys.
    pub(super) const fn prepared(&mut self, bytes: u64) {
        self.total_bytes = self.total_bytes - self.prepared_key_bytes + bytes;
        self.prepared_key_bytes = bytes;
    }

    /// The forecast in words.
    pub(super) fn explain(&self) -> String {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        format!(
            "memory: {:.1} MiB, of it keys {:.1}, the same prepared {:.1}, tables {:.1}, ciphertexts and temporaries {:.1}",
            mib(self.total_bytes),
            mib(self.key_bytes),
            mib(self.prepared_key_bytes),
            mib(self.table_bytes),
            mib(self.working_bytes),
        )
    }
}

/// Bytes of the twiddle factors of all primes.
fn table_bytes(rlwe: &Params) -> u64 {
    TABLE_BYTES * (rlwe.keyed().len() + rlwe.aux().len()) as u64 * rlwe.n() as u64
}

/// Bytes of one evaluation key as it is held: a word for each residue, and a seed in place of its uniform half.
fn held_bytes(rlwe: &Params, plan: &SwitchPlan) -> u64 {
    let keyed: IndexSet = rlwe.keyed();
    8 * (plan.digits.len() * keyed.len()) as u64 * rlwe.n() as u64
}
