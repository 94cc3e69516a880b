//! A joint key handed on to other holders, so many of whom decrypt then: the key stays as it is, and so does all that is public of it.
//!
//! 1. All say who gives and who takes, and the givers which ciphertexts were decrypted with their shares: journals go on.
//! 2. Each giver splits its part of s, its share times its Lagrange factor among the givers, as the new holders shall have it,
//!    and sends each its piece over their channel alone. Pieces add up to shares of s, since the parts add up to s.
//! 3. Givers and new holders each show -a p_i + t f_i, where a is the public key's and the p_i are parts of s, and f_i is wide
//!    enough to hide the error of the public key. With b of the public key both sums are small, or some share is wrong.
//!
//! What is shown in step 3 is a decryption of the public key's own b - t e, hidden by the same rule, and counts as one.

use synchromesh::opening::Hiding;
use synchromesh::rlwe::flood::Wide;
use synchromesh::rlwe::ring::sampler::Purpose;
use synchromesh::rlwe::ring::{Coeff, Cpu, Poly};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::{Context, PublicKey, entropy};
use zeroize::Zeroizing;

use super::noise::NoiseKey;
use super::plan::{self, Plan};
use super::points;
use super::share::KeyShare;
use crate::error::{Blame, Error, Result};
use crate::journal::Decryptions;
use crate::polynomials::{poly_bytes, read_poly, write_poly};
use crate::proofs::encryption::uniform;
use crate::session::{Kind, Session};
use crate::transport::Transport;

/// What a party has of the key and what it shall have. At least one of both.
#[derive(Clone, Copy, Debug)]
pub struct Holding<'a> {
    /// Its share and the journal of that, if it gives.
    pub gives: Option<(&'a KeyShare, &'a Decryptions)>,
    /// Its number among the new holders, if it is one.
    pub takes: Option<usize>,
}

/// A share of a new holder.
#[derive(Debug)]
pub struct Taken {
    /// The share.
    pub share: KeyShare,
    /// The hashes of ciphertexts that its journal begins with: they met the shares of those who gave.
    pub decrypted: Vec<[u8; 32]>,
}

/// Who is who in a session, by its numbers.
struct Roles {
    /// Those who give, with their numbers among the old holders.
    givers: Vec<(usize, usize)>,
    /// The new holders, in the order of their numbers there.
    takers: Vec<usize>,
}

impl Roles {
    /// The numbers of the givers among the old holders.
    fn old(&self) -> Vec<usize> {
        self.givers.iter().map(|giver| giver.1).collect()
    }
}

/// Hands a key on to the holders of `to`, all of whom are there, from as many of the old ones as decrypt, or more. Returns the new
/// share of a party that takes one.
///
/// # Errors
/// [`Error::JointKey`] for plans that do not follow each other, or new holders who are not there; [`Error::TooFew`] of those who
/// give; [`Error::KeySpent`]; [`Error::Abort`] with the blame, or without one if what came out is no share of the key:
/// nobody may use any of it then.
pub fn reshare<T: Transport>(
    session: &mut Session<T>,
    context: &Context<Cpu>,
    public: &PublicKey,
    to: &Plan,
    holding: Holding<'_>,
) -> Result<Option<Taken>> {
    let params = context.params();
    plan::check(to, params)?;
    params.require_digest(public.params_digest())?;
    if let Some((share, _)) = holding.gives {
        share.check(params)?;
        share.key.require(public.id())?;
        plan::require_same_key(share.plan(), to)?;
    }
    session.enter("agreeing on new holders");
    let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 parties, new holders");
    hasher.update(params.digest()).update(&plan::to_bytes(to)).update(&public.to_bytes(context, None)?);
    session.same("the key or its new plan", hasher.finalize().as_bytes())?;
    let roles = roles(session, to, &holding)?;
    session.enter("handing journals on");
    let decrypted = journals(session, to, holding.gives.map(|(_, journal)| journal))?;
    session.enter("handing the key on");
    let part = match holding.gives {
        Some((share, _)) => Some(share.part(context, &roles.old())?),
        None => None,
    };
    let secret = pieces(session, context, to, &roles, part.as_ref())?;
    session.enter("comparing the key with its shares");
    let all: Vec<usize> = (0..to.parties).collect();
    let new = match (&secret, holding.takes) {
        (Some(secret), Some(member)) => Some(points::part(context, to, secret, &all, member)?),
        _ => None,
    };
    compare(session, context, public, to, &roles, [part, new])?;
    let taken = match (secret, holding.takes) {
        (Some(secret), Some(member)) => {
            let (params_digest, noise) = (*params.digest(), NoiseKey::generate()?);
            let sharing = session.id().first_chunk().map_or(1, |bytes| u32::from_le_bytes(*bytes).max(1));
            let (plan, key, publics) = (*to, public.id(), None);
            let share = KeyShare { plan, member, key, sharing, params_digest, secrets: vec![secret], noise, publics };
            Some(Taken { share, decrypted })
        }
        _ => None,
    };
    session.agree()?;
    Ok(taken)
}

/// What all say of themselves: number among the old holders and among the new, each and 1 or 0, and how many held and decrypted.
fn roles<T: Transport>(session: &mut Session<T>, to: &Plan, holding: &Holding<'_>) -> Result<Roles> {
    let from = holding.gives.map(|(share, _)| (share.member + 1, share.plan.parties, share.plan.threshold));
    let (old, parties, threshold) = from.unwrap_or_default();
    let own = [old, holding.takes.map_or(0, |member| member + 1), parties, threshold];
    let own: Vec<u8> = own.iter().flat_map(|&word| (word as u64).to_le_bytes()).collect();
    let records = session.broadcast(Kind::Record, &own, own.len())?;
    session.agree()?;
    let (mut givers, mut takers, mut held) = (Vec::new(), vec![None; to.parties], None);
    for (party, record) in records.iter().enumerate() {
        let mut words = record.chunks_exact(8).map(|word| <[u8; 8]>::try_from(word).map_or(0, u64::from_le_bytes));
        let mut next = || words.next().and_then(|word| usize::try_from(word).ok()).unwrap_or(usize::MAX);
        let [old, new, parties, threshold] = [next(), next(), next(), next()];
        let known = new <= to.parties && (old == 0 || old <= parties.min(Plan::MOST_PARTIES));
        if !known || (old == 0 && new == 0) {
            let deed = format!("is member {old} of {parties} and new member {new} of {}, from 1", to.parties);
            return Err(session.abort(Blame::Party(party), &deed));
        }
        let twice = givers.iter().any(|&(_, other)| other + 1 == old) || (new > 0 && takers[new - 1].is_some());
        let other = old > 0 && held.is_some_and(|held| held != (parties, threshold));
        if twice || other {
            let deed = "are not who they say: two claim to be one, or hold shares of other plans";
            return Err(session.abort(Blame::Somebody, deed));
        }
        if old > 0 {
            held = Some((parties, threshold));
            givers.push((party, old - 1));
        }
        if new > 0 {
            takers[new - 1] = Some(party);
        }
    }
    let (parties, threshold) = held.unwrap_or((to.parties, 1));
    if givers.len() < threshold {
        return Err(Error::TooFew { present: givers.len(), threshold, parties });
    }
    let missing: Vec<usize> = (0..to.parties).filter(|&member| takers[member].is_none()).collect();
    if !missing.is_empty() {
        return Err(Error::JointKey {
            parties: to.parties,
            rule: format!("its new members {missing:?} are not there"),
        });
    }
    Ok(Roles { givers, takers: takers.into_iter().flatten().collect() })
}

/// What met the shares of those who give, and this itself.
fn journals<T: Transport>(session: &mut Session<T>, to: &Plan, journal: Option<&Decryptions>) -> Result<Vec<[u8; 32]>> {
    let own = journal.map_or_else(Vec::new, Decryptions::hashes);
    let counts = session.broadcast(Kind::Record, &(own.len() as u64).to_le_bytes(), 8)?;
    // Who was told another number would wait for a frame of another length, and blame its sender.
    session.agree()?;
    let count = |bytes: &Vec<u8>| <[u8; 8]>::try_from(&bytes[..]).map_or(u64::MAX, u64::from_le_bytes);
    let counts: Vec<u64> = counts.iter().map(count).collect();
    if let Some(party) = counts.iter().position(|&count| count > to.decryptions) {
        let deed = format!("made {} decryptions, and the key is for {}", counts[party], to.decryptions);
        return Err(session.abort(Blame::Party(party), &deed));
    }
    let longest = counts.iter().max().map_or(0, |&count| count as usize);
    let mut message = own.concat();
    message.resize(32 * longest, 0);
    let messages = session.broadcast(Kind::Record, &message, message.len())?;
    session.agree()?;
    let mut all: Vec<[u8; 32]> = vec![*blake3::hash(session.id()).as_bytes()];
    for (message, count) in messages.iter().zip(counts) {
        let hashes = message.chunks_exact(32).take(count as usize);
        all.extend(hashes.filter_map(|hash| <[u8; 32]>::try_from(hash).ok()));
    }
    all.sort_unstable();
    all.dedup();
    let (wanted, most) = (all.len() as u64, to.decryptions);
    if wanted > most {
        return Err(Error::KeySpent {
            path: journal.map(|j| j.path().to_owned()).unwrap_or_default(),
            made: 0,
            wanted,
            most,
        });
    }
    Ok(all)
}

/// The sum of the pieces that this party gets, if it is a new holder.
fn pieces<T: Transport>(
    session: &mut Session<T>,
    context: &Context<Cpu>,
    to: &Plan,
    roles: &Roles,
    part: Option<&SecretPoly<Cpu>>,
) -> Result<Option<SecretPoly<Cpu>>> {
    let (keyed, own) = (context.params().keyed(), session.party());
    let length = poly_bytes(context, &keyed);
    // Those who give nothing, or take nothing, exchange as many zeros.
    let mut payloads: Vec<_> = (0..session.parties()).map(|_| Zeroizing::new(vec![0; length])).collect();
    if let Some(part) = part {
        for (piece, &party) in points::split(context, part, to)?.iter().zip(&roles.takers) {
            let mut bytes = Zeroizing::new(Vec::with_capacity(length));
            write_poly(context, piece.poly(), &mut bytes)?;
            payloads[party] = bytes;
        }
    }
    let received = session.scatter(&payloads, length)?;
    if !roles.takers.contains(&own) {
        return Ok(None);
    }
    let mut sum = Zeroizing::new(Poly::zero(context.backend(), &keyed)?);
    for &(party, _) in &roles.givers {
        let piece = SecretPoly::new(session.blamed(party, read_poly(context, &keyed, &received[party]))?);
        sum.add_assign(context.backend(), piece.poly())?;
    }
    Ok(Some(SecretPoly::new(sum.duplicate(context.backend())?)))
}

/// Fails unless what both givers and takers hold adds up to the secret of the public key.
fn compare<T: Transport>(
    session: &mut Session<T>,
    context: &Context<Cpu>,
    public: &PublicKey,
    to: &Plan,
    roles: &Roles,
    parts: [Option<SecretPoly<Cpu>>; 2],
) -> Result<()> {
    let (params, backend, keyed) = (context.params(), context.backend(), context.params().keyed());
    let a = uniform(context, &keyed, public.seed(), Purpose::PublicKeyUniform, 0)?;
    let error = (params.n() as f64).log2() / 2.0 + 5.0 + (to.makers() as f64).log2();
    let bits = (error + hiding_bits(to, session.parties())?).ceil() as u32;
    // Every sum has fewer than 2^7 terms, none of which is 2^4 times as wide as it should be.
    let bound = params.error_multiple() << (bits + 11);
    let room = params.ring().product(&keyed) >> 1u32;
    if bound >= room {
        let rule =
            format!("comparing it with its shares takes {} bits, and its modulus has {}", bound.bits(), room.bits());
        return Err(Error::JointKey { parties: to.parties, rule });
    }
    let mut message = Vec::new();
    for part in &parts {
        let shown = match part {
            Some(part) => {
                let noise = Wide::gaussian(&entropy::seed()?, bits, params.n());
                let mut shown = noise.to_poly(backend, params.ring(), &keyed, params.error_multiple())?;
                let product = Zeroizing::new(a.mul(backend, part.poly())?.into_coeff(backend)?);
                shown.sub_assign(backend, &product)?;
                shown
            }
            None => Zeroizing::new(Poly::zero(backend, &keyed)?),
        };
        write_poly(context, &*shown, &mut message)?;
    }
    let messages = session.broadcast(Kind::Opening, &message, message.len())?;
    session.agree()?;
    let b = public.b().restrict(backend, &keyed)?.into_coeff(backend)?;
    let givers: Vec<usize> = roles.givers.iter().map(|giver| giver.0).collect();
    for (half, (who, members)) in
        [("those who gave", &givers), ("the new holders", &roles.takers)].into_iter().enumerate()
    {
        let mut sum = b.duplicate(backend)?;
        for &party in members {
            let bytes = messages[party].chunks(poly_bytes(context, &keyed)).nth(half).unwrap_or_default();
            let share: Poly<Cpu, Coeff> = session.blamed(party, read_poly(context, &keyed, bytes))?;
            sum.sub_assign(backend, &share)?;
        }
        let left = Wide::centred_vartime(backend, &sum)?.to_integers_vartime();
        if left.iter().any(|x| *x.magnitude() > bound) {
            let deed = format!("holds no share of this key: those of {who} do not add up to it");
            return Err(session.abort(Blame::Somebody, &deed));
        }
    }
    Ok(())
}

/// log2 of how much wider than the public key's error the noise is that hides it.
fn hiding_bits(plan: &Plan, parties: usize) -> Result<f64> {
    let hiding: Hiding = plan.hiding(parties, 0.0);
    Ok(hiding.bits()?)
}
