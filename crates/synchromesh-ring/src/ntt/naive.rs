//! The negacyclic transform by its definition, A_i = sum_j a_j psi^(j e(i)): O(N^2), the oracle of the tests.

use super::slot_exponents;
use crate::modulus::Modulus;

/// The transform of `a`, psi a primitive 2N-th root of unity mod q. a_j < q; N a power of two in range.
#[must_use]
pub fn forward(modulus: &Modulus, psi: u64, a: &[u64]) -> Vec<u64> {
    slot_exponents(a.len().ilog2()).into_iter().map(|e| evaluate(modulus, a, modulus.pow(psi, u64::from(e)))).collect()
}

/// The polynomial with the given transform: a_j = (1/N) sum_i A_i psi^(-j e(i)).
#[must_use]
pub fn inverse(modulus: &Modulus, psi: u64, slots: &[u64]) -> Vec<u64> {
    let two_n = 2 * slots.len() as u64;
    // 1/N = -(q-1)/N mod q, since q = 1 mod N.
    let inv_n = modulus.neg((modulus.value() - 1) / slots.len() as u64);
    let exponents = slot_exponents(slots.len().ilog2());
    (0..slots.len() as u64)
        .map(|j| {
            let sum = exponents.iter().zip(slots).fold(0, |sum, (&e, &slot)| {
                let power = (two_n - j * u64::from(e) % two_n) % two_n;
                modulus.add(sum, modulus.mul(slot, modulus.pow(psi, power)))
            });
            modulus.mul(sum, inv_n)
        })
        .collect()
}

/// The value at one slot only: sum_j a_j x^j, x = psi^e.
#[must_use]
pub fn evaluate(modulus: &Modulus, a: &[u64], x: u64) -> u64 {
    a.iter().rev().fold(0, |sum, &c| modulus.add(modulus.mul(sum, x), c))
}

/// The product in Z_q\[X\]/(X^N + 1), schoolbook.
#[must_use]
pub fn negacyclic_product(modulus: &Modulus, a: &[u64], b: &[u64]) -> Vec<u64> {
    let n = a.len();
    let mut out = vec![0; n];
    for (i, &x) in a.iter().enumerate() {
        for (j, &y) in b.iter().enumerate() {
            let term = modulus.mul(x, y);
            let slot = &mut out[(i + j) % n];
            *slot = if i + j < n { modulus.add(*slot, term) } else { modulus.sub(*slot, term) };
        }
    }
    out
}
