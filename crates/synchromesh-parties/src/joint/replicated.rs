//! Secrets that several members know, where any t of n decrypt and shares are proven: the key is the sum of them, and of any t
//! members one at least knows each ([`Plan::secrets`]).
//!
//! Who draws a secret proves its share b = -a s + t e of the public key to all, and tells s to those who are to know it. They see
//! by b that it is the one: b determines s. To decrypt each shows what the secrets that it was chosen for add up to, and proves it
//! by the sum of their b, as where all decrypt.

use synchromesh::rlwe::Context;
use synchromesh::rlwe::ring::sampler::Purpose;
use synchromesh::rlwe::ring::{Coeff, Cpu, IndexSet, Ntt, Poly, secrecy};
use synchromesh::rlwe::secret_key::SecretPoly;
use zeroize::Zeroizing;

use super::plan::Plan;
use super::share::Publics;
use crate::error::{Blame, Result};
use crate::polynomials::{poly_bytes, read_poly, write_poly};
use crate::proofs::decryption::signed;
use crate::proofs::encryption::uniform;
use crate::session::Session;
use crate::transport::Transport;

/// The secrets that a member knows, by their numbers.
pub(super) fn known(plan: &Plan, member: usize) -> Vec<usize> {
    let secrets = plan.secrets();
    (0..secrets.len()).filter(|&secret| secrets[secret].contains(&member)).collect()
}

/// The secrets that each of these members shows its part of: each secret once, as evenly as it goes.
pub(super) fn shown(plan: &Plan, members: &[usize]) -> Vec<Vec<usize>> {
    let mut shown = vec![Vec::<usize>::new(); members.len()];
    for (secret, knowers) in plan.secrets().iter().enumerate() {
        let who = (0..members.len()).filter(|&at| knowers.contains(&members[at]));
        if let Some(at) = who.min_by_key(|&at| (shown[at].len(), members[at])) {
            shown[at].push(secret);
        }
    }
    shown
}

/// The most secrets that one of these members shows.
pub(super) fn most_shown(plan: &Plan, members: &[usize]) -> usize {
    shown(plan, members).iter().map(Vec::len).max().unwrap_or(0)
}

/// What the secrets add up to that a member shows among these.
pub(super) fn part(
    context: &Context<Cpu>,
    plan: &Plan,
    secrets: &[SecretPoly<Cpu>],
    members: &[usize],
    member: usize,
) -> Result<SecretPoly<Cpu>> {
    let mut sum = Zeroizing::new(Poly::zero(context.backend(), &context.params().keyed())?);
    let known = known(plan, member);
    for secret in shown_by(plan, members, member) {
        if let Some(own) = known.iter().position(|&number| number == secret).and_then(|at| secrets.get(at)) {
            sum.add_assign(context.backend(), own.poly())?;
        }
    }
    Ok(SecretPoly::new(sum.duplicate(context.backend())?))
}

/// What the part of a member among these is known by: the sum of its secrets' shares of the public key.
pub(super) fn public_part(
    context: &Context<Cpu>,
    plan: &Plan,
    publics: &Publics,
    members: &[usize],
    member: usize,
) -> Result<Poly<Cpu, Ntt>> {
    let mut sum = Poly::zero(context.backend(), &context.params().keyed())?;
    let shares = shown_by(plan, members, member).into_iter().filter_map(|secret| publics.shares.get(secret));
    for share in shares {
        sum.add_assign(context.backend(), share)?;
    }
    Ok(sum)
}

fn shown_by(plan: &Plan, members: &[usize], member: usize) -> Vec<usize> {
    let at = members.iter().position(|&other| other == member);
    at.and_then(|at| shown(plan, members).into_iter().nth(at)).unwrap_or_default()
}

/// All secrets that this party is to know: those it drew, and those that others drew and tell it now.
pub(super) fn told<T: Transport>(
    session: &mut Session<T>,
    context: &Context<Cpu>,
    plan: &Plan,
    publics: &Publics,
    drawn: &[SecretPoly<Cpu>],
) -> Result<Vec<SecretPoly<Cpu>>> {
    let (keyed, own, each) = (context.params().keyed(), session.party(), drawn.len());
    let (length, secrets) = (poly_bytes(context, &keyed), plan.secrets());
    let mut payloads = Vec::with_capacity(plan.parties);
    for peer in 0..plan.parties {
        let mut bytes = Zeroizing::new(Vec::with_capacity(each * length));
        for (number, secret) in drawn.iter().enumerate() {
            if secrets[own * each + number].contains(&peer) {
                write_poly(context, secret.poly(), &mut bytes)?;
            }
        }
        // Nobody is told as many as any other: zeros for the rest.
        bytes.resize(each * length, 0);
        payloads.push(bytes);
    }
    let received = session.scatter(&payloads, each * length)?;
    let mut known = Vec::new();
    for (dealer, bytes) in received.iter().enumerate() {
        let mut pieces = bytes.chunks(length.max(1));
        for number in (dealer * each..).take(each).filter(|&number| secrets[number].contains(&own)) {
            let piece = pieces.next().unwrap_or_default();
            let secret = SecretPoly::new(session.blamed(dealer, read_poly(context, &keyed, piece))?);
            if dealer != own && !belongs(context, publics, number, &secret)? {
                let deed = "told this one a secret that its share of the public key is not made of";
                return Err(session.abort(Blame::Party(dealer), deed));
            }
            known.push(secret);
        }
        if pieces.any(|piece| piece.iter().any(|&byte| byte != 0)) {
            return Err(session.abort(Blame::Party(dealer), "told this one a secret that it is not to know"));
        }
    }
    Ok(known)
}

/// Whether a secret's share of the public key is -a s + t e for this s, with both as short as those that are drawn.
fn belongs(context: &Context<Cpu>, publics: &Publics, number: usize, secret: &SecretPoly<Cpu>) -> Result<bool> {
    let (params, backend) = (context.params(), context.backend());
    let Some(b) = publics.shares.get(number) else { return Ok(false) };
    let primes = b.primes();
    let a = uniform(context, primes, &publics.seed, Purpose::PublicKeyUniform, 0)?;
    let mut error = Zeroizing::new(a.mul(backend, secret.poly())?);
    error.add_assign(backend, b)?;
    let residues = primes.iter().zip(params.ring().residues(primes, params.error_multiple()));
    let inverse = |(prime, t)| params.ring().modulus(prime).inv(t).unwrap_or_default();
    error.mul_scalar_assign(backend, &residues.map(inverse).collect::<Vec<u64>>())?;
    let short = is_short(context, secret.poly(), params.secret().bound())?;
    Ok(short & is_short(context, &error, params.error().bound())?)
}

/// Whether these are the residues of integers of at most this magnitude; every one is looked at.
fn is_short(context: &Context<Cpu>, poly: &Poly<Cpu, Ntt>, bound: u64) -> Result<bool> {
    let (backend, primes) = (context.backend(), poly.primes());
    let first: IndexSet = primes.iter().take(1).collect();
    let values = signed(context, &SecretPoly::new(poly.restrict(backend, &first)?))?;
    let again = Zeroizing::new(Poly::<Cpu, Coeff>::from_signed(backend, primes, &values)?);
    let poly = Zeroizing::new(poly.duplicate(backend)?.into_coeff(backend)?);
    let long = values.iter().fold(0, |any, x| any | bound.wrapping_sub(x.unsigned_abs()) >> 63);
    let words = again.buffer().words().iter().zip(poly.buffer().words());
    Ok(secrecy::reveal(words.fold(long, |any, (x, y)| any | (x ^ y))) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_met_show_each_secret_once_and_each_about_as_many() {
        for (t, n) in [(2, 3), (2, 4), (3, 4), (3, 5), (4, 6)] {
            let plan = Plan::any_of(t, n).with_proofs();
            let secrets = plan.secrets();
            for chosen in 0u32..1 << n {
                // In any order.
                let members: Vec<usize> = (0..n).rev().filter(|member| chosen >> member & 1 == 1).collect();
                if members.len() < t {
                    continue;
                }
                let shown = shown(&plan, &members);
                let mut all = shown.concat();
                all.sort_unstable();
                assert_eq!(all, (0..secrets.len()).collect::<Vec<_>>(), "{t} of {n}: {members:?}");
                let of = shown.iter().zip(&members);
                assert!(
                    of.clone().all(|(list, member)| list.iter().all(|&secret| known(&plan, *member).contains(&secret)))
                );
                assert!(of.clone().all(|(list, &member)| *list == shown_by(&plan, &members, member)));
                assert!(
                    most_shown(&plan, &members) <= secrets.len().div_ceil(members.len()) + 1,
                    "{t} of {n}: {shown:?}"
                );
            }
        }
    }
}
