//! Shamir's scheme over R_Q: a secret is the value at 0 of a polynomial of degree t - 1, and member j knows its value at
//! j + 1.
//!
//! The points are integers below any prime, so that their differences are units modulo each, and a value at 0 follows from
//! any t others. Fewer are uniform and say nothing.

use synchromesh::rlwe::Context;
use synchromesh::rlwe::ring::{Cpu, IndexSet, Poly, Ring};
use synchromesh::rlwe::secret_key::SecretPoly;

use crate::error::Result;

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
