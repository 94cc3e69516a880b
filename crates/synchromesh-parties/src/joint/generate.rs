//! Keys made by all parties: in two rounds, each of commitments and openings, after a coin for what is uniform in them.
//!
//! 1. shares of the public key, of the keys for rotations, and of encryptions B_j of P g_j s;
//! 2. with the sums B_j and the public key, shares of encryptions of P g_j s^2: the relinearisation key.
//!
//! These are the rounds of `synchromesh-triples`, whose relations can be proven, and as many bytes as those of ePrint 2020/304:
//! three ring elements a row. One round (ePrint 2021/1085) would take a wider key or more noise at every product.
//! Everybody commits to its shares before it sees any, so that none is chosen after the others'.

use synchromesh::rlwe::ring::{Cpu, Poly};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::{
    Context, EvaluationKeys, KeyPart, PublicKey, Randomness, SecretKey, Source, SwitchKey, UniformHalves,
};
use zeroize::Zeroizing;

use super::noise::NoiseKey;
use super::plan::{self, Plan, Wanted};
use super::points;
use super::rows::Maker;
use super::share::{KeyShare, Publics};
use crate::error::{Blame, Error, Result};
use crate::polynomials::{add_piece, pieces, poly_bytes, read_poly, write_poly};
use crate::proven::{self, Conduct, Honest, ProvenKeys, Rows, Step};
use crate::seeds::Seeds;
use crate::session::Session;
use crate::transport::Transport;

/// What everybody may know of a joint key: ordinary keys.
pub struct JointKeys {
    /// For whoever encrypts.
    pub public: PublicKey,
    /// For whoever computes.
    pub evaluation: EvaluationKeys,
}

impl std::fmt::Debug for JointKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JointKeys({:?})", self.public.id())
    }
}

/// Makes a key with the other parties of the session: the public half of it, and this party's share.
///
/// # Errors
/// [`Error::JointKey`] for a plan that these parameters or this session do not fit; [`Error::Abort`] with the blame, and
/// nothing of what was made may be used then; [`Error::Entropy`] without randomness.
pub fn generate<T: Transport>(
    session: &mut Session<T>,
    context: &Context<Cpu>,
    plan: &Plan,
    wanted: &Wanted,
) -> Result<(JointKeys, KeyShare)> {
    generate_as(session, context, plan, wanted, &Honest)
}

/// The same by a party that may do something else, where shares are proven.
pub(super) fn generate_as<T: Transport>(
    session: &mut Session<T>,
    context: &Context<Cpu>,
    plan: &Plan,
    wanted: &Wanted,
    conduct: &dyn Conduct,
) -> Result<(JointKeys, KeyShare)> {
    let params = context.params();
    plan::check(plan, params)?;
    if session.parties() != plan.parties {
        let rule = format!("{} parties are there to make it", session.parties());
        return Err(Error::JointKey { parties: plan.parties, rule });
    }
    session.enter("making keys");
    let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 parties, joint key");
    hasher.update(params.digest()).update(&plan::to_bytes(plan));
    wanted.describe(&mut hasher);
    session.same("the plan of the keys", hasher.finalize().as_bytes())?;
    let seeds = Seeds::new(session.coin()?, wanted.list().len());
    let mut randomness = Randomness::from_os();
    // Drawn and looked at as any secret key of this library.
    let drawn = SecretKey::generate(context, &mut randomness)?;
    let ((public, evaluation), own, publics) = if plan.proofs {
        let small = conduct.secret(drawn.small().clone());
        let maker = proven::Maker { context, keys: wanted.list(), seeds: &seeds, conduct };
        let ProvenKeys { public, evaluation, shares } = maker.make(session, &small, &mut entered)?;
        let backend = context.backend();
        let own = Poly::from_small(backend, &params.keyed(), &small)?.into_ntt(backend)?;
        ((public, evaluation), SecretPoly::new(own), Some(Publics { seed: seeds.public.clone(), shares }))
    } else {
        let own = SecretPoly::new(drawn.slots().poly().duplicate(context.backend())?);
        (rounds(session, &mut Maker { context, secret: &own, randomness }, &seeds, wanted.list())?, own, None)
    };
    session.enter("sharing the key");
    let secret = if plan.is_additive() { own } else { shared(session, context, &own, plan)? };
    let share = KeyShare {
        plan: *plan,
        member: session.party(),
        key: seeds.id,
        sharing: 0,
        params_digest: *params.digest(),
        secret,
        noise: NoiseKey::generate()?,
        publics,
    };
    session.agree()?;
    Ok((JointKeys { public, evaluation }, share))
}

/// Says what happens at a step.
fn entered<T: Transport>(session: &mut Session<T>, step: Step) {
    if step == Step::Relinearisation {
        session.enter("making the relinearisation key");
    }
}

/// Both rounds, without proofs.
fn rounds<T: Transport>(
    session: &mut Session<T>,
    maker: &mut Maker<'_>,
    seeds: &Seeds,
    wanted: &[(Source, KeyPart)],
) -> Result<(PublicKey, EvaluationKeys)> {
    let context = maker.context;
    let mut rows = vec![maker.public(&seeds.public)?];
    for ((source, part), seed) in wanted.iter().zip(&seeds.keys) {
        let galois = if let Source::Galois(g) = source { *g } else { 1 };
        rows.extend(maker.switch(galois, part, seed)?);
    }
    let mut sums = exchange(session, context, rows)?.into_iter();
    let b = sums.next().ok_or(Error::Aborted)?;
    let public = PublicKey::from_parts(context, seeds.id, seeds.public.clone(), b)?;
    let sums: Vec<Rows> = wanted.iter().map(|(_, part)| sums.by_ref().take(part.rows().len()).collect()).collect();
    let mut keys = EvaluationKeys::new(seeds.id);
    for (((source, part), seed), sums) in wanted.iter().zip(&seeds.keys).zip(sums) {
        let (uniform, b) = if *source == Source::Square {
            session.enter("making the relinearisation key");
            let rows = maker.square(part, seed, &sums, &public)?;
            let halves = exchange(session, context, rows)?;
            let (b, a): (Vec<_>, Vec<_>) = halves.into_iter().enumerate().partition(|(row, _)| row.is_multiple_of(2));
            let rows = |half: Vec<(usize, _)>| half.into_iter().map(|(_, row)| row).collect::<Rows>();
            (UniformHalves::Given(rows(a)), rows(b))
        } else {
            (UniformHalves::Seed(seed.clone()), sums)
        };
        keys.insert(SwitchKey::from_parts(context, *source, seeds.id, part.clone(), uniform, b)?)?;
    }
    Ok((public, keys))
}

/// The sums of all parties' rows, of which this one has these.
fn exchange<T: Transport>(session: &mut Session<T>, context: &Context<Cpu>, mut rows: Rows) -> Result<Rows> {
    let lengths: Vec<usize> = rows.iter().map(|row| poly_bytes(context, row.primes())).collect();
    let (ranges, sizes) = pieces(&lengths);
    let mut message = Vec::with_capacity(lengths.iter().sum());
    rows.iter().try_for_each(|row| write_poly(context, row, &mut message))?;
    session.commit_and_read(&message, &sizes, |session, party, number, bytes| {
        let added = add_piece(context, &mut rows[ranges[number].clone()], bytes, drop);
        blamed(session, party, added)
    })?;
    session.agree()?;
    Ok(rows)
}

/// What was read of a party's message; a message that is none ends the session with the blame.
pub(super) fn blamed<T: Transport, R>(session: &mut Session<T>, party: usize, read: Result<R>) -> Result<R> {
    match read {
        Err(error) if error.blames_sender() => {
            let what = if matches!(error, Error::Proof(_)) { "what it did not prove: " } else { "" };
            Err(session.abort(Blame::Party(party), &format!("sent {what}{error}")))
        }
        other => other,
    }
}

/// This party's value of the sum of all parties' polynomials.
fn shared<T: Transport>(
    session: &mut Session<T>,
    context: &Context<Cpu>,
    own: &SecretPoly<Cpu>,
    plan: &Plan,
) -> Result<SecretPoly<Cpu>> {
    let keyed = own.poly().primes();
    let length = poly_bytes(context, keyed);
    let mut payloads = Vec::with_capacity(plan.parties);
    for value in points::deal(context, own, plan.threshold, plan.parties)? {
        let mut bytes = Zeroizing::new(Vec::with_capacity(length));
        write_poly(context, value.poly(), &mut bytes)?;
        payloads.push(bytes);
    }
    let received = session.scatter(&payloads, length)?;
    let mut sum = None::<SecretPoly<Cpu>>;
    for (party, bytes) in received.iter().enumerate() {
        let value = SecretPoly::new(blamed(session, party, read_poly(context, keyed, bytes))?);
        sum = Some(match sum {
            None => value,
            Some(sum) => {
                let mut next = sum.poly().duplicate(context.backend())?;
                next.add_assign(context.backend(), value.poly())?;
                SecretPoly::new(next)
            }
        });
    }
    sum.ok_or(Error::Aborted)
}
