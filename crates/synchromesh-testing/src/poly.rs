//! Z\[X\]/(X^N+1): sums, the negacyclic product by its definition, automorphisms, norms.

use num_bigint::BigInt;
use num_traits::{Signed, Zero};

use crate::integer;

/// A polynomial: N coefficients, the constant one first.
pub type IntPoly = Vec<BigInt>;

/// a + b.
pub fn add(a: &[BigInt], b: &[BigInt]) -> IntPoly {
    same_degree(a, b);
    a.iter().zip(b).map(|(x, y)| x + y).collect()
}

/// a - b.
pub fn sub(a: &[BigInt], b: &[BigInt]) -> IntPoly {
    same_degree(a, b);
    a.iter().zip(b).map(|(x, y)| x - y).collect()
}

/// The constant c times a.
pub fn scale(a: &[BigInt], c: &BigInt) -> IntPoly {
    a.iter().map(|x| x * c).collect()
}

/// a b in Z\[X\]/(X^N+1), in N^2 multiplications: X^(i+j) is -X^(i+j-N) once i+j reaches N.
pub fn mul(a: &[BigInt], b: &[BigInt]) -> IntPoly {
    same_degree(a, b);
    let n = a.len();
    let mut product = vec![BigInt::zero(); n];
    for (i, x) in a.iter().enumerate().filter(|(_, x)| !x.is_zero()) {
        for (j, y) in b.iter().enumerate() {
            if i + j < n {
                product[i + j] += x * y;
            } else {
                product[i + j - n] -= x * y;
            }
        }
    }
    product
}

/// a(X^g) for an odd g: coefficient i moves to i g mod N, with the sign of X^(i g) modulo X^N+1.
///
/// # Panics
/// When g is even, since X -> X^g is then no automorphism.
pub fn automorphism(a: &[BigInt], g: usize) -> IntPoly {
    assert!(g % 2 == 1, "X -> X^{g} is not an automorphism: the exponent must be odd");
    let n = a.len();
    let mut image = vec![BigInt::zero(); n];
    for (i, x) in a.iter().enumerate() {
        let exponent = i * (g % (2 * n)) % (2 * n);
        image[exponent % n] = if exponent < n { x.clone() } else { -x };
    }
    image
}

/// Every coefficient in [0, q).
pub fn reduce(a: &[BigInt], q: &BigInt) -> IntPoly {
    a.iter().map(|x| integer::reduce(x, q)).collect()
}

/// Every coefficient in (-q/2, q/2].
pub fn centre(a: &[BigInt], q: &BigInt) -> IntPoly {
    a.iter().map(|x| integer::centre(x, q)).collect()
}

/// The largest |coefficient|.
pub fn infinity_norm(a: &[BigInt]) -> BigInt {
    a.iter().map(Signed::abs).max().unwrap_or_default()
}

/// Small integers as a polynomial.
pub fn from_i64(a: &[i64]) -> IntPoly {
    a.iter().map(|&x| x.into()).collect()
}

fn same_degree(a: &[BigInt], b: &[BigInt]) {
    assert_eq!(a.len(), b.len(), "polynomials of different degree");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix;

    /// X^k.
    fn monomial(n: usize, k: usize) -> IntPoly {
        let mut a = vec![BigInt::zero(); n];
        a[k] = 1.into();
        a
    }

    #[test]
    fn x_to_the_n_is_minus_one() {
        let minus_one = scale(&monomial(8, 0), &(-1).into());
        assert_eq!(mul(&monomial(8, 3), &monomial(8, 5)), minus_one);
        assert_eq!(mul(&from_i64(&[1, 2]), &from_i64(&[3, 4])), from_i64(&[-5, 10]));
    }

    #[test]
    fn the_product_commutes_and_distributes() {
        let mut random = SplitMix::new(1);
        let [a, b, c] = [0; 3].map(|_| random.int_poly(16, &(BigInt::from(1) << 100u32)));
        assert_eq!(mul(&a, &b), mul(&b, &a));
        assert_eq!(mul(&a, &add(&b, &c)), add(&mul(&a, &b), &mul(&a, &c)));
    }

    #[test]
    fn automorphisms_respect_products_and_compose() {
        let mut random = SplitMix::new(2);
        let [a, b] = [0; 2].map(|_| random.int_poly(16, &BigInt::from(1000)));
        assert_eq!(automorphism(&mul(&a, &b), 5), mul(&automorphism(&a, 5), &automorphism(&b, 5)));
        assert_eq!(automorphism(&automorphism(&a, 3), 11), automorphism(&a, 33 % 32));
        assert_eq!(automorphism(&monomial(4, 1), 7), from_i64(&[0, 0, 0, -1]));
    }

    #[test]
    fn norms_ignore_signs() {
        assert_eq!(infinity_norm(&from_i64(&[3, -9, 4])), 9.into());
        assert_eq!(infinity_norm(&centre(&from_i64(&[96, 1]), &97.into())), 1.into());
    }
}
