//! A backend that computes nothing: a circuit run on it costs no data, yet has all its levels, certificates and key
//! demands, since those depend on public data only.

use std::sync::Arc;

use zeroize::Zeroize;

use crate::backend::{Backend, BackendError, ConvertMode, RadixDigit, SignedWidth, Stage, View, ViewMut};
use crate::ring::{IndexSet, Ring};
use crate::rns::ConvertSpec;
use crate::sampler::{Purpose, Seed};

/// Does nothing, at once. What it is asked to download stays as it was.
pub struct Dry {
    ring: Arc<Ring>,
}

impl Dry {
    /// For circuits over `ring`.
    #[must_use]
    pub const fn new(ring: Arc<Ring>) -> Self {
        Self { ring }
    }
}

/// No memory.
pub struct Nothing;

impl Zeroize for Nothing {
    fn zeroize(&mut self) {}
}

type Done = Result<(), BackendError>;

impl Backend for Dry {
    const HOLDS_NUMBERS: bool = false;

    type Buffer = Nothing;
    type Conversion = Nothing;

    fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }
    /// Forecasts are of the CPU.
    fn keeps_repeated(&self) -> bool {
        true
    }

    fn name(&self) -> String {
        "dry run".to_owned()
    }
    fn alloc(&self, _: usize) -> Result<Nothing, BackendError> {
        Ok(Nothing)
    }
    fn upload(&self, _: &[u64], _: &mut Nothing, _: usize) -> Done {
        Ok(())
    }
    fn download(&self, _: &Nothing, _: usize, _: &mut [u64]) -> Done {
        Ok(())
    }
    fn copy(&self, _: View<'_, Self>, _: ViewMut<'_, Self>) -> Done {
        Ok(())
    }
    fn reduce_signed(&self, _: &[usize], _: &[i64], _: SignedWidth, _: ViewMut<'_, Self>) -> Done {
        Ok(())
    }
    fn uniform(&self, _: &[usize], _: &Seed, _: Purpose, _: u32, _: ViewMut<'_, Self>) -> Done {
        Ok(())
    }
    fn ntt_forward(&self, _: &[usize], _: ViewMut<'_, Self>) -> Done {
        Ok(())
    }
    fn ntt_inverse(&self, _: &[usize], _: ViewMut<'_, Self>) -> Done {
        Ok(())
    }
    fn add_assign(&self, _: &[usize], _: ViewMut<'_, Self>, _: View<'_, Self>) -> Done {
        Ok(())
    }
    fn sub_assign(&self, _: &[usize], _: ViewMut<'_, Self>, _: View<'_, Self>) -> Done {
        Ok(())
    }
    fn neg_assign(&self, _: &[usize], _: ViewMut<'_, Self>) -> Done {
        Ok(())
    }
    fn mul_into(&self, _: &[usize], _: View<'_, Self>, _: View<'_, Self>, _: ViewMut<'_, Self>) -> Done {
        Ok(())
    }
    fn mul_acc(&self, _: &[usize], _: View<'_, Self>, _: View<'_, Self>, _: ViewMut<'_, Self>) -> Done {
        Ok(())
    }
    fn mul_scalar_assign(&self, _: &[usize], _: ViewMut<'_, Self>, _: &[u64]) -> Done {
        Ok(())
    }
    fn mul_scalar_acc(&self, _: &[usize], _: View<'_, Self>, _: &[u64], _: ViewMut<'_, Self>) -> Done {
        Ok(())
    }
    fn automorphism_coeff(&self, _: &[usize], _: usize, _: View<'_, Self>, _: ViewMut<'_, Self>) -> Done {
        Ok(())
    }
    fn automorphism_ntt(&self, _: usize, _: View<'_, Self>, _: ViewMut<'_, Self>) -> Done {
        Ok(())
    }
    fn conversion(&self, _: &IndexSet, _: &IndexSet, _: &ConvertSpec) -> Result<Nothing, BackendError> {
        Ok(Nothing)
    }
    fn convert(&self, _: &Nothing, _: View<'_, Self>, _: ViewMut<'_, Self>, _: ConvertMode) -> Done {
        Ok(())
    }
    fn radix_digit(&self, _: &[usize], _: usize, _: RadixDigit, _: View<'_, Self>, _: ViewMut<'_, Self>) -> Done {
        Ok(())
    }
    fn inner_product(
        &self,
        _: &[usize],
        _: View<'_, Self>,
        _: [View<'_, Self>; 2],
        _: ViewMut<'_, Self>,
        _: bool,
    ) -> Done {
        Ok(())
    }
    fn stage(&self, _: &[usize], _: Stage<'_, Self>) -> Done {
        Ok(())
    }
}
