//! Keys that the parties make themselves: s is the sum of their ternary secrets, and nobody knows it.
//!
//! Uniform parts come from a coin of all parties. Then, in two rounds, each commits to its shares and a proof of them, all
//! agree on the commitments, open them and agree on what they got:
//!
//! 1. shares of the public key, of the rotation keys, and of encryptions B_j of P g_j s, all of one relation in s;
//! 2. with the sums B_j and the public key, the shares of an encryption of P g_j s^2.
//!
//! The second proof begins with the share of the public key again, which determines s: both rounds are made from the same
//! one. What is proven of a share is what every certificate of the plan holds for ([`super::Keys::Generated`]); a share whose
//! proof fails ends the session with the blame, and no key is returned.

use std::sync::Arc;

use synchromesh::bgv::Context;
use synchromesh::rlwe::ring::sampler::{Purpose, Seed, SmallPoly};
use synchromesh::rlwe::ring::{Cpu, IndexSet, Ntt, Poly};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::{EvaluationKeys, KeyId, KeyPart, PublicKey, Randomness, Source, SwitchKey, UniformHalves};
use synchromesh_parties::Blame;
use synchromesh_parties::polynomials::{poly_bytes, read_poly, write_poly};
use synchromesh_parties::proofs::keys::{Part, ShareProofs, ShareWitness};
use synchromesh_parties::proofs::{Parameters, Transcript};
use synchromesh_parties::seeds::Seeds;
use synchromesh_parties::transport::Transport;

use super::conduct::{Conduct, Honest};
use super::phases::{Observer, Phase, Recorder};
use super::plan::{GenerationPlan, Keys};
use super::setup::{PartyKey, Setup, decryption_primes};
use crate::error::{Error, Result};
use crate::mac::MacKeyShare;
use crate::session::Session;

/// A share of keys, or the sum of all: one ring element for each row of a relation.
type Rows = Vec<Poly<Cpu, Ntt>>;

/// Rows and columns of a relation that its first part, the public key, takes: b; s and e.
const PUBLIC_ROWS: usize = 1;
const PUBLIC_COLUMNS: usize = 2;

/// What a party has once keys are made, and the channels for what comes next.
#[non_exhaustive]
pub struct GeneratedKeys<T> {
    /// What all parties know, the same for each.
    pub setup: Setup,
    /// What this one knows alone.
    pub key: PartyKey,
    /// What it took.
    pub phases: Vec<Phase>,
    /// The channels.
    pub transport: T,
}

/// Makes keys for a plan with the other parties.
///
/// # Errors
/// [`Error::NoParameters`] for a plan of dealt keys, as [`Session::new`], and [`synchromesh_parties::Error::Abort`]
/// with the blame for a party whose share is not what it should be: no key may be used then.
pub fn generate_keys<T: Transport>(
    transport: T,
    plan: GenerationPlan,
    observer: Box<Observer<'_>>,
) -> Result<GeneratedKeys<T>> {
    KeyMaker::new(transport, plan, observer)?.make()
}

/// The same with a share of the MAC key that this party has already: what is made with these keys and what was made before
/// under that MAC key go together, if all parties go on with theirs.
///
/// # Errors
/// As [`generate_keys`]; [`Error::MacKeyBurnt`] for a key that others may know, and then nothing was sent.
pub fn generate_keys_with<T: Transport>(
    transport: T,
    plan: GenerationPlan,
    mac: MacKeyShare,
    observer: Box<Observer<'_>>,
) -> Result<GeneratedKeys<T>> {
    mac.ready()?;
    let mut maker = KeyMaker::new(transport, plan, observer)?;
    maker.mac = Some(mac);
    maker.make()
}

/// A party's run.
pub(crate) struct KeyMaker<'a, T> {
    session: Session<T>,
    plan: GenerationPlan,
    context: Arc<Context>,
    recorder: Recorder<'a>,
    randomness: Randomness,
    /// Primes of all shares.
    primes: IndexSet,
    /// The share of the MAC key, if it is not to be drawn.
    mac: Option<MacKeyShare>,
    pub(crate) conduct: Box<dyn Conduct<T> + 'a>,
}

impl<'a, T: Transport> KeyMaker<'a, T> {
    pub(crate) fn new(transport: T, plan: GenerationPlan, observer: Box<Observer<'a>>) -> Result<Self> {
        let refused = |reason: &str| Error::NoParameters {
            shape: plan.shape().to_string(),
            parties: plan.parties(),
            reason: reason.into(),
        };
        if plan.keys() != Keys::Generated {
            return Err(refused("its bounds hold for keys from a dealer only"));
        }
        let (party, parties) = (transport.party(), transport.parties());
        if parties != plan.parties() {
            return Err(synchromesh_parties::Error::Parties { party, parties, most: plan.parties() }.into());
        }
        let recorder = Recorder::new("key_session", observer);
        let agreed = blake3::hash(plan.to_json().as_bytes());
        let description = format!("keys for matrix triples {} by plan {agreed}", plan.shape());
        let session = Session::new(transport, plan.field(), plan.statistical_security(), &description)?;
        let context = Context::new(plan.params().clone())?;
        let primes = plan.params().rlwe().keyed();
        let randomness = Randomness::from_os();
        let (mac, conduct) = (None, Box::new(Honest));
        Ok(Self { session, plan, context, recorder, randomness, primes, mac, conduct })
    }

    pub(crate) fn make(mut self) -> Result<GeneratedKeys<T>> {
        let params = self.plan.params().rlwe().clone();
        let sources = self.plan.key_parts(&self.context)?;
        let seeds = Seeds::new(self.session.coin()?, sources.len());
        let secret = params.secret().sample(&self.randomness.next_seed()?, Purpose::SecretKey, 0, params.n());
        let secret = self.conduct.secret(secret);
        // Rows of the parts that are kept, on all primes: every share is part of one relation.
        let wide = |(_, part): &(Source, KeyPart)| {
            Ok(KeyPart::of(&params, part.shape().clone(), part.rows().to_vec(), self.primes.clone())?)
        };
        let wide = sources.iter().map(wide).collect::<Result<Vec<KeyPart>>>()?;
        let (public, sums, shares, witness) = self.first_round(&secret, &sources, &wide, &seeds)?;
        let square = sources.iter().position(|(source, _)| *source == Source::Square);
        let square = square.ok_or(synchromesh::rlwe::Error::MissingKey {
            source_name: Source::Square.to_string(),
            have: "rotations only".into(),
        })?;
        let relinearisation = [
            Part::Public(&seeds.public),
            Part::Relinearisation { part: &wide[square], seed: &seeds.keys[square], sums: &sums[square], key: &public },
        ];
        let halves = self.second_round(&relinearisation, shares, &witness)?;
        let mut keys = EvaluationKeys::new(seeds.id);
        for (at, ((source, part), b)) in sources.iter().zip(sums).enumerate() {
            let (uniform, b) = if at == square {
                let (b, a) = halves.iter().enumerate().partition::<Vec<_>, _>(|(row, _)| row.is_multiple_of(2));
                let copies = |list: Vec<(usize, &Poly<Cpu, Ntt>)>| {
                    list.iter().map(|(_, x)| Ok(x.duplicate(self.context.backend())?)).collect::<Result<Rows>>()
                };
                (UniformHalves::Given(copies(a)?), copies(b)?)
            } else {
                (UniformHalves::Seed(seeds.keys[at].clone()), b)
            };
            let rlwe = self.context.rlwe();
            let key = SwitchKey::from_parts(rlwe, *source, seeds.id, wide[at].clone(), uniform, b)?;
            keys.insert(key.trim(rlwe, part)?)?;
        }
        self.finish(&secret, seeds.id, public, keys)
    }

    /// The public key, the sums of all rows of each switch key, and each party's share of the public key.
    fn first_round(
        &mut self,
        secret: &SmallPoly,
        sources: &[(Source, KeyPart)],
        wide: &[KeyPart],
        seeds: &Seeds,
    ) -> Result<(PublicKey, Vec<Rows>, Vec<Rows>, ShareWitness)> {
        self.recorder.enter(&mut self.session, "key_shares", self.plan.parties());
        let rotation = |((source, _), (part, seed)): (&(Source, KeyPart), (&'_ KeyPart, &'_ Seed))| {
            let galois = if let Source::Galois(g) = source { *g } else { 1 };
            (galois, part.clone(), seed.clone())
        };
        let parts: Vec<(usize, KeyPart, Seed)> =
            sources.iter().zip(wide.iter().zip(&seeds.keys)).map(rotation).collect();
        let mut relation = vec![Part::Public(&seeds.public)];
        relation.extend(parts.iter().map(|(galois, part, seed)| Part::Rotation { galois: *galois, part, seed }));
        let context = Arc::clone(&self.context);
        let primes = self.primes.clone();
        let proofs = ShareProofs::new(context.rlwe(), &primes, &relation, Parameters::keys())?;
        let made = proofs.share(secret, &mut self.randomness)?;
        let (share, witness) = self.conduct.first_share(&proofs, made, &mut self.randomness)?;
        let none = (0..self.plan.parties()).map(|_| Rows::new()).collect();
        let mut shares = self.exchange(&proofs, share, &witness, none, "keys, first round")?;
        let mut rows = sum(&context, &shares)?.into_iter();
        let b = rows.next().ok_or_else(Error::aborted)?;
        let public = PublicKey::from_parts(context.rlwe(), seeds.id, seeds.public.clone(), b)?;
        let sums = wide.iter().map(|part| rows.by_ref().take(part.rows().len()).collect()).collect();
        shares.iter_mut().for_each(|rows| rows.truncate(PUBLIC_ROWS));
        Ok((public, sums, shares, witness))
    }

    /// The sums of the second round: (c_j, c'_j) for each row j in turn.
    fn second_round(&mut self, relation: &[Part<'_, Cpu>], known: Vec<Rows>, witness: &ShareWitness) -> Result<Rows> {
        self.recorder.enter(&mut self.session, "relinearisation_key", self.plan.parties());
        let context = Arc::clone(&self.context);
        let primes = self.primes.clone();
        let proofs = ShareProofs::new(context.rlwe(), &primes, relation, Parameters::keys())?;
        let begun = (witness, PUBLIC_COLUMNS);
        let (share, witness) = self.conduct.second_share(&proofs, begun, &mut self.randomness)?;
        let shares = self.exchange(&proofs, share, &witness, known, "keys, second round")?;
        Ok(sum(&context, &shares)?.split_off(PUBLIC_ROWS))
    }

    /// All parties' shares, proven and checked, of which the first rows are `known` already.
    fn exchange(
        &mut self,
        proofs: &ShareProofs<'_, Cpu>,
        share: Rows,
        witness: &ShareWitness,
        known: Vec<Rows>,
        purpose: &str,
    ) -> Result<Vec<Rows>> {
        let (context, own, session) = (Arc::clone(&self.context), self.session.party(), *self.session.id());
        let skipped = known.first().map_or(0, Vec::len);
        let transcript = Transcript::new(&session, own, purpose);
        let proof = self.conduct.proof(proofs, (&share[..], witness), &transcript, &mut self.randomness)?;
        let each = poly_bytes(context.rlwe(), &self.primes);
        let mut message = Vec::with_capacity(each * (share.len() - skipped) + proof.len());
        share[skipped..].iter().try_for_each(|row| write_poly(context.rlwe(), row, &mut message))?;
        let split = message.len();
        message.extend_from_slice(&proof);
        drop((share, proof));
        self.conduct.proven_share(purpose, split, &mut message);
        let messages = self.session.commit_and_open(&message)?;
        self.session.agree()?;
        drop(message);
        let mut shares = Vec::with_capacity(messages.len());
        for (party, (mut rows, message)) in known.into_iter().zip(messages).enumerate() {
            let (body, proof) = message.split_at(split);
            let read = body.chunks(each).map(|bytes| Ok(read_poly(context.rlwe(), &self.primes, bytes)?));
            let checked = read.collect::<Result<Rows>>().and_then(|read| {
                rows.extend(read);
                if party != own {
                    proofs.verify(&rows, proof, &Transcript::new(&session, party, purpose))?;
                }
                Ok(rows)
            });
            let refused = |error: Error| {
                if party == own || !error.blames_sender() {
                    return error;
                }
                let deed = format!("sent a share of the keys that it did not prove: {error}");
                self.session.abort(Blame::Party(party), &deed).into()
            };
            shares.push(checked.map_err(refused)?);
            self.recorder.tell(&self.session, party + 1, self.plan.parties());
        }
        Ok(shares)
    }

    fn finish(
        mut self,
        secret: &SmallPoly,
        id: KeyId,
        public: PublicKey,
        keys: EvaluationKeys,
    ) -> Result<GeneratedKeys<T>> {
        let (backend, primes) = (self.context.backend(), decryption_primes(&self.plan)?);
        let share = SecretPoly::new(Poly::from_signed(backend, &primes, secret.as_slice())?.into_ntt(backend)?);
        let mac = self.mac.take().map_or_else(|| MacKeyShare::random(self.plan.field()), Ok)?;
        let key = PartyKey::with_share(self.session.party(), id, share, mac)?;
        self.recorder.enter(&mut self.session, "key_session", 1);
        let setup = Setup::new(self.plan, self.context, public, keys, None)?;
        self.recorder.enter(&mut self.session, "done", 1);
        Ok(GeneratedKeys {
            setup,
            key,
            phases: self.recorder.phases().to_vec(),
            transport: self.session.into_transport()?,
        })
    }
}

/// The sum of all parties' rows.
fn sum(context: &Context, shares: &[Rows]) -> Result<Rows> {
    let (first, rest) = shares.split_first().ok_or_else(Error::aborted)?;
    let backend = context.backend();
    let one = |(at, row): (usize, &Poly<Cpu, Ntt>)| {
        let mut sum = row.duplicate(backend)?;
        rest.iter().try_for_each(|share| sum.add_assign(backend, &share[at]))?;
        Ok(sum)
    };
    first.iter().enumerate().map(one).collect()
}
