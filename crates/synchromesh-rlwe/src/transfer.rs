//! Keys and ciphertexts from one device to another, with all that is known of them: the same residues, no file between.
//!
//! Both contexts have the same parameters; what is under others is refused.

use std::sync::Arc;

use synchromesh_ring::sampler::Seed;
use synchromesh_ring::{Backend, Ntt, Poly};

use crate::ciphertext::Ciphertext;
use crate::context::Context;
use crate::domain::SwitchDomain;
use crate::error::Error;
use crate::evaluation_keys::EvaluationKeys;
use crate::public_key::PublicKey;
use crate::secret_key::SecretKey;
use crate::switch_key::{SwitchKey, UniformHalves};

impl<B: Backend, D: SwitchDomain> Ciphertext<B, D> {
    /// The same ciphertext on the device of `to`.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`], or when a device fails.
    pub fn transfer<To: Backend>(&self, from: &Context<B>, to: &Context<To>) -> Result<Ciphertext<To, D>, Error> {
        to.params().require_digest(self.params_digest())?;
        let move_part = |part: &Poly<B, D>| Ok(part.transfer(from.backend(), to.backend())?);
        let parts = self.parts().iter().map(move_part).collect::<Result<_, Error>>()?;
        Ciphertext::new(to.params(), parts, self.level(), self.key(), self.noise())
    }
}

impl<B: Backend> SecretKey<B> {
    /// The same secret key on the device of `to`.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`], or when a device fails.
    pub fn transfer<To: Backend>(&self, to: &Context<To>) -> Result<SecretKey<To>, Error> {
        self.require_params(to.params())?;
        SecretKey::from_small(to, self.id(), self.small().clone())
    }
}

impl<B: Backend> PublicKey<B> {
    /// The same public key on the device of `to`.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`], or when a device fails.
    pub fn transfer<To: Backend>(&self, from: &Context<B>, to: &Context<To>) -> Result<PublicKey<To>, Error> {
        to.params().require_digest(self.params_digest())?;
        let b = self.b().transfer(from.backend(), to.backend())?;
        PublicKey::from_parts(to, self.id(), Seed::from_bytes(*self.seed().as_bytes()), b)
    }
}

impl<B: Backend> SwitchKey<B> {
    /// The same switch key on the device of `to`.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`], [`Error::MissingKey`] where its rows are gone ([`EvaluationKeys::into_prepared`]), or when a device fails.
    pub fn transfer<To: Backend>(&self, from: &Context<B>, to: &Context<To>) -> Result<SwitchKey<To>, Error> {
        to.params().require_digest(self.params_digest())?;
        self.require_rows()?;
        let rows = |rows: &[Poly<B, Ntt>]| -> Result<Vec<Poly<To, Ntt>>, Error> {
            rows.iter().map(|row| Ok(row.transfer(from.backend(), to.backend())?)).collect()
        };
        let uniform = match self.uniform() {
            UniformHalves::Seed(seed) => UniformHalves::Seed(Seed::from_bytes(*seed.as_bytes())),
            UniformHalves::Given(halves) => UniformHalves::Given(rows(halves)?),
        };
        SwitchKey::from_parts(to, self.source(), self.target(), self.part().clone(), uniform, rows(self.b())?)
    }
}

impl<B: Backend> EvaluationKeys<B> {
    /// The same keys on the device of `to`; what was prepared of them is prepared there anew.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`], or when a device fails.
    pub fn transfer<To: Backend>(&self, from: &Context<B>, to: &Context<To>) -> Result<EvaluationKeys<To>, Error> {
        let mut made = EvaluationKeys::new(self.target());
        self.iter().try_for_each(|key| made.insert(key.transfer(from, to)?))?;
        if let Some(second) = self.second() {
            made.set_second(second.transfer(from, to)?);
        }
        if let Some(sparse) = self.sparse() {
            made.set_sparse(sparse.transfer(from, to)?);
        }
        if let Some(keys) = self.inside() {
            let (from, to) = (from.inside_or_own(), to.inside_or_own());
            made.set_inside(to.params(), Arc::new(keys.transfer(from, to)?))?;
        }
        Ok(made)
    }
}
