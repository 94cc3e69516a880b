//! Shamir's scheme over R_Q: a secret is the value at 0 of a polynomial of degree t - 1, and member j knows its value at
//! j + 1.
//!
//! The points are integers below any prime, so that their differences are units modulo each, and a value at 0 follows from
//! any t others. Fewer are uniform and say nothing.

use synchromesh::rlwe::Context;
use synchromesh::rlwe::ring::{Cpu, IndexSet, Poly, Ring};
use synchromesh::rlwe::secret_key::SecretPoly;

use super::plan::Plan;
use crate::error::Result;

/// What a member adds to s among these: its share, times its Lagrange factor where shares are points.
pub(super) fn part(
    context: &Context<Cpu>,
    plan: &Plan,
    share: &SecretPoly<Cpu>,
    members: &[usize],
    member: usize,
) -> Result<SecretPoly<Cpu>> {
    let mut part = share.poly().duplicate(context.backend())?;
    if !plan.is_additive() {
        let factor = lagrange(context.params().ring(), part.primes(), members, member);
        part.mul_scalar_assign(context.backend(), &factor)?;
    }
    Ok(SecretPoly::new(part))
}

/// Shares of a secret as the members of a plan have them: points of a polynomial, or uniform with this sum.
pub(super) fn split(context: &Context<Cpu>, secret: &SecretPoly<Cpu>, plan: &Plan) -> Result<Vec<SecretPoly<Cpu>>> {
    if !plan.is_additive() {
        return deal(context, secret, plan.threshold, plan.parties);
    }
    let (backend, primes) = (context.backend(), secret.poly().primes());
    let uniform = (1..plan.parties).map(|_| Ok(SecretPoly::uniform(context, primes)?));
    let mut shares = uniform.collect::<Result<Vec<_>>>()?;
    let mut last = secret.poly().duplicate(backend)?;
    for share in &shares {
        last.sub_assign(backend, share.poly())?;
    }
    shares.push(SecretPoly::new(last));
    Ok(shares)
}

/// The values at the points of `members` members of a fresh polynomial of degree `threshold` - 1 with this value at 0.
pub(super) fn deal(
    context: &Context<Cpu>,
    secret: &SecretPoly<Cpu>,
    threshold: usize,
    members: usize,
) -> Result<Vec<SecretPoly<Cpu>>> {
    let (backend, ring) = (context.backend(), context.params().ring());
    let primes = secret.poly().primes();
    let coefficients = (1..threshold).map(|_| Ok(SecretPoly::uniform(context, primes)?)).collect::<Result<Vec<_>>>()?;
    let value = |member: usize| {
        let point = ring.residues(primes, &(member as u64 + 1).into());
        let mut sum = Poly::zero(backend, primes)?;
        // Horner's rule, the constant last.
        for coefficient in coefficients.iter().rev().chain([secret]) {
            sum.mul_scalar_assign(backend, &point)?;
            sum.add_assign(backend, coefficient.poly())?;
        }
        Ok(SecretPoly::new(sum))
    };
    (0..members).map(value).collect()
}

/// The factor of `member`'s value in the value at 0, among these, modulo each prime.
pub(super) fn lagrange(ring: &Ring, primes: &IndexSet, members: &[usize], member: usize) -> Vec<u64> {
    let point = |member: usize| member as u64 + 1;
    let factor = |prime: usize| {
        let q = ring.modulus(prime);
        let others = members.iter().filter(|&&other| other != member);
        others.fold(1, |product, &other| {
            let difference = q.sub(point(other), point(member));
            // A prime has more than 18 bits, and there are 64 points.
            q.mul(product, q.mul(point(other), q.inv(difference).unwrap_or(0)))
        })
    };
    primes.iter().map(factor).collect()
}
