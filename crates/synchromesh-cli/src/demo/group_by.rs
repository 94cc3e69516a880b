//! Part 3, BFV: `select malignant, quartile(mean_radius), count(*) group by 1, 2`, both columns encrypted.
//!
//! Eight groups, one block of 1024 slots each; both columns stand in every block. Group (m, q) marks its patients by
//! 6 L_q(b) (m d + (1 - m)(1 - d)), d the diagnosis, b the quartile and L_q Lagrange's polynomial of degree 3: 6 for
//! a patient of the group and 0 for all others. The sums over the blocks are six times the counts.

use super::{BLOCK, Needs, SlotMachine, Step, Trace, doublings, sum_slots};
use crate::dataset::{Dataset, PATIENTS};
use synchromesh::scheme::Binary;

/// Quartiles of the mean radius.
pub const QUARTILES: usize = 4;

const GROUPS: usize = 2 * QUARTILES;

/// How many steps [`run`] reports.
pub const STEPS: usize = 6;

/// 6 L_q(b) = sum_j c_j b^j on b in 0..4: row q holds c_0, ..., c_3.
const INDICATORS: [[i64; 4]; QUARTILES] = [[6, -11, 6, -1], [0, 18, -15, 3], [0, -9, 12, -3], [0, 2, -3, 1]];

/// The counts.
#[derive(Clone, Debug)]
pub struct Counts {
    /// Decrypted counts: row 0 benign, row 1 malignant, by quartile.
    pub counts: [[i64; QUARTILES]; 2],
    /// Whether every count equals the one in the clear.
    pub exact: bool,
    /// The steps on the way.
    pub steps: Vec<Step>,
}

/// What [`run`] asks of the parameters.
#[must_use]
pub fn needs() -> Needs {
    Needs { depth: 4, slots: GROUPS * BLOCK, rotations: doublings(BLOCK, 1).collect(), bound: 6 * PATIENTS as u64 }
}

/// Encrypts both columns, counts the groups and decrypts the counts.
///
/// # Errors
/// The machine's.
pub fn run<M: SlotMachine<Error: From<synchromesh::Error>>>(
    machine: &mut M,
    data: &Dataset,
    mut trace: Trace<'_>,
) -> Result<Counts, M::Error> {
    let quartiles = quartiles(data);
    let diagnoses: Vec<i64> = data.malignant().iter().map(|m| i64::from(*m)).collect();
    let encrypted_quartiles = machine.encrypt(&every_block(&quartiles).into())?;
    let encrypted_diagnoses = machine.encrypt(&every_block(&diagnoses).into())?;
    trace.note("encrypt", machine, &encrypted_quartiles)?;
    let sums = evaluate(machine, &encrypted_quartiles, &encrypted_diagnoses, quartiles.len(), &mut trace)?;
    let slots = machine.decrypt(&sums)?;
    let slots = slots.words()?;

    let mut counts = [[0; QUARTILES]; 2];
    let mut in_the_clear = counts;
    let mut exact = true;
    for (group, count) in counts.as_flattened_mut().iter_mut().enumerate() {
        let sum = slots.get(group * BLOCK).copied().unwrap_or_default();
        *count = sum / 6;
        exact &= sum % 6 == 0;
    }
    for (quartile, diagnosis) in quartiles.iter().zip(&diagnoses) {
        in_the_clear[*diagnosis as usize][*quartile as usize] += 1;
    }
    Ok(Counts { exact: exact && counts == in_the_clear, counts, steps: trace.into_steps() })
}

/// The server's part: six times the count of group 4 m + q in slot 1024 (4 m + q).
fn evaluate<M: SlotMachine>(
    machine: &mut M,
    quartiles: &M::Ciphertext,
    diagnoses: &M::Ciphertext,
    patients: usize,
    trace: &mut Trace<'_>,
) -> Result<M::Ciphertext, M::Error> {
    let square = machine.square(quartiles)?;
    trace.note("b²", machine, &square)?;
    let cube = machine.of_two(Binary::Mul, &square, quartiles)?;
    trace.note("b³", machine, &cube)?;
    let coefficient = |j: usize| by_group(patients, |group| INDICATORS[group % QUARTILES][j]);
    let mut indicator = machine.with_plain(Binary::Mul, &cube, coefficient(3))?;
    for (power, j) in [(&square, 2), (quartiles, 1)] {
        let term = machine.with_plain(Binary::Mul, power, coefficient(j))?;
        indicator = machine.of_two(Binary::Add, &indicator, &term)?;
    }
    let indicator = machine.with_plain(Binary::Add, &indicator, coefficient(0))?;
    trace.note("quartile = q", machine, &indicator)?;
    let malignant = |group: usize| group >= QUARTILES;
    let signs = by_group(patients, |g| if malignant(g) { 1 } else { -1 });
    let signed = machine.with_plain(Binary::Mul, diagnoses, signs)?;
    let benign = by_group(patients, |g| i64::from(!malignant(g)));
    let matches = machine.with_plain(Binary::Add, &signed, benign)?;
    let members = machine.of_two(Binary::Mul, &indicator, &matches)?;
    trace.note("and diagnosis = m", machine, &members)?;
    let counts = sum_slots(machine, &members, BLOCK, 1)?;
    trace.note("count", machine, &counts)?;
    Ok(counts)
}

/// The quartile, 0 to 3, of every patient's mean radius.
fn quartiles(data: &Dataset) -> Vec<i64> {
    let radii: Vec<f64> = data.feature(0).collect();
    let mut sorted = radii.clone();
    sorted.sort_by(f64::total_cmp);
    let borders: Vec<f64> = (1..QUARTILES).map(|q| sorted[q * sorted.len() / QUARTILES]).collect();
    radii.iter().map(|radius| borders.iter().filter(|border| *radius >= **border).count() as i64).collect()
}

/// A column in every block.
fn every_block(column: &[i64]) -> Vec<i64> {
    let mut block = column.to_vec();
    block.resize(BLOCK, 0);
    block.repeat(GROUPS)
}

/// A number for each group, in the slots of its patients; 0 in the slots beyond them.
fn by_group(patients: usize, number: impl Fn(usize) -> i64) -> Vec<i64> {
    (0..GROUPS * BLOCK).map(|slot| if slot % BLOCK < patients { number(slot / BLOCK) } else { 0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::clear::Clear;

    #[test]
    fn indicators_are_six_on_their_quartile_and_zero_on_the_others() {
        for (q, [c0, c1, c2, c3]) in INDICATORS.into_iter().enumerate() {
            for b in 0..QUARTILES as i64 {
                assert_eq!(c0 + b * (c1 + b * (c2 + b * c3)), if b == q as i64 { 6 } else { 0 }, "{q} {b}");
            }
        }
    }

    #[test]
    fn counts_are_exact_just_when_the_modulus_exceeds_twice_the_bound() {
        let data = Dataset::load().unwrap();
        for slots in [needs().slots, 2 * needs().slots] {
            let mut machine = Clear::<i64>::new(slots, 2 * needs().bound as i64 + 1);
            let mut seen = 0;
            let result = run(&mut machine, &data, Trace::new(|_| seen += 1)).unwrap();
            assert!(result.exact, "{:?}", result.counts);
            assert_eq!(result.counts.as_flattened().iter().sum::<i64>(), 569);
            assert_eq!(result.counts[1].iter().sum::<i64>(), 212);
            assert_eq!((seen, result.steps.len()), (STEPS, STEPS));
            assert_eq!(machine.largest_depth.get(), needs().depth);
            assert_eq!(machine.rotations.into_iter().collect::<Vec<_>>(), needs().rotations);
        }
        let mut small = Clear::<i64>::new(needs().slots, 257);
        let result = run(&mut small, &data, Trace::new(|_| ())).unwrap();
        assert!(!result.exact);
    }
}
