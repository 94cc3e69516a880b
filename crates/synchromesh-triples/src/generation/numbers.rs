//! Tuples of single numbers: one in each slot of a ciphertext, no rotations, the same session and keys as matrix triples.

use synchromesh::batch::Residues;
use synchromesh_parties::transport::Transport;

use super::circuit::multiply_slots;
use super::encryption::{Content, TOGETHER};
use super::forecast::MOST_BYTES;
use super::generator::Generator;
use super::tuple_check::{check, numbers, recipe};
use crate::error::{Error, Result};
use crate::field::Element;
use crate::matrix::Matrix;
use crate::share::Shared;
use crate::tuples::{Kind, Tuples};

/// The shares of one row: of its values, and of their MACs.
type Row = [Vec<Element>; 2];

impl<T: Transport> Generator<'_, T> {
    /// Makes `count` tuples of a kind, at least one; of input masks as many for each party, and a list for each. They are
    /// checked: they are what they should be and all MACs hold, or an error is returned.
    ///
    /// # Errors
    /// As [`Self::generate`].
    pub fn generate_tuples(&mut self, kind: Kind, count: usize) -> Result<Vec<Tuples>> {
        self.setup.plan().require_tuple_memory(kind, count, MOST_BYTES)?;
        let (count, parties) = (count.max(1), self.session.parties());
        let slots = self.setup.plan().params().n();
        let together = (TOGETHER / recipe(kind).0).max(1);
        let mut made: Vec<Tuples> = Vec::new();
        let mut have = 0;
        while have < count {
            let groups = numbers(kind, count - have, parties).div_ceil(slots).min(together);
            let rows = self.with_alpha(|own, alpha| own.rows(kind, groups, alpha))?;
            self.enter("check", 1);
            let next = check(&mut self.session, self.key.mac(), kind, &rows)?;
            self.enter("done", 1);
            made = match made.is_empty() {
                true => next,
                false => made.into_iter().zip(&next).map(|(all, next)| all.joined(next)).collect::<Result<_>>()?,
            };
            have = made.iter().map(Tuples::count).min().unwrap_or(count);
        }
        made.iter().map(|all| all.part(0..count)).collect()
    }

    /// Shares of what was drawn and of its products, a row for each, with so many ciphertexts of numbers in each row.
    fn rows(&mut self, kind: Kind, groups: usize, alpha: &synchromesh::bgv::Ciphertext) -> Result<Vec<Shared>> {
        let (setup, (drawn, pairs)) = (self.setup, recipe(kind));
        let (plan, n) = (setup.plan(), setup.plan().params().n());
        self.enter("encrypt", groups);
        let encoder = setup.context().slot_encoder()?;
        let (mut own, mut plaintexts) = (Vec::with_capacity(groups * drawn), Vec::with_capacity(groups * drawn));
        for group in 0..groups {
            for _ in 0..drawn {
                let row = Matrix::random(plan.field(), 1, n)?;
                let residues = Residues::Wide(row.entries().iter().map(|x| x.0).collect());
                plaintexts.push(encoder.encode_residues(&residues)?);
                own.push(row);
            }
            self.tell(group + 1, groups);
        }
        self.conduct.numbers(&mut own, plan.field());
        let mut sums = self.exchange(Content::Any, plaintexts)?.into_iter();
        // Shares are not left behind where a longer row was moved to.
        let empty = || [Vec::with_capacity(groups * n), Vec::with_capacity(groups * n)];
        let mut rows: Vec<Row> = (0..drawn + pairs.len()).map(|_| empty()).collect();
        for (group, own) in own.chunks(drawn).enumerate() {
            self.enter("multiply", groups);
            self.tell(group, groups);
            let fresh: Vec<_> = sums.by_ref().take(drawn).collect();
            let made = multiply_slots(setup.evaluator(), &fresh, pairs, alpha, plan.slots().product)?;
            self.enter("decrypt", 4);
            let slots = self.open(&made, plan.slots())?;
            let (products, macs) = slots.split_at(pairs.len());
            let values = own.iter().map(Matrix::entries).chain(products.iter().map(|slots| &slots[..]));
            for ((row, value), mac) in rows.iter_mut().zip(values).zip(macs) {
                row[0].extend_from_slice(value);
                row[1].extend_from_slice(mac);
            }
        }
        let shared = |[values, macs]: Row| {
            let columns = values.len();
            Shared::new(Matrix::new(1, columns, values)?, Matrix::new(1, columns, macs)?)
        };
        let mut rows = rows.into_iter().map(shared).collect::<Result<Vec<_>>>()?;
        self.conduct.tuples(&mut rows, plan.field());
        if rows.is_empty() { Err(Error::aborted()) } else { Ok(rows) }
    }
}
