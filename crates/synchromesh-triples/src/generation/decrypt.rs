//! Distributed decryption to shares: each party sends c_1 s_i under a mask, and what the masks sum to is what they hold then.
//!
//! d_i = c_1 s_i + f_i, party 0 adds c_0, so that sum d_i = f m + t e + sum f_i modulo Q_l: public, and of m it says nothing.
//! Party 0 holds (sum d_i - f_0) / f mod t, the others -f_i / f (ePrint 2012/642; Keller, Pastro and Rotaru, ePrint
//! 2017/1230, appendix A).

use synchromesh::batch::{PlainPoly, Residues};
use synchromesh::bgv::{Bgv, Ciphertext};
use synchromesh::exact::Scheme;
use synchromesh::rlwe::ring::{Coeff, Cpu, IndexSet, Poly};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh_parties::polynomials::{poly_bytes, read_poly, write_poly};
use zeroize::{Zeroize, Zeroizing};

use super::layout::slots_of;
use super::mask::Mask;
use super::plan::{Placement, log2_value};
use super::setup::{PartyKey, Setup};
use crate::error::{Error, Result};
use crate::field::Element;

/// A ciphertext at the level where it is decrypted, with its hash.
pub(crate) struct Pending {
    ciphertext: Ciphertext,
    mask_bits: u32,
    pub(crate) hash: [u8; 32],
}

impl Pending {
    /// Brings a ciphertext down; its certificate must be what the masks are made for.
    pub(crate) fn new(setup: &Setup, placement: &Placement, x: &Ciphertext) -> Result<Self> {
        let params = setup.plan().params();
        let ciphertext = setup.evaluator().mod_switch_to(x, placement.decryption)?;
        let bits = log2_value(params, &ciphertext);
        if bits > placement.value_bits + 1e-6 {
            let reason = format!("a ciphertext holds {bits:.1} bits, the flooding is for {:.1}", placement.value_bits);
            return Err(Error::NoParameters {
                shape: setup.plan().shape().to_string(),
                parties: setup.plan().parties(),
                reason,
            });
        }
        let hash = *blake3::Hasher::new_derive_key("synchromesh 1 triples, ciphertext")
            .update(&ciphertext.to_bytes(setup.context(), None)?)
            .finalize()
            .as_bytes();
        Ok(Self { ciphertext, mask_bits: placement.mask_bits, hash })
    }

    /// The party's masked share as it is sent, and the mask.
    pub(crate) fn share(&self, setup: &Setup, key: &PartyKey, session: &[u8; 32]) -> Result<(Vec<u8>, Mask)> {
        let backend = setup.context().backend();
        let params = setup.plan().params();
        let [c0, c1] = self.ciphertext.inner().parts() else {
            return Err(synchromesh::rlwe::Error::Components { expected: 2, got: self.ciphertext.components() }.into());
        };
        let mut share = match primes(setup, self.ciphertext.level())? {
            all if all == key.share().poly().primes() => c1.mul(backend, key.share().poly())?,
            fewer => c1.mul(backend, SecretPoly::new(key.share().poly().restrict(backend, fewer)?).poly())?,
        };
        if key.party() == 0 {
            share.add_assign(backend, c0)?;
        }
        let mut share = share.into_coeff(backend)?;
        let mask = key.flood().mask(session, &self.hash, self.mask_bits, params.n());
        mask.add_to(backend, params.rlwe().ring(), &mut share)?;
        let mut bytes = Vec::with_capacity(share_bytes(setup, self.ciphertext.level())?);
        write_poly(setup.context().rlwe(), &share, &mut bytes)?;
        share.zeroize();
        Ok((bytes, mask))
    }

    /// This party's share of the slots, from all parties' messages.
    ///
    /// # Errors
    /// The number of the party whose message is no polynomial.
    pub(crate) fn finish(
        &self,
        setup: &Setup,
        key: &PartyKey,
        mask: &Mask,
        messages: &[&[u8]],
    ) -> std::result::Result<Zeroizing<Vec<Element>>, (Option<usize>, Error)> {
        let own = |error| (None, error);
        let (context, field) = (setup.context(), setup.plan().field());
        let encoder = context.slot_encoder().map_err(|e| own(e.into()))?;
        let factor = field.reduce(self.ciphertext.header().value());
        let inverse = field.inverse_of_public(factor);
        let negative = field.sub(Element::ZERO, inverse);
        let residues: Residues = mask.residues(field, negative);
        let poly = PlainPoly::new(context.params().t(), residues).map_err(|e| own(e.into()))?;
        let mut slots = slots_of(encoder, &poly).map_err(own)?;
        // Everybody reads all messages: whose is malformed is known to all.
        let mut sum: Option<Poly<Cpu, Coeff>> = None;
        for (party, message) in messages.iter().enumerate() {
            let primes = primes(setup, self.ciphertext.level()).map_err(own)?;
            let poly = read_poly(context.rlwe(), primes, message).map_err(|error| (Some(party), error.into()))?;
            match &mut sum {
                Some(sum) => sum.add_assign(context.backend(), &poly).map_err(|e| own(e.into()))?,
                None => sum = Some(poly),
            }
        }
        if let (Some(sum), 0) = (sum, key.party()) {
            let opened = Bgv::recover(context, &self.ciphertext, &sum).map_err(|e| own(e.into()))?;
            let opened = slots_of(encoder, &opened).map_err(own)?;
            slots.iter_mut().zip(opened.iter()).for_each(|(slot, &x)| *slot = field.add(*slot, x));
        }
        Ok(slots)
    }
}

fn primes(setup: &Setup, level: usize) -> Result<&IndexSet> {
    Ok(setup.plan().params().rlwe().level(level)?)
}

/// Bytes of a masked share of a ciphertext that is decrypted at this level.
pub(crate) fn share_bytes(setup: &Setup, level: usize) -> Result<usize> {
    Ok(poly_bytes(setup.context().rlwe(), primes(setup, level)?))
}

#[cfg(test)]
mod tests {
    use num_bigint::{BigInt, Sign};
    use synchromesh::rlwe::Randomness;
    use synchromesh::rlwe::ring::rns::compose_vartime;

    use super::super::tests::dealt;
    use super::*;

    /// A share less what it hides, as integers.
    fn mask(setup: &Setup, key: &PartyKey, x: &Pending, session: &[u8; 32]) -> Vec<BigInt> {
        let context = setup.context();
        let primes = primes(setup, setup.plan().placement().decryption).unwrap();
        let (backend, ring) = (context.backend(), context.params().rlwe().ring());
        let (bytes, _) = x.share(setup, key, session).unwrap();
        let mut sent: Poly<Cpu, Coeff> = read_poly(context.rlwe(), primes, &bytes).unwrap();
        let [c0, c1] = x.ciphertext.inner().parts() else { panic!("two parts") };
        let mut hidden = c1.mul(backend, key.share().poly()).unwrap();
        if key.party() == 0 {
            hidden.add_assign(backend, c0).unwrap();
        }
        sent.sub_assign(backend, &hidden.into_coeff(backend).unwrap()).unwrap();
        let (words, n) = (sent.to_words(backend).unwrap(), context.params().n());
        let modulus = BigInt::from(ring.product(primes));
        let one = |i: usize| {
            let residues: Vec<u64> = words.iter().skip(i).step_by(n).copied().collect();
            let x = BigInt::from(compose_vartime(ring, primes, &residues).unwrap());
            if &x * 2 > modulus { x - &modulus } else { x }
        };
        (0..n).map(one).collect()
    }

    /// What leaves a party is hidden by as many bits as the plan has for it, always the same for one ciphertext.
    #[test]
    fn shares_are_masked_as_planned() {
        let (setup, keys) = dealt();
        let zero = setup.context().encode_coefficients(&[0i64][..]).unwrap();
        let mut randomness = Randomness::insecure_from_number(3);
        let mut pending = || {
            let fresh = setup.context().encrypt(setup.public(), &zero, &mut randomness).unwrap();
            Pending::new(setup, setup.plan().placement(), &fresh).unwrap()
        };
        let (one, other) = (pending(), pending());
        let bits = u64::from(setup.plan().mask_bits());
        for key in &keys[..2] {
            let values = mask(setup, key, &one, &[5; 32]);
            let half = BigInt::from(1) << (bits - 1);
            assert!(values.iter().all(|x| -&half <= *x && *x < half));
            // Of 1024 uniform values so many have all of their bits, and are negative: off by 160 is 10 deviations.
            let wide = values.iter().filter(|x| x.magnitude().bits() == bits - 1).count();
            let negative = values.iter().filter(|x| x.sign() == Sign::Minus).count();
            assert!([wide, negative].iter().all(|count| (352..672).contains(count)), "{wide} {negative}");
            assert_eq!(values, mask(setup, key, &one, &[5; 32]));
            assert!(values != mask(setup, key, &one, &[6; 32]) && values != mask(setup, key, &other, &[5; 32]));
        }
        assert_ne!(mask(setup, &keys[0], &one, &[5; 32]), mask(setup, &keys[1], &one, &[5; 32]));
    }
}
