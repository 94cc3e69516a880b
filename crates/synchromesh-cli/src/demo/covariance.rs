//! Part 2, BGV: the exact covariance of four integer columns over all patients, from one ciphertext.
//!
//! n^2 cov(x, y) = n sum x_i y_i - (sum x_i)(sum y_i) is an integer. Column c of patient i is in slot 1024 c + i, and
//! the four columns repeat to the end of the slots, so that a rotation by 1024 d puts column c + d mod 4 on column c:
//! three products and their sums give all ten pairs.

use super::{BLOCK, Needs, SlotMachine, Step, Trace, doublings, sum_slots};
use crate::dataset::{Dataset, PATIENTS};
use synchromesh::scheme::Binary;

/// The columns, with the factor that makes every measurement an integer.
pub const COLUMNS: [(&str, f64); 4] =
    [("mean_radius", 1000.0), ("mean_texture", 100.0), ("mean_perimeter", 100.0), ("mean_area", 10.0)];

const COUNT: usize = COLUMNS.len();

/// How many steps [`run`] reports.
pub const STEPS: usize = 6;

/// n^2 times the covariance matrix.
#[derive(Clone, Debug)]
pub struct Covariance {
    /// Decrypted entries; entry (c, d) is n sum x y - sum x sum y of columns c and d.
    pub matrix: [[i64; COUNT]; COUNT],
    /// Whether every entry equals the one computed in the clear.
    pub exact: bool,
    /// The steps on the way.
    pub steps: Vec<Step>,
}

/// No integer of a column is below 0 or above this.
const MAX_ENTRY: u64 = 28_110;

/// What [`run`] asks of the parameters. Values in an interval of length w have a covariance of at most w^2 / 4.
#[must_use]
pub fn needs() -> Needs {
    Needs {
        depth: 2,
        slots: COUNT * BLOCK,
        rotations: doublings(BLOCK, 1).chain([BLOCK, 2 * BLOCK]).collect(),
        bound: (PATIENTS as u64 * MAX_ENTRY).pow(2) / 4,
    }
}

/// Encrypts the columns, computes all covariances and decrypts them.
///
/// # Errors
/// The machine's.
pub fn run<M: SlotMachine<Error: From<synchromesh::Error>>>(
    machine: &mut M,
    data: &Dataset,
    mut trace: Trace<'_>,
) -> Result<Covariance, M::Error> {
    let columns = columns(data);
    let encrypted = machine.encrypt(&pack(&columns, machine.slots()).into())?;
    trace.note("encrypt", machine, &encrypted)?;
    let entries = evaluate(machine, &encrypted, &mut trace)?;
    let mut matrix = [[0; COUNT]; COUNT];
    for (distance, entries) in entries.iter().enumerate() {
        let slots = machine.decrypt(entries)?;
        let slots = slots.words()?;
        for c in 0..COUNT {
            let d = (c + distance) % COUNT;
            matrix[c][d] = slots.get(c * BLOCK).copied().unwrap_or_default();
            matrix[d][c] = matrix[c][d];
        }
    }
    Ok(Covariance { matrix, exact: matrix == in_the_clear(&columns), steps: trace.into_steps() })
}

/// The server's part: for d = 0, 1, 2 the entries of columns c and c + d mod 4, in slot 1024 c.
fn evaluate<M: SlotMachine>(
    machine: &mut M,
    columns: &M::Ciphertext,
    trace: &mut Trace<'_>,
) -> Result<Vec<M::Ciphertext>, M::Error> {
    let sums = sum_slots(machine, columns, BLOCK, 1)?;
    trace.note("sum x", machine, &sums)?;
    let mut entries = Vec::new();
    for distance in 0..=COUNT / 2 {
        let of_sums = times_turned(machine, &sums, distance)?;
        let products = times_turned(machine, columns, distance)?;
        let sum = sum_slots(machine, &products, BLOCK, 1)?;
        let moment = machine.times(&sum, [PATIENTS as i64])?;
        if distance == 0 {
            trace.note("sum x sum y", machine, &of_sums)?;
            trace.note("x y", machine, &products)?;
            trace.note("n sum x y", machine, &moment)?;
        }
        entries.push(machine.of_two(Binary::Sub, &moment, &of_sums)?);
    }
    trace.note("covariance", machine, &entries[0])?;
    Ok(entries)
}

/// a times a with column c + distance on column c.
fn times_turned<M: SlotMachine>(
    machine: &mut M,
    a: &M::Ciphertext,
    distance: usize,
) -> Result<M::Ciphertext, M::Error> {
    if distance == 0 {
        return machine.square(a);
    }
    let turned = machine.rotate(a, distance * BLOCK)?;
    machine.of_two(Binary::Mul, a, &turned)
}

/// The measurements times their factors.
fn columns(data: &Dataset) -> Vec<Vec<i64>> {
    let integers = |(name, factor): (&str, f64)| {
        let column = data.column(name).unwrap_or(usize::MAX);
        data.feature(column).map(|value| (value * factor).round() as i64).collect()
    };
    COLUMNS.map(integers).into()
}

/// Column c of patient i in slot 1024 c + i, the whole repeated until the slots are full.
fn pack(columns: &[Vec<i64>], slots: usize) -> Vec<i64> {
    let mut once = vec![0; COUNT * BLOCK];
    for (column, block) in columns.iter().zip(once.chunks_mut(BLOCK)) {
        block[..column.len()].copy_from_slice(column);
    }
    once.repeat((slots / once.len()).max(1))
}

/// The matrix by its definition.
fn in_the_clear(columns: &[Vec<i64>]) -> [[i64; COUNT]; COUNT] {
    let sum = |x: &[i64]| x.iter().sum::<i64>();
    std::array::from_fn(|c| {
        std::array::from_fn(|d| {
            let (x, y) = (&columns[c], &columns[d]);
            let product: i64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
            x.len() as i64 * product - sum(x) * sum(y)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::clear::Clear;

    #[test]
    fn the_columns_are_integers_within_their_bound() {
        let data = Dataset::load().unwrap();
        for ((name, factor), column) in COLUMNS.into_iter().zip(columns(&data)) {
            assert_eq!(column.len(), PATIENTS);
            for (value, integer) in data.feature(data.column(name).unwrap()).zip(column) {
                assert!((value * factor - integer as f64).abs() < 1e-6, "{name}: {value}");
                assert!((0..=MAX_ENTRY as i64).contains(&integer));
            }
        }
    }

    #[test]
    fn covariances_are_exact_just_when_the_modulus_exceeds_twice_the_bound() {
        let data = Dataset::load().unwrap();
        for slots in [needs().slots, 2 * needs().slots] {
            let modulus = 2 * needs().bound as i64 + 1;
            let mut machine = Clear::<i64>::new(slots, modulus);
            let mut seen = 0;
            let result = run(&mut machine, &data, Trace::new(|_| seen += 1)).unwrap();
            assert!(result.exact);
            assert_eq!((seen, result.steps.len()), (STEPS, STEPS));
            assert_eq!(machine.largest_depth.get(), needs().depth);
            assert_eq!(machine.rotations.into_iter().collect::<Vec<_>>(), needs().rotations);
        }
        let mut small = Clear::<i64>::new(needs().slots, 1 << 40);
        let result = run(&mut small, &data, Trace::new(|_| ())).unwrap();
        assert!(!result.exact);
    }

    #[test]
    fn the_variance_of_a_known_column_is_right() {
        let matrix = in_the_clear(&[vec![1, 2, 4], vec![1, 1, 1], vec![3, 2, 0], vec![0, 0, 6]]);
        assert_eq!(matrix[0], [14, 0, -14, 30]);
        assert_eq!(matrix[1], [0; COUNT]);
    }
}
