//! Where the entries of a batch's matrices lie in the slots of their ciphertexts, for secret entries: by index, in constant time.

use num_bigint::BigInt;
use synchromesh::batch::{BatchEncoder, PlainPoly, Residues};
use synchromesh::circuits::{Matrix as Packed, MatrixPlan, Side};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::field::Element;
use crate::matrix::Matrix;

/// The slots of one factor: for each ciphertext and slot the number of the entry that lies there, from 1; 0 for none.
struct Factor {
    shape: [usize; 2],
    entries: Vec<Vec<usize>>,
    /// For each entry the ciphertext and slot where it lies first.
    places: Vec<(usize, usize)>,
}

impl Factor {
    fn new(plan: &MatrixPlan, side: Side) -> Result<Self> {
        let [r, k, c] = plan.shape();
        let shape = if side == Side::Left { [r, k] } else { [k, c] };
        let size = shape[0] * shape[1];
        let numbers =
            |pair: usize| Packed::from_fn(shape[0], shape[1], |i, j| BigInt::from(1 + pair * size + i * shape[1] + j));
        let matrices = (0..plan.batch()).map(numbers).collect::<synchromesh::Result<Vec<_>>>()?;
        let number = |x: &BigInt| usize::try_from(x).unwrap_or(0);
        let entries: Vec<Vec<usize>> =
            plan.slots(side, &matrices)?.iter().map(|slots| slots.iter().map(number).collect()).collect();
        let mut places = vec![None; plan.batch() * size];
        for (at, slots) in entries.iter().enumerate() {
            for (slot, &entry) in slots.iter().enumerate() {
                if let Some(place) = entry.checked_sub(1).and_then(|entry| places.get_mut(entry)) {
                    place.get_or_insert((at, slot));
                }
            }
        }
        let places = places.into_iter().collect::<Option<Vec<_>>>();
        let missing = Error::Shape { left: (shape[0], shape[1]), right: (0, 0), what: "a packing of every entry" };
        Ok(Self { shape, entries, places: places.ok_or(missing)? })
    }

    fn encode(&self, encoder: &BatchEncoder, matrices: &[Matrix]) -> Result<Vec<PlainPoly>> {
        let all: Vec<&[Element]> = matrices.iter().map(Matrix::entries).collect();
        let size = self.shape[0] * self.shape[1];
        let value = |entry: &usize| match entry.checked_sub(1) {
            Some(at) => all[at / size][at % size].0,
            None => Element::ZERO.0,
        };
        let one = |slots: &Vec<usize>| Ok(encoder.encode_residues(&Residues::Wide(slots.iter().map(value).collect()))?);
        self.entries.iter().map(one).collect()
    }

    fn decode(&self, slots: &[Zeroizing<Vec<Element>>]) -> Result<Vec<Matrix>> {
        let [rows, columns] = self.shape;
        let matrices = self.places.chunks(rows * columns);
        matrices
            .map(|places| Matrix::new(rows, columns, places.iter().map(|&(at, slot)| slots[at][slot]).collect()))
            .collect()
    }
}

/// All of a batch: A as left factor, B as right factor, and C.
pub(crate) struct Layout {
    plan: MatrixPlan,
    left: Factor,
    right: Factor,
}

impl Layout {
    pub(crate) fn new(plan: &MatrixPlan) -> Result<Self> {
        Ok(Self { plan: *plan, left: Factor::new(plan, Side::Left)?, right: Factor::new(plan, Side::Right)? })
    }

    fn factor(&self, side: Side) -> &Factor {
        if side == Side::Left { &self.left } else { &self.right }
    }

    /// The plaintexts of a factor's ciphertexts, of as many matrices as the plan has pairs.
    pub(crate) fn encode(&self, side: Side, encoder: &BatchEncoder, matrices: &[Matrix]) -> Result<Vec<PlainPoly>> {
        self.factor(side).encode(encoder, matrices)
    }

    /// A factor's matrices from the slots of its ciphertexts.
    pub(crate) fn factors(&self, side: Side, slots: &[Zeroizing<Vec<Element>>]) -> Result<Vec<Matrix>> {
        self.factor(side).decode(slots)
    }

    /// The products from the slots of their ciphertexts.
    pub(crate) fn products(&self, slots: Vec<Zeroizing<Vec<Element>>>) -> Result<Vec<Matrix>> {
        let slots = Zeroizing::new(slots.iter().map(|slots| slots.to_vec()).collect::<Vec<Vec<Element>>>());
        let made = self.plan.products(&slots)?;
        made.into_iter().map(|m| Matrix::new(m.rows(), m.columns(), m.entries().to_vec())).collect()
    }
}

/// The slots of a plaintext.
pub(crate) fn slots_of(encoder: &BatchEncoder, poly: &PlainPoly) -> Result<Zeroizing<Vec<Element>>> {
    let slots = encoder.decode_residues(poly)?;
    let wide = slots.as_wide().unwrap_or_default();
    Ok(Zeroizing::new(wide.iter().map(|&x| Element(x)).collect()))
}
