//! One party's shares of the rows of keys, from any share of the secret: short, or times a Lagrange factor.
//!
//! Everything is linear in s: the shares of all add up to the row under the sum of what they were made with. Each party adds an
//! error of its own that is as even at the roots as any of this library's.

use num_bigint::BigUint;
use synchromesh::rlwe::ring::sampler::{Purpose, Seed};
use synchromesh::rlwe::ring::{Cpu, IndexSet, Ntt, Poly};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::spectrum::even_error;
use synchromesh::rlwe::switch_key::inverse_galois;
use synchromesh::rlwe::{Context, KeyPart, PublicKey, Randomness, SecretKey};

use zeroize::Zeroizing;

use crate::error::Result;
use crate::proofs::encryption::uniform;
use crate::proven::Rows;

/// A party's share of the secret, and where its errors come from.
pub(super) struct Maker<'a> {
    pub(super) context: &'a Context<Cpu>,
    pub(super) secret: &'a SecretPoly<Cpu>,
    pub(super) randomness: Randomness,
}

impl Maker<'_> {
    /// t e for a fresh error.
    fn error(&mut self, primes: &IndexSet) -> Result<Poly<Cpu, Ntt>> {
        let (params, backend) = (self.context.params(), self.context.backend());
        let seed = self.randomness.next_seed()?;
        let error = even_error(params.error(), params.n(), &seed, Purpose::SwitchKeyError, 0)?;
        let mut error = Poly::from_signed(backend, primes, error.as_slice())?;
        error.mul_scalar_assign(backend, &params.ring().residues(primes, params.error_multiple()))?;
        Ok(error.into_ntt(backend)?)
    }

    /// t e - a s, of -s on the primes of a.
    fn masked(&mut self, a: &Poly<Cpu, Ntt>, minus: &SecretPoly<Cpu>) -> Result<Poly<Cpu, Ntt>> {
        let mut row = self.error(a.primes())?;
        row.mul_acc(self.context.backend(), a, minus.poly())?;
        Ok(row)
    }

    /// -s(X^g) on these primes.
    fn minus(&self, g: usize, primes: &IndexSet) -> Result<SecretPoly<Cpu>> {
        let backend = self.context.backend();
        let mut minus = Zeroizing::new(self.secret.poly().restrict(backend, primes)?);
        minus.neg_assign(backend)?;
        Ok(SecretPoly::new(minus.automorphism(backend, g)?))
    }

    /// Of the public key.
    pub(super) fn public(&mut self, seed: &Seed) -> Result<Poly<Cpu, Ntt>> {
        let keyed = self.context.params().keyed();
        let a = uniform(self.context, &keyed, seed, Purpose::PublicKeyUniform, 0)?;
        let minus = self.minus(1, &keyed)?;
        self.masked(&a, &minus)
    }

    /// -a_j s(X^(1/g)) + t e_j + P g_j s for each row: of a key for a rotation, or with g = 1 of the first round of the
    /// relinearisation key.
    pub(super) fn switch(&mut self, galois: usize, part: &KeyPart, seed: &Seed) -> Result<Rows> {
        let (params, backend) = (self.context.params(), self.context.backend());
        let primes = part.primes();
        let minus = self.minus(inverse_galois(galois, 2 * params.n()), primes)?;
        let own = SecretPoly::new(self.secret.poly().restrict(backend, primes)?);
        let (rows, special) = (part.shape().rows(params), params.ring().product(&part.shape().special));
        let row = |&index: &usize| {
            let row = &rows[index];
            let power = BigUint::from(1u32) << row.radix.map_or(0, |radix| radix.bits * radix.index);
            let gadget = params.ring().residues(primes, &(&special * power));
            let of_digit = |(prime, x)| if row.own.contains(prime) { x } else { 0 };
            let gadget: Vec<u64> = primes.iter().zip(gadget).map(of_digit).collect();
            let a = uniform(self.context, primes, seed, Purpose::SwitchKeyUniform, index as u32)?;
            let mut b = self.masked(&a, &minus)?;
            b.mul_scalar_acc(backend, own.poly(), &gadget)?;
            Ok(b)
        };
        part.rows().iter().map(row).collect()
    }

    /// (B_j s + b v_j + t e_j, a_j s + a v_j + t e'_j) for each row: the second round of the relinearisation key, from the
    /// sums B_j of the first and the joint public key (b, a). Summed these are c_j and c'_j with
    /// c_j + c'_j s = P g_j s^2 + t (short).
    pub(super) fn square(&mut self, part: &KeyPart, seed: &Seed, sums: &Rows, key: &PublicKey) -> Result<Rows> {
        let (backend, primes) = (self.context.backend(), part.primes());
        let own = SecretPoly::new(self.secret.poly().restrict(backend, primes)?);
        let public = [
            key.b().restrict(backend, primes)?,
            uniform(self.context, primes, key.seed(), Purpose::PublicKeyUniform, 0)?,
        ];
        let mut rows = Rows::with_capacity(2 * sums.len());
        for (&index, sum) in part.rows().iter().zip(sums) {
            // As even as any secret.
            let v = SecretKey::generate(self.context, &mut self.randomness)?;
            let v = SecretPoly::new(v.slots().poly().restrict(backend, primes)?);
            let a = uniform(self.context, primes, seed, Purpose::SwitchKeyUniform, index as u32)?;
            for (of_s, of_v) in [sum, &a].into_iter().zip(&public) {
                let mut row = self.error(primes)?;
                row.mul_acc(backend, of_s, own.poly())?;
                row.mul_acc(backend, of_v, v.poly())?;
                rows.push(row);
            }
        }
        Ok(rows)
    }
}
