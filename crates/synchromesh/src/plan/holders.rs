//! What a plan for a key of several parties excludes, and the room it leaves for their decryptions.

use synchromesh_rlwe::ring::Backend;

use super::{Description, SchemeName};
use crate::ckks::{Ciphertext, Context};
use crate::error::{Error, Result};
use crate::exact;
use crate::opening::Hiding;

/// log2 of the degree that a first guess is for.
const TYPICAL_LOG_N: u32 = 14;

impl Description {
    /// Fails for a joint key that cannot be, or that this request excludes.
    pub(super) fn check_joint(&self) -> Result<()> {
        let Some(joint) = &self.joint else { return Ok(()) };
        joint.check()?;
        if self.leading_levels > 0 || self.bootstrap.is_some() {
            return Err(Error::request(
                "a joint key and a second or a sparse secret key: those come from the first by a hash, which nobody has",
            ));
        }
        if self.static_levels {
            return Err(Error::request("a joint key and the static rule, which knows of one key holder only"));
        }
        Ok(())
    }

    /// Fails where results leave no room for the noise of a decryption by all holders of the key.
    pub(super) fn open_all<S: exact::Scheme, B: Backend>(
        &self,
        context: &exact::Context<S, B>,
        results: &[exact::Ciphertext<S, B>],
    ) -> Result<()> {
        let Some(joint) = &self.joint else { return Ok(()) };
        results.iter().try_for_each(|x| exact::hidden_budget(context, x, &joint.widest()).map(drop))
    }

    /// How far a slot of the result may be off when it is decrypted by whoever holds the key, all of them.
    pub(super) fn off<B: Backend>(&self, context: &Context<B>, x: &Ciphertext<B>) -> Result<f64> {
        match &self.joint {
            Some(joint) => Ok(context.hidden(x, &Hiding { security: joint.security, ..joint.widest() })?.1),
            None => Ok(context.error_bound(x)),
        }
    }

    /// Bits by which what a decryption shows is wider than the error, rounded up; 0 where one party holds the key.
    pub(super) fn hiding_bits(&self) -> u32 {
        let hidden = self
            .joint
            .map(|joint| joint.widest().bits().map_or(0.0, |bits| joint.widest().together(bits, TYPICAL_LOG_N)));
        // The error's 2-norm counts in the exact schemes.
        hidden.map_or(0, |bits| bits.ceil() as u32 + if self.scheme == SchemeName::Ckks { 0 } else { 8 })
    }
}
