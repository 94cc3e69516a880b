//! Part 1, CKKS: the scores of all test patients from one ciphertext.
//!
//! Feature f of patient p is in slot 128 f + p. With u_p = sum_f w_f x_fp + b in slots 0..128 (one product by the
//! weights, five rotations), the score is a polynomial of degree 7 of u, in three more levels. The server computes it
//! divided by a power of two above the sum of its coefficients, so that no encrypted value exceeds 1.

use super::{Needs, SlotMachine, Step, Trace, doublings, sum_slots};
use crate::dataset::{Dataset, FEATURES};
use crate::logistic::{Model, accuracy};
use synchromesh::scheme::{Binary, Operation};

/// Slots of a feature: the power of two above the 114 test patients.
const PATIENT_SLOTS: usize = 128;

/// Places for features: the power of two above 30.
const FEATURE_PLACES: usize = 32;

/// How many steps [`run`] reports.
pub const STEPS: usize = 7;

/// The scores and how good they are.
#[derive(Clone, Debug)]
pub struct Scores {
    /// Decrypted scores of the test patients.
    pub scores: Vec<f64>,
    /// Share of them on the diagnosis's side of 1/2.
    pub accuracy: f64,
    /// The same share for the model in the clear, with its true sigmoid.
    pub plain_accuracy: f64,
    /// Largest distance to the score computed in the clear by the same polynomial.
    pub max_score_error: f64,
    /// Largest distance to the probability by the true sigmoid: what the polynomial costs.
    pub max_sigmoid_gap: f64,
    /// The steps on the way.
    pub steps: Vec<Step>,
}

/// What [`run`] asks of the parameters. All encrypted values are in [-1, 1].
#[must_use]
pub fn needs() -> Needs {
    Needs {
        depth: 4,
        slots: PATIENT_SLOTS * FEATURE_PLACES,
        rotations: doublings(FEATURE_PLACES, PATIENT_SLOTS).collect(),
        bound: 0,
    }
}

/// Fits the model in the clear, encrypts the test patients' features, computes the scores and decrypts them.
///
/// # Errors
/// The machine's.
pub fn run<M: SlotMachine>(machine: &mut M, data: &Dataset, mut trace: Trace<'_>) -> Result<Scores, M::Error> {
    let (train, test) = data.split();
    let model = Model::fit(&train);
    let rows: Vec<_> = test.features.iter().map(|row| model.normalise(row)).collect();
    let encrypted = machine.encrypt(&pack(&rows).into())?;
    trace.note("encrypt", machine, &encrypted)?;
    let result = evaluate(machine, &model, &encrypted, &mut trace)?;
    let mut scores = machine.decrypt(&result)?.reals().to_vec();
    scores.truncate(rows.len());
    scores.iter_mut().for_each(|score| *score *= divisor(&model));

    let farthest = |clear: &dyn Fn(&[f64; FEATURES]) -> f64| {
        rows.iter().zip(&scores).map(|(row, score)| (clear(row) - score).abs()).fold(0.0, f64::max)
    };
    let probabilities: Vec<f64> = rows.iter().map(|row| model.probability(row)).collect();
    Ok(Scores {
        accuracy: accuracy(&scores, &test.malignant),
        plain_accuracy: accuracy(&probabilities, &test.malignant),
        max_score_error: farthest(&|row| model.score(row)),
        max_sigmoid_gap: farthest(&|row| model.probability(row)),
        scores,
        steps: trace.into_steps(),
    })
}

/// The server's part: features to scores.
fn evaluate<M: SlotMachine>(
    machine: &mut M,
    model: &Model,
    features: &M::Ciphertext,
    trace: &mut Trace<'_>,
) -> Result<M::Ciphertext, M::Error> {
    let (weights, bias) = model.scaled();
    let weights: Vec<f64> = weights.iter().flat_map(|w| [*w; PATIENT_SLOTS]).collect();
    let weighted = machine.with_plain(Binary::Mul, features, weights)?;
    trace.note("times weights", machine, &weighted)?;
    let sum = sum_slots(machine, &weighted, FEATURE_PLACES, PATIENT_SLOTS)?;
    let u = machine.with_plain(Binary::Add, &sum, [bias; PATIENT_SLOTS])?;
    let u = machine.apply(&Operation::Bounded(1.0), &[&u])?;
    trace.note("sum over features", machine, &u)?;

    let divisor = divisor(model);
    let [c1, c3, c5, c7] = model.polynomial().coefficients.map(|c| c / divisor);
    let u2 = machine.square(&u)?;
    trace.note("u²", machine, &u2)?;
    let u4 = machine.square(&u2)?;
    trace.note("u⁴", machine, &u4)?;
    let low = linear_in_square(machine, &u, &u2, c1, c3)?;
    let high = linear_in_square(machine, &u, &u2, c5, c7)?;
    trace.note("terms in u⁵, u⁷", machine, &high)?;
    let upper = machine.of_two(Binary::Mul, &u4, &high)?;
    let odd = machine.of_two(Binary::Add, &low, &upper)?;
    let scores = machine.with_plain(Binary::Add, &odd, [0.5 / divisor; PATIENT_SLOTS])?;
    trace.note("score", machine, &scores)?;
    Ok(scores)
}

/// A power of two, at least 1/2 + |c1| + |c3| + |c5| + |c7|.
fn divisor(model: &Model) -> f64 {
    let sum: f64 = model.polynomial().coefficients.iter().map(|c| c.abs()).sum();
    (0.5 + sum).log2().ceil().exp2()
}

/// a u + b u^3
fn linear_in_square<M: SlotMachine>(
    machine: &mut M,
    u: &M::Ciphertext,
    u2: &M::Ciphertext,
    a: f64,
    b: f64,
) -> Result<M::Ciphertext, M::Error> {
    let first = machine.times(u, [a])?;
    let scaled = machine.times(u, [b])?;
    let third = machine.of_two(Binary::Mul, &scaled, u2)?;
    machine.of_two(Binary::Add, &first, &third)
}

/// Feature f of patient p in slot 128 f + p.
fn pack(rows: &[[f64; FEATURES]]) -> Vec<f64> {
    let mut slots = vec![0.0; FEATURES * PATIENT_SLOTS];
    for (patient, row) in rows.iter().enumerate().take(PATIENT_SLOTS) {
        for (feature, value) in row.iter().enumerate() {
            slots[feature * PATIENT_SLOTS + patient] = *value;
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::clear::Clear;

    #[test]
    fn scores_in_the_clear_are_the_models() {
        for slots in [needs().slots, 4 * needs().slots] {
            let mut machine = Clear::<f64>::new(slots, 0);
            let mut seen = 0;
            let result = run(&mut machine, &Dataset::load().unwrap(), Trace::new(|_| seen += 1)).unwrap();
            assert!(result.max_score_error < 1e-12, "{}", result.max_score_error);
            assert!(result.max_sigmoid_gap > 0.01 && result.max_sigmoid_gap < 0.1);
            assert_eq!((result.accuracy, result.plain_accuracy), (110.0 / 114.0, 110.0 / 114.0));
            assert_eq!((result.scores.len(), result.steps.len()), (114, STEPS));
            assert_eq!(machine.largest_depth.get(), needs().depth);
            assert_eq!(machine.rotations.into_iter().collect::<Vec<_>>(), needs().rotations);
            assert_eq!(seen, STEPS);
        }
    }
}
