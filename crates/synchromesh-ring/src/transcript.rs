//! What every operation of a backend returns on fixed operands: for whoever compares two of them bit for bit.
//!
//! Operands are uniform residues from a seed, as the backend itself expands it, and depend on the values of primes alone: a
//! backend for other primes besides returns the same.

use crate::backend::{
    Addend, Backend, BackendError, ConvertMode, Converted, DigitLimb, Factors, GadgetDigits, ProductSum, RadixDigit,
    SignedWidth, SlotSum, Stage, TensorMode, View, ViewMut,
};
use crate::error::Error;
use crate::repeated;
use crate::ring::IndexSet;
use crate::rns::{ConvertSpec, Overflow};
use crate::sampler::{Purpose, Seed};

/// Digits of a gadget product.
const DIGITS: usize = 3;

/// Integers of every width.
const WIDTHS: [(&str, SignedWidth); 4] = [
    ("residues of integers of a byte", SignedWidth::One),
    ("residues of integers of two bytes", SignedWidth::Two),
    ("residues of integers of four bytes", SignedWidth::Four),
    ("residues of integers", SignedWidth::Eight),
];

/// Results by the names of operations.
pub type Transcript = Vec<(&'static str, Vec<u64>)>;

/// The stages by their names. One that is missing here does not compile.
macro_rules! stages {
    ($($stage:ident: $name:literal,)*) => {
        /// The names of all stages: each is in a transcript.
        pub const STAGES: &[&str] = &[$($name),*];

        const fn name<B: Backend>(stage: &Stage<'_, B>) -> &'static str {
            match stage {
                $(Stage::$stage { .. } => $name,)*
            }
        }
    };
}

stages! {
    TransformDigits: "digits transformed",
    GadgetProduct: "the gadget product",
    GadgetProductCoeff: "the gadget product in coefficients",
    GadgetProductOnto: "the gadget product on top of slots",
    GadgetSums: "sums with a gadget product",
    SlotSums: "sums of slots",
    SumInto: "the sum of several",
    RotatedProduct: "a product, rotated",
    Conversions: "several base conversions",
    ProductSums: "sums of products that share columns",
    NttInverseInto: "the inverse transform elsewhere",
    Tensor: "the tensor product",
}

/// What primitives and stages return modulo some primes of the backend's ring; base conversions take two.
///
/// # Errors
/// When the device fails.
pub fn everything<B: Backend>(backend: &B, primes: &IndexSet) -> Result<Transcript, Error> {
    let mut results = primitives(backend, primes)?;
    results.extend(stages(backend, primes)?);
    Ok(results)
}

/// What each primitive returns.
///
/// # Errors
/// When the device fails.
pub fn primitives<B: Backend>(backend: &B, primes: &IndexSet) -> Result<Transcript, Error> {
    let mut bench = Bench::new(backend, primes);
    bench.sampled()?;
    bench.linear()?;
    bench.moved()?;
    bench.converted()?;
    bench.products()?;
    Ok(bench.results)
}

/// What each stage returns, in all forms that its operands may have.
///
/// # Errors
/// When the device fails.
pub fn stages<B: Backend>(backend: &B, primes: &IndexSet) -> Result<Transcript, Error> {
    let mut bench = Bench::new(backend, primes);
    bench.gadgets()?;
    bench.sums()?;
    bench.tensors()?;
    bench.product_sums()?;
    bench.conversions()?;
    Ok(bench.results)
}

/// Operands of a backend, and what its operations returned.
struct Bench<'a, B: Backend> {
    backend: &'a B,
    primes: Vec<usize>,
    /// A row for each prime.
    rows: Vec<usize>,
    drawn: u32,
    results: Transcript,
}

type Done = Result<(), BackendError>;

impl<'a, B: Backend> Bench<'a, B> {
    fn new(backend: &'a B, primes: &IndexSet) -> Self {
        let (rows, primes) = ((0..primes.len()).collect(), primes.as_slice().to_vec());
        Self { backend, primes, rows, drawn: 0, results: Vec::new() }
    }

    /// `count` uniform polynomials, one after another.
    fn random(&mut self, count: usize) -> Result<B::Buffer, BackendError> {
        let limbs = self.primes.len();
        let mut buffer = self.backend.alloc(count * limbs)?;
        for j in 0..count {
            let rows: Vec<usize> = (j * limbs..(j + 1) * limbs).collect();
            let view = ViewMut::new(&mut buffer, &rows);
            let seed = Seed::from_bytes([9; 32]);
            self.backend.uniform(&self.primes, &seed, Purpose::PublicRandomness, self.drawn, view)?;
            self.drawn += 1;
        }
        Ok(buffer)
    }

    /// Carries out a stage and returns its name.
    fn run(&self, stage: Stage<'_, B>) -> Result<&'static str, BackendError> {
        let name = name(&stage);
        self.backend.stage(&self.primes, stage)?;
        Ok(name)
    }

    /// The first `count` polynomials of each buffer, as what the operation `name` returned.
    fn note(&mut self, name: &'static str, count: usize, buffers: &[B::Buffer]) -> Done {
        let words = count * self.primes.len() * self.backend.ring().n();
        let mut all = vec![0; buffers.len() * words];
        for (buffer, words) in buffers.iter().zip(all.chunks_exact_mut(words)) {
            self.backend.download(buffer, 0, words)?;
        }
        self.results.push((name, all));
        Ok(())
    }

    /// Runs `run` on a new polynomial and two others, and notes what becomes of the new one.
    fn unary(
        &mut self,
        name: &'static str,
        run: impl FnOnce(&B, &[usize], ViewMut<'_, B>, [View<'_, B>; 2]) -> Done,
    ) -> Done {
        let (mut out, x, y) = (self.random(1)?, self.random(1)?, self.random(1)?);
        let operands = [View::new(&x, &self.rows), View::new(&y, &self.rows)];
        run(self.backend, &self.primes, ViewMut::new(&mut out, &self.rows), operands)?;
        self.note(name, 1, &[out])
    }

    fn sampled(&mut self) -> Done {
        let n = self.backend.ring().n() as i64;
        let values: Vec<i64> = (0..n).map(|i| (i - n / 2) * 0x1234_5678_9abc).collect();
        self.unary("uniform residues", |_, _, _, _| Ok(()))?;
        for (name, width) in WIDTHS {
            // The upper bits of a word, as a word of so many bytes.
            let values: Vec<i64> = values.iter().map(|x| x.wrapping_mul(0x9e37) >> (64 - 8 * width.bytes())).collect();
            self.unary(name, |b, primes, out, _| b.reduce_signed(primes, &values, width, out))?;
        }
        Ok(())
    }

    /// Operations residue by residue, and transforms.
    fn linear(&mut self) -> Done {
        let moduli = self.backend.ring().moduli();
        let scalars: Vec<u64> = self.primes.iter().map(|&prime| moduli[prime].value() - 2).collect();
        self.unary("a copy", |b, _, out, [x, _]| b.copy(x, out))?;
        self.unary("the transform", |b, primes, out, _| b.ntt_forward(primes, out))?;
        self.unary("the inverse transform", |b, primes, out, _| b.ntt_inverse(primes, out))?;
        self.unary("a sum", |b, primes, out, [x, _]| b.add_assign(primes, out, x))?;
        self.unary("a difference", |b, primes, out, [x, _]| b.sub_assign(primes, out, x))?;
        self.unary("the opposite", |b, primes, out, _| b.neg_assign(primes, out))?;
        self.unary("a product", |b, primes, out, [x, y]| b.mul_into(primes, x, y, out))?;
        self.unary("a product added", |b, primes, out, [x, y]| b.mul_acc(primes, x, y, out))?;
        self.unary("a multiple", |b, primes, out, _| b.mul_scalar_assign(primes, out, &scalars))?;
        self.unary("a multiple added", |b, primes, out, [x, _]| b.mul_scalar_acc(primes, x, &scalars, out))
    }

    /// Automorphisms, in coefficients and in slots.
    fn moved(&mut self) -> Done {
        let n = self.backend.ring().n();
        for g in [3, 5, n + 1, 2 * n - 1] {
            self.unary("an automorphism", |b, primes, out, [x, _]| b.automorphism_coeff(primes, g, x, out))?;
            self.unary("an automorphism of slots", |b, _, out, [x, _]| b.automorphism_ntt(g, x, out))?;
        }
        Ok(())
    }

    /// Base conversions by each rule from the first half of the primes to the others, from all to the last one and from one or
    /// two to the next, and radix digits.
    fn converted(&mut self) -> Result<(), Error> {
        let limbs = self.primes.len();
        if limbs < 2 {
            return Ok(());
        }
        for (sources, targets) in [(limbs / 2, limbs - limbs / 2), (limbs - 1, 1), (2.min(limbs - 1), 1)] {
            self.converted_from(sources, targets)?;
        }
        let prime = self.primes[0];
        for digit in [RadixDigit { bits: 9, index: 0 }, RadixDigit { bits: 9, index: 1 }] {
            self.unary("a radix digit", |b, primes, out, [x, _]| {
                b.radix_digit(primes, prime, digit, View { rows: &x.rows[..1], ..x }, out)
            })?;
        }
        Ok(())
    }

    /// Base conversions by each rule from so many primes to as many behind them.
    fn converted_from(&mut self, sources: usize, targets: usize) -> Result<(), Error> {
        let (src, dst) = self.primes[..sources + targets].split_at(sources);
        let [src, dst] = [src, dst].map(|primes| primes.iter().copied().collect::<IndexSet>());
        let (from, to) = (self.rows[..sources].to_vec(), self.rows[sources..sources + targets].to_vec());
        let [ones, twos] = [vec![1; src.len()], vec![2; dst.len()]];
        for rule in [Overflow::Fast, Overflow::Floor, Overflow::HpsFloor, Overflow::Round, Overflow::HpsRound] {
            let spec = ConvertSpec::new(self.backend.ring(), &src, &dst, &ones, &twos, rule)?;
            let conversion = self.backend.conversion(&src, &dst, &spec)?;
            for mode in [ConvertMode::Replace, ConvertMode::Add] {
                self.unary("a base conversion", |b, _, out, [x, _]| {
                    let x = View { rows: &from, ..x };
                    b.convert(&conversion, x, ViewMut { rows: &to, ..out }, mode)
                })?;
            }
        }
        Ok(())
    }

    /// Inner products with both columns of a key.
    fn products(&mut self) -> Done {
        let limbs = self.primes.len();
        let (digits, k0, k1) = (self.random(DIGITS)?, self.random(DIGITS)?, self.random(DIGITS)?);
        for accumulate in [false, true] {
            let mut out = self.random(2)?;
            let view = |buffer| View { buffer, batch: DIGITS, batch_stride: limbs, rows: &self.rows };
            let to = ViewMut { buffer: &mut out, batch: 2, batch_stride: limbs, rows: &self.rows };
            let keys = [view(&k0), view(&k1)];
            self.backend.inner_product(&self.primes, view(&digits), keys, to, accumulate)?;
            self.note("an inner product", 2, &[out])?;
        }
        Ok(())
    }

    /// Stages that begin with digits, of which some limbs are still coefficients, some slots, some slots of the input.
    fn gadgets(&mut self) -> Done {
        let limbs = self.primes.len();
        let state = |j: usize, r: usize| match (r + j) % 3 {
            0 => DigitLimb::Coefficients,
            1 => DigitLimb::Slots,
            _ => DigitLimb::Input(r),
        };
        let states: Vec<Vec<_>> = (0..DIGITS).map(|j| (0..limbs).map(|r| state(j, r)).collect()).collect();
        let (input, k0, k1) = (self.random(1)?, self.random(DIGITS)?, self.random(DIGITS)?);
        let rows = self.rows.clone();
        let keys = [&k0, &k1].map(|buffer| View { buffer, batch: DIGITS, batch_stride: limbs, rows: &rows });
        let some: Vec<usize> = (0..limbs).rev().step_by(2).collect();
        let scalars: Vec<u64> = some.iter().map(|&r| 3 + r as u64).collect();
        for choice in 0..9 {
            let (mut digits, addend) = (self.random(DIGITS)?, self.random(1)?);
            let (mut pair, mut turned) = ([self.random(2)?, self.random(2)?], [self.random(2)?, self.random(2)?]);
            let view = ViewMut { buffer: &mut digits, batch: DIGITS, batch_stride: limbs, rows: &rows };
            let gadget = GadgetDigits { digits: view, limbs: &states, input: Some(&input) };
            let name = match choice {
                0 => self.run(Stage::TransformDigits(gadget))?,
                1 | 2 => {
                    let out = ViewMut { buffer: &mut pair[0], batch: 2, batch_stride: limbs, rows: &rows };
                    self.run(Stage::GadgetProduct { gadget, keys, out, accumulate: choice == 2 })?
                }
                3 => {
                    let out = ViewMut { buffer: &mut pair[0], batch: 2, batch_stride: limbs, rows: &rows };
                    self.run(Stage::GadgetProductCoeff { gadget, keys, out })?
                }
                4 => {
                    let x = pair.each_mut().map(|buffer| ViewMut::new(buffer, &rows));
                    self.run(Stage::GadgetProductOnto { gadget, keys, x })?
                }
                7 | 8 => {
                    let (scalars, x) = ((choice == 8).then_some(scalars.as_slice()), View::new(&addend, &some));
                    let addend = Addend { x, limbs: &some, scalars };
                    let out = ViewMut { buffer: &mut pair[0], batch: 2, batch_stride: limbs, rows: &rows };
                    self.run(Stage::RotatedProduct { gadget, keys, addend, g: 5, out })?
                }
                _ => {
                    let g = if choice == 5 { 1 } else { 5 };
                    let sums = slot_sums(&mut pair, &mut turned, View::new(&addend, &rows), g);
                    self.run(Stage::GadgetSums { gadget, keys, sums, g })?
                }
            };
            match choice {
                0 => self.note(name, DIGITS, &[digits])?,
                1..4 => self.note(name, 2, &pair[..1])?,
                4 | 5 => self.note(name, 1, &pair)?,
                _ => self.note(name, 1, &turned)?,
            }
        }
        Ok(())
    }

    /// Sums of slots in place and turned, sums of rows with a constant and without, turned and not, coefficients put
    /// elsewhere.
    fn sums(&mut self) -> Done {
        let rows = self.rows.clone();
        let (slots, other) = (self.random(1)?, self.random(1)?);
        let addend = View::new(&slots, &rows);
        for g in [1, 5] {
            let (mut x, mut turned) = ([self.random(1)?, self.random(1)?], [self.random(1)?, self.random(1)?]);
            let name = self.run(Stage::SlotSums { sums: slot_sums(&mut x, &mut turned, addend, g), g })?;
            self.note(name, 1, if g == 1 { &x } else { &turned })?;
        }
        let moduli = self.backend.ring().moduli();
        let constant: Vec<u64> = self.primes.iter().map(|&prime| moduli[prime].value() - 2).collect();
        let by = Some(&constant[..]);
        for (terms, scalars, g) in [(2, None, 1), (3, None, 1), (3, by, 1), (3, by, 5), (3, None, 5)] {
            let mut out = self.random(1)?;
            let mut xs = vec![addend, View::new(&other, &rows), addend];
            xs.truncate(terms);
            let name = self.run(Stage::SumInto { xs, scalars, g, out: ViewMut::new(&mut out, &rows) })?;
            self.note(name, 1, &[out])?;
        }
        let mut out = self.random(1)?;
        let name = self.run(Stage::NttInverseInto { src: addend, dst: ViewMut::new(&mut out, &rows) })?;
        self.note(name, 1, &[out])
    }

    /// Sums of products of the same columns with factors of which all, or an eighth, of the slots are there: stored and added.
    fn product_sums(&mut self) -> Done {
        let (n, limbs, rows) = (self.backend.ring().n(), self.primes.len(), self.rows.clone());
        let (each, mut words) = (repeated::words(n), Vec::new());
        for j in 0..DIGITS {
            for &prime in &self.primes {
                let q = self.backend.ring().modulus(prime).value();
                let residue = |k: u64| (k + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ j as u64) % q;
                words.extend((0..each as u64).map(residue));
            }
        }
        words.resize(words.len().next_multiple_of(n), 0);
        let mut packed = self.backend.alloc(words.len() / n)?;
        self.backend.upload(&words, &mut packed, 0)?;
        let (a, b, whole) = (self.random(DIGITS)?, self.random(DIGITS)?, self.random(DIGITS)?);
        let mut outs = [self.random(2)?, self.random(2)?, self.random(2)?];
        let columns = [&a, &b].map(|buffer| View { buffer, batch: DIGITS, batch_stride: limbs, rows: &rows });
        let whole = View { buffer: &whole, batch: DIGITS, batch_stride: limbs, rows: &rows };
        for accumulate in [false, true] {
            let sums = outs.iter_mut().enumerate().map(|(i, buffer)| {
                let factors = if i == 1 { Factors::Repeated(&packed) } else { Factors::Whole(whole) };
                let columns = if i == 2 { [whole, columns[0]] } else { columns };
                let out = ViewMut { buffer, batch: 2, batch_stride: limbs, rows: &rows };
                ProductSum { factors, columns, out, accumulate: accumulate && i < 2 }
            });
            let sums = sums.collect();
            let name = self.run(Stage::ProductSums { sums })?;
            self.note(name, 2, &outs)?;
        }
        Ok(())
    }

    /// Base conversions of several numbers of primes at once, of both elements of a batch: stored and added.
    fn conversions(&mut self) -> Result<(), Error> {
        let (limbs, rule) = (self.primes.len(), Overflow::Round);
        if limbs < 2 {
            return Ok(());
        }
        let mut prepared = Vec::new();
        // From the first prime, and from all but one, to the others.
        for count in [1, limbs - 1] {
            let (src, dst) = self.primes.split_at(count);
            let [src, dst] = [src, dst].map(|primes| primes.iter().copied().collect::<IndexSet>());
            let spec = ConvertSpec::new(self.backend.ring(), &src, &dst, &vec![2; count], &vec![3; dst.len()], rule)?;
            prepared.push((self.backend.conversion(&src, &dst, &spec)?, count));
        }
        let x = self.random(2)?;
        for mode in [ConvertMode::Replace, ConvertMode::Add] {
            let mut out = self.random(2 * prepared.len())?;
            let rows: Vec<usize> = (0..prepared.len() * limbs).collect();
            let each = prepared.iter().zip(rows.chunks(limbs));
            let each = each.map(|((conversion, count), to)| Converted {
                conversion,
                from: &self.rows[..*count],
                to: &to[*count..],
            });
            let (src, to) = (View { buffer: &x, batch: 2, batch_stride: limbs, rows: &[] }, prepared.len() * limbs);
            let dst = ViewMut { buffer: &mut out, batch: 2, batch_stride: to, rows: &[] };
            let name = self.run(Stage::Conversions { each: each.collect(), src, dst, mode })?;
            self.note(name, 2 * prepared.len(), &[out])?;
        }
        Ok(())
    }

    /// Two tensor products added, of operands in either domain, with components that leave in either domain.
    fn tensors(&mut self) -> Done {
        let rows = self.rows.clone();
        let operands = [self.random(1)?, self.random(1)?, self.random(1)?, self.random(1)?];
        let [a0, a1, b0, b1] = operands.each_ref().map(|buffer| View::new(buffer, &rows));
        let finishes = [[false; 3], [false, false, true], [true, false, false], [true; 3]];
        for (slots, finish) in [false, true].into_iter().flat_map(|slots| finishes.map(|finish| (slots, finish))) {
            let mut out = [self.random(1)?, self.random(1)?, self.random(1)?];
            let mut name = "";
            for last in [false, true] {
                let views = out.each_mut().map(|buffer| ViewMut::new(buffer, &rows));
                let mode = TensorMode { slots, accumulate: last, finish: finish.map(|finish| last && finish) };
                name = self.run(Stage::Tensor { a: [a0, a1], b: [b0, b1], out: views, mode })?;
            }
            self.note(name, 1, &out)?;
        }
        Ok(())
    }
}

/// Two sums, the first with two addends, in place or turned.
fn slot_sums<'a, B: Backend>(
    x: &'a mut [B::Buffer; 2],
    out: &'a mut [B::Buffer; 2],
    addend: View<'a, B>,
    g: usize,
) -> Vec<SlotSum<'a, B>> {
    let pairs = x.iter_mut().zip(out).enumerate();
    let sum = |(part, (x, out))| SlotSum {
        x: ViewMut::new(x, addend.rows),
        ys: if part == 0 { vec![addend; 2] } else { Vec::new() },
        out: (g != 1).then(|| ViewMut::new(out, addend.rows)),
    };
    pairs.map(sum).collect()
}
