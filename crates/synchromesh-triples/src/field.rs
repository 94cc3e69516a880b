//! The prime field Z_p, 2^63 < p < 2^256, that shares live in: checked once, constant-time on elements.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use num_bigint::BigUint;
use num_integer::Integer;
use synchromesh::plain_modulus::{U256, WideModulus, from_biguint, to_biguint};
use synchromesh::rlwe::entropy;
use synchromesh::rlwe::ring::secrecy;
use zeroize::Zeroize;

use crate::error::{Error, Result};

/// Rounds of Miller-Rabin with fresh random bases: a composite passes with probability at most 4^-64, whoever chose it.
const ROUNDS: usize = 64;

/// The prime used where the caller names none: 128 bits, 1 mod 2^17.
pub const DEFAULT_PRIME: &str = "340282366920938463463374607431759953921";

/// An integer in `[0, p)`. Which p, its [`Field`] knows. Zeroised by its owners: matrices and key shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Element(pub(crate) U256);

impl Element {
    /// 0.
    pub const ZERO: Self = Self([0; 4]);

    /// The integer.
    #[must_use]
    pub fn to_biguint(&self) -> BigUint {
        to_biguint(&self.0)
    }
}

impl Zeroize for Element {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// A checked prime p with its arithmetic. Clones share their constants.
#[derive(Clone)]
pub struct Field(Arc<Inner>);

struct Inner {
    prime: BigUint,
    modulus: WideModulus,
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field({})", self.0.prime)
    }
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.0.prime == other.0.prime
    }
}

impl Eq for Field {}

impl Field {
    /// The field of p elements.
    ///
    /// # Errors
    /// [`Error::NotAField`] unless 2^63 < p < 2^256 and p passes 64 rounds of Miller-Rabin with fresh random bases;
    /// [`synchromesh_parties::Error::Entropy`] when the system gives none.
    pub fn new(prime: &BigUint) -> Result<Self> {
        let refused = |reason| Error::NotAField { bits: prime.bits(), reason };
        if !(64..=256).contains(&prime.bits()) {
            return Err(refused("it must have between 64 and 256 bits"));
        }
        if prime.is_even() || !is_probable_prime(prime)? {
            return Err(refused("it is not prime"));
        }
        let modulus = WideModulus::new(prime).ok_or_else(|| refused("it must have between 64 and 256 bits"))?;
        Ok(Self(Arc::new(Inner { prime: prime.clone(), modulus })))
    }

    /// The prime p.
    #[must_use]
    pub fn prime(&self) -> &BigUint {
        &self.0.prime
    }

    /// Bits of p.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.0.prime.bits()
    }

    /// Bytes of an element on the wire and in files: whole 64-bit words that hold p.
    #[must_use]
    pub fn element_bytes(&self) -> usize {
        self.0.prime.bits().div_ceil(64) as usize * 8
    }

    /// x as an element.
    ///
    /// # Errors
    /// [`Error::NotAnElement`] if x >= p.
    pub fn element(&self, x: &BigUint) -> Result<Element> {
        if x >= &self.0.prime {
            return Err(Error::NotAnElement { bits: x.bits(), prime_bits: self.bits() });
        }
        from_biguint(x).map(Element).ok_or(Error::NotAnElement { bits: x.bits(), prime_bits: self.bits() })
    }

    /// A small integer as an element.
    #[must_use]
    pub fn small(&self, x: u32) -> Element {
        Element([u64::from(x), 0, 0, 0])
    }

    /// A word as an element: p exceeds 2^63, so it is reduced.
    #[must_use]
    pub(crate) fn word(&self, x: u64) -> Element {
        Element(self.0.modulus.reduce(&[x, 0, 0, 0]))
    }

    /// A public integer mod p.
    pub(crate) fn reduce(&self, x: &BigUint) -> Element {
        Element(from_biguint(&(x % &self.0.prime)).unwrap_or_default())
    }

    /// 1 / x for a public x, 0 for 0.
    pub(crate) fn inverse_of_public(&self, x: Element) -> Element {
        self.reduce(&x.to_biguint().modpow(&(&self.0.prime - 2u8), &self.0.prime))
    }

    /// a + b.
    #[must_use]
    pub fn add(&self, a: Element, b: Element) -> Element {
        Element(self.0.modulus.add(&a.0, &b.0))
    }

    /// a - b.
    #[must_use]
    pub fn sub(&self, a: Element, b: Element) -> Element {
        Element(self.0.modulus.sub(&a.0, &b.0))
    }

    /// a b.
    #[must_use]
    pub fn mul(&self, a: Element, b: Element) -> Element {
        Element(self.0.modulus.mul(&a.0, &b.0))
    }

    /// w R mod p with R = 2^256, the form in which a factor of many products is kept.
    #[must_use]
    pub(crate) fn factor(&self, w: Element) -> U256 {
        self.0.modulus.to_montgomery(&w.0).expect("the prime of a field is odd")
    }

    /// x w from w R.
    #[must_use]
    pub(crate) fn mul_factor(&self, x: Element, factor: &U256) -> Element {
        Element(self.0.modulus.mul_constant(&x.0, factor))
    }

    /// The little-endian integer in these bytes mod p: for uniform bytes a uniform element up to a distance of 2^-128.
    #[must_use]
    pub(crate) fn reduce_bytes(&self, bytes: &[u8; 48]) -> Element {
        let mut limbs = [0u64; 6];
        for (limb, bytes) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
            *limb = u64::from_le_bytes(bytes.try_into().expect("chunks of eight bytes"));
        }
        let element = Element(self.0.modulus.reduce_limbs(&limbs));
        limbs.zeroize();
        element
    }

    /// A uniform element up to a distance of 2^-128, from the operating system.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::Entropy`] when the system gives none.
    pub fn random(&self) -> Result<Element> {
        let mut bytes = entropy::random_bytes::<48>()?;
        let element = self.reduce_bytes(&bytes);
        bytes.zeroize();
        Ok(element)
    }

    /// Appends x as little-endian words, [`element_bytes`](Self::element_bytes) of them.
    pub fn write(&self, x: Element, bytes: &mut Vec<u8>) {
        for word in &x.0[..self.element_bytes() / 8] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// The element in these bytes.
    ///
    /// # Errors
    /// [`Error::NotAnElement`] if there are too few bytes or too many, or they hold p or more.
    pub fn read(&self, bytes: &[u8]) -> Result<Element> {
        if bytes.len() != self.element_bytes() {
            return Err(Error::NotAnElement { bits: 8 * bytes.len() as u64, prime_bits: self.bits() });
        }
        let mut limbs = [0u64; 4];
        for (limb, bytes) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
            *limb = u64::from_le_bytes(bytes.try_into().expect("chunks of eight bytes"));
        }
        if secrecy::reveal(below(&limbs, self.0.modulus.value())) {
            Ok(Element(limbs))
        } else {
            Err(Error::NotAnElement { bits: 8 * bytes.len() as u64, prime_bits: self.bits() })
        }
    }

    /// R and 1 / R mod p as factors, where R = 2^(64 words).
    pub(crate) fn word_radix(&self) -> [U256; 2] {
        let radix = (BigUint::from(1u8) << (8 * self.element_bytes())) % &self.0.prime;
        let inverse = radix.modpow(&(&self.0.prime - 2u8), &self.0.prime);
        [radix, inverse].map(|x| self.factor(Element(from_biguint(&x).expect("a residue has at most 256 bits"))))
    }
}

impl FromStr for Field {
    type Err = Error;

    /// A decimal numeral, or hexadecimal after `0x`.
    fn from_str(text: &str) -> Result<Self> {
        let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |rest| (rest, 16));
        let prime = (digits.len() <= 80).then(|| BigUint::parse_bytes(digits.as_bytes(), radix)).flatten();
        Self::new(&prime.ok_or(Error::NotAField { bits: 0, reason: "it is not a number of at most 256 bits" })?)
    }
}

/// a < b, without a branch on either.
fn below(a: &U256, b: &U256) -> bool {
    a.iter().zip(b).fold(false, |borrow, (&a, &b)| {
        let (difference, first) = a.overflowing_sub(b);
        first | difference.overflowing_sub(u64::from(borrow)).1
    })
}

/// Miller-Rabin with [`ROUNDS`] random bases, for public odd n > 3.
fn is_probable_prime(n: &BigUint) -> Result<bool> {
    let (one, last) = (BigUint::from(1u8), n - 1u8);
    let twos = last.trailing_zeros().unwrap_or(0);
    let odd = &last >> twos;
    for _ in 0..ROUNDS {
        let base = BigUint::from_bytes_le(&entropy::random_bytes::<48>()?) % (n - 3u8) + 2u8;
        let mut power = base.modpow(&odd, n);
        let mut passes = power == one || power == last;
        for _ in 1..twos {
            power = &power * &power % n;
            passes |= power == last;
        }
        if !passes {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Vec<Field> {
        let below_2_64 = BigUint::from(u64::MAX - 58);
        let below_2_255 = (BigUint::from(1u8) << 255u32) - 19u8;
        [below_2_64, DEFAULT_PRIME.parse().unwrap(), below_2_255].iter().map(|p| Field::new(p).unwrap()).collect()
    }

    #[test]
    fn composites_and_odd_sizes_are_refused() {
        let carmichael_like = BigUint::from(u64::MAX - 58) * BigUint::from(u64::MAX - 82);
        assert_eq!(Field::new(&carmichael_like).unwrap_err().kind(), "not_a_field");
        assert_eq!(Field::new(&BigUint::from(65537u32)).unwrap_err().kind(), "not_a_field");
        assert_eq!("12x".parse::<Field>().unwrap_err().kind(), "not_a_field");
        assert_eq!("0xffffffffffffffffffffffffff820001".parse::<Field>().unwrap(), DEFAULT_PRIME.parse().unwrap());
    }

    #[test]
    fn arithmetic_is_that_of_integers() {
        for field in fields() {
            let p = field.prime().clone();
            for _ in 0..50 {
                let (a, b) = (field.random().unwrap(), field.random().unwrap());
                let (x, y) = (a.to_biguint(), b.to_biguint());
                assert_eq!(field.add(a, b).to_biguint(), (&x + &y) % &p);
                assert_eq!(field.sub(a, b).to_biguint(), (&x + &p - &y) % &p);
                assert_eq!(field.mul(a, b).to_biguint(), &x * &y % &p);
                assert_eq!(field.mul_factor(a, &field.factor(b)).to_biguint(), &x * &y % &p);
            }
        }
    }

    #[test]
    fn bytes_round_trip_and_p_is_not_an_element() {
        for field in fields() {
            let [radix, inverse] = field.word_radix();
            let a = field.random().unwrap();
            let mut plain = Vec::new();
            field.write(a, &mut plain);
            assert_eq!(field.read(&plain).unwrap(), a);
            let shifted = field.mul_factor(a, &radix);
            assert_eq!(shifted.to_biguint(), (a.to_biguint() << (8 * field.element_bytes())) % field.prime());
            assert_eq!(field.mul_factor(shifted, &inverse), a);
            let mut bytes = field.prime().to_bytes_le();
            bytes.resize(field.element_bytes(), 0);
            assert_eq!(field.read(&bytes).unwrap_err().kind(), "not_an_element");
            assert_eq!(field.read(&plain[1..]).unwrap_err().kind(), "not_an_element");
            assert!(field.element(field.prime()).is_err());
        }
    }
}
