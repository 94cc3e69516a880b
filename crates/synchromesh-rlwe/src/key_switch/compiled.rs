//! Switchers as constants of a context: compiled once for each plan and its primes.

use std::sync::Arc;

use synchromesh_ring::{Backend, IndexSet};

use super::Switcher;
use crate::context::{Constant, Context};
use crate::error::Error;
use crate::switch_plan::SwitchPlan;

impl<B: Backend> Constant<B> for Switcher<B> {
    type Spec = (SwitchPlan, IndexSet, IndexSet);

    fn make(context: &Context<B>, (plan, active, target): &Self::Spec) -> Result<Self, Error> {
        Self::new(context, plan, active, target)
    }
}

impl<B: Backend> Context<B> {
    /// The key switch of `plan` on the primes `active`, ending on the primes `target`.
    ///
    /// # Errors
    /// As [`Switcher::new`].
    pub fn switcher(&self, plan: &SwitchPlan, active: &IndexSet, target: &IndexSet) -> Result<Arc<Switcher<B>>, Error> {
        self.constant((plan.clone(), active.clone(), target.clone()))
    }
}
