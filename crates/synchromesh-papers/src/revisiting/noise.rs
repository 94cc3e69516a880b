//! The error of a ciphertext, measured with the secret key.

use num_bigint::{BigInt, BigUint, Sign};
use synchromesh::bfv::{Ciphertext, Context, Plaintext};
use synchromesh::exact::{self, Scheme, log2_biguint};
use synchromesh_rlwe::{Noise, SecretKey};

use synchromesh_bench::Error;

/// The coefficients of the phase in [0, Q), and Q.
pub(super) fn phase<S: Scheme>(
    context: &exact::Context<S>,
    secret: &SecretKey,
    ciphertext: &exact::Ciphertext<S>,
) -> Result<(Vec<BigUint>, BigUint), Error> {
    let (ring, n) = (context.params().rlwe().ring(), context.params().n());
    let phase = secret.phase(context.rlwe(), ciphertext.inner())?;
    let (primes, words) = (phase.poly().primes(), phase.poly().to_words(context.rlwe().backend())?);
    let q = ring.product(primes);
    // Each limb's share of the integer: cofactor times its inverse.
    let share = |i| {
        let own = BigUint::from(ring.modulus(i).value());
        let cofactor = &q / &own;
        &cofactor * cofactor.modinv(&own).unwrap_or_default()
    };
    let shares: Vec<BigUint> = primes.iter().map(share).collect();
    let lift = |j: usize| shares.iter().enumerate().map(|(i, share)| share * words[i * n + j]).sum::<BigUint>() % &q;
    Ok(((0..n).map(lift).collect(), q))
}

/// log2 of the largest |e| in phase = (Q/t) m + e mod Q, where m is `expected`.
pub(super) fn measure(
    context: &Context,
    secret: &SecretKey,
    ciphertext: &Ciphertext,
    expected: &Plaintext,
) -> Result<f64, Error> {
    let (phase, q) = phase(context, secret, ciphertext)?;
    let t = context.params().t().value();
    let message = context.decode_coefficients_big(expected)?;
    let (modulus, signed_q) = (BigInt::from(&q * t), BigInt::from(q));
    let t = BigInt::from(t.clone());
    let mut largest = BigUint::ZERO;
    for (x, m) in phase.into_iter().zip(&message) {
        // t e modulo t Q, centred.
        let mut error = (BigInt::from_biguint(Sign::Plus, x) * &t - &signed_q * m) % &modulus;
        if error.sign() == Sign::Minus {
            error += &modulus;
        }
        if &error + &error > modulus {
            error -= &modulus;
        }
        largest = largest.max(error.magnitude().clone());
    }
    Ok(if largest == BigUint::ZERO { 0.0 } else { log2_biguint(&largest) - log2_biguint(t.magnitude()) })
}

/// The same ciphertext, said to have errors of 2^`log2`.
pub(super) fn said<S: Scheme>(
    context: &exact::Context<S>,
    ciphertext: &exact::Ciphertext<S>,
    log2: f64,
) -> synchromesh::Result<exact::Ciphertext<S>> {
    let noise = Noise::at_most(log2);
    let inner = ciphertext.inner().duplicate(context.rlwe())?.assume_noise(noise);
    exact::Ciphertext::from_parts(context.params(), inner, ciphertext.header().clone())
}
