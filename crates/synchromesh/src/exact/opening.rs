//! What of a ciphertext is shown where parties decrypt it: at the lowest level that has room for the noise that hides its error.

use synchromesh_rlwe::noise::Noise;
use synchromesh_rlwe::ring::Backend;

use super::{Ciphertext, Context, Params, Scheme, require_room};
use crate::error::Result;
use crate::opening::Hiding;

/// The ciphertext at a level, the width of the noise that hides its error, and the error with everybody's noise.
fn hidden_at<S: Scheme, B: Backend>(
    context: &Context<S, B>,
    x: &Ciphertext<S, B>,
    level: usize,
    hiding: &Hiding,
) -> Result<(Ciphertext<S, B>, u32, Noise)> {
    let params = context.params();
    if level < x.level() {
        // What the certificate will be, before anything is computed.
        let dropped = params.log2_modulus(x.level())? - params.log2_modulus(level)?;
        let own = x.noise().times(-dropped).plus_switching(params.rlwe().rounding_noise(2));
        hiding_noise(params, own.plus(S::lowered(params, x.header(), x.level(), level)?.1), level, hiding)?;
    }
    let lowered = if level < x.level() { S::mod_switch_to(context, x, level)? } else { x.duplicate(context)? };
    let (bits, noise) = hiding_noise(params, lowered.noise(), level, hiding)?;
    Ok((lowered, bits, noise))
}

/// The ciphertext at the lowest level that has room for the noise that hides its error, the width of that, and the error with
/// everybody's noise: shares are as long as the moduli there.
pub(crate) fn hidden<S: Scheme, B: Backend>(
    context: &Context<S, B>,
    x: &Ciphertext<S, B>,
    hiding: &Hiding,
) -> Result<(Ciphertext<S, B>, u32, Noise)> {
    let params = context.params();
    params.rlwe().require_digest(x.inner().params_digest())?;
    x.inner().require_components(2)?;
    x.noise().certificate.require_proven("a decryption among parties")?;
    require_room(params, x.noise(), x.level())?;
    let found = (0..x.level()).find_map(|level| hidden_at(context, x, level, hiding).ok());
    found.map_or_else(|| hidden_at(context, x, x.level(), hiding), Ok)
}

/// Bits by which the error may grow once everybody's noise is in it.
///
/// # Errors
/// As [`crate::scheme::Scheme::opening`].
pub(crate) fn hidden_budget<S: Scheme, B: Backend>(
    context: &Context<S, B>,
    x: &Ciphertext<S, B>,
    hiding: &Hiding,
) -> Result<f64> {
    let (params, (lowered, _, noise)) = (context.params(), hidden(context, x, hiding)?);
    Ok(S::room(params, lowered.level())? - noise.bound(params.log_n(), params.failure_limit().log2_failure()))
}

/// The width of the noise that hides an error, and the error with everybody's noise.
fn hiding_noise<S: Scheme>(params: &Params<S>, own: Noise, level: usize, hiding: &Hiding) -> Result<(u32, Noise)> {
    // A coefficient's bound makes one of the 2-norm.
    let error = own.bound(params.log_n(), params.failure_limit().log2_failure());
    let bits = (error + f64::from(params.log_n()) / 2.0 + hiding.bits()?).ceil().max(0.0);
    let noise = own.plus(hiding.noise(params.rlwe(), bits));
    require_room(params, noise, level)?;
    Ok((bits as u32, noise))
}
