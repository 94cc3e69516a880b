//! BFV and BGV: parts modulo t.

use std::sync::Arc;

use synchromesh_rlwe::codec::absorb_words;
use synchromesh_rlwe::flood::Wide;
use synchromesh_rlwe::noise::Noise;
use synchromesh_rlwe::ring::sampler::{Purpose, Seed, uniform_into};
use synchromesh_rlwe::ring::{Coeff, Cpu, Ntt, Poly};
use synchromesh_rlwe::{self as rlwe, SwitchDomain};
use zeroize::{Zeroize, Zeroizing};

use super::{OwnPart, Shares};
use crate::batch::{PlainPoly, Residues};
use crate::error::{Error, Result};
use crate::exact::{self, Ciphertext, Context, Evaluator, Plaintext, require_room};
use crate::opening::{Hiding, Opening};
use crate::plain_modulus::{PlainModulus, U256, from_biguint};
use crate::scheme::Scheme;

impl<S: exact::Scheme> Shares for S {
    type Part = PlainPoly;

    /// What parts show when they are put together is the message, and nothing of its error.
    fn sharing(
        context: &Context<S>,
        x: &Ciphertext<S>,
        hiding: &Hiding,
        _: bool,
    ) -> Result<Opening<Ciphertext<S>, Cpu>> {
        let (params, mut opening) = (context.params(), <S as Scheme>::opening(context, x, hiding)?);
        let zero = PlainPoly::new(params.t(), Residues::zero(params.t(), params.n()))?;
        let level = opening.ciphertext.level();
        let (_, encoding) = S::message::<Cpu>(context, &zero, level, opening.ciphertext.header())?;
        // Whether m and a part wrap around t shows in the error: noise that is twice as wide hides both.
        opening.sigma_bits += 1;
        let parts = encoding.plus(S::sum_noise()).times((hiding.parties as f64).log2() + 1.0);
        opening.noise = opening.noise.times(1.0).plus(parts);
        require_room(params, opening.noise, level)?;
        Ok(opening)
    }

    fn own_part(
        context: &Context<S>,
        opening: &Opening<Ciphertext<S>, Cpu>,
        seed: &Seed,
    ) -> Result<OwnPart<PlainPoly>> {
        let (params, backend) = (context.params(), context.backend());
        let own = uniform(params.t(), params.n(), &seed.derive("a part of a message", 0))?;
        let noise = Wide::gaussian(seed, opening.sigma_bits, params.n());
        let primes = opening.c1.primes();
        let mut hides = noise.to_poly(backend, params.rlwe().ring(), primes, &opening.multiple)?;
        let (level, header) = (opening.ciphertext.level(), opening.ciphertext.header());
        let encoded = Zeroizing::new(S::message(context, &own, level, header)?.0);
        hides.sub_assign(backend, &encoded)?;
        Ok((own, hides))
    }

    fn public_part(
        context: &Context<S>,
        opening: &Opening<Ciphertext<S>, Cpu>,
        phase: &Poly<Cpu, Coeff>,
    ) -> Result<PlainPoly> {
        S::recover(context, &opening.ciphertext, phase)
    }

    fn absorb(part: &PlainPoly, hasher: &mut blake3::Hasher) {
        let residues = part.coeffs();
        let words: Vec<u64> = (0..residues.len()).filter_map(|i| residues.at(i)).flatten().collect();
        absorb_words(hasher, &words);
    }

    fn fresh_part(context: &Context<S>, part: &PlainPoly) -> Result<(Zeroizing<Poly<Cpu, Coeff>>, Noise)> {
        context.require_plaintext(&part.clone().into())?;
        let level = context.params().top_level();
        let (message, noise) = S::message(context, part, level, &S::fresh_header(context, level)?)?;
        Ok((Zeroizing::new(message), noise))
    }

    fn whole(
        context: &Arc<Context<S>>,
        sum: rlwe::Ciphertext<Cpu, Ntt>,
        public: &PlainPoly,
        parties: usize,
    ) -> Result<Ciphertext<S>> {
        let (params, level) = (context.params(), sum.level());
        let noise = sum.noise().plus(S::sum_noise().times((parties as f64).log2()));
        let key = sum.key();
        let parts = sum.into_parts().into_iter().map(|part| S::Domain::from_ntt(context.backend(), part));
        let parts = parts.collect::<std::result::Result<_, _>>()?;
        let inner = rlwe::Ciphertext::new(params.rlwe(), parts, level, key, noise)?;
        let sum = Ciphertext::from_parts(params, inner, S::fresh_header(context, level)?)?;
        Evaluator::new(context, None).add_plain(&sum, &Plaintext::from(public.clone()))
    }
}

/// A uniform polynomial modulo t.
fn uniform(t: &PlainModulus, n: usize, seed: &Seed) -> Result<PlainPoly> {
    let mut residues = Residues::zero(t, n);
    match &mut residues {
        Residues::Word(words) => {
            let t = t.value().iter_u64_digits().next().unwrap_or(1);
            let refused = |rule: String| Error::Argument { rule };
            uniform_into(seed, Purpose::Flooding, 0, t, words).map_err(|error| refused(error.to_string()))?;
        }
        Residues::Wide(limbs) => {
            let bits = t.value().bits();
            let mut source = blake3::Hasher::new_keyed(seed.as_bytes()).finalize_xof();
            let below = from_biguint(t.value()).unwrap_or_default();
            for limb in limbs {
                // Those that are thrown away say nothing of the one that is kept.
                loop {
                    draw(&mut source, bits, limb);
                    if limb.iter().rev().lt(below.iter().rev()) {
                        break;
                    }
                }
            }
        }
    }
    Ok(PlainPoly::new(t, residues)?)
}

/// A number of so many bits.
fn draw(source: &mut blake3::OutputReader, bits: u64, limb: &mut U256) {
    let mut bytes = [0; 32];
    source.fill(&mut bytes);
    for (i, (word, bytes)) in limb.iter_mut().zip(bytes.chunks_exact(8)).enumerate() {
        let left = bits.saturating_sub(64 * i as u64).min(64) as u32;
        let value = <[u8; 8]>::try_from(bytes).map_or(0, u64::from_le_bytes);
        *word = value & u64::MAX.checked_shr(64 - left).unwrap_or(0);
    }
    bytes.zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_uniform_below_any_modulus() {
        let wide = PlainModulus::next_slot_prime(255, 16).unwrap();
        let odd: PlainModulus = "0x8000000000000000000000000000000000000000000000001".parse().unwrap();
        for t in [&"2".parse().unwrap(), &"65537".parse().unwrap(), &wide, &odd] {
            let [x, y] = [1, 2].map(|seed| uniform(t, 4096, &Seed::from_bytes([seed; 32])).unwrap());
            assert!(x != y || t.bits() == 1);
            // A share above half the modulus is a coin: off by 320 of 4096 is 10 deviations.
            let half = t.value() >> 1u32;
            let limbs = |x: U256| x.iter().rev().fold(num_bigint::BigUint::ZERO, |sum, &w| (sum << 64u32) + w);
            let above =
                (0..4096).filter(|&i| limbs(x.coeffs().at(i).unwrap()) >= half.clone().max(1u32.into())).count();
            assert!((1728..2368).contains(&above), "{t}: {above}");
        }
    }
}
