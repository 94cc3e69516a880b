//! Keys made by all parties, after a coin for what is uniform in them.
//!
//! 1. shares of the public key, which all commit to before they see any;
//! 2. shares of the keys for rotations, and of encryptions B_j of P g_j s;
//! 3. with the sums B_j and the public key, shares of encryptions of P g_j s^2: the relinearisation key.
//!
//! Of 2 and 3 each row is added up by one party for all, who compare what they were told.
//!
//! 2 and 3 are the rounds of `synchromesh-triples`, whose relations can be proven, and as many bytes as those of ePrint 2020/304:
//! three ring elements a row. One round (ePrint 2021/1085) would take a wider key or more noise at every product.
//!
//! Who adds up a row could make it anything, where another could only move it. All that is shown of s in 2 and 3 is hidden by errors
//! and, in 3, by v under the public key: that is what must be nobody's choice, and it is committed to.

use synchromesh::rlwe::ring::sampler::SmallPoly;
use synchromesh::rlwe::ring::{Cpu, Ntt, Poly};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::{
    Context, EvaluationKeys, KeyPart, PublicKey, Randomness, SecretKey, Source, SwitchKey, UniformHalves,
};
use zeroize::Zeroizing;

use super::noise::NoiseKey;
use super::plan::{self, Plan, Wanted};
use super::points;
use super::replicated;
use super::rows::Maker;
use super::share::{KeyShare, Publics};
use crate::error::{Error, Result};
use crate::polynomials::{add_piece, add_up, poly_bytes, read_poly, write_poly};
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
    let mut draw = || Ok::<_, Error>(SecretKey::generate(context, &mut randomness)?);
    let (keys, secrets, publics) = if plan.proofs {
        let each = plan.secrets().len() / plan.parties;
        let small =
            (0..each).map(|_| Ok(conduct.secret(draw()?.small().clone()))).collect::<Result<Vec<SmallPoly>>>()?;
        let maker = proven::Maker { context, keys: wanted.list(), seeds: &seeds, conduct };
        let ProvenKeys { public, evaluation, shares } = maker.make(session, &small, &mut entered)?;
        let (backend, publics) = (context.backend(), Publics { seed: seeds.public.clone(), shares });
        let slots = |small| Ok(SecretPoly::new(Poly::from_small(backend, &params.keyed(), small)?.into_ntt(backend)?));
        let drawn = small.iter().map(slots).collect::<Result<Vec<_>>>()?;
        session.enter("sharing the key");
        let secrets =
            if plan.is_additive() { drawn } else { replicated::told(session, context, plan, &publics, &drawn)? };
        ((public, evaluation), secrets, Some(publics))
    } else {
        let own = SecretPoly::new(draw()?.slots().poly().duplicate(context.backend())?);
        let keys = rounds(session, &mut Maker { context, secret: &own, randomness }, &seeds, wanted.list())?;
        session.enter("sharing the key");
        (keys, vec![if plan.is_additive() { own } else { shared(session, context, &own, plan)? }], None)
    };
    let (public, evaluation) = keys;
    let share = KeyShare {
        plan: *plan,
        member: session.party(),
        key: seeds.id,
        sharing: 0,
        params_digest: *params.digest(),
        secrets,
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
    let b = public_share(session, context, maker.public(&seeds.public)?)?;
    let public = PublicKey::from_parts(context, seeds.id, seeds.public.clone(), b)?;
    let primes: Vec<_> = wanted.iter().map(|(_, part)| vec![part.primes().clone(); part.rows().len()]).collect();
    let sums = add_up(session, context, &primes, |key| {
        let (source, part) = &wanted[key];
        maker.switch(if let Source::Galois(g) = source { *g } else { 1 }, part, &seeds.keys[key])
    })?;
    session.agree()?;
    let mut keys = EvaluationKeys::new(seeds.id);
    for (((source, part), seed), sums) in wanted.iter().zip(&seeds.keys).zip(sums) {
        let (uniform, b) = if *source == Source::Square {
            session.enter("making the relinearisation key");
            let primes = vec![vec![part.primes().clone(); 2]; sums.len()];
            let halves = add_up(session, context, &primes, |row| {
                maker.square(part.primes(), (seed, part.rows()[row]), &sums[row], &public)
            })?;
            session.agree()?;
            let halves = halves.into_iter().flatten();
            let (b, a): (Vec<_>, Vec<_>) = halves.enumerate().partition(|(row, _)| row.is_multiple_of(2));
            let rows = |half: Vec<(usize, _)>| half.into_iter().map(|(_, row)| row).collect::<Rows>();
            (UniformHalves::Given(rows(a)), rows(b))
        } else {
            (UniformHalves::Seed(seed.clone()), sums)
        };
        keys.insert(SwitchKey::from_parts(context, *source, seeds.id, part.clone(), uniform, b)?)?;
    }
    Ok((public, keys))
}

/// The public key's row: the sum of all parties' shares, of which this one has `own`, none chosen after another was seen.
fn public_share<T: Transport>(
    session: &mut Session<T>,
    context: &Context<Cpu>,
    own: Poly<Cpu, Ntt>,
) -> Result<Poly<Cpu, Ntt>> {
    let mut message = Vec::new();
    write_poly(context, &own, &mut message)?;
    let mut sum = own;
    session.commit_and_read(&message, &[message.len()], |session, party, _, bytes| {
        let added = add_piece(context, [&mut sum], bytes);
        session.blamed(party, added)
    })?;
    session.agree()?;
    Ok(sum)
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
        let value = SecretPoly::new(session.blamed(party, read_poly(context, keyed, bytes))?);
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
