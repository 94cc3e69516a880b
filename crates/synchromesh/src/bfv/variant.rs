//! How ciphertexts are multiplied: independent choices, of which the ways of the literature are named values.

use synchromesh_rlwe::ring::rns::Overflow;

/// What the tensor product is taken of (ePrint 2021/204, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tensor {
    /// Algorithm 1: both operands as they are. The product is a multiple of Q^2 that must fit QP, so P is longer than
    /// Q by about log2(N t) bits: it takes special primes and dropped ciphertext primes when the auxiliary primes do
    /// not suffice. The result is scaled by t/Q into P and converted back.
    Original,
    /// Algorithm 2: one operand switched to P, about Q. What overflows is a multiple of QP and vanishes; the result is
    /// scaled by t/P directly into Q.
    Switched,
}

/// Whether the product is computed at a lower level (ePrint 2021/204, Algorithm 3 and Appendix D).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dropping {
    /// At the level of the operands.
    Never,
    /// At the lowest level where the certificate of the relinearised product, as a fraction of Q, grows by less than
    /// half a bit: it never costs a product that the level of the operands would have allowed.
    Certified,
    /// At the lowest level whose rounding error stays below both operands' errors by a factor of 16, if those are
    /// this many bits below their certificates. The paper takes 30 bits for depths to 10 and 60 for depths to 20.
    Cushion(u32),
}

/// How two ciphertexts are multiplied.
///
/// All ways decrypt to the same product. They differ in time and, by a few bits, in noise; every certificate covers
/// the choices made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Multiplication {
    /// What the tensor product is taken of.
    pub tensor: Tensor,
    /// How overflows are counted when an operand is extended to the second base and when a result comes back from
    /// it. [`Overflow::Fast`] does not count them, and costs noise that grows with the number of primes.
    pub extend: Overflow,
    /// How overflows are counted when something is divided: the switch to P and the scaling by t.
    pub scale: Overflow,
    /// Whether the product is computed at a lower level.
    pub dropping: Dropping,
    /// Whether an operand that is lowered and switched to P goes there in one step (remark 3.4).
    pub merged: bool,
    /// Whether a product computed at a lower level is multiplied back to the level of its operands (Algorithm 3) or
    /// stays where it is: smaller, and with the same room.
    pub raise: bool,
}

impl Multiplication {
    /// Algorithm 2, overflows counted in fixed point: the default.
    pub const NEW: Self = Self {
        tensor: Tensor::Switched,
        extend: Overflow::Round,
        scale: Overflow::Round,
        dropping: Dropping::Never,
        merged: true,
        raise: true,
    };
    /// Algorithm 1 with exact conversions.
    pub const ORIGINAL: Self = Self { tensor: Tensor::Original, ..Self::NEW };
    /// Algorithm 1 as in ePrint 2016/510 (BEHZ): integers only, an uncorrected floor.
    pub const BEHZ: Self = Self { extend: Overflow::Behz, scale: Overflow::Fast, ..Self::ORIGINAL };
    /// Algorithm 1 as in ePrint 2018/117 (HPS): overflows counted with doubles.
    pub const HPS: Self = Self { extend: Overflow::HpsRound, scale: Overflow::HpsRound, ..Self::ORIGINAL };
    /// Algorithm 3: Algorithm 2 at the lowest level that the certificate allows, key switching included (remark 3.3).
    pub const LEVELED: Self = Self { dropping: Dropping::Certified, ..Self::NEW };
    /// Algorithm 3 whose results stay at the level they were computed at.
    pub const DESCENDING: Self = Self { raise: false, ..Self::LEVELED };

    /// The named ways: `original`, `behz`, `hps`, `new`, `leveled`, `descending`.
    pub const NAMED: [(&'static str, Self); 6] = [
        ("original", Self::ORIGINAL),
        ("behz", Self::BEHZ),
        ("hps", Self::HPS),
        ("new", Self::NEW),
        ("leveled", Self::LEVELED),
        ("descending", Self::DESCENDING),
    ];
}

impl Default for Multiplication {
    fn default() -> Self {
        Self::NEW
    }
}
