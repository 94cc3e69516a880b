//! Faults that are planted in single entries of the PTX, each of which a test must find.

use super::ptx::{Entry, Line, Operand};

/// What becomes of an instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    /// It is taken out.
    Removed,
    /// A number among its operands is one more.
    Next,
    /// It does something else.
    Becomes(&'static str),
}

/// A change of the instruction of a number, from 0, among those with this opcode that it fits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) entry: &'static str,
    pub(crate) opcode: &'static str,
    pub(crate) number: usize,
    pub(crate) change: Change,
}

const fn fault(entry: &'static str, opcode: &'static str, number: usize, change: Change) -> Fault {
    Fault { entry, opcode, number, change }
}

/// All of them: barriers, indices, roundings, products, comparisons, constants.
pub(crate) const FAULTS: &[Fault] = &[
    fault("ntt_forward_last", "bar.sync", 0, Change::Removed),
    fault("ntt_inverse_last", "bar.sync", 1, Change::Removed),
    fault("ntt_forward_cluster", "bar.sync", 0, Change::Removed),
    fault("gadget_product", "bar.sync", 4, Change::Removed),
    fault("automorphism_ntt", "brev.b32", 0, Change::Becomes("mov.b32")),
    fault("automorphism_coeff", "add.s32", 0, Change::Becomes("sub.s32")),
    fault("convert", "cvt.rmi.u64.f64", 0, Change::Becomes("cvt.rni.u64.f64")),
    fault("convert_few", "cvt.rmi.u64.f64", 0, Change::Becomes("cvt.rni.u64.f64")),
    fault("from_signed", "shr.s64", 0, Change::Becomes("shr.u64")),
    fault("ntt_inverse_last", "mul.rn.f64", 0, Change::Becomes("add.rn.f64")),
    fault("mul_acc", "mul.hi.u64", 0, Change::Becomes("mul.lo.s64")),
    fault("add_assign", "setp.lt.u64", 0, Change::Becomes("setp.le.u64")),
    fault("uniform", "shf.l.wrap.b32", 0, Change::Next),
];

impl Fault {
    /// The entry with the fault; none where it has no such instruction.
    pub(crate) fn plant(&self, entry: &Entry) -> Option<Entry> {
        let mut planted = entry.clone();
        let at =
            entry.body.iter().enumerate().filter(|(_, line)| self.fits(line)).map(|(at, _)| at).nth(self.number)?;
        match (self.change, &mut planted.body[at]) {
            (Change::Removed, _) => drop(planted.body.remove(at)),
            (Change::Next, Line::Instruction(instruction)) => {
                let number = instruction.operands.iter_mut().find_map(|operand| match operand {
                    Operand::Integer(number) => Some(number),
                    _ => None,
                });
                *number? += 1;
            }
            (Change::Becomes(opcode), Line::Instruction(instruction)) => instruction.opcode = opcode.to_owned(),
            (_, Line::Label(_)) => return None,
        }
        Some(planted)
    }

    fn fits(&self, line: &Line) -> bool {
        let Line::Instruction(instruction) = line else { return false };
        let numbers = || instruction.operands.iter().any(|operand| matches!(operand, Operand::Integer(_)));
        instruction.opcode == self.opcode && (!matches!(self.change, Change::Next) || numbers())
    }

    /// In words.
    pub(crate) fn name(&self) -> String {
        let Self { entry, opcode, number, change } = self;
        let change = match change {
            Change::Removed => "is taken out".to_owned(),
            Change::Next => "has one more as its number".to_owned(),
            Change::Becomes(other) => format!("is {other}"),
        };
        format!("{entry}: {opcode} {number} {change}")
    }
}
