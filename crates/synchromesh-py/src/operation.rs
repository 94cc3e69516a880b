//! Operations as values, and one of them on each of several ciphertexts, side by side.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;
use synchromesh::circuits::functions::{self, Function, Table};
use synchromesh::circuits::{SlotShape, SlotSum};
use synchromesh::ckks;
use synchromesh::scheme::{self, Binary, Values};
use synchromesh::session::{Engine, Erased};
use synchromesh_ring::Cpu;

use crate::ciphertext::Ciphertext;
use crate::fault::Fault;
use crate::run::{detached, interruptible};
use crate::values::{copied, from_array};

/// An operation with its numbers.
enum Owned {
    Binary(Binary),
    Plain(Binary, Values),
    Scalar(Binary, Values),
    Neg,
    Square,
    Rotate(i64),
    Swap,
    Refresh,
    AtLevel(usize),
    Bounded(f64),
    Approximate(f64),
    AsComputed,
    /// Zeros beside these slots, by the caller's word.
    Zeros(Vec<bool>),
    /// The sum of x_i y_i: all x, then as many y.
    InnerProduct,
    /// Slot j becomes the sum of slots j + i stride of its row, i < count; count 0: the sum of all slots, in all slots.
    SumSlots(usize, i64),
    /// In these slots only, where they are given.
    Polynomial(Values, Option<Vec<bool>>),
    Chebyshev(Vec<f64>, (f64, f64), Option<Vec<bool>>),
    Function(functions::Approximation),
    /// Of one ciphertext, or of the difference of two.
    Table(Table),
}

impl Owned {
    /// Whether it takes so long that a signal should end the wait for it.
    const fn is_long(&self) -> bool {
        matches!(
            self,
            Self::SumSlots(..)
                | Self::InnerProduct
                | Self::Polynomial(..)
                | Self::Chebyshev(..)
                | Self::Function(_)
                | Self::Table(_)
                | Self::Refresh
        )
    }

    fn run(&self, engine: &dyn Engine, x: &[&Erased]) -> Result<Erased, Fault> {
        use scheme::Operation as Op;
        let of = |operation: Op<'_>| Ok(engine.apply(&operation, x)?);
        match self {
            Self::Binary(op) => of(Op::Binary(*op)),
            Self::Plain(op, values) => of(Op::Plain(*op, values)),
            Self::Scalar(op, value) => {
                engine.require_held(value)?;
                of(Op::Scalar(*op, value))
            }
            Self::Neg => of(Op::Neg),
            Self::Square => of(Op::Square),
            Self::Rotate(steps) => of(Op::Rotate(*steps)),
            Self::Swap => of(Op::Swap),
            Self::Refresh => of(Op::Refresh),
            Self::AtLevel(level) => of(Op::AtLevel(*level)),
            Self::Bounded(bound) => of(Op::Bounded(*bound)),
            Self::Approximate(error) => of(Op::Approximate(*error)),
            Self::AsComputed => of(Op::AsComputed),
            Self::Zeros(own) => of(Op::Zeros(own)),
            Self::SumSlots(count, stride) => {
                let shape = engine.slots().unwrap_or(SlotShape { row: 0, rows: 0 });
                let sum = match count {
                    0 => SlotSum::all(shape),
                    _ => SlotSum::new((*count).min(shape.row)).stride(*stride),
                };
                of(Op::SumSlots(&sum))
            }
            Self::InnerProduct => of(Op::InnerProduct),
            Self::Polynomial(coefficients, slots) => of(Op::Polynomial(coefficients, slots.as_deref())),
            Self::Chebyshev(coefficients, interval, slots) => {
                of(Op::Chebyshev(coefficients, *interval, slots.as_deref()))
            }
            Self::Function(approximation) => of(Op::Function(approximation)),
            Self::Table(table) => of(Op::Table(table)),
        }
    }
}

fn binary(name: &str) -> Result<Binary, Fault> {
    match name {
        "add" => Ok(Binary::Add),
        "sub" => Ok(Binary::Sub),
        "mul" => Ok(Binary::Mul),
        other => Err(Fault::own("operation", format!("there is no operation {other:?}"), "use add, sub or mul")),
    }
}

/// What is computed, apart from what it is computed on.
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct Operation(Arc<Owned>);

impl From<Owned> for Operation {
    fn from(operation: Owned) -> Self {
        Self(Arc::new(operation))
    }
}

#[pymethods]
impl Operation {
    #[staticmethod]
    fn binary(op: &str) -> PyResult<Self> {
        Ok(Owned::Binary(binary(op)?).into())
    }

    #[staticmethod]
    fn plain(op: &str, values: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Owned::Plain(binary(op)?, from_array(values)?).into())
    }

    #[staticmethod]
    fn scalar(op: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Owned::Scalar(binary(op)?, from_array(value)?).into())
    }

    #[staticmethod]
    fn neg() -> Self {
        Owned::Neg.into()
    }

    #[staticmethod]
    fn square() -> Self {
        Owned::Square.into()
    }

    #[staticmethod]
    fn rotate(steps: i64) -> Self {
        Owned::Rotate(steps).into()
    }

    #[staticmethod]
    fn swap() -> Self {
        Owned::Swap.into()
    }

    #[staticmethod]
    fn refresh() -> Self {
        Owned::Refresh.into()
    }

    #[staticmethod]
    fn at_level(level: usize) -> Self {
        Owned::AtLevel(level).into()
    }

    #[staticmethod]
    fn declare_bound(bound: f64) -> Self {
        Owned::Bounded(bound).into()
    }

    #[staticmethod]
    fn approximate(error: f64) -> Self {
        Owned::Approximate(error).into()
    }

    #[staticmethod]
    fn as_computed() -> Self {
        Owned::AsComputed.into()
    }

    #[staticmethod]
    fn zeros(own: &Bound<'_, PyArray1<bool>>) -> PyResult<Self> {
        Ok(Owned::Zeros(copied(own)?).into())
    }

    #[staticmethod]
    fn inner_product() -> Self {
        Owned::InnerProduct.into()
    }

    #[staticmethod]
    fn sum_slots(count: usize, stride: i64) -> Self {
        Owned::SumSlots(count, stride).into()
    }

    #[staticmethod]
    #[pyo3(signature = (coefficients, slots=None))]
    fn polynomial(coefficients: &Bound<'_, PyAny>, slots: Option<&Bound<'_, PyArray1<bool>>>) -> PyResult<Self> {
        Ok(Owned::Polynomial(from_array(coefficients)?, slots.map(copied).transpose()?).into())
    }

    /// The function of integers that is `values[i]` at low + i.
    #[staticmethod]
    fn table(low: i64, values: &Bound<'_, PyAny>) -> PyResult<Self> {
        let values = from_array(values)?.integers("bfv and bgv").map_err(Fault::from)?;
        Ok(Owned::Table(Table::new(low, values).map_err(Fault::from)?).into())
    }

    #[staticmethod]
    #[pyo3(signature = (coefficients, low, high, slots=None))]
    fn chebyshev(
        coefficients: Vec<f64>,
        low: f64,
        high: f64,
        slots: Option<&Bound<'_, PyArray1<bool>>>,
    ) -> PyResult<Self> {
        Ok(Owned::Chebyshev(coefficients, (low, high), slots.map(copied).transpose()?).into())
    }
}

/// What stands in the place of a function, with a proved bound on the distance.
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct Approximation {
    inner: functions::Approximation,
    plan: functions::FunctionPlan,
}

#[pymethods]
impl Approximation {
    /// Of a function as JSON: name, interval, tolerance, and perhaps a gap.
    #[new]
    fn new(py: Python<'_>, literal: &str) -> PyResult<Self> {
        let function: Function = serde_json::from_str(literal)
            .map_err(|error| Fault::own("argument", format!("no function: {error}"), "name one that there is"))?;
        let inner = detached(py, move || Ok(function.approximate()?))?;
        let plan = inner.plan::<ckks::Evaluator<Cpu>>();
        Ok(Self { inner, plan })
    }

    #[getter]
    const fn error(&self) -> f64 {
        self.inner.error()
    }

    #[getter]
    fn gap(&self) -> f64 {
        self.inner.gap()
    }

    #[getter]
    fn degrees(&self) -> Vec<usize> {
        self.inner.degrees()
    }

    #[getter]
    const fn depth(&self) -> usize {
        self.plan.depth
    }

    #[getter]
    const fn products(&self) -> usize {
        self.plan.products
    }

    #[getter]
    const fn key_switches(&self) -> usize {
        self.plan.key_switches
    }

    fn operation(&self) -> Operation {
        Owned::Function(self.inner.clone()).into()
    }
}

/// The results of operations, the i-th on the i-th list of ciphertexts; on all threads, each on one, where there are as many.
#[pyfunction]
pub(crate) fn each(
    py: Python<'_>,
    operations: Vec<Bound<'_, Operation>>,
    operands: Vec<Vec<Bound<'_, Ciphertext>>>,
) -> PyResult<Vec<Ciphertext>> {
    if operations.len() != operands.len() {
        let message = format!("{} operations for {} lists of ciphertexts", operations.len(), operands.len());
        return Err(Fault::own("shape", message, "pass one for each").into());
    }
    let Some(engine) = operands.iter().flatten().next().map(|x| Arc::clone(&x.get().engine)) else {
        return Ok(Vec::new());
    };
    let held = |x: Vec<Bound<'_, Ciphertext>>| x.iter().map(|x| Arc::clone(&x.get().cipher)).collect::<Vec<_>>();
    let items: Vec<(Arc<Owned>, Vec<Arc<Erased>>)> =
        operations.iter().zip(operands).map(|(operation, x)| (Arc::clone(&operation.get().0), held(x))).collect();
    let long = items.len() > 1 || items.iter().any(|(operation, _)| operation.is_long());
    let own = Arc::clone(&engine);
    let work = move || {
        own.threads().try_map(items, |(operation, x)| {
            let x: Vec<&Erased> = x.iter().map(|x| &**x).collect();
            operation.run(&*own, &x)
        })
    };
    let made = if long { interruptible(py, work)? } else { detached(py, work)? };
    Ok(made.into_iter().map(|cipher| Ciphertext::new(&engine, cipher)).collect())
}
