//! The command `matmul`: parameters by a run without data, keys, encryption, products, decryption, and the comparison.

use crate::error::Error;
use crate::number::Number;
use crate::table::Table;
use clap::ValueEnum;
use num_bigint::BigInt;
use num_traits::Signed;
use serde::Serialize;
use std::time::Instant;
use synchromesh::circuits::{
    Arithmetic, Matrix, MatrixArithmetic, MatrixChoices, MatrixPlan, Number as Entry, Side, Slicing, SlotShape,
};
use synchromesh::plan::{Description, Plan, SchemeName};
use synchromesh::rlwe::Randomness;
use synchromesh::rotations::Rotations;
use synchromesh::scheme::{Encryptor, Scheme};
use synchromesh::{bfv, bgv, ckks, exact};
use synchromesh_ring::backend::Open;

/// Which rotation keys and how much memory a product may take.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A key for every rotation.
    Hoist,
    /// One key a factor.
    Reuse,
    /// Some keys.
    Mixed,
    /// A key for every rotation, one block of the product at a time.
    Recompute,
}

/// What to compute and how.
#[derive(Debug, Clone)]
pub struct Job {
    /// The scheme.
    pub scheme: SchemeName,
    /// Plaintext modulus of BFV and BGV; none: 65537.
    pub t: Option<String>,
    /// CKKS: the product within 2^-precision.
    pub precision: u32,
    /// Keys and memory.
    pub mode: Mode,
    /// Rotation keys of the mixed mode, at most.
    pub keys: usize,
    /// Whether left factors may be rotated with masks.
    pub masks: bool,
    /// Threads.
    pub threads: usize,
}

/// A part of the work and its time.
#[derive(Debug, Clone, Serialize)]
pub struct Phase {
    name: &'static str,
    seconds: f64,
}

/// What `matmul` prints.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    rows: usize,
    cols: usize,
    exact: bool,
    slicing: Vec<String>,
    seconds: f64,
    security_bits: f64,
    scheme: SchemeName,
    t: Option<String>,
    max_error: Option<f64>,
    mode: Mode,
    masked: bool,
    log_n: u32,
    log_qp: u32,
    rotation_keys: usize,
    phases: Vec<Phase>,
}

/// The product, as a table, and what to say of it.
pub struct Product {
    /// What to print.
    pub report: Summary,
    /// The product.
    pub table: Table,
    /// Whether it is the plain product: modulo t, or within the precision.
    pub exact: bool,
}

/// Products of more than two factors, one after another from the left.
struct Chain {
    plans: Vec<MatrixPlan>,
    choices: MatrixChoices,
}

impl Chain {
    /// The cheapest plan for factors of `shapes`, and what to say of it.
    fn new(
        job: &Job,
        shapes: &[usize],
        slots: SlotShape,
        tensor: f64,
    ) -> Result<(Self, Vec<String>), synchromesh::Error> {
        let side = (shapes.len() > 3).then_some(Side::Left);
        let slicing = Slicing { slots, batch: 1, masks: job.masks, chain: side, tensor };
        let triple = |at: usize| [shapes[0], shapes[at + 1], shapes[at + 2]];
        let mut all = Vec::new();
        for (first, _) in slicing.candidates(triple(0))? {
            let plan = |at| MatrixPlan::new(*first.packing(), triple(at), 1, first.grid());
            let plans = (0..shapes.len() - 2).map(plan).collect::<Result<Vec<_>, _>>()?;
            let cost: f64 = plans.iter().map(|plan| slicing.cost(plan)).sum();
            all.push((plans, cost));
        }
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        let count = all.len();
        let mut ways = all.into_iter();
        let (plans, cost) = ways.next().expect("there are candidates, or an error");
        let mut words: Vec<String> = plans.iter().map(MatrixPlan::to_string).collect();
        words.push(format!("about {cost:.0} hoisted rotations, the least of {count} ways"));
        let other = ways.find(|(other, _)| other[0].packing() != plans[0].packing());
        if let Some((other, cost)) = other {
            words.push(format!("next best, {cost:.0}: {}", other[0]));
        }
        let packing = plans[0].packing();
        let choices = match job.mode {
            Mode::Hoist => MatrixChoices::HOISTED,
            Mode::Reuse => MatrixChoices::REUSED,
            Mode::Mixed => MatrixChoices::for_keys(packing, job.keys),
            Mode::Recompute => MatrixChoices::RECOMPUTED,
        };
        Ok((Self { choices: choices.threads(job.threads), plans }, words))
    }

    /// The rotations that the products and the maps between them make.
    fn rotations(&self) -> synchromesh::Result<Rotations> {
        let mut steps = self.plans[0].rotations(&self.choices);
        if let Some(next) = self.plans.get(1) {
            let map = self.plans[0].chain::<BigInt>(next, Side::Left)?;
            steps = steps.and(&map.rotations(map.baby_steps()));
        }
        Ok(steps)
    }

    /// The products of the factors' ciphertexts.
    fn run<A: MatrixArithmetic>(
        &self,
        arithmetic: &A,
        factors: &[Vec<A::Ciphertext>],
    ) -> synchromesh::Result<Vec<A::Ciphertext>> {
        let mut left: Option<Vec<A::Ciphertext>> = None;
        for (at, (plan, right)) in self.plans.iter().zip(&factors[1..]).enumerate() {
            let factor = left.as_deref().unwrap_or(&factors[0]);
            let mut made = plan.multiply(arithmetic, &self.choices, factor, right)?;
            if let Some(next) = self.plans.get(at + 1) {
                let map = plan.chain::<A::Scalar>(next, Side::Left)?;
                let level = made.iter().map(|x| arithmetic.level(x)).min().unwrap_or(0);
                let prepared = map.prepare(arithmetic, level)?;
                made = made.iter().map(|x| prepared.apply(arithmetic, x)).collect::<Result<_, _>>()?;
            }
            left = Some(made);
        }
        Ok(left.unwrap_or_default())
    }

    /// As [`Self::run`] for one block row of the first factor and one block column of the last, each ciphertext a copy
    /// of its factor's: what is true of their certificates is true of all.
    fn rehearse<A: MatrixArithmetic>(
        &self,
        arithmetic: &A,
        fresh: &[A::Ciphertext],
    ) -> synchromesh::Result<Vec<A::Ciphertext>> {
        let last = self.plans.len() - 1;
        let narrow = |(at, plan): (usize, &MatrixPlan)| {
            let [_, inner, columns] = plan.shape();
            MatrixPlan::new(*plan.packing(), [1, inner, if at == last { 1 } else { columns }], 1, plan.grid())
        };
        let plans = self.plans.iter().enumerate().map(narrow).collect::<Result<Vec<_>, _>>()?;
        let counts = std::iter::once(plans[0].ciphertexts(Side::Left))
            .chain(plans.iter().map(|plan| plan.ciphertexts(Side::Right)));
        let copies = |(x, count): (&A::Ciphertext, usize)| (0..count).map(|_| arithmetic.duplicate(x)).collect();
        let factors = fresh.iter().zip(counts).map(copies).collect::<synchromesh::Result<Vec<_>>>()?;
        Self { plans, choices: self.choices.threads(1) }.run(arithmetic, &factors)
    }

    /// The slots of all ciphertexts of each factor.
    fn slots<T: Entry>(&self, factors: &[Matrix<T>]) -> synchromesh::Result<Vec<Vec<Vec<T>>>> {
        let left = std::iter::once(self.plans[0].slots(Side::Left, &factors[..1]));
        let right = self.plans.iter().zip(factors[1..].chunks(1)).map(|(plan, m)| plan.slots(Side::Right, m));
        left.chain(right).collect()
    }

    /// The product from its slots.
    fn product<T: Clone>(&self, slots: &[Vec<T>]) -> synchromesh::Result<Matrix<T>> {
        Ok(self.plans[self.plans.len() - 1].products(slots)?.swap_remove(0))
    }
}

/// A product with how it was computed: the chain, and why it was chosen.
type Multiplied<T> = (Chain, Vec<String>, Matrix<T>);

/// Times of the parts of the work.
struct Clock<'a> {
    phases: Vec<Phase>,
    since: Instant,
    say: &'a dyn Fn(&str),
}

impl<'a> Clock<'a> {
    fn new(say: &'a dyn Fn(&str)) -> Self {
        say("choosing parameters");
        Self { phases: Vec::new(), since: Instant::now(), say }
    }

    fn done(&mut self, name: &'static str, next: &str) {
        self.phases.push(Phase { name, seconds: self.since.elapsed().as_secs_f64() });
        (self.say)(next);
        self.since = Instant::now();
    }

    fn seconds(&self, name: &str) -> f64 {
        self.phases.iter().find(|phase| phase.name == name).map_or(0.0, |phase| phase.seconds)
    }
}

impl Job {
    /// The product of two tables or more, one after another, by the scheme asked for.
    ///
    /// # Errors
    /// [`Error::Shapes`], [`Error::Residue`] and [`Error::NotInteger`] for tables that cannot be multiplied, or what
    /// the scheme refuses.
    pub fn run<B: Open>(&self, tables: &[Table], say: &dyn Fn(&str)) -> Result<Product, Error> {
        for pair in tables.windows(2) {
            let [left, right] = [[pair[0].rows(), pair[0].columns()], [pair[1].rows(), pair[1].columns()]];
            if left[1] != right[0] {
                return Err(Error::Shapes { left, right });
            }
        }
        match self.scheme {
            SchemeName::Bfv => self.exact::<bfv::Bfv, B>(tables, say),
            SchemeName::Bgv => self.exact::<bgv::Bgv, B>(tables, say),
            SchemeName::Ckks => self.approximate::<B>(tables, say),
        }
    }

    fn description(&self, products: usize) -> Description {
        let mut description = Description::new(self.scheme, products);
        description.t.clone_from(&self.t);
        description
    }

    /// The product of factors by a plan, no number of factor i larger than bound i.
    fn multiply<S: Scheme, B: Open>(
        &self,
        plan: &Plan,
        shapes: &[usize],
        factors: (&[Matrix<S::Number>], &[f64]),
        clock: &mut Clock<'_>,
    ) -> Result<Multiplied<S::Number>, Error> {
        clock.done("parameters", "making keys");
        let session = plan.open_on::<S, B, _>(B::open)?;
        let mut randomness = Randomness::from_os();
        let (secret, public) = session.generate_keys(&mut randomness)?;
        let (slots, tensor) = (session.keyless().slots()?, <S::Evaluator<B> as Arithmetic>::COST.tensor);
        let (chain, slicing) = Chain::new(self, shapes, slots, tensor)?;
        let evaluator = session.evaluator(session.generate_keys_for(&secret, &chain.rotations()?, &mut randomness)?);
        clock.done("keys", "encrypting");
        let (context, by, top) = (session.context(), Encryptor::Public(&public), session.rlwe().params().top_level());
        let mut encrypted = Vec::with_capacity(factors.0.len());
        for (factor, &bound) in chain.slots(factors.0)?.iter().zip(factors.1) {
            let encrypt =
                |slots: &Vec<S::Number>| S::encrypt(context, &by, &S::values(slots), bound, top, &mut randomness);
            encrypted.push(factor.iter().map(encrypt).collect::<Result<Vec<_>, _>>()?);
        }
        clock.done("encrypt", "multiplying");
        let made = chain.run(&evaluator, &encrypted)?;
        clock.done("multiply", "decrypting");
        let decrypt = |x| S::numbers(&S::decrypt(context, &secret, x)?);
        let product = chain.product(&made.iter().map(decrypt).collect::<Result<Vec<_>, _>>()?)?;
        clock.done("decrypt", "comparing");
        Ok((chain, slicing, product))
    }

    fn exact<S: exact::Scheme, B: Open>(&self, tables: &[Table], say: &dyn Fn(&str)) -> Result<Product, Error> {
        let t: synchromesh::plain_modulus::PlainModulus =
            self.t.as_deref().unwrap_or("65537").parse().map_err(synchromesh::Error::from)?;
        let t_value = BigInt::from(t.value().clone());
        let matrices = tables.iter().map(|table| residues(table, &t_value)).collect::<Result<Vec<_>, _>>()?;
        let shapes = shapes(tables);
        let tensor = <exact::Evaluator<S> as Arithmetic>::COST.tensor;
        let mut clock = Clock::new(say);
        let plan = self.description(tables.len() - 1).plan_exact::<S>(tables.len(), |evaluator, fresh| {
            Chain::new(self, &shapes, evaluator.slots()?, tensor)?.0.rehearse(evaluator, fresh)
        })?;
        let bounds = vec![f64::INFINITY; matrices.len()];
        let (chain, slicing, product) = self.multiply::<S, B>(&plan, &shapes, (&matrices, &bounds), &mut clock)?;
        let plain =
            matrices[1..].iter().try_fold(matrices[0].clone(), |a, b| plain(&a, b, |x| reduced(&x, &t_value)))?;
        let entries: Vec<BigInt> = product.entries().iter().map(|x| reduced(x, &t_value)).collect();
        let exact = entries == plain.entries();
        clock.done("compare", "");
        let table = table(&product, entries.into_iter().map(Number::Int))?;
        let report = self.summary(&product, &plan, &chain, slicing, exact, clock);
        Ok(Product { report: Summary { t: Some(t.to_string()), ..report }, table, exact })
    }

    fn approximate<B: Open>(&self, tables: &[Table], say: &dyn Fn(&str)) -> Result<Product, Error> {
        if let Some(t) = &self.t {
            return Err(Error::Usage { message: format!("--t {t} is for bfv and bgv: ckks has no plaintext modulus") });
        }
        let matrices = tables.iter().map(reals).collect::<Result<Vec<_>, _>>()?;
        let largest = |m: &Matrix<ckks::Complex64>| m.entries().iter().map(|z| z.re.abs()).fold(0.0, f64::max);
        let bounds: Vec<f64> = matrices.iter().map(|m| largest(m).max(2f64.powi(-20))).collect();
        let shapes = shapes(tables);
        let tensor = <ckks::Evaluator as Arithmetic>::COST.tensor;
        let mut clock = Clock::new(say);
        let description = Description { precision: Some(self.precision), ..self.description(tables.len() - 1) };
        let plan = description.plan_ckks(&bounds, |evaluator, fresh| {
            Chain::new(self, &shapes, evaluator.slots()?, tensor)?.0.rehearse(evaluator, fresh)
        })?;
        let (chain, slicing, product) =
            self.multiply::<ckks::Ckks, B>(&plan, &shapes, (&matrices, &bounds), &mut clock)?;
        let plain = matrices[1..].iter().try_fold(matrices[0].clone(), |a, b| plain(&a, b, |x| x))?;
        let gaps = product.entries().iter().zip(plain.entries()).map(|(x, y)| (x.re - y.re).abs());
        let error = gaps.fold(0.0, f64::max);
        let exact = error <= 2f64.powi(-(self.precision as i32));
        clock.done("compare", "");
        let table = table(&product, product.entries().iter().map(|z| Number::Real(z.re)))?;
        let report = self.summary(&product, &plan, &chain, slicing, exact, clock);
        Ok(Product { report: Summary { max_error: Some(error), ..report }, table, exact })
    }

    fn summary<T: Clone>(
        &self,
        product: &Matrix<T>,
        plan: &Plan,
        chain: &Chain,
        slicing: Vec<String>,
        exact: bool,
        clock: Clock<'_>,
    ) -> Summary {
        Summary {
            rows: product.rows(),
            cols: product.columns(),
            exact,
            slicing,
            seconds: clock.seconds("multiply"),
            security_bits: plan.security_bits,
            scheme: self.scheme,
            t: None,
            max_error: None,
            mode: self.mode,
            masked: chain.plans[0].packing().is_masked(),
            log_n: plan.log_n,
            log_qp: plan.log_qp,
            rotation_keys: chain.rotations().map_or(0, |steps| steps.by.len()),
            phases: clock.phases,
        }
    }
}

/// Rows of each table, and columns of the last.
fn shapes(tables: &[Table]) -> Vec<usize> {
    tables.iter().map(Table::rows).chain(tables.last().map(Table::columns)).collect()
}

/// A table's integers, if they are residues modulo t: from -t/2 to t - 1.
fn residues(table: &Table, t: &BigInt) -> Result<Matrix<BigInt>, Error> {
    let columns = (0..table.columns()).map(|j| table.integers(j)).collect::<Result<Vec<_>, _>>()?;
    for (j, column) in columns.iter().enumerate() {
        for (i, value) in column.iter().enumerate() {
            let twice: BigInt = value.abs() * 2;
            if value >= t || (value.is_negative() && twice > *t) {
                let (row, column) = (i + 1, j + 1);
                return Err(Error::Residue { row, column, value: value.to_string(), t: t.to_string() });
            }
        }
    }
    // As slots hold them: centred.
    let centred = |x: &BigInt| if x * 2 > *t { x - t } else { x.clone() };
    Ok(Matrix::from_fn(table.rows(), table.columns(), |i, j| centred(&columns[j][i]))?)
}

fn reals(table: &Table) -> Result<Matrix<ckks::Complex64>, Error> {
    let columns = (0..table.columns()).map(|j| table.reals(j)).collect::<Result<Vec<_>, _>>()?;
    Ok(Matrix::from_fn(table.rows(), table.columns(), |i, j| columns[j][i].into())?)
}

/// The residue in \[0, t).
fn reduced(x: &BigInt, t: &BigInt) -> BigInt {
    ((x % t) + t) % t
}

/// A B with `reduce` on each entry.
fn plain<T>(a: &Matrix<T>, b: &Matrix<T>, reduce: impl Fn(T) -> T) -> synchromesh::Result<Matrix<T>>
where
    T: Entry + Times,
{
    Matrix::from_fn(a.rows(), b.columns(), |i, j| {
        let terms = (0..a.columns()).filter_map(|k| Some(a.get(i, k)?.times(b.get(k, j)?)));
        reduce(terms.fold(T::integer(0), |sum, x| sum.minus(&T::integer(0).minus(&x))))
    })
}

/// Products of plain entries.
trait Times {
    fn times(&self, other: &Self) -> Self;
}

impl Times for BigInt {
    fn times(&self, other: &Self) -> Self {
        self * other
    }
}

impl Times for ckks::Complex64 {
    fn times(&self, other: &Self) -> Self {
        Self::new(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
    }
}

/// The entries of a matrix, row after row, as a table.
fn table<T: Clone>(shape: &Matrix<T>, entries: impl Iterator<Item = Number>) -> Result<Table, Error> {
    let entries: Vec<Number> = entries.collect();
    let column = |j: usize| entries.iter().skip(j).step_by(shape.columns()).cloned().collect();
    Ok(Table::from_columns(None, &(0..shape.columns()).map(column).collect::<Vec<_>>())?)
}
