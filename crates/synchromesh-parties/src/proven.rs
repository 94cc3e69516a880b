//! Keys of which every share is proven: s is the sum of the parties' ternary secrets, and nobody knows it.
//!
//! Uniform parts come from a coin of all parties. Then, in two rounds, each commits to its shares and a proof of them, all
//! agree on the commitments, open them and agree on what they got:
//!
//! 1. shares of the public key, of the rotation keys, and of encryptions B_j of P g_j s, all of one relation in s;
//! 2. with the sums B_j and the public key, the shares of an encryption of P g_j s^2.
//!
//! The second proof begins with the share of the public key again, which determines s: both rounds are made from the same
//! one. A share whose proof fails ends the session with the blame, and no key is returned. What proofs guarantee of keys is
//! [`synchromesh::rlwe::noise::KeyBound::proven`].

#[cfg(any(test, feature = "adversary"))]
mod cheat;

#[cfg(any(test, feature = "adversary"))]
pub use cheat::Cheat;
use synchromesh::rlwe::ring::sampler::{Seed, SmallPoly};
use synchromesh::rlwe::ring::{Cpu, IndexSet, Ntt, Poly};
use synchromesh::rlwe::{Context, EvaluationKeys, KeyPart, PublicKey, Randomness, Source, SwitchKey, UniformHalves};

use crate::error::{Blame, Error, Result};
use crate::polynomials::{poly_bytes, read_poly, sum, write_poly};
use crate::proofs::keys::{Part, ShareProofs, ShareWitness};
use crate::proofs::{Parameters, ProofError, Transcript};
use crate::seeds::Seeds;
use crate::session::Session;
use crate::transport::Transport;

/// A share of keys, or the sum of all: one ring element for each row of a relation.
pub type Rows = Vec<Poly<Cpu, Ntt>>;

/// A share of keys, and what it is made from.
pub type Made = (Rows, ShareWitness);

/// What shares of the first round are proven for.
pub const FIRST: &str = "keys, first round";

/// And those of the second.
pub const SECOND: &str = "keys, second round";

/// Rows and columns of a relation that its first part, the public key, takes: b; s and e.
const PUBLIC_ROWS: usize = 1;
const PUBLIC_COLUMNS: usize = 2;

/// What a party makes of what the protocol has it compute and send: nothing else, if it is honest. Cheaters of tests do.
/// What is returned, or left where it is, is what goes on.
pub trait Conduct {
    /// The secret.
    fn secret(&self, honest: SmallPoly) -> SmallPoly {
        honest
    }

    /// The share of the first round.
    ///
    /// # Errors
    /// Those of proofs.
    fn first_share(
        &self,
        _proofs: &ShareProofs<'_, Cpu>,
        made: Made,
        _randomness: &mut Randomness,
    ) -> std::result::Result<Made, ProofError> {
        Ok(made)
    }

    /// The share of the second round, which begins with so many polynomials of the first.
    ///
    /// # Errors
    /// Those of proofs.
    fn second_share(
        &self,
        proofs: &ShareProofs<'_, Cpu>,
        (witness, columns): (&ShareWitness, usize),
        randomness: &mut Randomness,
    ) -> std::result::Result<Made, ProofError> {
        proofs.share_again(witness, columns, randomness)
    }

    /// The proof of a share.
    ///
    /// # Errors
    /// Those of proofs.
    fn proof(
        &self,
        proofs: &ShareProofs<'_, Cpu>,
        (share, witness): (&[Poly<Cpu, Ntt>], &ShareWitness),
        transcript: &Transcript,
        randomness: &mut Randomness,
    ) -> std::result::Result<Vec<u8>, ProofError> {
        proofs.prove(share, witness, transcript, randomness)
    }

    /// The share of a round and, from byte `split` on, its proof.
    fn proven_share(&self, _round: &str, _split: usize, _message: &mut [u8]) {}
}

/// Does what the protocol says.
#[derive(Clone, Copy, Debug)]
pub struct Honest;

impl Conduct for Honest {}

/// Where the making of keys is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Shares of all but the relinearisation key are made.
    Shares,
    /// Those of the relinearisation key are.
    Relinearisation,
    /// So many parties' shares of this round were looked at.
    Checked(usize),
}

/// What is made, and in which way this party makes it.
pub struct Maker<'a> {
    /// The parameters.
    pub context: &'a Context<Cpu>,
    /// Keys beside the public one, and what there will be of each.
    pub keys: &'a [(Source, KeyPart)],
    /// What is uniform in them.
    pub seeds: &'a Seeds,
    /// What this party does.
    pub conduct: &'a dyn Conduct,
}

impl std::fmt::Debug for Maker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Maker({} keys)", self.keys.len())
    }
}

/// Keys that all parties made.
pub struct ProvenKeys {
    /// For whoever encrypts.
    pub public: PublicKey,
    /// For whoever computes.
    pub evaluation: EvaluationKeys,
    /// Of each secret its share b of the public key, which determines it: the first party's come first.
    pub shares: Rows,
}

impl std::fmt::Debug for ProvenKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ProvenKeys({:?})", self.public.id())
    }
}

/// A round of shares.
struct Round<'a, T> {
    session: &'a mut Session<T>,
    maker: &'a Maker<'a>,
    /// Primes of all shares.
    primes: &'a IndexSet,
    randomness: Randomness,
    observer: &'a mut dyn FnMut(&mut Session<T>, Step),
}

impl Maker<'_> {
    /// Makes the keys with the other parties, from these secrets of this one: all parties have as many.
    ///
    /// # Errors
    /// [`Error::Abort`] with the blame for a party whose share is not what it should be: no key may be used then.
    pub fn make<T: Transport>(
        &self,
        session: &mut Session<T>,
        secrets: &[SmallPoly],
        observer: &mut dyn FnMut(&mut Session<T>, Step),
    ) -> Result<ProvenKeys> {
        let Self { context, keys, seeds, .. } = self;
        let (params, backend) = (context.params(), context.backend());
        let primes = params.keyed();
        // Rows of the parts that are kept, on all primes: every share is part of one relation.
        let wide = |(_, part): &(Source, KeyPart)| {
            Ok(KeyPart::of(params, part.shape().clone(), part.rows().to_vec(), primes.clone())?)
        };
        let wide = keys.iter().map(wide).collect::<Result<Vec<KeyPart>>>()?;
        let randomness = Randomness::from_os();
        let mut round = Round { session, maker: self, primes: &primes, randomness, observer };
        let (public, sums, shares, witnesses) = round.first(secrets, &wide)?;
        let square = keys.iter().position(|(source, _)| *source == Source::Square);
        let halves = match square {
            None => Rows::new(),
            Some(at) => {
                let (part, seed) = (&wide[at], &seeds.keys[at]);
                let square = Part::Relinearisation { part, seed, sums: &sums[at], key: &public };
                let copies = shares.iter().map(|b| Ok(vec![b.duplicate(backend)?])).collect::<Result<_>>()?;
                round.second(&[Part::Public(&seeds.public), square], copies, &witnesses)?
            }
        };
        let mut evaluation = EvaluationKeys::new(seeds.id);
        for (at, ((source, part), b)) in keys.iter().zip(sums).enumerate() {
            let (uniform, b) = if Some(at) == square {
                let (b, a) = halves.iter().enumerate().partition::<Vec<_>, _>(|(row, _)| row.is_multiple_of(2));
                let copies = |list: Vec<(usize, &Poly<Cpu, Ntt>)>| {
                    list.iter().map(|(_, x)| Ok(x.duplicate(backend)?)).collect::<Result<Rows>>()
                };
                (UniformHalves::Given(copies(a)?), copies(b)?)
            } else {
                (UniformHalves::Seed(seeds.keys[at].clone()), b)
            };
            let key = SwitchKey::from_parts(context, *source, seeds.id, wide[at].clone(), uniform, b)?;
            evaluation.insert(key.trim(context, part)?)?;
        }
        Ok(ProvenKeys { public, evaluation, shares })
    }
}

impl<T: Transport> Round<'_, T> {
    /// The public key, the sums of all rows of each switch key, and each secret's share of the public key.
    fn first(
        &mut self,
        secrets: &[SmallPoly],
        wide: &[KeyPart],
    ) -> Result<(PublicKey, Vec<Rows>, Rows, Vec<ShareWitness>)> {
        (self.observer)(self.session, Step::Shares);
        let Maker { context, keys, seeds, conduct } = self.maker;
        let rotation = |((source, _), (part, seed)): (&(Source, KeyPart), (&'_ KeyPart, &'_ Seed))| {
            let galois = if let Source::Galois(g) = source { *g } else { 1 };
            (galois, part.clone(), seed.clone())
        };
        let parts: Vec<(usize, KeyPart, Seed)> = keys.iter().zip(wide.iter().zip(&seeds.keys)).map(rotation).collect();
        let mut relation = vec![Part::Public(&seeds.public)];
        relation.extend(parts.iter().map(|(galois, part, seed)| Part::Rotation { galois: *galois, part, seed }));
        let proofs = ShareProofs::new(context, self.primes, &relation, Parameters::keys())?;
        let share = |secret| {
            let made = proofs.share(secret, &mut self.randomness)?;
            conduct.first_share(&proofs, made, &mut self.randomness)
        };
        let made = secrets.iter().map(share).collect::<std::result::Result<Vec<Made>, ProofError>>()?;
        let (shares, witnesses): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        let none = (0..self.session.parties() * secrets.len()).map(|_| Rows::new()).collect();
        let shares = self.exchange(&proofs, shares, &witnesses, none, FIRST)?;
        let mut rows = sum(context, &shares)?.into_iter();
        let b = rows.next().ok_or(Error::Aborted)?;
        let public = PublicKey::from_parts(context, seeds.id, seeds.public.clone(), b)?;
        let sums = wide.iter().map(|part| rows.by_ref().take(part.rows().len()).collect()).collect();
        let shares = shares.into_iter().filter_map(|rows| rows.into_iter().next()).collect();
        Ok((public, sums, shares, witnesses))
    }

    /// The sums of the second round: (c_j, c'_j) for each row j in turn.
    fn second(&mut self, relation: &[Part<'_, Cpu>], known: Vec<Rows>, witnesses: &[ShareWitness]) -> Result<Rows> {
        (self.observer)(self.session, Step::Relinearisation);
        let Maker { context, conduct, .. } = self.maker;
        let proofs = ShareProofs::new(context, self.primes, relation, Parameters::keys())?;
        let share = |witness| conduct.second_share(&proofs, (witness, PUBLIC_COLUMNS), &mut self.randomness);
        let made = witnesses.iter().map(share).collect::<std::result::Result<Vec<Made>, ProofError>>()?;
        let (shares, witnesses): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        let shares = self.exchange(&proofs, shares, &witnesses, known, SECOND)?;
        Ok(sum(context, &shares)?.split_off(PUBLIC_ROWS))
    }

    /// The shares of all secrets, proven and checked, of which the first rows are `known` already.
    fn exchange(
        &mut self,
        proofs: &ShareProofs<'_, Cpu>,
        shares: Vec<Rows>,
        witnesses: &[ShareWitness],
        known: Vec<Rows>,
        purpose: &str,
    ) -> Result<Vec<Rows>> {
        let Maker { context, conduct, .. } = self.maker;
        let (own, id, each) = (self.session.party(), *self.session.id(), shares.len());
        let skipped = known.first().map_or(0, Vec::len);
        let row_bytes = poly_bytes(context, self.primes);
        let split = row_bytes * (shares.first().map_or(0, Vec::len) - skipped);
        // Secrets are numbered through: a proof is of one of them.
        let transcript = |secret: usize| Transcript::new(&id, secret, purpose);
        let mut message = Vec::new();
        for (number, (share, witness)) in shares.into_iter().zip(witnesses).enumerate() {
            let transcript = transcript(own * each + number);
            let proof = conduct.proof(proofs, (&share[..], witness), &transcript, &mut self.randomness)?;
            let begin = message.len();
            message.reserve_exact((each - number) * (split + proof.len()));
            share[skipped..].iter().try_for_each(|row| write_poly(context, row, &mut message))?;
            message.extend_from_slice(&proof);
            conduct.proven_share(purpose, split, &mut message[begin..]);
        }
        let length = message.len() / each.max(1);
        let messages = self.session.commit_and_open(&message)?;
        self.session.agree()?;
        drop(message);
        let (mut known, mut shares) = (known.into_iter().enumerate(), Vec::with_capacity(each * messages.len()));
        for (party, message) in messages.into_iter().enumerate() {
            for ((number, mut rows), message) in known.by_ref().take(each).zip(message.chunks(length.max(1))) {
                let (body, proof) = message.split_at(split);
                let read = body.chunks(row_bytes).map(|bytes| read_poly(context, self.primes, bytes));
                let checked = read.collect::<Result<Rows>>().and_then(|read| {
                    rows.extend(read);
                    if party != own {
                        proofs.verify(&rows, proof, &transcript(number))?;
                    }
                    Ok(rows)
                });
                let refused = |error: Error| {
                    if party == own || !error.blames_sender() {
                        return error;
                    }
                    let deed = format!("sent a share of the keys that it did not prove: {error}");
                    self.session.abort(Blame::Party(party), &deed)
                };
                shares.push(checked.map_err(refused)?);
            }
            (self.observer)(self.session, Step::Checked(party + 1));
        }
        Ok(shares)
    }
}
