//! Square roots of public numbers mod p, by Tonelli and Shanks, and inverses of many at a time: vartime, of what all parties see.

use num_bigint::BigUint;

use crate::field::{Element, Field};

/// What roots of many numbers have in common: p - 1 = 2^m q with q odd, and the powers g^(2^i) of a generator of the
/// numbers whose order is a power of two.
pub(crate) struct Roots<'a> {
    field: &'a Field,
    /// (q - 1) / 2.
    half: BigUint,
    powers: Vec<Element>,
}

impl<'a> Roots<'a> {
    pub(crate) fn new(field: &'a Field) -> Self {
        let last = field.prime() - 1u8;
        let twos = last.trailing_zeros().unwrap_or(0);
        let odd = &last >> twos;
        let one = field.small(1);
        // Half of all numbers are no squares: the first is soon found.
        let squared = |x: &Element| power_vartime(field, *x, &(&last >> 1));
        let other = (2..).map(|x| field.small(x)).find(|x| squared(x) != one).unwrap_or(one);
        let mut powers = vec![power_vartime(field, other, &odd)];
        for i in 1..twos as usize {
            powers.push(field.mul(powers[i - 1], powers[i - 1]));
        }
        Self { field, half: odd >> 1, powers }
    }

    /// The even one of the two integers below p that are roots of x; none for 0, and where there is none.
    pub(crate) fn root_vartime(&self, x: Element) -> Option<Element> {
        let (field, one) = (self.field, self.field.small(1));
        let power = power_vartime(field, x, &self.half);
        let mut root = field.mul(x, power);
        // root^2 = x t, and the order of t is a power of two below 2^m if x is a square.
        let mut t = field.mul(root, power);
        let m = self.powers.len();
        while t != one {
            let mut squares = std::iter::successors(Some(t), |&x| Some(field.mul(x, x)));
            let order = squares.by_ref().take(m).position(|x| x == one)?;
            root = field.mul(root, self.powers[m - order - 1]);
            t = field.mul(t, self.powers[m - order]);
        }
        let is_even = root.0[0] & 1 == 0;
        Some(if is_even { root } else { field.sub(Element::ZERO, root) })
    }
}

fn power_vartime(field: &Field, x: Element, exponent: &BigUint) -> Element {
    let mut power = field.small(1);
    for i in (0..exponent.bits()).rev() {
        power = field.mul(power, power);
        if exponent.bit(i) {
            power = field.mul(power, x);
        }
    }
    power
}

/// 1 / x of each of these, none of which is 0: one inversion for all (Montgomery 1987).
pub(crate) fn inverses_vartime(field: &Field, all: &[Element]) -> Vec<Element> {
    let mut products = Vec::with_capacity(all.len());
    let mut product = field.small(1);
    for &x in all {
        products.push(product);
        product = field.mul(product, x);
    }
    let mut inverse = field.inverse_of_public(product);
    for (before, &x) in products.iter_mut().zip(all).rev() {
        *before = field.mul(*before, inverse);
        inverse = field.mul(inverse, x);
    }
    products
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::DEFAULT_PRIME;

    #[test]
    fn roots_are_roots_and_other_numbers_have_none() {
        // Of 2-adicity 17, 1 and 2.
        let small = BigUint::from(u64::MAX - 58);
        let other = (BigUint::from(1u8) << 255u32) - 19u8;
        for prime in [DEFAULT_PRIME.parse().unwrap(), small, other] {
            let field = Field::new(&prime).unwrap();
            let (roots, p) = (Roots::new(&field), field.prime());
            let mut squares = 0;
            for _ in 0..60 {
                let x = field.random().unwrap();
                let square = field.mul(x, x);
                let root = roots.root_vartime(square).unwrap();
                assert_eq!(field.mul(root, root), square);
                assert!(root == x || root == field.sub(Element::ZERO, x));
                assert!(!root.to_biguint().bit(0));
                let is_square = x.to_biguint().modpow(&((p - 1u8) >> 1), p) == BigUint::from(1u8);
                assert_eq!(roots.root_vartime(x).is_some(), is_square);
                squares += usize::from(is_square);
            }
            assert!((10..50).contains(&squares), "{squares}");
            assert_eq!(roots.root_vartime(Element::ZERO), None);
            let all: Vec<Element> = (0..20).map(|_| field.random().unwrap()).collect();
            let one = field.small(1);
            assert!(inverses_vartime(&field, &all).iter().zip(&all).all(|(&a, &b)| field.mul(a, b) == one));
            assert!(inverses_vartime(&field, &[]).is_empty());
        }
    }
}
