//! What a program of MP-SPDZ takes, in the words of its compiler: the lines that follow `Program requires at most:`.
//!
//! Each is a number and a name: `integer triples`, `integer squares`, `integer bits`, `integer inverses`, `integer randoms`,
//! `integer inputs from player 1`, `matrix multiplications (3x4 * 4x2)`. A product of matrices is among the triples too, with
//! one for each product of two numbers; these are taken off again.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::party::Want;
use crate::share::Shape;
use crate::tuples::Kind;

/// Before the lines.
const TITLE: &str = "Program requires at most:";

/// What is counted and takes nothing from files.
const FREE: [&str; 3] = ["virtual machine rounds", "integer opens", "integer simple multiplications"];

/// What is to be made for a program, of what its compiler said.
///
/// # Errors
/// [`Error::Demand`] for a text without such lines, for an amount that the compiler did not know (`inf`), and for what is not
/// made here, such as `bit triples`, `integer dabits` and edaBits.
pub fn of_compiler(text: &str) -> Result<Vec<Want>> {
    let mut lines = text.lines().skip_while(|line| line.trim() != TITLE);
    if lines.next().is_none() {
        return Err(Error::Demand { line: TITLE.into(), reason: "there is no such line" });
    }
    let mut demand = Demand::default();
    for line in lines.map(str::trim).take_while(|line| counts(line)) {
        demand.read(line).map_err(|reason| Error::Demand { line: line.into(), reason })?;
    }
    Ok(demand.wants())
}

/// Whether a line begins with an amount.
fn counts(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_digit()) || line.starts_with("inf ")
}

/// Amounts so far.
#[derive(Default)]
struct Demand {
    tuples: BTreeMap<&'static str, usize>,
    inputs: BTreeMap<usize, usize>,
    randoms: usize,
    matrices: Vec<(Shape, usize)>,
}

impl Demand {
    fn read(&mut self, line: &str) -> std::result::Result<(), &'static str> {
        let (amount, what) = line.split_once(' ').ok_or("it has no name")?;
        if FREE.contains(&what) {
            return Ok(());
        }
        let unknown = "how many that are is only known as the program runs: say amounts with --make";
        let amount: usize = amount.parse().ok().filter(|count| *count <= crate::party::MOST).ok_or(unknown)?;
        if let Some(player) = what.strip_prefix("integer inputs from player ") {
            let player = player.parse().map_err(|_| NOT_MADE)?;
            *self.inputs.entry(player).or_default() += amount;
        } else if let Some(sides) = what.strip_prefix("matrix multiplications (") {
            let shape = sides.strip_suffix(')').and_then(shape).ok_or(NOT_MADE)?;
            // One product is a triple, which they are among.
            if shape.elements() > 3 {
                self.matrices.push((shape, amount));
            }
        } else if what == "integer randoms" {
            self.randoms += amount;
        } else {
            let kind = what.strip_prefix("integer ").and_then(|word| word.parse().ok());
            let kind: Kind = kind.filter(|kind| *kind != Kind::Inputs).ok_or(NOT_MADE)?;
            *self.tuples.entry(kind.word()).or_default() += amount;
        }
        Ok(())
    }

    fn wants(mut self) -> Vec<Want> {
        let mut all: Vec<Want> = Vec::new();
        let triples = self.tuples.entry(Kind::Triples.word()).or_default();
        for &(shape, count) in &self.matrices {
            let ((rows, inner), (_, columns)) = (shape.a(), shape.b());
            *triples = triples.saturating_sub((rows * inner * columns).saturating_mul(count));
            all.push(Want::Matrices { shape: Some(shape), count });
        }
        // A number that nobody knows is the sum of an input mask of each party.
        let inputs = self.inputs.values().max().copied().unwrap_or(0) + self.randoms;
        self.tuples.insert(Kind::Inputs.word(), inputs);
        let counts = Kind::ALL.into_iter().map(|kind| (kind, self.tuples.get(kind.word()).copied().unwrap_or(0)));
        all.extend(counts.filter(|(_, count)| *count > 0).map(|(kind, count)| Want::Tuples { kind, count }));
        all
    }
}

const NOT_MADE: &str = "such are not made here";

/// `3x4 * 4x2`.
fn shape(text: &str) -> Option<Shape> {
    let (left, right) = text.split_once(" * ")?;
    let sides = |text: &str| -> Option<(usize, usize)> {
        let (a, b) = text.split_once('x')?;
        Some((a.parse().ok()?, b.parse().ok()?))
    };
    let ((rows, inner), (also, columns)) = (sides(left)?, sides(right)?);
    (inner == also).then(|| Shape::new(rows, inner, columns).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_those_of_the_compiler() {
        let text = "Compiling file Programs/Source/x.mpc\nWriting to Programs/Schedules/x.sch\nProgram requires at most:\n\
                    \x20          2 matrix multiplications (3x4 * 4x2)\n\x20        248 integer triples\n\
                    \x20       1200 integer bits\n\x20         10 integer inputs from player 0\n\
                    \x20          7 integer inputs from player 1\n\x20          5 integer randoms\n\
                    \x20          3 integer opens\n\x20         12 virtual machine rounds\nDone.\n";
        let wants: Vec<String> = of_compiler(text).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(wants, ["3x4x2:2", "triples:200", "bits:1200", "inputs:15"]);
    }

    #[test]
    fn what_is_not_known_or_not_made_is_refused() {
        let refused = |line: &str| {
            let error = of_compiler(&format!("{TITLE}\n {line}\n")).unwrap_err();
            assert!(error.kind() == "demand" && !error.remedy().is_empty(), "{line}: {error}");
            assert!(error.to_string().contains(line), "{error}");
        };
        for line in [
            "inf integer bits",
            "12 bit triples",
            "5 integer dabits",
            "3 loose edabits of length 32",
            "1 matrix multiplications (3x4 * 5x2)",
            "1 integer wonders",
            "99999999999999999999 integer bits",
            "3 integer inputs",
        ] {
            refused(line);
        }
        assert_eq!(of_compiler("nothing\n").unwrap_err().kind(), "demand");
        assert_eq!(of_compiler(TITLE).unwrap(), []);
    }
}
