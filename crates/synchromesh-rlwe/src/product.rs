//! What relinearises a product at one level, for schemes that join the two.

use std::sync::Arc;

use synchromesh_ring::Backend;

use crate::context::Context;
use crate::error::Error;
use crate::key_switch::Switcher;
use crate::operations::KeySwitching;
use crate::prepared_key::PreparedKey;
use crate::switch_key::Source;
use crate::switch_plan::SwitchPlan;
use crate::wire::KeyId;

/// A compiled plan and the key that it is used with.
pub type KeyedSwitch<B> = (Arc<Switcher<B>>, Arc<PreparedKey<B>>);

impl<B: Backend> KeySwitching<B> {
    /// The plan by which ciphertexts under `key` are switched at a level.
    ///
    /// # Errors
    /// [`Error::KeysDiffer`] for keys of another secret key.
    pub fn plan_under(&self, key: KeyId, level: usize) -> Result<&SwitchPlan, Error> {
        Ok(self.under(key, level)?.1)
    }

    /// The switch of a third component under `key` at a level, and the key for it.
    ///
    /// # Errors
    /// [`Error::MissingKey`], [`Error::KeysDiffer`], [`Error::Level`], or when the device fails.
    pub fn square(&self, context: &Context<B>, key: KeyId, level: usize) -> Result<KeyedSwitch<B>, Error> {
        let (keys, plan) = self.under(key, level)?;
        let switcher = Self::switcher(context, plan, level, level)?;
        Ok((switcher, keys.prepared(context, Source::Square, plan)?))
    }
}
