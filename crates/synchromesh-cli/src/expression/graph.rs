//! The computation as a graph: each distinct operation once, operands before results, constants folded.

use super::{ExpressionError, MAX_CONSTANT_BITS, MAX_NODES, Problem, parser};
use crate::number::Number;
use num_bigint::BigInt;
use parser::{Syntax, SyntaxKind};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use synchromesh::bfv::Bfv;
use synchromesh::circuits::functions::{Approximation, Function, Table};
use synchromesh::ckks::Evaluator;
use synchromesh::exact;

/// One operation on operands T: in a graph on earlier nodes, which are named by their place in [`Graph::operations`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Operation<T> {
    /// The value of the name `inputs()[i]`.
    Input(usize),
    /// `a + b`
    Add(T, T),
    /// `a - b`
    Sub(T, T),
    /// `-a`
    Neg(T),
    /// `a * b`
    Mul(T, T),
    /// `a * a`
    Square(T),
    /// `a + c` in every slot.
    AddConst(T, Number),
    /// `a * c`, c never 0, 1 or -1.
    MulConst(T, Number),
    /// `a` with slot i + k moved to slot i.
    Rotate(T, i64),
    /// Complex conjugate of `a`, slot by slot.
    Conjugate(T),
    /// `a` with levels to compute with.
    Refresh(T),
    /// An approximated function of `a`, or of `a` and `b`.
    Apply(T, Option<T>, Arc<Approximation>),
    /// A function of integers of `a`, or of `a - b`.
    Table(T, Option<T>, Arc<Table>),
}

/// An expression ready to be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    operations: Vec<Operation<usize>>,
    inputs: Vec<String>,
    output: usize,
    depth: u32,
}

impl Graph {
    /// The graph of an expression.
    ///
    /// # Errors
    /// [`ExpressionError`] with the place in `text`.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let tree = parser::parse(text)?;
        let mut builder = Builder::default();
        match builder.build(&tree)? {
            Term::Constant(_) => Err(ExpressionError::new(Problem::NoCiphertext, tree.span)),
            Term::Node(output) => Ok(builder.finish(output)),
        }
    }

    /// All operations, operands before results.
    #[must_use]
    pub fn operations(&self) -> &[Operation<usize>] {
        &self.operations
    }

    /// The names the value depends on, in the order of their first use.
    #[must_use]
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// Most multiplications, by a ciphertext or a constant, on a path from an input to the value.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// The distinct rotations it takes.
    #[must_use]
    pub fn rotations(&self) -> BTreeSet<i64> {
        let rotation = |operation: &Operation<usize>| match operation {
            Operation::Rotate(_, k) => Some(*k),
            _ => None,
        };
        self.operations.iter().filter_map(rotation).collect()
    }

    /// The value where `compute` gives that of one operation on values. A node's value is dropped after its last use.
    ///
    /// # Errors
    /// The first error of an operation.
    pub fn evaluate<V, E>(&self, mut compute: impl FnMut(Operation<&V>) -> Result<V, E>) -> Result<V, E> {
        let mut uses = vec![0usize; self.operations.len()];
        self.operations.iter().flat_map(Operation::operands).for_each(|node| uses[node] += 1);
        uses[self.output] += 1;
        let mut values: Vec<Option<V>> = Vec::with_capacity(self.operations.len());
        for operation in &self.operations {
            let value = |node: usize| values[node].as_ref().expect("invariant: operands are kept until their last use");
            let value = compute(operation.on(value))?;
            values.push(Some(value));
            for node in operation.operands() {
                uses[node] -= 1;
                if uses[node] == 0 {
                    values[node] = None;
                }
            }
        }
        Ok(values.swap_remove(self.output).expect("invariant: the output is in use to the end"))
    }
}

impl Operation<usize> {
    /// The nodes it reads, with repetition.
    fn operands(&self) -> impl Iterator<Item = usize> + use<> {
        let mut nodes = [None; 2];
        let mut place = nodes.iter_mut();
        self.on(|node| {
            if let Some(place) = place.next() {
                *place = Some(node);
            }
        });
        nodes.into_iter().flatten()
    }

    /// The same operation on what `operand` makes of each node.
    fn on<T>(&self, mut operand: impl FnMut(usize) -> T) -> Operation<T> {
        match self {
            Self::Input(index) => Operation::Input(*index),
            Self::Add(a, b) => Operation::Add(operand(*a), operand(*b)),
            Self::Sub(a, b) => Operation::Sub(operand(*a), operand(*b)),
            Self::Neg(a) => Operation::Neg(operand(*a)),
            Self::Mul(a, b) => Operation::Mul(operand(*a), operand(*b)),
            Self::Square(a) => Operation::Square(operand(*a)),
            Self::AddConst(a, c) => Operation::AddConst(operand(*a), c.clone()),
            Self::MulConst(a, c) => Operation::MulConst(operand(*a), c.clone()),
            Self::Rotate(a, k) => Operation::Rotate(operand(*a), *k),
            Self::Conjugate(a) => Operation::Conjugate(operand(*a)),
            Self::Refresh(a) => Operation::Refresh(operand(*a)),
            Self::Apply(a, b, f) => {
                let a = operand(*a);
                Operation::Apply(a, b.map(operand), Arc::clone(f))
            }
            Self::Table(a, b, table) => {
                let a = operand(*a);
                Operation::Table(a, b.map(operand), Arc::clone(table))
            }
        }
    }
}

/// A subexpression: a number, or a node.
#[derive(Clone)]
enum Term {
    Constant(Number),
    Node(usize),
}

#[derive(Default)]
struct Builder {
    operations: Vec<Operation<usize>>,
    depths: Vec<u32>,
    inputs: Vec<String>,
    /// Operations by their text form: equal text is equal meaning.
    known: HashMap<String, usize>,
    /// Powers by base and exponent.
    powers: HashMap<(usize, u32), usize>,
    /// The approximated functions so far.
    approximations: Vec<Arc<Approximation>>,
    /// Where the subexpression in hand stands, for errors.
    span: Range<usize>,
}

impl Builder {
    fn build(&mut self, tree: &Syntax) -> Result<Term, ExpressionError> {
        let node = match &tree.kind {
            SyntaxKind::Constant(number) => return Ok(Term::Constant(number.clone())),
            SyntaxKind::Name(name) => return self.input(name, &tree.span),
            SyntaxKind::Sum(terms) => {
                let terms = terms
                    .iter()
                    .map(|(minus, t)| Ok((*minus, self.build(t)?)))
                    .collect::<Result<Vec<_>, ExpressionError>>()?;
                self.span = tree.span.clone();
                return self.sum(terms);
            }
            SyntaxKind::Product(factors) => {
                let factors = factors.iter().map(|f| self.build(f)).collect::<Result<Vec<_>, _>>()?;
                self.span = tree.span.clone();
                return self.product(factors);
            }
            SyntaxKind::Negative(inner) => match self.operand(tree, inner)? {
                Term::Constant(c) => return Ok(Term::Constant(negate(&c))),
                Term::Node(node) => self.negative(node)?,
            },
            SyntaxKind::Power(inner, n) => match (*n, self.operand(tree, inner)?) {
                (0, _) => return Ok(Term::Constant(Number::from(1))),
                (n, Term::Constant(c)) => return self.constant_power(&c, n).map(Term::Constant),
                (n, Term::Node(node)) => self.power(node, n)?,
            },
            SyntaxKind::Rotate(inner, k) => match (*k, self.encrypted(tree, inner, "rotate")?) {
                (0, node) => node,
                (k, node) => self.push(Operation::Rotate(node, k))?,
            },
            SyntaxKind::Conjugate(inner) => {
                let node = self.encrypted(tree, inner, "conj")?;
                self.push(Operation::Conjugate(node))?
            }
            SyntaxKind::Refresh(inner) => {
                let node = self.encrypted(tree, inner, "refresh")?;
                self.push(Operation::Refresh(node))?
            }
            SyntaxKind::Apply(operands, function) => self.apply(tree, operands, function)?,
            SyntaxKind::Table(operands, table) => {
                let nodes = operands.iter().map(|inner| self.encrypted(tree, inner, "a function of integers"));
                let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
                self.push(Operation::Table(nodes[0], nodes.get(1).copied(), Arc::new(table.clone())))?
            }
        };
        Ok(Term::Node(node))
    }

    /// The operand `inner` of `tree`, which errors are blamed on from here on.
    fn operand(&mut self, tree: &Syntax, inner: &Syntax) -> Result<Term, ExpressionError> {
        let term = self.build(inner)?;
        self.span = tree.span.clone();
        Ok(term)
    }

    /// The operand of a function that takes no constant.
    fn encrypted(&mut self, tree: &Syntax, inner: &Syntax, function: &'static str) -> Result<usize, ExpressionError> {
        match self.operand(tree, inner)? {
            Term::Node(node) => Ok(node),
            Term::Constant(_) => Err(self.error(Problem::Constant(function))),
        }
    }

    /// An approximated function, made once for equal ones.
    fn apply(&mut self, tree: &Syntax, operands: &[Syntax], function: &Function) -> Result<usize, ExpressionError> {
        let name = function.name.name();
        let nodes = operands.iter().map(|inner| self.encrypted(tree, inner, name)).collect::<Result<Vec<_>, _>>()?;
        let known = self.approximations.iter().find(|known| known.function() == function);
        let approximation = match known {
            Some(known) => Arc::clone(known),
            None => {
                let made = function.approximate().map_err(|error| self.error(Problem::Approximation(error)))?;
                self.approximations.push(Arc::new(made));
                Arc::clone(&self.approximations[self.approximations.len() - 1])
            }
        };
        self.push(Operation::Apply(nodes[0], nodes.get(1).copied(), approximation))
    }

    fn input(&mut self, name: &str, span: &Range<usize>) -> Result<Term, ExpressionError> {
        self.span = span.clone();
        let index = self.inputs.iter().position(|known| known == name).unwrap_or_else(|| {
            self.inputs.push(name.to_owned());
            self.inputs.len() - 1
        });
        self.push(Operation::Input(index)).map(Term::Node)
    }

    /// Nodes from left to right, but one with a plus sign first if there is one; the sum of all constants last.
    fn sum(&mut self, terms: Vec<(bool, Term)>) -> Result<Term, ExpressionError> {
        let mut constant = Number::from(0);
        let mut nodes = Vec::new();
        for (minus, term) in terms {
            match term {
                Term::Node(node) => nodes.push((minus, node)),
                Term::Constant(c) => {
                    constant = self.fold(&constant, &if minus { negate(&c) } else { c }, |a, b| a + b, |a, b| a + b)?;
                }
            }
        }
        if nodes.is_empty() {
            return Ok(Term::Constant(constant));
        }
        let first = nodes.iter().position(|(minus, _)| !minus).unwrap_or(0);
        let (minus, mut total) = nodes.remove(first);
        if minus {
            total = self.negative(total)?;
        }
        for (minus, node) in nodes {
            total = self.push(match minus {
                true => Operation::Sub(total, node),
                false => Operation::Add(total.min(node), total.max(node)),
            })?;
        }
        if !constant.is_zero() {
            total = self.push(Operation::AddConst(total, constant))?;
        }
        Ok(Term::Node(total))
    }

    /// Two shallowest first, until one is left; the product of all constants meets the shallowest factor.
    fn product(&mut self, factors: Vec<Term>) -> Result<Term, ExpressionError> {
        let mut constant = Number::from(1);
        let mut nodes = BinaryHeap::new();
        for factor in factors {
            match factor {
                Term::Node(node) => nodes.push(Reverse((self.depths[node], node))),
                Term::Constant(c) => constant = self.fold(&constant, &c, |a, b| a * b, |a, b| a * b)?,
            }
        }
        if constant.is_zero() {
            return Ok(Term::Constant(constant));
        }
        if let Some(Reverse((_, shallowest))) = nodes.pop() {
            let scaled = self.scale(shallowest, constant.clone())?;
            nodes.push(Reverse((self.depths[scaled], scaled)));
        }
        while let Some(Reverse((_, a))) = nodes.pop() {
            let Some(Reverse((_, b))) = nodes.pop() else { return Ok(Term::Node(a)) };
            let product = self.multiply(a, b)?;
            nodes.push(Reverse((self.depths[product], product)));
        }
        Ok(Term::Constant(constant))
    }

    fn multiply(&mut self, a: usize, b: usize) -> Result<usize, ExpressionError> {
        self.push(if a == b { Operation::Square(a) } else { Operation::Mul(a.min(b), a.max(b)) })
    }

    /// `node` times a constant that is not zero.
    fn scale(&mut self, node: usize, constant: Number) -> Result<usize, ExpressionError> {
        match constant.to_f64() {
            Some(1.0) => Ok(node),
            Some(-1.0) => self.negative(node),
            _ => self.push(Operation::MulConst(node, constant)),
        }
    }

    fn negative(&mut self, node: usize) -> Result<usize, ExpressionError> {
        match self.operations[node] {
            Operation::Neg(inner) => Ok(inner),
            _ => self.push(Operation::Neg(node)),
        }
    }

    /// x^n = x^ceil(n/2) x^floor(n/2) for n >= 1: depth ceil(log2 n).
    fn power(&mut self, base: usize, exponent: u32) -> Result<usize, ExpressionError> {
        if exponent == 1 {
            return Ok(base);
        }
        if let Some(&node) = self.powers.get(&(base, exponent)) {
            return Ok(node);
        }
        let high = self.power(base, exponent.div_ceil(2))?;
        let low = self.power(base, exponent / 2)?;
        let node = self.multiply(high, low)?;
        self.powers.insert((base, exponent), node);
        Ok(node)
    }

    fn constant_power(&mut self, base: &Number, exponent: u32) -> Result<Number, ExpressionError> {
        let result = match base {
            Number::Int(value) if value.bits() * u64::from(exponent) > 2 * MAX_CONSTANT_BITS => None,
            Number::Int(value) => Some(Number::Int(value.pow(exponent))),
            Number::Real(value) => Number::real(value.powi(exponent as i32)),
        };
        self.check(result)
    }

    fn fold(
        &self,
        a: &Number,
        b: &Number,
        integers: impl Fn(&BigInt, &BigInt) -> BigInt,
        reals: impl Fn(f64, f64) -> f64,
    ) -> Result<Number, ExpressionError> {
        self.check(match (a, b) {
            (Number::Int(a), Number::Int(b)) => Some(Number::Int(integers(a, b))),
            _ => a.to_f64().zip(b.to_f64()).and_then(|(a, b)| Number::real(reals(a, b))),
        })
    }

    fn check(&self, number: Option<Number>) -> Result<Number, ExpressionError> {
        let fits = |n: &Number| !matches!(n, Number::Int(value) if value.bits() > MAX_CONSTANT_BITS);
        number.filter(fits).ok_or_else(|| self.error(Problem::Overflow))
    }

    /// The node of `operation`: the known one if it was met before.
    fn push(&mut self, operation: Operation<usize>) -> Result<usize, ExpressionError> {
        let key = format!("{operation:?}");
        if let Some(&node) = self.known.get(&key) {
            return Ok(node);
        }
        if self.operations.len() >= MAX_NODES {
            return Err(self.error(Problem::TooLarge { what: "operations", limit: MAX_NODES }));
        }
        let below = operation.operands().map(|node| self.depths[node]).max().unwrap_or(0);
        let levels = match &operation {
            Operation::Mul(..) | Operation::Square(_) | Operation::MulConst(..) => 1,
            Operation::Apply(_, _, f) => f.plan::<Evaluator>().depth as u32,
            Operation::Table(_, _, table) => table.plan::<exact::Evaluator<Bfv>>().map_or(0, |plan| plan.depth as u32),
            _ => 0,
        };
        // A refresh makes good what was used up below it.
        self.depths.push(if matches!(operation, Operation::Refresh(_)) { 0 } else { below + levels });
        self.operations.push(operation);
        self.known.insert(key, self.operations.len() - 1);
        Ok(self.operations.len() - 1)
    }

    fn error(&self, problem: Problem) -> ExpressionError {
        ExpressionError::new(problem, self.span.clone())
    }

    /// The graph of what `output` needs, without the nodes that folding left unused: what a node needs just before it, so
    /// that few values are held at a time.
    fn finish(self, output: usize) -> Graph {
        let order = self.order(output);
        let mut place = vec![0; self.operations.len()];
        order.iter().enumerate().for_each(|(new, &old)| place[old] = new);
        // Names keep the order in which they were met.
        let mut used: Vec<usize> = order.iter().copied().filter(|&node| self.is_input(node)).collect();
        used.sort_unstable();
        let moved = |&node: &usize| match &self.operations[node] {
            Operation::Input(_) => Operation::Input(used.partition_point(|&other| other < node)),
            operation => operation.on(|node| place[node]),
        };
        let name = |&node: &usize| match self.operations[node] {
            Operation::Input(index) => self.inputs[index].clone(),
            _ => String::new(),
        };
        Graph {
            output: place[output],
            depth: self.depths[output],
            operations: order.iter().map(moved).collect(),
            inputs: used.iter().map(name).collect(),
        }
    }

    fn is_input(&self, node: usize) -> bool {
        matches!(self.operations[node], Operation::Input(_))
    }

    /// The nodes that `output` needs, operands before results; of two operands the one that takes more values first.
    fn order(&self, output: usize) -> Vec<usize> {
        let held = self.values_held();
        let (mut order, mut done) = (Vec::new(), vec![false; self.operations.len()]);
        let mut stack = vec![(output, false)];
        while let Some((node, operands_done)) = stack.pop() {
            if done[node] {
                continue;
            }
            if operands_done {
                done[node] = true;
                order.push(node);
                continue;
            }
            stack.push((node, true));
            let mut operands: Vec<usize> = self.operations[node].operands().collect();
            operands.sort_by_key(|&operand| held[operand]);
            stack.extend(operands.into_iter().map(|operand| (operand, false)));
        }
        order
    }

    /// For each node, how many values are held at once while it is computed, inputs not counted.
    fn values_held(&self) -> Vec<usize> {
        let mut held: Vec<usize> = Vec::with_capacity(self.operations.len());
        for operation in &self.operations {
            let kept = |node: usize| usize::from(!self.is_input(node));
            let mut operands: Vec<usize> = operation.operands().collect();
            operands.sort_by_key(|&operand| Reverse(held[operand]));
            held.push(match operands[..] {
                [] => 0,
                [one] => held[one].max(kept(one) + 1),
                [first, second, ..] => held[first].max(kept(first) + held[second]).max(kept(first) + kept(second) + 1),
            });
        }
        held
    }
}

fn negate(number: &Number) -> Number {
    match number {
        Number::Int(value) => Number::Int(-value),
        Number::Real(value) => Number::Real(-value),
    }
}

#[cfg(test)]
mod tests;
