//! Decryption among those who have met: to all of them, or to whoever holds a secret key, without anybody else seeing.
//!
//! Each shows d_i = c_1 p_i + t f_i, where the p_i add up to s, and f_i is its noise ([`synchromesh::opening`]); c_0 and the
//! sum of all d_i are the phase with everybody's noise. To pass a ciphertext on, each encrypts d_i under the
//! receiver's public key, and c_0 and the sum of all encryptions are a ciphertext under that key (ePrint 2020/304's public
//! key switch). Where shares are proven a proof of each goes with it. Before anything is shown, all agree on the ciphertexts,
//! and the journal has them.

use std::ops::Range;

use synchromesh::opening::{Hiding, Opening};
use synchromesh::rlwe::flood::Wide;
use synchromesh::rlwe::ring::sampler::Seed;
use synchromesh::rlwe::ring::{Coeff, Cpu, Domain, IndexSet, Ntt, Poly};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::{self, Context, PublicKey, Randomness};
use synchromesh::scheme::{Scheme, Values};
use zeroize::Zeroizing;

use super::quorum::{Member, Quorum};
use crate::error::{Error, Result};
use crate::journal::Decryptions;
use crate::polynomials::{add_and_keep, add_up, pieces, pieces_among, poly_bytes, write_poly};
use crate::proofs::decryption::{DecryptionProofs, Sealing};
use crate::session::Kind;
use crate::transport::Transport;

/// What a ciphertext holds, as all who have met learn it.
pub struct Opened {
    /// All slots.
    pub values: Values,
    /// How far one may be off; 0 where results are exact.
    pub error_bound: f64,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Opened({} slots, to {})", self.values.len(), self.error_bound)
    }
}

pub(super) type Openings<S> = Vec<Opening<<S as Scheme>::Ciphertext<Cpu>, Cpu>>;

/// What a party showed, and its proofs.
type Told<D> = (Vec<Poly<Cpu, D>>, Vec<u8>);

/// The phase of an opening, or what a party shows of it.
pub(super) type Phase = Poly<Cpu, Coeff>;

impl<T: Transport> Quorum<'_, T> {
    /// The values of these ciphertexts, for all who have met; of CKKS with this many bits of the bound of each message right
    /// in every slot.
    ///
    /// # Errors
    /// [`crate::Error::DecryptedBefore`] or [`crate::Error::KeySpent`] from the journal, and [`crate::Error::Scheme`] where the noise leaves no room,
    /// all before anything is shown. [`crate::Error::Abort`] with the blame: what was asked for may not be asked for again then if
    /// the journal has it.
    pub fn decrypt<S: Scheme>(
        &mut self,
        context: &S::Context<Cpu>,
        journal: &mut Decryptions,
        ciphertexts: &[&S::Ciphertext<Cpu>],
        precision: f64,
    ) -> Result<Vec<Opened>> {
        let rlwe = S::rlwe(context);
        self.session.enter("decrypting");
        let openings = self.agreed::<S>(context, journal, ciphertexts, (precision, None), S::opening)?;
        let proofs = self.proofs(rlwe, &openings, None)?;
        let phases = self.opened(rlwe, &openings, &proofs, |own, i| own.shown(rlwe, &openings[i], &[]))?;
        let opened = |(opening, phase): (&Opening<_, _>, _)| {
            Ok(Opened { values: S::opened(context, opening, phase)?, error_bound: opening.error_bound })
        };
        openings.iter().zip(&phases).map(opened).collect()
    }

    /// These ciphertexts under the receiver's key: nobody else learns what is in them, and the receiver nothing more.
    ///
    /// # Errors
    /// As [`Self::decrypt`], and [`rlwe::Error::ParamsDiffer`] for a key of other parameters.
    pub fn pass_on<S: Scheme>(
        &mut self,
        context: &S::Context<Cpu>,
        journal: &mut Decryptions,
        ciphertexts: &[&S::Ciphertext<Cpu>],
        receiver: &PublicKey,
        precision: f64,
    ) -> Result<Vec<S::Ciphertext<Cpu>>> {
        let rlwe = S::rlwe(context);
        self.session.enter("passing on");
        let openings = self.agreed::<S>(context, journal, ciphertexts, (precision, Some(receiver)), S::opening)?;
        let backend = rlwe.backend();
        let proofs = self.proofs(rlwe, &openings, Some(receiver))?;
        let sums = if proofs.is_empty() {
            let primes: Vec<_> = openings.iter().map(|opening| vec![opening.c1.primes().clone(); 2]).collect();
            let (Self { session, own }, mut randomness) = (&mut *self, Randomness::from_os());
            let sums = add_up(session, rlwe, &primes, |i| {
                let shown = own.shown(rlwe, &openings[i], &receiver.id().0)?;
                let level = S::state(context, &openings[i].ciphertext)?.level;
                let sealed: rlwe::Ciphertext<Cpu, Ntt> = receiver.encrypt(rlwe, &shown, level, &mut randomness)?;
                Ok(sealed.into_parts())
            })?;
            session.agree()?;
            sums.into_iter().flatten().collect()
        } else {
            self.sealed(rlwe, &openings, &proofs, receiver)?
        };
        let mut sums = sums.into_iter();
        let with_constant = |opening: &Opening<_, _>| {
            let (Some(mut first), Some(second)) = (sums.next(), sums.next()) else { return Err(Error::Aborted) };
            first.add_assign(backend, &opening.c0.duplicate(backend)?.into_ntt(backend)?)?;
            Ok([first, second])
        };
        let sums = openings.iter().map(with_constant).collect::<Result<Vec<_>>>()?;
        let passed = |(opening, parts)| Ok(S::passed_on(context, opening, receiver.id(), parts)?);
        openings.iter().zip(sums).map(passed).collect()
    }

    /// What is to be opened, each as `open` makes it, once all have said the same and the journal has it.
    pub(super) fn agreed<S: Scheme>(
        &mut self,
        context: &S::Context<Cpu>,
        journal: &mut Decryptions,
        ciphertexts: &[&S::Ciphertext<Cpu>],
        (precision, receiver): (f64, Option<&PublicKey>),
        open: impl Fn(
            &S::Context<Cpu>,
            &S::Ciphertext<Cpu>,
            &Hiding,
        ) -> synchromesh::error::Result<Opening<S::Ciphertext<Cpu>, Cpu>>,
    ) -> Result<Openings<S>> {
        let rlwe = S::rlwe(context);
        self.own.share.check(rlwe.params())?;
        let hiding = self.own.share.plan().hiding(self.own.among.len(), precision);
        let hiding = Hiding { encrypted: receiver.is_some(), ..hiding };
        let mut openings = Vec::with_capacity(ciphertexts.len());
        let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 parties, what is opened");
        for ciphertext in ciphertexts {
            self.own.share.key().require(S::key(ciphertext))?;
            let opening = open(context, ciphertext, &hiding)?;
            hasher.update(&opening.subject).update(&opening.sigma_bits.to_le_bytes());
            hasher.update(&opening.own_bits.unwrap_or(0).to_le_bytes());
            hasher.update(&(opening.c1.primes().len() as u64).to_le_bytes());
            openings.push(opening);
        }
        if let Some(receiver) = receiver {
            rlwe.params().require_digest(receiver.params_digest())?;
            hasher.update(&receiver.id().0).update(&receiver.to_bytes(rlwe, None)?);
        }
        let subjects: Vec<[u8; 32]> = openings.iter().map(|opening| opening.subject).collect();
        // One that may not has not yet shown anything, nor have the others.
        self.session.or_leave(journal.permit(&subjects))?;
        self.session.same("what is to be opened", hasher.finalize().as_bytes())?;
        self.session.or_leave(journal.intend(&subjects))?;
        Ok(openings)
    }

    /// The phases of openings, with what all have shown: this party what `show` makes. With proofs everybody sees what each shows
    /// and the proof of it; without them one party adds up for all ([`Session::add_up`](crate::session::Session::add_up)).
    pub(super) fn opened<C>(
        &mut self,
        context: &Context<Cpu>,
        openings: &[Opening<C, Cpu>],
        proofs: &[DecryptionProofs<'_, Cpu>],
        mut show: impl FnMut(&Member<'_>, usize) -> Result<Phase>,
    ) -> Result<Vec<Phase>> {
        let backend = context.backend();
        if !proofs.is_empty() {
            let shown = (0..openings.len()).map(|i| show(&self.own, i)).collect::<Result<Vec<Phase>>>()?;
            let message = self.message(context, openings, proofs, &shown)?;
            let phases = self.exchanged(context, (openings, proofs), &message, shown, |x| Ok(x.into_ntt(backend)?))?;
            return with_constant(context, phases, openings);
        }
        let lengths: Vec<usize> = openings.iter().map(|opening| poly_bytes(context, opening.c1.primes())).collect();
        let ranges = pieces_among(&lengths, self.own.among.len());
        let primes = |range: &Range<usize>| openings[range.clone()].iter().map(|x| x.c1.primes().clone()).collect();
        let primes: Vec<Vec<IndexSet>> = ranges.iter().map(primes).collect();
        let Self { session, own } = self;
        let make = |piece: usize| ranges[piece].clone().map(|i| show(own, i)).collect();
        let sums = add_up(session, context, &primes, make)?;
        session.agree()?;
        with_constant(context, sums.into_iter().flatten().collect(), openings)
    }

    /// What this party shows of openings, and behind all of it a proof of each.
    pub(super) fn message<C>(
        &self,
        context: &Context<Cpu>,
        openings: &[Opening<C, Cpu>],
        proofs: &[DecryptionProofs<'_, Cpu>],
        shown: &[Phase],
    ) -> Result<Vec<u8>> {
        let (backend, mut message) = (context.backend(), Vec::new());
        shown.iter().try_for_each(|share| write_poly(context, share, &mut message))?;
        for ((proofs, opening), share) in proofs.iter().zip(openings).zip(shown) {
            let share = share.duplicate(backend)?.into_ntt(backend)?;
            message.extend(self.prove(context, proofs, opening, &[share], None)?);
        }
        Ok(message)
    }

    /// Shares of openings encrypted under a receiver's key, and a proof of each: the sums of all parties' encryptions.
    fn sealed<C>(
        &mut self,
        context: &Context<Cpu>,
        openings: &[Opening<C, Cpu>],
        proofs: &[DecryptionProofs<'_, Cpu>],
        receiver: &PublicKey,
    ) -> Result<Vec<Poly<Cpu, Ntt>>> {
        let (backend, mut randomness) = (context.backend(), Randomness::from_os());
        let (mut message, mut proven, mut shown) = (Vec::new(), Vec::new(), Vec::with_capacity(2 * openings.len()));
        for (proofs, opening) in proofs.iter().zip(openings) {
            let share = self.own.shown(context, opening, &receiver.id().0)?.into_ntt(backend)?;
            let sealing = Sealing::draw(context, &mut randomness)?;
            let sealed = sealing.seal(context, share, receiver)?;
            proven.extend(self.prove(context, proofs, opening, &sealed, Some((&sealing, receiver)))?);
            sealed.iter().try_for_each(|part| write_poly(context, part, &mut message))?;
            shown.extend(sealed);
        }
        message.extend(proven);
        self.exchanged(context, (openings, proofs), &message, shown, Ok)
    }

    /// The sums of what all show and prove, from what this party shows: as many polynomials of each opening as of any other.
    pub(super) fn exchanged<C, D: Domain>(
        &mut self,
        context: &Context<Cpu>,
        (openings, proofs): (&[Opening<C, Cpu>], &[DecryptionProofs<'_, Cpu>]),
        message: &[u8],
        mut sums: Vec<Poly<Cpu, D>>,
        to_slots: impl Fn(Poly<Cpu, D>) -> Result<Poly<Cpu, Ntt>>,
    ) -> Result<Vec<Poly<Cpu, D>>> {
        let lengths: Vec<usize> = sums.iter().map(|sum| poly_bytes(context, sum.primes())).collect();
        let (ranges, mut sizes) = pieces(&lengths);
        // All proofs are a piece behind all shares.
        sizes.push(message.len() - lengths.iter().sum::<usize>());
        let mut told: Vec<Told<D>> = self.own.among.iter().map(|_| Default::default()).collect();
        self.session.broadcast_in_pieces(Kind::Decryption, message, &sizes, |session, party, number, bytes| {
            let (shares, proven) = &mut told[party];
            let Some(range) = ranges.get(number) else {
                proven.extend_from_slice(bytes);
                return Ok(());
            };
            let added = add_and_keep(context, &mut sums[range.clone()], bytes, shares);
            session.blamed(party, added)
        })?;
        let (own, each) = (self.session.party(), sums.len() / openings.len().max(1));
        for (party, (shares, proven)) in told.into_iter().enumerate().filter(|(party, _)| *party != own) {
            let mut slots = shares.into_iter().map(&to_slots);
            let shown = openings.iter().map(|_| slots.by_ref().take(each).collect::<Result<Vec<_>>>());
            let shown = shown.collect::<Result<Vec<_>>>()?;
            let verified = self.verified(party, context, (proofs, openings), &shown, &proven);
            self.session.blamed(party, verified)?;
        }
        self.session.agree()?;
        Ok(sums)
    }
}

/// What all have shown of openings, and c_0 of each.
fn with_constant<C>(
    context: &Context<Cpu>,
    mut phases: Vec<Phase>,
    openings: &[Opening<C, Cpu>],
) -> Result<Vec<Phase>> {
    for (phase, opening) in phases.iter_mut().zip(openings) {
        phase.add_assign(context.backend(), &opening.c0)?;
    }
    Ok(phases)
}

impl Member<'_> {
    /// c_1 p_i + t f_i.
    pub(super) fn shown<C>(&self, context: &Context<Cpu>, opening: &Opening<C, Cpu>, to: &[u8]) -> Result<Phase> {
        let (backend, params) = (context.backend(), context.params());
        let noise = Wide::gaussian(&self.seed(opening, to), opening.sigma_bits, params.n());
        let noise = noise.to_poly(backend, params.ring(), opening.c1.primes(), &opening.multiple)?;
        self.hidden(context, opening, &noise)
    }

    /// c_1 p_i with what hides it.
    pub(super) fn hidden<C>(&self, context: &Context<Cpu>, opening: &Opening<C, Cpu>, hides: &Phase) -> Result<Phase> {
        let (backend, c1) = (context.backend(), &opening.c1);
        let part = SecretPoly::new(self.part.poly().restrict(backend, c1.primes())?);
        let mut share = Zeroizing::new(c1.mul(backend, part.poly())?.into_coeff(backend)?);
        share.add_assign(backend, hides)?;
        // A secret no longer.
        Ok(std::mem::replace(&mut *share, Poly::new(backend, &IndexSet::empty())?))
    }

    /// The seed of what hides this party's share of an opening from those here, or for somebody.
    pub(super) fn seed<C>(&self, opening: &Opening<C, Cpu>, to: &[u8]) -> Seed {
        let mut subject = opening.subject.to_vec();
        subject.extend_from_slice(&opening.sigma_bits.to_le_bytes());
        self.among.iter().for_each(|&member| subject.extend_from_slice(&(member as u64).to_le_bytes()));
        subject.extend_from_slice(to);
        self.share.noise.seed(&subject)
    }
}
