//! Refreshes judged by decryption: errors beside their certificates, and the multiples of the modulus that come in beside
//! the distribution that is expected of them.
//!
//! Raised, the phase of a ciphertext modulo q is m + q I. Its components are uniform, so that with h coefficients of the
//! sparse secret (c_0 + c_1 s) / q is a sum of 1 + h numbers uniform in +-1/2, and I is what it is next to m / q: it has the
//! value k with the density of that sum at k, a B-spline of degree h between its knots: MacMahon's number B(h, k + h/2) over
//! 2^h h! for even h.

use std::collections::BTreeMap;

use serde::Serialize;
use synchromesh::ckks::bootstrap::Stage;
use synchromesh::ckks::{Ciphertext, Complex64};
use synchromesh::plan::bootstrap::BootstrapRequest;
use synchromesh_ring::IndexSet;
use synchromesh_rlwe::Randomness;

use crate::Error;
use crate::bootstrap::{Made, fits, random};
use crate::device::{Device, Measured, on_device};

/// How many standard deviations a count may be from what is expected of it.
pub const MOST_DEVIATIONS: f64 = 7.0;

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// log2 of the ring degree.
    pub log_n: u32,
    /// log2 of the largest modulus of a key.
    pub log_qp: u32,
    /// Security in bits.
    pub security_bits: f64,
    /// Refreshes of fresh messages.
    pub refreshes: usize,
    /// The largest error of a slot in all of them, over the message bound.
    pub largest_error: f64,
    /// The largest error over its certificate; no more than 1 if certificates hold.
    pub nearest: f64,
    /// The largest certificate, over the message bound.
    pub certificate: f64,
    /// Refreshes of one ciphertext, one after the other.
    pub chain: usize,
    /// The error at their end, over the message bound.
    pub chain_error: f64,
    /// Its certificate.
    pub chain_certificate: f64,
    /// The largest error over its certificate at any link of it.
    pub chain_nearest: f64,
    /// For each multiple of q, how often it came in, and how often it was expected.
    pub multiples: BTreeMap<i64, (u64, f64)>,
}

impl Judgement {
    /// Whether no error is above its certificate.
    #[must_use]
    pub fn certificates_hold(&self) -> bool {
        self.nearest <= 1.0 && self.chain_nearest <= 1.0
    }

    /// By how many standard deviations a count is off at the most, those that are rare taken together.
    #[must_use]
    pub fn deviations(&self) -> f64 {
        let mut rare = (0.0, 0.0);
        let mut worst = 0f64;
        let off = |have: f64, wanted: f64| (have - wanted).abs() / wanted.max(1.0).sqrt();
        for &(have, wanted) in self.multiples.values() {
            if wanted < 10.0 {
                rare = (rare.0 + have as f64, rare.1 + wanted);
            } else {
                worst = worst.max(off(have as f64, wanted));
            }
        }
        worst.max(off(rare.0, rare.1))
    }

    /// How often each multiple is expected among those that came in, under a secret of this weight.
    fn expect(&mut self, weight: usize) {
        let all: u64 = self.multiples.values().map(|(have, _)| have).sum();
        for (k, chance) in multiples(weight) {
            self.multiples.entry(k).or_default().1 = chance * all as f64;
        }
    }

    /// The largest multiple that came in.
    #[must_use]
    pub fn largest_multiple(&self) -> u64 {
        self.multiples.iter().filter(|(_, (have, _))| *have > 0).map(|(k, _)| k.unsigned_abs()).max().unwrap_or(0)
    }
}

/// Refreshes so many fresh messages at the parameters found for a request, and one ciphertext so often, on a device, the CPU
/// with the threads of this process; `progress` sees after each what was found until then.
///
/// # Errors
/// What a search or a refresh refuses, or a lack of memory.
pub fn judge(
    request: &BootstrapRequest,
    times: [usize; 2],
    device: Device,
    randomness: Randomness,
    progress: impl FnMut(&Judgement),
) -> Result<Judgement, Error> {
    on_device!(device, B => judge_on::<B>(request, times, device, randomness, progress))
}

fn judge_on<B: Measured>(
    request: &BootstrapRequest,
    [refreshes, chain]: [usize; 2],
    device: Device,
    randomness: Randomness,
    mut progress: impl FnMut(&Judgement),
) -> Result<Judgement, Error> {
    let found = request.find(None)?;
    fits(&found, device)?;
    let mut made = Made::<B>::new(&found, B::open, randomness, |_| ())?;
    let bound = request.message_bound;
    let mut judgement = Judgement {
        log_n: request.log_n,
        log_qp: found.forecast.log_qp,
        security_bits: found.forecast.security_bits,
        refreshes: 0,
        largest_error: 0.0,
        nearest: 0.0,
        certificate: 0.0,
        chain: 0,
        chain_error: 0.0,
        chain_certificate: 0.0,
        chain_nearest: 0.0,
        multiples: BTreeMap::new(),
    };
    let weight = made.context.params().rlwe().sparse().map_or(0, |sparse| sparse.weight);
    for round in 0..refreshes {
        let message = random(request, bound, round as u64);
        let fresh = made.encrypted(&message, bound)?;
        let refreshed = made.refreshed(&fresh, &mut judgement.multiples)?;
        let [error, certificate] = made.error(&refreshed, &message)?.map(|error| error / bound);
        judgement.largest_error = judgement.largest_error.max(error);
        judgement.certificate = judgement.certificate.max(certificate);
        judgement.nearest = judgement.nearest.max(error / certificate);
        judgement.refreshes += 1;
        judgement.expect(weight);
        progress(&judgement);
    }
    // Errors add up, so that what is refreshed again is smaller than the bound by as much as they may come to.
    let message = random(request, bound / 2.0, refreshes as u64);
    let mut x = made.encrypted(&message, bound / 2.0)?;
    for _ in 0..chain {
        x = made.refreshed(&x, &mut judgement.multiples)?;
        let [error, certificate] = made.error(&x, &message)?.map(|error| error / bound);
        (judgement.chain_error, judgement.chain_certificate) = (error, certificate);
        judgement.chain_nearest = judgement.chain_nearest.max(error / certificate);
        judgement.chain += 1;
        judgement.expect(weight);
        progress(&judgement);
    }
    Ok(judgement)
}

impl<B: Measured> Made<B> {
    fn encrypted(&mut self, message: &[Complex64], bound: f64) -> Result<Ciphertext<B>, Error> {
        let (plain, level) =
            (self.context.encode_complex(message, bound)?, self.bootstrapper.bootstrap().input_level());
        Ok(self.context.encrypt_at(&self.public, &plain, level, &mut self.randomness)?)
    }

    /// Refreshed, with the multiples of q that came in counted by decryption on the way.
    fn refreshed(&self, x: &Ciphertext<B>, counts: &mut BTreeMap<i64, (u64, f64)>) -> Result<Ciphertext<B>, Error> {
        let mut counted = Ok(());
        let refreshed = self.bootstrapper.refresh_watched(x, |stage, ciphertexts| {
            if let (Stage::ModRaise, [raised]) = (stage, ciphertexts) {
                counted = self.count(raised, counts);
            }
        })?;
        counted?;
        Ok(refreshed)
    }

    /// Counts the multiples of q, the only prime of level 0, in the phase of a raised ciphertext: with one further prime p,
    /// I = (phase - m) / q modulo p, m the phase modulo q, centred.
    fn count(&self, raised: &Ciphertext<B>, counts: &mut BTreeMap<i64, (u64, f64)>) -> Result<(), Error> {
        let (rlwe, ring) = (self.context.rlwe(), self.context.params().rlwe().ring());
        let two: IndexSet = self.context.params().rlwe().level(1)?.iter().take(2).collect();
        let phase = self.secret.phase_on(rlwe, raised.inner(), &two)?;
        let words = phase.poly().to_words(rlwe.backend()).map_err(synchromesh_rlwe::Error::from)?;
        let [q, p] = [0, 1].map(|i| ring.modulus(two.as_slice()[i]));
        let inverse = p.pow(p.reduce(q.value()), p.value() - 2);
        let centred = |x: u64, m: u64| if x > m / 2 { x as i64 - m as i64 } else { x as i64 };
        let (low, high) = words.split_at(words.len() / 2);
        for (&m, &x) in low.iter().zip(high) {
            let m = centred(m, q.value());
            let m = p.reduce(m.unsigned_abs()).abs_diff(if m < 0 { p.value() } else { 0 });
            let multiple = centred(p.mul(p.sub(x, p.reduce(m)), inverse), p.value());
            counts.entry(multiple).or_default().0 += 1;
        }
        Ok(())
    }

    /// The largest error of a slot, and its certificate.
    fn error(&self, x: &Ciphertext<B>, message: &[Complex64]) -> Result<[f64; 2], Error> {
        let slots = self.context.decode_complex(&self.context.decrypt(&self.secret, x)?)?;
        let errors = slots.iter().zip(message).map(|(a, b)| (a.re - b.re).hypot(a.im - b.im));
        Ok([errors.fold(0.0, f64::max), self.context.error_bound(x)])
    }
}

/// How likely each multiple of q is under a secret of this even weight h: B(h, k + h/2) / (2^h h!), from
/// B(n, m) = (2m + 1) B(n-1, m) + (2n - 2m + 1) B(n-1, m-1).
#[must_use]
pub fn multiples(weight: usize) -> BTreeMap<i64, f64> {
    let mut row = vec![1.0];
    for n in 1..=weight {
        let of = |m: usize, times: usize| row.get(m).map_or(0.0, |chance| chance * times as f64);
        let next = |m: usize| {
            let before = m.checked_sub(1).map_or(0.0, |below| of(below, 2 * n - 2 * m + 1));
            (of(m, 2 * m + 1) + before) / (2 * n) as f64
        };
        row = (0..=n).map(next).collect();
    }
    let middle = (row.len() / 2) as i64;
    row.into_iter().enumerate().map(|(m, chance)| (m as i64 - middle, chance)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use synchromesh_rlwe::Security;

    #[test]
    fn multiples_are_likely_as_a_sum_of_uniform_numbers_is_near_integers() {
        // The density of three numbers uniform in +-1/2: 3/4 - x^2, and (3/2 - |x|)^2 / 2 beyond 1/2.
        let known = |chances: BTreeMap<i64, f64>, k: i64| chances.get(&k).copied().unwrap_or(0.0);
        for (k, chance) in [(0, 0.75), (1, 0.125), (-1, 0.125), (2, 0.0)] {
            assert!((known(multiples(2), k) - chance).abs() < 1e-15);
        }
        let all: f64 = multiples(32).values().sum();
        assert!((all - 1.0).abs() < 1e-12);
        // Nearly normal, of variance 33 / 12.
        let normal = (33.0 / 12.0 * std::f64::consts::TAU).sqrt().recip();
        let ratio = known(multiples(32), 0) / normal;
        assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn refreshes_keep_their_certificates_and_multiples_their_distribution() {
        let request = BootstrapRequest {
            levels: Some(1),
            baby_steps: Some(4),
            security: Security::Insecure,
            ..BootstrapRequest::new(10, 40, 12)
        };
        let judged = judge(&request, [3, 3], Device::Cpu, Randomness::insecure_from_number(77), |_| ()).unwrap();
        assert!(judged.certificates_hold(), "{judged:?}");
        assert!(judged.nearest > 1e-4 && judged.largest_error < judged.certificate, "{judged:?}");
        assert!(judged.chain_error > judged.largest_error / 4.0, "{judged:?}");
        let all: u64 = judged.multiples.values().map(|(have, _)| have).sum();
        assert_eq!(all, 6 << 10);
        assert!(judged.deviations() < MOST_DEVIATIONS, "{judged:?}");
        assert!((4..=16).contains(&judged.largest_multiple()), "{judged:?}");
    }
}
