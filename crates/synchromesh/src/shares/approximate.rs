//! CKKS: parts over the integers.

use std::sync::Arc;

use synchromesh_rlwe::ring::sampler::Seed;
use synchromesh_rlwe::ring::{Coeff, Cpu, Ntt, Poly};
use synchromesh_rlwe::{self as rlwe, Noise};
use zeroize::Zeroizing;

use super::{OwnPart, Shares};
use crate::ckks::{Ciphertext, Ckks, Context, Part};
use crate::error::Result;
use crate::opening::{Hiding, Opening};

impl Shares for Ckks {
    type Part = Part;

    fn sharing(context: &Context, x: &Ciphertext, hiding: &Hiding, together: bool) -> Result<Opening<Ciphertext, Cpu>> {
        context.sharing(x, hiding, together)
    }

    fn own_part(context: &Context, opening: &Opening<Ciphertext, Cpu>, seed: &Seed) -> Result<OwnPart<Part>> {
        context.own_part(opening, seed)
    }

    fn public_part(context: &Context, opening: &Opening<Ciphertext, Cpu>, phase: &Poly<Cpu, Coeff>) -> Result<Part> {
        context.public_part(opening, phase)
    }

    fn absorb(part: &Part, hasher: &mut blake3::Hasher) {
        part.absorb(hasher);
    }

    fn fresh_part(context: &Context, part: &Part) -> Result<(Zeroizing<Poly<Cpu, Coeff>>, Noise)> {
        context.fresh_part(part)
    }

    fn whole(context: &Arc<Context>, sum: rlwe::Ciphertext<Cpu, Ntt>, public: &Part, _: usize) -> Result<Ciphertext> {
        context.whole(sum, public)
    }
}
