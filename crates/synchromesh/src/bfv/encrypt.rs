//! The two choices of a BFV encryption, so that the original scheme stands beside the one in use.

use num_integer::Integer;
use synchromesh_rlwe::noise::Noise;
use synchromesh_rlwe::ring::rns::inverse_residues;
use synchromesh_rlwe::ring::{Backend, Coeff, IndexSet, Poly};
use synchromesh_rlwe::{Operation, PublicKey, Randomness};

use super::{Bfv, Ciphertext, Context, Plaintext};
use crate::batch::PlainPoly;
use crate::error::Result;
use crate::exact::{Scheme, Secret, lift, log2_biguint};

/// How a message stands in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Encoding {
    /// round(Q m / t), off by at most 1/2 (ePrint 2021/204, section 3.1).
    #[default]
    Rounded,
    /// floor(Q / t) m, off by up to (Q mod t) / 2 (ePrint 2012/144).
    Floor,
}

/// How a message is encrypted; what comes out is a ciphertext like any other, with a certificate that says how good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Encryption {
    /// How the message stands in the phase.
    pub encoding: Encoding,
    /// Whether a ciphertext of zero is made modulo QP and divided by P, which leaves rounding noise alone.
    pub scaled: bool,
}

impl Encryption {
    /// ePrint 2021/204, section 3.1: the default of [`Context::encrypt`](crate::exact::Context::encrypt).
    pub const NEW: Self = Self { encoding: Encoding::Rounded, scaled: true };
    /// ePrint 2012/144.
    pub const ORIGINAL: Self = Self { encoding: Encoding::Floor, scaled: false };
}

/// The message in a phase at `level`, and its distance from (Q/t) m.
pub(super) fn message<B: Backend>(
    context: &Context<B>,
    encoding: Encoding,
    plaintext: &PlainPoly,
    level: usize,
) -> Result<(Poly<B, Coeff>, Noise)> {
    let params = context.params();
    let (ring, primes, t) = (params.rlwe().ring(), params.rlwe().level(level)?, params.t().value());
    let (delta, rest) = params.modulus(level)?.div_rem(t);
    let (factor, scalars, off) = match encoding {
        // round(Q m / t) = (Q m - [Q m]_t) / t = -[Q m]_t / t modulo Q (ePrint 2021/204, remark 3.1).
        Encoding::Rounded => {
            let inverses = inverse_residues(ring, primes, t)?;
            let negated: Vec<u64> = primes.iter().zip(inverses).map(|(i, x)| ring.modulus(i).neg(x)).collect();
            (rest, negated, Noise::bounded(0.5))
        }
        // (Q - [Q]_t) m / t.
        Encoding::Floor => {
            let off = Noise::at_most(log2_biguint(&rest) - 1.0);
            (1u32.into(), ring.residues(primes, &delta), off)
        }
    };
    let mut message = lift(context.backend(), primes, plaintext, &factor)?;
    message.mul_scalar_assign(context.backend(), &scalars)?;
    Ok((message, off))
}

impl<B: Backend> Context<B> {
    /// Encrypts at `level` in the way asked for.
    ///
    /// # Errors
    /// As [`Context::encrypt_at`](crate::exact::Context::encrypt_at).
    pub fn encrypt_by(
        &self,
        how: Encryption,
        key: &PublicKey<B>,
        plaintext: &Plaintext,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext<B>> {
        self.require_plaintext(plaintext)?;
        Bfv::fresh_header(self, level)?;
        let (message, noise) = message(self, how.encoding, plaintext.poly(), level)?;
        let message = Secret(message);
        let none = IndexSet::empty();
        let special = if how.scaled { self.params().rlwe().p() } else { &none };
        let inner = key.encrypt_over(self.rlwe(), &message.0, level, special, randomness)?;
        Ciphertext::new(inner, ()).with_more_noise(noise).certified(self, Operation::Encryption)
    }
}
