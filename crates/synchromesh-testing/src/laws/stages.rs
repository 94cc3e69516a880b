//! Every fused stage, on operands in each state that a key switch leaves them in.

use synchromesh_ring::backend::{DigitLimb, GadgetDigits, SlotSum, Stage, TensorMode};
use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::{Backend, View, ViewMut, repeated};

use super::Transcript;

const DIGITS: usize = 3;

/// The stages by their names. One that is missing here does not compile; one that is here and that [`transcript`] lacks
/// fails every law of stages.
macro_rules! stages {
    ($($stage:ident: $name:literal,)*) => {
        const NAMES: &[&str] = &[$($name),*];

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
    RepeatedProduct: "products with slots that repeat",
    NttInverseInto: "the inverse transform elsewhere",
    Tensor: "the tensor product",
}

/// Operands of a backend, and what its stages returned.
struct Bench<'a, B: Backend> {
    backend: &'a B,
    primes: Vec<usize>,
    drawn: u32,
    results: Transcript,
}

/// What each stage returns.
pub(super) fn transcript<B: Backend>(backend: &B) -> Transcript {
    let primes = (0..backend.ring().moduli().len()).collect();
    let mut bench = Bench { backend, primes, drawn: 0, results: Vec::new() };
    bench.gadgets();
    bench.sums();
    bench.repeated();
    bench.tensors();
    let lacks = |name: &&&str| bench.results.iter().all(|(run, _)| *run != **name);
    assert_eq!(NAMES.iter().find(lacks), None, "a stage that the transcript lacks");
    bench.results
}

impl<B: Backend> Bench<'_, B> {
    /// `count` uniform polynomials, one after another.
    fn random(&mut self, count: usize) -> B::Buffer {
        let limbs = self.primes.len();
        let mut buffer = self.backend.alloc(count * limbs).expect("memory");
        for j in 0..count {
            let rows: Vec<usize> = (j * limbs..(j + 1) * limbs).collect();
            let view = ViewMut::new(&mut buffer, &rows);
            let seed = Seed::from_bytes([9; 32]);
            let done = self.backend.uniform(&self.primes, &seed, Purpose::PublicRandomness, self.drawn, view);
            done.expect("uniform residues");
            self.drawn += 1;
        }
        buffer
    }

    /// Carries out a stage and returns its name.
    fn run(&self, stage: Stage<'_, B>) -> &'static str {
        let name = name(&stage);
        self.backend.stage(&self.primes, stage).expect(name);
        name
    }

    /// The first `count` polynomials of each buffer, as what the stage `name` returned.
    fn note(&mut self, name: &'static str, count: usize, buffers: &[B::Buffer]) {
        let words = count * self.primes.len() * self.backend.ring().n();
        let mut all = vec![0; buffers.len() * words];
        for (buffer, words) in buffers.iter().zip(all.chunks_exact_mut(words)) {
            self.backend.download(buffer, 0, words).expect("download");
        }
        self.results.push((name, all));
    }

    /// Stages that begin with digits, of which some limbs are still coefficients, some slots, some slots of the input.
    fn gadgets(&mut self) {
        let limbs = self.primes.len();
        let state = |j: usize, r: usize| match (r + j) % 3 {
            0 => DigitLimb::Coefficients,
            1 => DigitLimb::Slots,
            _ => DigitLimb::Input(r),
        };
        let states: Vec<Vec<_>> = (0..DIGITS).map(|j| (0..limbs).map(|r| state(j, r)).collect()).collect();
        let (input, k0, k1) = (self.random(1), self.random(DIGITS), self.random(DIGITS));
        let rows = self.primes.clone();
        let keys = [&k0, &k1].map(|buffer| View { buffer, batch: DIGITS, batch_stride: limbs, rows: &rows });
        for choice in 0..7 {
            let (mut digits, addend) = (self.random(DIGITS), self.random(1));
            let [mut pair, mut turned] = [0, 1].map(|_| [self.random(2), self.random(2)]);
            let view = ViewMut { buffer: &mut digits, batch: DIGITS, batch_stride: limbs, rows: &rows };
            let gadget = GadgetDigits { digits: view, limbs: &states, input: Some(&input) };
            let name = match choice {
                0 => self.run(Stage::TransformDigits(gadget)),
                1 | 2 => {
                    let out = ViewMut { buffer: &mut pair[0], batch: 2, batch_stride: limbs, rows: &rows };
                    self.run(Stage::GadgetProduct { gadget, keys, out, accumulate: choice == 2 })
                }
                3 => {
                    let out = ViewMut { buffer: &mut pair[0], batch: 2, batch_stride: limbs, rows: &rows };
                    self.run(Stage::GadgetProductCoeff { gadget, keys, out })
                }
                4 => {
                    let x = pair.each_mut().map(|buffer| ViewMut::new(buffer, &rows));
                    self.run(Stage::GadgetProductOnto { gadget, keys, x })
                }
                _ => {
                    let g = if choice == 5 { 1 } else { 5 };
                    let sums = slot_sums(&mut pair, &mut turned, View::new(&addend, &rows), g);
                    self.run(Stage::GadgetSums { gadget, keys, sums, g })
                }
            };
            match choice {
                0 => self.note(name, DIGITS, &[digits]),
                1..4 => self.note(name, 2, &pair[..1]),
                4 | 5 => self.note(name, 1, &pair),
                _ => self.note(name, 1, &turned),
            }
        }
    }

    /// Sums of slots in place and turned, sums of rows with a constant and without, turned and not, coefficients put
    /// elsewhere.
    fn sums(&mut self) {
        let rows = self.primes.clone();
        let (slots, other) = (self.random(1), self.random(1));
        let addend = View::new(&slots, &rows);
        for g in [1, 5] {
            let [mut x, mut turned] = [0, 1].map(|_| [self.random(1), self.random(1)]);
            let name = self.run(Stage::SlotSums { sums: slot_sums(&mut x, &mut turned, addend, g), g });
            self.note(name, 1, if g == 1 { &x } else { &turned });
        }
        let constant: Vec<u64> = self.backend.ring().moduli().iter().map(|modulus| modulus.value() - 2).collect();
        for (scalars, g) in [(None, 1), (Some(&constant[..]), 1), (Some(&constant[..]), 5), (None, 5)] {
            let mut out = self.random(1);
            let xs = vec![addend, View::new(&other, &rows), addend];
            let name = self.run(Stage::SumInto { xs, scalars, g, out: ViewMut::new(&mut out, &rows) });
            self.note(name, 1, &[out]);
        }
        let mut out = self.random(1);
        let name = self.run(Stage::NttInverseInto { src: addend, dst: ViewMut::new(&mut out, &rows) });
        self.note(name, 1, &[out]);
    }

    /// Products with factors of which an eighth of the slots are there, stored and added.
    fn repeated(&mut self) {
        let (n, limbs, rows) = (self.backend.ring().n(), self.primes.len(), self.primes.clone());
        let each = repeated::words(n);
        let mut words = Vec::new();
        for j in 0..DIGITS {
            for modulus in self.backend.ring().moduli() {
                let q = modulus.value();
                let residue = |k: u64| (k + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ j as u64) % q;
                words.extend((0..each as u64).map(residue));
            }
        }
        words.resize(words.len().next_multiple_of(n), 0);
        let mut factors = self.backend.alloc(words.len() / n).expect("memory");
        self.backend.upload(&words, &mut factors, 0).expect("upload");
        let (a, b) = (self.random(DIGITS), self.random(DIGITS));
        let columns = [&a, &b].map(|buffer| View { buffer, batch: DIGITS, batch_stride: limbs, rows: &rows });
        let mut pair = self.random(2);
        for accumulate in [false, true] {
            let out = ViewMut { buffer: &mut pair, batch: 2, batch_stride: limbs, rows: &rows };
            let name = self.run(Stage::RepeatedProduct { factors: &factors, columns, out, accumulate });
            self.note(name, 2, std::slice::from_ref(&pair));
        }
    }

    /// Two tensor products added, of operands in either domain, with components that leave in either domain.
    fn tensors(&mut self) {
        let rows = self.primes.clone();
        let operands = [0, 1, 2, 3].map(|_| self.random(1));
        let [a0, a1, b0, b1] = operands.each_ref().map(|buffer| View::new(buffer, &rows));
        let finishes = [[false; 3], [false, false, true], [true, false, false], [true; 3]];
        for (slots, finish) in [false, true].into_iter().flat_map(|slots| finishes.map(|finish| (slots, finish))) {
            let mut out = [0, 1, 2].map(|_| self.random(1));
            let mut name = "";
            for last in [false, true] {
                let views = out.each_mut().map(|buffer| ViewMut::new(buffer, &rows));
                let mode = TensorMode { slots, accumulate: last, finish: finish.map(|finish| last && finish) };
                name = self.run(Stage::Tensor { a: [a0, a1], b: [b0, b1], out: views, mode });
            }
            self.note(name, 1, &out);
        }
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
