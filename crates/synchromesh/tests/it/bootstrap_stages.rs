//! Each stage of a refresh by itself, decrypted and compared with what it is to compute, in doubles.

use std::f64::consts::{PI, TAU};

use num_traits::ToPrimitive;

use crate::bootstrap_fixture::{Fixture, chain, fixture, literal, repeating};
use crate::ckks_fixture::{Slots, values};
use synchromesh::ckks::Complex64;
use synchromesh::ckks::bootstrap::{BootstrapLiteral, Messages, Stage};

const LOG_N: u32 = 10;
const N: usize = 1 << LOG_N;
const SLOTS: usize = N / 2;

/// The coefficients of the polynomial with these slots: slot k is its value at zeta^(3^k), zeta = exp(i pi / N).
fn coefficients(slots: &Slots) -> Vec<f64> {
    let powers: Vec<usize> = std::iter::successors(Some(1), |e| Some(e * 3 % (2 * N))).take(SLOTS).collect();
    let turned = |j: usize, (z, e): (&Complex64, &usize)| {
        let angle = PI * (j * e % (2 * N)) as f64 / N as f64;
        z.re * angle.cos() + z.im * angle.sin()
    };
    (0..N).map(|j| slots.iter().zip(&powers).map(|pair| turned(j, pair)).sum::<f64>() * 2.0 / N as f64).collect()
}

/// Where real and imaginary part of slot k of a message that repeats after `period` slots stand among the coefficients.
fn place(k: usize, period: usize) -> [usize; 2] {
    let reversed = k.reverse_bits() >> (usize::BITS - period.trailing_zeros());
    let at = reversed * (SLOTS / period);
    [at, at + SLOTS]
}

/// Slots as the transforms see them: conjugated in odd places.
fn seen(slots: &Slots) -> Slots {
    let conjugate = |(k, z): (usize, &Complex64)| Complex64::new(z.re, if k % 2 == 0 { z.im } else { -z.im });
    slots.iter().enumerate().map(conjugate).collect()
}

/// The slots of what each stage made of a message.
fn stages(f: &mut Fixture, message: &Slots) -> Vec<(Stage, Vec<Slots>)> {
    let ct = f.encrypt(message, f.bootstrapper.bootstrap().input_level());
    let (context, secret) = (&f.context, &f.secret);
    let mut made = Vec::new();
    let refreshed = f.bootstrapper.refresh_watched(&ct, |stage, ciphertexts| {
        let decrypted = |ct| context.decode_complex(&context.decrypt(secret, ct).unwrap()).unwrap();
        made.push((stage, ciphertexts.iter().map(|ct| decrypted(ct)).collect()));
    });
    refreshed.unwrap();
    made
}

fn near(what: &str, found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() < within, "{what}: {found:e} for {expected:e}, within {within:e}");
}

#[test]
fn each_stage_computes_what_it_is_to_compute() {
    for (period, messages) in
        [(SLOTS, Messages::Complex), (SLOTS, Messages::Real), (32, Messages::Complex), (32, Messages::Real)]
    {
        let choices = BootstrapLiteral { messages, slots: Some(period), ..literal() };
        let mut f = fixture(chain(LOG_N), choices, 580 + period as u64);
        let own: Slots = match messages {
            Messages::Complex => values(period, 1.0, 581),
            _ => values(period, 1.0, 581).into_iter().map(|z| Complex64::new(z.re, 0.0)).collect(),
        };
        let message = repeating(&own, SLOTS);
        let made = stages(&mut f, &message);
        assert!(made.iter().map(|(stage, _)| *stage).eq(Stage::ALL));
        let [low, raised, parts, refreshed] = [0, 1, 2, 3].map(|at| &made[at].1);
        let params = f.context.params();
        let sparse = params.rlwe().sparse().unwrap();
        let q = params.rlwe().ring().product(&sparse.q).to_f64().unwrap();
        let scale = |level: usize| params.scale(level).unwrap().log2().exp2();
        let (bottom, top) = (scale(0), scale(params.top_level()));

        // SlotsToCoeffs: the message is in the coefficients, and in no other.
        let mut left = coefficients(&low[0]);
        let input = seen(&message);
        for k in 0..period {
            for (at, part) in place(k, period).into_iter().zip([input[k].re, input[k].im]) {
                near("SlotsToCoeffs", left[at], part, 2f64.powi(-20));
                left[at] = 0.0;
            }
        }
        assert!(left.iter().all(|c| c.abs() < 2f64.powi(-20)), "SlotsToCoeffs, other coefficients");

        // ModRaise: a multiple of the same, and whole multiples of q, no more of them than the sparse secret allows.
        let low = coefficients(&low[0]);
        let raised = coefficients(&raised[0]);
        let turns: Vec<f64> = raised.iter().map(|c| c * top / q).collect();
        let reached = turns.iter().fold(0f64, |most, t| most.max(t.abs()));
        assert!(reached > 2.0 && reached <= (1.0 + sparse.weight as f64) / 2.0, "{reached} turns");
        let fraction = |t: f64| t - t.round();
        let (of_largest, largest) = turns
            .iter()
            .zip(&low)
            .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
            .map(|(t, c)| (fraction(*t), c))
            .unwrap();
        let multiple = (of_largest * q / bottom / largest).log2().round();
        for (t, c) in turns.iter().zip(&low) {
            near("ModRaise", fraction(*t), c * multiple.exp2() * bottom / q, 2f64.powi(-20));
        }

        // CoeffsToSlots: real parts in one, imaginary ones in the other or in the next period, of messages that repeat.
        let reach = (1.0 + sparse.weight as f64) / 2.0 + 0.25 + 1.0 / 1024.0;
        let packed = period < SLOTS && messages == Messages::Complex;
        assert_eq!(parts.len(), if messages == Messages::Complex && !packed { 2 } else { 1 });
        let views: Vec<Slots> = parts.iter().map(seen).collect();
        for k in 0..SLOTS {
            for (at, (part, view)) in views.iter().enumerate().map(|(part, view)| {
                let imaginary = if packed { k / period % 2 } else { part };
                (place(k % period, period)[imaginary], (part, view))
            }) {
                near("CoeffsToSlots", view[k].re, turns[at] / reach, 2f64.powi(-20));
                near("CoeffsToSlots", view[k].im, 0.0, 2f64.powi(-20));
                assert!(part < 2);
            }
        }

        // EvalMod: a sine of these, all multiplied by one number, which makes the message of it.
        let found = seen(&refreshed[0]);
        let size = q / (multiple.exp2() * bottom) / TAU;
        let sine = |u: f64| size * (TAU * reach * u).sin();
        for (k, z) in found.iter().enumerate() {
            let imaginary = match (messages, packed) {
                (Messages::Complex, false) => sine(views[1][k].re),
                (Messages::Complex, true) => sine(views[0][k % period + period].re),
                _ => 0.0,
            };
            let real = sine(views[0][if packed { k % period } else { k }].re);
            near("EvalMod", z.re, real, 2f64.powi(-16));
            near("EvalMod", z.im, imaginary, 2f64.powi(-16));
            near("the message", z.re, input[k].re, 2f64.powi(-18));
        }
    }
}
