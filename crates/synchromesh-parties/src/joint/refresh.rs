//! Messages in shares modulo t, and ciphertexts from shares: for computing on among parties, and a ciphertext without noise
//! from one that has no room left (ePrint 2020/304's E2S and S2E, BFV and BGV).
//!
//! Each party draws a uniform M_i of R_t and shows c_1 p_i + t f_i less M_i as the scheme encodes it: their sum and c_0 are the
//! phase of m - sum M_i, which everybody decrypts and which says nothing of m. The way back is an encryption of each M_i under the
//! joint key, the sum of all, and the public part added.

use std::sync::Arc;

use synchromesh::batch::{PlainPoly, Residues};
use synchromesh::exact::{Ciphertext, Context, Evaluator, Plaintext, Scheme};
use synchromesh::plain_modulus::{PlainModulus, U256, from_biguint};
use synchromesh::rlwe::codec::absorb_words;
use synchromesh::rlwe::noise::{Origins, require_room};
use synchromesh::rlwe::ring::sampler::{Purpose, uniform_into};
use synchromesh::rlwe::ring::{Cpu, Poly};
use synchromesh::rlwe::{self, PublicKey, Randomness, entropy};
use zeroize::{Zeroize, Zeroizing};

use super::generate::blamed;
use super::quorum::Quorum;
use crate::error::Result;
use crate::journal::Decryptions;
use crate::polynomials::{poly_bytes, read_poly, write_poly};
use crate::session::Kind;
use crate::transport::Transport;

/// One party's share of a message: the public part, which is the same for all, and what all parties' secret parts add up to,
/// modulo t.
#[derive(Debug)]
pub struct MessageShare {
    /// m less the sum of all parties' parts. It says nothing of m.
    pub public: PlainPoly,
    /// This party's part, uniform. Wiped when dropped.
    pub own: PlainPoly,
}

impl<T: Transport> Quorum<'_, T> {
    /// The messages of these ciphertexts in shares.
    ///
    /// # Errors
    /// As [`Self::decrypt`].
    pub fn to_shares<S: Scheme>(
        &mut self,
        context: &Arc<Context<S>>,
        journal: &mut Decryptions,
        ciphertexts: &[&Ciphertext<S>],
    ) -> Result<Vec<MessageShare>> {
        let (rlwe, params) = (context.rlwe(), context.params());
        self.session.enter("sharing messages");
        let mut own = Vec::with_capacity(ciphertexts.len());
        for _ in ciphertexts {
            own.push(uniform(params.t(), params.n())?);
        }
        let zero =
            PlainPoly::new(params.t(), Residues::zero(params.t(), params.n())).map_err(synchromesh::Error::from)?;
        // Whether m and M_i wrap around t shows in the error: noise that is twice as wide hides both.
        let parties = (self.members.len() as f64).log2();
        let openings = self.agreed::<S>(context, journal, ciphertexts, (0.0, None), |opening| {
            let (level, header) = (opening.ciphertext.level(), opening.ciphertext.header());
            opening.sigma_bits += 1;
            let encoded = S::message(context, &zero, level, header)?;
            let wider = opening.noise.times(1.0).plus(encoded.1.plus(S::sum_noise()).times(parties + 1.0));
            let log2_failure = params.failure_limit().log2_failure();
            let bound = wider.bound(params.log_n(), log2_failure);
            Ok(require_room(bound, S::room(params, level)?, level, log2_failure)?)
        })?;
        let mut message = Vec::new();
        for (opening, own) in openings.iter().zip(&own) {
            let mut shown = self.shown(rlwe, opening, b"shares")?;
            let (level, header) = (opening.ciphertext.level(), opening.ciphertext.header());
            let encoded = Zeroizing::new(S::message(context, own, level, header)?.0);
            shown.sub_assign(rlwe.backend(), &encoded)?;
            write_poly(rlwe, &*shown, &mut message)?;
        }
        let phases = self.opened(rlwe, &openings, &message)?;
        let mut shares = Vec::with_capacity(own.len());
        for ((opening, phase), own) in openings.iter().zip(&phases).zip(own) {
            shares.push(MessageShare { public: S::recover(context, &opening.ciphertext, phase)?, own });
        }
        Ok(shares)
    }

    /// A ciphertext at the highest level of each message that is in shares, as if it had just been encrypted.
    ///
    /// # Errors
    /// [`crate::Error::Abort`] with the blame; [`rlwe::Error::KeysDiffer`] for another public key.
    pub fn from_shares<S: Scheme>(
        &mut self,
        context: &Arc<Context<S>>,
        public: &PublicKey,
        shares: &[MessageShare],
    ) -> Result<Vec<Ciphertext<S>>> {
        let (rlwe, params) = (context.rlwe(), context.params());
        self.session.enter("encrypting shares");
        public.id().require(self.share.key())?;
        let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 parties, what is encrypted");
        for share in shares {
            let words: Vec<u64> = (0..params.n()).filter_map(|i| share.public.coeffs().at(i)).flatten().collect();
            absorb_words(&mut hasher, &words);
        }
        self.session.same("what is to be encrypted", hasher.finalize().as_bytes())?;
        let mut randomness = Randomness::from_os();
        let fresh = |share: &MessageShare| {
            let message = Plaintext::from(share.own.clone());
            Ok(context.encrypt(public, &message, &mut randomness)?)
        };
        let fresh = shares.iter().map(fresh).collect::<Result<Vec<Ciphertext<S>>>>()?;
        let mut message = Vec::new();
        fresh.iter().flat_map(|x| x.inner().parts()).try_for_each(|part| write_poly(rlwe, part, &mut message))?;
        let messages = self.session.broadcast(Kind::Opening, &message, message.len())?;
        let mut sums: Vec<Option<Poly<Cpu, S::Domain>>> = (0..2 * fresh.len()).map(|_| None).collect();
        let primes = params.rlwe().level(params.top_level())?;
        for (party, message) in messages.iter().enumerate() {
            for (sum, bytes) in sums.iter_mut().zip(message.chunks(poly_bytes(rlwe, primes))) {
                let part: Poly<Cpu, S::Domain> = blamed(self.session, party, read_poly(rlwe, primes, bytes))?;
                match sum {
                    Some(sum) => sum.add_assign(rlwe.backend(), &part)?,
                    None => *sum = Some(part),
                }
            }
        }
        self.session.agree()?;
        let (mut sums, parties) = (sums.into_iter().flatten(), (self.members.len() as f64).log2());
        let evaluator = Evaluator::new(context, None);
        let whole = |(own, share): (&Ciphertext<S>, &MessageShare)| {
            let noise = own.noise().plus(S::sum_noise()).times(parties).with_origins(Origins::ANY);
            let parts = sums.by_ref().take(2).collect();
            let inner = rlwe::Ciphertext::new(params.rlwe(), parts, params.top_level(), public.id(), noise)?;
            let sum = Ciphertext::from_parts(params, inner, own.header().clone())?;
            Ok(evaluator.add_plain(&sum, &Plaintext::from(share.public.clone()))?)
        };
        fresh.iter().zip(shares).map(whole).collect()
    }

    /// Ciphertexts of the same messages, fresh at the highest level.
    ///
    /// # Errors
    /// As [`Self::to_shares`] and [`Self::from_shares`].
    pub fn refresh<S: Scheme>(
        &mut self,
        context: &Arc<Context<S>>,
        journal: &mut Decryptions,
        public: &PublicKey,
        ciphertexts: &[&Ciphertext<S>],
    ) -> Result<Vec<Ciphertext<S>>> {
        public.id().require(self.share.key())?;
        let shares = self.to_shares(context, journal, ciphertexts)?;
        self.from_shares(context, public, &shares)
    }
}

/// A uniform polynomial modulo t, from fresh randomness.
fn uniform(t: &PlainModulus, n: usize) -> Result<PlainPoly> {
    let refused = |rule: String| crate::Error::from(synchromesh::Error::Argument { rule });
    let seed = entropy::seed().map_err(crate::Error::from)?;
    let mut residues = Residues::zero(t, n);
    match &mut residues {
        Residues::Word(words) => {
            let t = t.value().iter_u64_digits().next().unwrap_or(1);
            uniform_into(&seed, Purpose::Flooding, 0, t, words).map_err(|error| refused(error.to_string()))?;
        }
        Residues::Wide(limbs) => {
            let bits = t.value().bits();
            let mut source = blake3::Hasher::new_keyed(seed.as_bytes()).finalize_xof();
            let below = from_biguint(t.value()).unwrap_or_default();
            for limb in limbs {
                // Those that are thrown away say nothing of the one that is kept.
                loop {
                    draw(&mut source, bits, limb);
                    if limb.iter().rev().lt(below.iter().rev()) {
                        break;
                    }
                }
            }
        }
    }
    Ok(PlainPoly::new(t, residues).map_err(synchromesh::Error::from)?)
}

/// A number of so many bits.
fn draw(source: &mut blake3::OutputReader, bits: u64, limb: &mut U256) {
    let mut bytes = [0; 32];
    source.fill(&mut bytes);
    for (i, (word, bytes)) in limb.iter_mut().zip(bytes.chunks_exact(8)).enumerate() {
        let left = bits.saturating_sub(64 * i as u64).min(64) as u32;
        let value = <[u8; 8]>::try_from(bytes).map_or(0, u64::from_le_bytes);
        *word = value & u64::MAX.checked_shr(64 - left).unwrap_or(0);
    }
    bytes.zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_uniform_below_any_modulus() {
        let wide = PlainModulus::next_slot_prime(255, 16).unwrap();
        let odd: PlainModulus = "0x8000000000000000000000000000000000000000000000001".parse().unwrap();
        for t in [&"2".parse().unwrap(), &"65537".parse().unwrap(), &wide, &odd] {
            let [x, y] = [(); 2].map(|()| uniform(t, 4096).unwrap());
            assert!(x != y || t.bits() == 1);
            // A share above half the modulus is a coin: off by 320 of 4096 is 10 deviations.
            let half = t.value() >> 1u32;
            let limbs = |x: U256| x.iter().rev().fold(num_bigint::BigUint::ZERO, |sum, &w| (sum << 64u32) + w);
            let above =
                (0..4096).filter(|&i| limbs(x.coeffs().at(i).unwrap()) >= half.clone().max(1u32.into())).count();
            assert!((1728..2368).contains(&above), "{t}: {above}");
        }
    }
}
