//! Products of encrypted matrices: the cheapest layout in slots, the moves of elements that lead to it, and the product.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use synchromesh::circuits::{Matrix, MatrixChoices, MatrixPacking, MatrixPlan, Number, Side, Slicing, SlotShape};
use synchromesh::ckks::Complex64;
use synchromesh::session::{Engine, Erased};

use crate::ciphertext::Ciphertext;
use crate::fault::Fault;
use crate::run::interruptible;

/// A diagonal of a map of slots, encoded and multiplied, in hoisted rotations.
const DIAGONAL: f64 = 0.4;

/// A giant step of a map of slots, in hoisted rotations.
const GIANT: f64 = 2.5;

/// What one more map in a row makes all others dearer by, in hoisted rotations: a level in CKKS, noise in BFV and BGV.
const FURTHER: f64 = 40.0;

/// Steps of a product of matrices from one decomposition: at most as many rotation keys a factor.
const WINDOW: usize = 16;

/// Most slots of all ciphertexts of a factor or a product.
const MAX_SLOTS: usize = 1 << 23;

/// Elements that go from slots to slots, counted through ciphertexts.
#[derive(Default)]
pub(crate) struct Move {
    from: Vec<usize>,
    to: Vec<usize>,
}

/// A product, and the moves that bring each of its factors from where its elements lie to where the plan wants them.
pub(crate) struct Layout {
    pub(crate) plan: MatrixPlan,
    moves: [Vec<Move>; 2],
    /// Its time, in hoisted rotations.
    cost: f64,
}

/// The cheapest layout of the product of `shape` = \[R, K, C\] for factors whose elements, row after row, lie at `at`;
/// of those that cost less than `most`.
///
/// Of all packings only those are tried whose lines fill a row of slots: there the elements of a row stay neighbours, and
/// few diagonals move them.
pub(crate) fn cheapest(engine: &dyn Engine, shape: [usize; 3], at: [&[usize]; 2], most: f64) -> Result<Layout, Fault> {
    let (slots, tensor) = (engine.slots()?, engine.cost().tensor);
    let slicing = Slicing { slots, batch: 1, masks: false, chain: None, tensor };
    let mut plans = Vec::new();
    for packing in packings(slots) {
        for grid in [[1, 1], [2, 1], [1, 2]].into_iter().filter(|[below, beside]| below * beside <= packing.copies()) {
            let plan = MatrixPlan::new(packing, shape, 1, grid)?;
            let [rows, inner, columns] = plan.blocks();
            let most = (rows * inner).max(inner * columns).max(rows * columns);
            if most <= MAX_SLOTS / slots.count() {
                plans.push((slicing.cost(&plan), plan));
            }
        }
    }
    plans.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut best: Option<(f64, Layout)> = None;
    for (cost, plan) in plans {
        let open = |so_far: f64| so_far < best.as_ref().map_or(most, |(least, _)| *least);
        if !open(cost) {
            break;
        }
        let (left, moves) = brought(&plan, Side::Left, at[0])?;
        if !open(cost + left) {
            continue;
        }
        let (right, others) = brought(&plan, Side::Right, at[1])?;
        if open(cost + left + right) {
            let cost = cost + left + right;
            best = Some((cost, Layout { plan, moves: [moves, others], cost }));
        }
    }
    let [rows, inner, columns] = shape;
    let none = || {
        let message = format!(
            "a product of {rows} x {inner} and {inner} x {columns} takes more than {MAX_SLOTS} slots in any layout"
        );
        Fault::own("no_layout", message, "multiply block by block")
    };
    best.map(|(_, layout)| layout).ok_or_else(none)
}

/// All packings without masks whose blocks fill a row of slots.
fn packings(slots: SlotShape) -> Vec<MatrixPacking> {
    let powers = |most: usize| (0..usize::BITS).map(|i| 1usize << i).take_while(move |&x| x <= most);
    let sizes = powers(slots.row).map(|rows| (rows, slots.row / rows));
    let sizes = sizes.flat_map(|(rows, line)| powers(rows.min(line)).map(move |inner| (rows, line, inner)));
    sizes
        .filter_map(|(rows, line, inner)| MatrixPacking::new(slots, rows, inner, line + 1 - inner, line).ok())
        .collect()
}

/// The moves of a factor's elements, with their cost: straight to their places, or by way of rows in lines.
fn brought(plan: &MatrixPlan, side: Side, at: &[usize]) -> Result<(f64, Vec<Move>), Fault> {
    let (packing, [rows, inner, columns]) = (plan.packing(), plan.shape());
    let (slots, line) = (packing.shape(), packing.window());
    let shape = if side == Side::Left { [rows, inner] } else { [inner, columns] };
    let block = match side {
        Side::Left => [packing.rows(), packing.inner()],
        Side::Right => [packing.inner(), packing.columns()],
    };
    // What meets no column of the product need not be there.
    let used = packing.columns().min(columns) + packing.inner() - 1;
    let (mut straight, mut onwards, mut lines) = (Move::default(), Move::default(), BTreeSet::new());
    for (ciphertext, places) in plan.slots(side, &[numbered(shape)?])?.iter().enumerate() {
        for (slot, place) in places.iter().enumerate() {
            let Some(element) = (place.re as usize).checked_sub(1).filter(|_| slot % line < used) else { continue };
            let (i, j) = (element / shape[1] % block[0], element % shape[1] % block[1]);
            let first = ciphertext * slots.count();
            let between = first + slot / slots.row * slots.row + i * line + j;
            straight.from.push(at[element]);
            straight.to.push(first + slot);
            onwards.from.push(between);
            onwards.to.push(first + slot);
            lines.insert((between, at[element]));
        }
    }
    let (to, from) = lines.into_iter().unzip();
    let before = Move { from, to };
    let (one, two) = (cost(slots, &straight), FURTHER + cost(slots, &before) + cost(slots, &onwards));
    Ok(if one <= two { (one, vec![straight]) } else { (two, vec![before, onwards]) })
}

/// The matrix whose entries are their own places, row after row, counted from 1: exact in a float up to 2^53.
fn numbered([rows, columns]: [usize; 2]) -> Result<Matrix<Complex64>, Fault> {
    Ok(Matrix::from_fn(rows, columns, |i, j| Number::integer((i * columns + j + 1) as i64))?)
}

/// The time of a move, in hoisted rotations.
fn cost(slots: SlotShape, elements: &Move) -> f64 {
    // Which diagonals there are, from each ciphertext to each other.
    let mut maps = BTreeMap::<(usize, usize), Vec<bool>>::new();
    let (count, row) = (slots.count(), slots.row);
    for (&from, &to) in elements.from.iter().zip(&elements.to) {
        let step = (from % row + row - to % row) % row;
        let swap = usize::from(from % count / row != to % count / row);
        maps.entry((to / count, from / count)).or_insert_with(|| vec![false; 2 * row])[swap * row + step] = true;
    }
    maps.values().map(|there| map_cost(row, there)).sum()
}

/// The time of a map of slots with these diagonals: those of the swapped argument after the others.
fn map_cost(row: usize, there: &[bool]) -> f64 {
    let steps: Vec<usize> = there.iter().enumerate().filter_map(|(at, &there)| there.then_some(at)).collect();
    let distinct = |of: &dyn Fn(usize) -> usize| steps.iter().map(|&at| of(at)).collect::<BTreeSet<_>>().len() as f64;
    if let [only] = steps[..] {
        return if only == 0 { 0.0 } else { GIANT };
    }
    let baby = |size: usize| distinct(&|at| at / row * row + at % row % size);
    let giant = |size: usize| distinct(&|at| at % row / size);
    let sizes = (0..=row.trailing_zeros()).map(|i| 1 << i);
    let moved = sizes.map(|size| baby(size) + GIANT * giant(size)).fold(f64::INFINITY, f64::min);
    DIAGONAL * steps.len() as f64 + moved
}

/// The layout of a product of encrypted matrices in the slots of a context.
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct MatrixProduct {
    engine: Arc<dyn Engine>,
    layout: Arc<Layout>,
}

impl MatrixProduct {
    pub(crate) const fn new(engine: Arc<dyn Engine>, layout: Arc<Layout>) -> Self {
        Self { engine, layout }
    }
}

/// Slots on their way to Python.
type Slots<'py> = Bound<'py, PyArray1<i64>>;

fn array<'py>(py: Python<'py>, slots: &[usize]) -> Slots<'py> {
    slots.iter().map(|&slot| slot as i64).collect::<Vec<_>>().into_pyarray(py)
}

#[pymethods]
impl MatrixProduct {
    /// The moves that bring a factor's elements to their places: slots they come from, and go to, through ciphertexts.
    fn moves<'py>(&self, py: Python<'py>, right: bool) -> Vec<(Slots<'py>, Slots<'py>)> {
        self.layout.moves[usize::from(right)].iter().map(|m| (array(py, &m.from), array(py, &m.to))).collect()
    }

    /// Its time, in rotations that share a decomposition with others.
    #[getter]
    fn cost(&self) -> f64 {
        self.layout.cost
    }

    /// The slot of each entry of the product, row after row, counted through its ciphertexts.
    fn places<'py>(&self, py: Python<'py>) -> PyResult<Slots<'py>> {
        let plan = &self.layout.plan;
        let ([rows, _, columns], count) = (plan.blocks(), plan.packing().shape().count());
        let slots: Vec<Vec<usize>> = (0..rows * columns).map(|at| (at * count..(at + 1) * count).collect()).collect();
        let product = plan.products(&slots).map_err(Fault::from)?;
        Ok(array(py, product.first().map_or(&[], Matrix::entries)))
    }

    /// The ciphertexts of the product of factors whose elements are at their places.
    fn multiply(
        &self,
        py: Python<'_>,
        left: Vec<Bound<'_, Ciphertext>>,
        right: Vec<Bound<'_, Ciphertext>>,
    ) -> PyResult<Vec<Ciphertext>> {
        let held =
            |list: Vec<Bound<'_, Ciphertext>>| -> Vec<_> { list.iter().map(|x| Arc::clone(&x.get().cipher)).collect() };
        let (left, right, layout, engine) =
            (held(left), held(right), Arc::clone(&self.layout), Arc::clone(&self.engine));
        let product = interruptible(py, move || {
            let x: Vec<&Erased> = left.iter().map(|x| &**x).collect();
            let y: Vec<&Erased> = right.iter().map(|y| &**y).collect();
            Ok(engine.multiply(&layout.plan, &MatrixChoices::mixed(WINDOW), &x, &y)?)
        })?;
        Ok(product.into_iter().map(|cipher| Ciphertext::new(&self.engine, cipher)).collect())
    }

    fn __repr__(&self) -> String {
        let [left, right] = [0, 1].map(|side| self.layout.moves[side].len());
        format!("MatrixProduct({}; {left} and {right} moves)", self.layout.plan)
    }
}
