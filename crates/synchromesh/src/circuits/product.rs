//! Products of many ciphertexts in a balanced tree, and inner products with one key switch.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Arithmetic, Combination};
use crate::error::{Error, Result};

/// Multiplications after one another in a product of `count` fresh ciphertexts: ceil(log2 count).
#[must_use]
pub const fn product_depth(count: usize) -> usize {
    count.next_power_of_two().trailing_zeros() as usize
}

/// The product of all `factors`: count - 1 products, as shallow as their levels allow (ceil(log2 count) where they
/// are at one level).
///
/// # Errors
/// [`Error::Shape`] for an empty list, or as [`Arithmetic::mul`].
pub fn product<A: Arithmetic>(arithmetic: &A, factors: &[&A::Ciphertext]) -> Result<A::Ciphertext> {
    let Some(top) = factors.iter().map(|x| arithmetic.level(x)).max() else {
        return Err(Error::shape("a product needs at least one factor"));
    };
    // The two shallowest first (Huffman's tree for the measure max + 1); equals in the order given.
    let depth = |(at, x): (usize, &&A::Ciphertext)| Reverse((top - arithmetic.level(x), at));
    let mut open: BinaryHeap<_> = factors.iter().enumerate().map(depth).collect();
    let mut made: Vec<Option<A::Ciphertext>> = factors.iter().map(|_| None).collect();
    while let (Some(Reverse((_, i))), Some(Reverse((deeper, j)))) = (open.pop(), open.pop()) {
        let of = |at: usize| made[at].as_ref().or_else(|| factors.get(at).copied());
        let product = match (of(i), of(j)) {
            (Some(x), Some(y)) => arithmetic.mul(x, y)?,
            _ => break,
        };
        made[i] = None;
        made[j] = None;
        open.push(Reverse((deeper + 1, made.len())));
        made.push(Some(product));
    }
    match made.pop().flatten() {
        Some(product) => Ok(product),
        None => arithmetic.duplicate(factors[0]),
    }
}

/// sum_i a_i b_i, relinearised once.
///
/// # Errors
/// [`Error::Shape`] for lists that are empty or of different lengths, or as [`Arithmetic::mul`].
pub fn inner_product<A: Arithmetic>(
    arithmetic: &A,
    a: &[&A::Ciphertext],
    b: &[&A::Ciphertext],
) -> Result<A::Ciphertext> {
    if a.len() != b.len() || a.is_empty() {
        return Err(Error::shape(format!("an inner product of {} and {} ciphertexts", a.len(), b.len())));
    }
    let products = a.iter().zip(b).map(|(&a, &b)| [a, b]).collect();
    arithmetic.combine(&Combination { products, weights: Vec::new(), constant: None })
}
