//! One party's shares of the rows of keys, from any share of the secret: short, or times a Lagrange factor.
//!
//! Everything is linear in s: the shares of all add up to the row under the sum of what they were made with. Each party adds an
//! error of its own that is as even at the roots as any of this library's.

use num_bigint::BigUint;
use num_traits::ToPrimitive;
use synchromesh::rlwe::ring::backend::SignedWidth;
use synchromesh::rlwe::ring::sampler::{Purpose, Seed};
use synchromesh::rlwe::ring::{self, Backend, BackendError, Cpu, IndexSet, Ntt, Poly, View, ViewMut};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::spectrum::even_error;
use synchromesh::rlwe::switch_key::inverse_galois;
use synchromesh::rlwe::{Context, KeyPart, PublicKey, Randomness, SecretKey};
use zeroize::Zeroizing;

use crate::error::Result;
use crate::proven::Rows;

/// A party's share of the secret, and where its errors come from.
pub(super) struct Maker<'a> {
    pub(super) context: &'a Context<Cpu>,
    pub(super) secret: &'a SecretPoly<Cpu>,
    pub(super) randomness: Randomness,
}

/// A public factor of a row.
enum Public<'a> {
    /// What this stream expands to.
    Uniform(&'a Seed, Purpose, u32),
    Poly(&'a Poly<Cpu, Ntt>),
}

/// What a row is beside its error.
struct Row<'a> {
    /// Public factors and secret ones, all on the row's primes.
    products: [Option<(Public<'a>, &'a SecretPoly<Cpu>)>; 2],
    /// A secret, and what it is multiplied by modulo each prime.
    gadget: Option<(&'a SecretPoly<Cpu>, Vec<u64>)>,
}

impl Maker<'_> {
    /// The row with a fresh error t e. As many limbs at a time as there are threads, each from its error to the end while it is in
    /// a core's cache.
    fn row(&mut self, primes: &IndexSet, row: &Row<'_>) -> Result<Poly<Cpu, Ntt>> {
        let (params, backend) = (self.context.params(), self.context.backend());
        let seed = self.randomness.next_seed()?;
        let error = even_error(params.error(), params.n(), &seed, Purpose::SwitchKeyError, 0)?;
        let multiple = params.error_multiple();
        // t times an error of a few bits fits, unless t is wide.
        let factor = multiple.to_i64().filter(|factor| *factor < 1 << 48);
        let small: Zeroizing<Vec<i64>> =
            Zeroizing::new(error.as_slice().iter().map(|x| x * factor.unwrap_or(1)).collect());
        let mut out = Poly::new(backend, primes)?;
        let limbs: Vec<usize> = (0..primes.len()).collect();
        let (at_once, scratch) = (backend.threads().count().clamp(1, limbs.len().max(1)), limbs.as_slice());
        let mut uniform = Poly::<Cpu, Ntt>::new(backend, &primes.iter().take(at_once).collect())?;
        let mut limb = |limbs: &[usize]| -> std::result::Result<(), BackendError> {
            let of: Vec<usize> = limbs.iter().map(|&limb| primes.as_slice()[limb]).collect();
            let scratch = &scratch[..limbs.len()];
            backend.reduce_signed(&of, &small, SignedWidth::Eight, ViewMut::new(out.buffer_mut(), limbs))?;
            if factor.is_none() {
                let residues =
                    of.iter().flat_map(|&prime| params.ring().residues(&[prime].into_iter().collect(), multiple));
                backend.mul_scalar_assign(&of, ViewMut::new(out.buffer_mut(), limbs), &residues.collect::<Vec<_>>())?;
            }
            backend.ntt_forward(&of, ViewMut::new(out.buffer_mut(), limbs))?;
            for (public, secret) in row.products.iter().flatten() {
                let (secret, to) = (View::new(secret.poly().buffer(), limbs), ViewMut::new(out.buffer_mut(), limbs));
                match public {
                    Public::Uniform(seed, purpose, digit) => {
                        backend.uniform(&of, seed, *purpose, *digit, ViewMut::new(uniform.buffer_mut(), scratch))?;
                        backend.mul_acc(&of, View::new(uniform.buffer(), scratch), secret, to)?;
                    }
                    Public::Poly(poly) => backend.mul_acc(&of, View::new(poly.buffer(), limbs), secret, to)?,
                }
            }
            let Some((secret, factors)) = &row.gadget else { return Ok(()) };
            // Only the primes of the row's own digit have one.
            for (&limb, prime) in limbs.iter().zip(of).filter(|(limb, _)| factors[**limb] != 0) {
                let (from, to) = (
                    View::new(secret.poly().buffer(), std::slice::from_ref(&limb)),
                    ViewMut::new(out.buffer_mut(), std::slice::from_ref(&limb)),
                );
                backend.mul_scalar_acc(&[prime], from, &[factors[limb]], to)?;
            }
            Ok(())
        };
        limbs.chunks(at_once).try_for_each(&mut limb).map_err(ring::Error::from)?;
        Ok(out)
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
        let minus = self.minus(1, &keyed)?;
        let a = Public::Uniform(seed, Purpose::PublicKeyUniform, 0);
        self.row(&keyed, &Row { products: [Some((a, &minus)), None], gadget: None })
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
            let gadget = primes.iter().zip(gadget).map(of_digit).collect();
            let a = Public::Uniform(seed, Purpose::SwitchKeyUniform, index as u32);
            self.row(primes, &Row { products: [Some((a, &minus)), None], gadget: Some((&own, gadget)) })
        };
        part.rows().iter().map(row).collect()
    }

    /// (B_j s + b v_j + t e_j, a_j s + a v_j + t e'_j) for row j: the second round of the relinearisation key, from the
    /// sum B_j of the first and the joint public key (b, a). Summed these are c_j and c'_j with
    /// c_j + c'_j s = P g_j s^2 + t (short).
    pub(super) fn square(
        &mut self,
        primes: &IndexSet,
        (seed, index): (&Seed, usize),
        sum: &Poly<Cpu, Ntt>,
        key: &PublicKey,
    ) -> Result<Rows> {
        let backend = self.context.backend();
        let own = SecretPoly::new(self.secret.poly().restrict(backend, primes)?);
        // As even as any secret.
        let v = SecretKey::generate(self.context, &mut self.randomness)?;
        let v = SecretPoly::new(v.slots().poly().restrict(backend, primes)?);
        let b = key.b().restrict(backend, primes)?;
        let halves = [
            (Public::Poly(sum), Public::Poly(&b)),
            (
                Public::Uniform(seed, Purpose::SwitchKeyUniform, index as u32),
                Public::Uniform(key.seed(), Purpose::PublicKeyUniform, 0),
            ),
        ];
        let half =
            |(of_s, of_v)| self.row(primes, &Row { products: [Some((of_s, &own)), Some((of_v, &v))], gadget: None });
        halves.into_iter().map(half).collect()
    }
}
