//! One pass of a refresh: the error in a CKKS ciphertext, and that subtracted.

use std::f64::consts::TAU;

use num_bigint::BigUint;
use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::noise::{LOG2_FAILURE_INSIDE, Noise, Origins, log2_add};
use synchromesh_rlwe::ring::{Backend, IndexSet, Poly, View, ViewMut};
use synchromesh_rlwe::{Certificate, SwitchDomain};

use super::Bootstrap;
use crate::ckks;
use crate::embedding;
use crate::error::{Error, Result};
use crate::exact::{Ciphertext, Context, Params, Scheme, log2_biguint};

/// What sums and differences of a few logarithms may be off by.
const LOGARITHMS: f64 = 1e-9;

/// By how much the size of a sine, worked out in doubles, may be off, relatively.
const DOUBLES: f64 = 4.0 * f64::EPSILON;

/// The numbers of a pass, see [`super`].
#[derive(Debug)]
pub(super) struct Pass<S: Scheme> {
    /// j.
    level: usize,
    /// The level of what comes out.
    output: usize,
    /// M, and what makes E of the phase: t in BFV, 1 in BGV.
    multiple: BigUint,
    /// D.
    quotient: BigUint,
    /// F, and in BGV t.
    subtracted: BigUint,
    log2_f: f64,
    /// Of the sine.
    size: f64,
    /// What M E, and what a switch to q_0 rounds, are of the modulus at the most.
    most: f64,
    /// log2 of that rounding, in a phase of z.
    log2_rounding: f64,
    /// The header of what comes out, and what the message is of t in E.
    header: S::Header,
    beside: Noise,
}

impl<S: Scheme> Pass<S> {
    /// For a ciphertext with a certificate.
    ///
    /// # Errors
    /// [`Error::RefreshBudget`] where no level holds its error with enough to spare, [`rlwe::Error::UnknownNoise`].
    pub(super) fn of<B: Backend>(bootstrap: &Bootstrap<S>, x: &Ciphertext<S, B>) -> Result<Self> {
        let (params, inside) = (&bootstrap.params, bootstrap.inside());
        let (t, output, log_n) = (params.t().value(), params.top_level(), params.log_n());
        let (header, beside) = S::higher(params, x.header(), x.level(), output)?;
        let inner = |noise: Noise| noise.bound(log_n, LOG2_FAILURE_INSIDE);
        // log2 of |E|.
        let bound = log2_add(inner(x.noise()), inner(beside)) + log2_biguint(t);
        let error = bound.max(0.0) + LOGARITHMS;
        let spare = f64::from(bootstrap.literal.ratio_bits);
        let level = level_for(params, x, error + spare)?;
        let q = params.modulus(level)?;
        let most_multiple = params.log2_modulus(level)? - LOGARITHMS - spare - error;
        let multiple = floor_exp2(most_multiple);
        let mut most = (log2_biguint(&multiple) + error - params.log2_modulus(level)?).exp2();
        let rounding = inner(params.rlwe().rounding_noise(2)) - params.log2_modulus(0)?;
        if level > 0 {
            most += rounding.exp2();
        }
        // F = ceil(D q_j / (t M 2^r S)), and the size that is left: D q_j / (2 pi t M F S), at most 2^r / 2 pi.
        let quotient = params.modulus(output)? / params.modulus(x.level())?;
        let scale = inside.at(output)?;
        let whole = &quotient * &q;
        let divisor = t * &multiple;
        let part = (&divisor * scale.scale.to_integer()?) << bootstrap.literal.ratio_bits;
        let f = (&whole + &part - 1u32) / &part;
        let left = embedding::Scale::from_ratio(&whole, &(divisor * &f))?;
        let size = left.to_f64() / scale.double.to_f64() / TAU;
        let log2_rounding = if level > 0 { (TAU * size).log2() + scale.log2 + rounding } else { f64::NEG_INFINITY };
        let own = S::error_multiple(params.t());
        Ok(Self {
            level,
            output,
            multiple: multiple * (t / &own),
            quotient,
            log2_f: log2_biguint(&f),
            subtracted: f * own,
            size,
            most,
            log2_rounding,
            header,
            beside,
        })
    }

    /// Carries it out.
    pub(super) fn run<B: Backend>(
        self,
        context: &Context<S, B>,
        inside: &ckks::bootstrap::Bootstrapper<B>,
        x: &Ciphertext<S, B>,
    ) -> Result<Ciphertext<S, B>> {
        let params = context.params();
        let (ring, own) = (inside.evaluator().context(), context.backend());
        let error = self.error(context, ring, x)?;
        let (z, log2_error) = inside.refresh_coefficients(error, self.most, self.size)?;
        let want = params.rlwe().level(self.output)?;
        let scalars = params.rlwe().ring().residues(want, &self.subtracted);
        let quotient = params.rlwe().ring().residues(want, &self.quotient);
        let subtract = |(part, z): (&Poly<B, S::Domain>, &Poly<B, rlwe::ring::Ntt>)| -> Result<Poly<B, S::Domain>> {
            let mut out = embedded(own, part, want)?;
            out.mul_scalar_assign(own, &quotient)?;
            let mut z = z.transfer(ring.rlwe().backend(), own)?;
            z.mul_scalar_assign(own, &scalars)?;
            out.sub_assign(own, &S::Domain::from_ntt(own, z)?)?;
            Ok(out)
        };
        let parts = x.inner().parts().iter().zip(z.parts()).map(subtract).collect::<Result<Vec<_>>>()?;
        // |E| / t times D is what z stands for at the most, and the size of the sine is a double.
        let doubles = (TAU * self.size * self.most * DOUBLES).log2()
            + inside.evaluator().context().params().at(self.output)?.log2;
        let own_error = log2_add(log2_add(log2_error, self.log2_rounding), doubles) + self.log2_f + LOGARITHMS;
        let noise = certified(own_error, x.noise()).plus(self.beside);
        let inner = rlwe::Ciphertext::new(params.rlwe(), parts, self.output, x.inner().key(), noise)?;
        Ok(Ciphertext::new(inner, self.header))
    }

    /// M E modulo q_0, in the CKKS ring.
    fn error<B: Backend>(
        &self,
        context: &Context<S, B>,
        ring: &ckks::Context<B>,
        x: &Ciphertext<S, B>,
    ) -> Result<rlwe::Ciphertext<B, rlwe::ring::Ntt>> {
        let (params, backend) = (context.params().rlwe(), context.backend());
        let primes = params.level(self.level)?;
        let scalars = params.ring().residues(primes, &self.multiple);
        let bring = |part: &Poly<B, S::Domain>| -> Result<_> {
            let mut part = S::Domain::restrict_to_ntt(backend, part, primes)?;
            part.mul_scalar_assign(backend, &scalars)?;
            Ok(part.transfer(backend, ring.rlwe().backend())?)
        };
        let parts = x.inner().parts().iter().map(bring).collect::<Result<_>>()?;
        let error = rlwe::Ciphertext::new(ring.params().rlwe(), parts, self.level, x.inner().key(), Noise::ZERO)?;
        Ok(if self.level > 0 { error.mod_switch_to(ring.rlwe(), 0)? } else { error })
    }
}

/// The smallest level whose modulus is at least 2^`bits`.
fn level_for<S: Scheme, B: Backend>(params: &Params<S>, x: &Ciphertext<S, B>, bits: f64) -> Result<usize> {
    let log2_failure = params.failure_limit().log2_failure();
    let (bound, room) = (x.noise().bound(params.log_n(), log2_failure), S::room(params, x.level())?);
    if !bits.is_finite() {
        return Err(rlwe::Error::UnknownNoise { room_bits: room, level: x.level() }.into());
    }
    for level in 0..=x.level() {
        if params.log2_modulus(level)? - 2.0 * LOGARITHMS >= bits {
            return Ok(level);
        }
    }
    let have = room - bound;
    Err(Error::RefreshBudget { have, needed: have + bits - params.log2_modulus(x.level())? })
}

/// The largest integer up to 2^`bits`, or a little less; 1 at the least.
fn floor_exp2(bits: f64) -> BigUint {
    let shift = (bits.floor() - 52.0).max(0.0);
    BigUint::from(((bits - shift).exp2() as u64).max(1)) << shift as u64
}

/// An error of at most 2^`log2`, which goes with the ciphertext's components, on no better word than that of `from`.
fn certified(log2: f64, from: Noise) -> Noise {
    let bound = Certificate::at_most(log2).worse(Certificate::ZERO).with_origins(Origins::ANY);
    let certificate = if from.certificate.is_on_word() { bound.on_word() } else { bound };
    Noise { certificate, estimates: None }
}

/// The residues modulo all primes of `want`, 0 where there are none.
fn embedded<B: Backend, D: SwitchDomain>(backend: &B, part: &Poly<B, D>, want: &IndexSet) -> Result<Poly<B, D>> {
    if part.primes() == want {
        return Ok(part.duplicate(backend)?);
    }
    let mut out = Poly::zero(backend, want)?;
    let (all, rows) = ((0..part.primes().len()).collect::<Vec<_>>(), want.rows(part.primes())?);
    backend.copy(View::new(part.buffer(), &all), ViewMut::new(out.buffer_mut(), &rows)).map_err(rlwe::Error::from)?;
    Ok(out)
}
