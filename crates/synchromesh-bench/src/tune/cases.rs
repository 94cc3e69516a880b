//! The shapes in which each operation is measured, with operands as a key switch lays them out.

use synchromesh_ring::backend::{DigitLimb, GadgetDigits, RadixDigit, SignedWidth, SlotSum, Stage, TensorMode};
use synchromesh_ring::kernels::NARROW_BITS;
use synchromesh_ring::ledger::{Operation, Work};
use synchromesh_ring::rns::{ConvertSpec, Overflow};
use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::{Backend, BackendError, ConvertMode, IndexSet, View, ViewMut};

use synchromesh::cost::TABLE_BYTES;

use crate::Error;

/// Buffers of a case.
pub(super) const ROLES: usize = 9;

/// Most primes of a call.
const MOST_PRIMES: usize = 12;

type Run<B> = Box<dyn Fn(&B, &mut [<B as Backend>::Buffer], usize) -> Result<(), BackendError>>;

/// One call of an operation: how much it does, how many rows of each buffer it takes, and how to run it on the
/// rows that belong to a set.
pub(super) struct Case<B: Backend> {
    pub(super) operation: Operation,
    pub(super) work: Work,
    pub(super) primes: usize,
    pub(super) rows: [usize; ROLES],
    pub(super) run: Run<B>,
}

impl<B: Backend> Case<B> {
    /// Bytes of the operands of one call.
    pub(super) fn bytes(&self, n: usize) -> usize {
        self.rows.iter().sum::<usize>() * n * 8
    }

    /// Bytes of the twiddle factors it reads.
    pub(super) const fn tables(&self, n: usize) -> usize {
        TABLE_BYTES * n * self.primes
    }

    /// How many calls' operands take about `bytes` together.
    pub(super) fn sets(&self, n: usize, bytes: usize) -> usize {
        (bytes.saturating_sub(self.tables(n)) / self.bytes(n)).max(1)
    }
}

/// A buffer of written rows: memory that was never written is one page of zeros, however much there is.
pub(super) fn filled<B: Backend>(backend: &B, rows: usize) -> Result<B::Buffer, Error> {
    let mut buffer = backend.alloc(rows)?;
    let values: Vec<i64> = (0..backend.ring().n() as i64).map(|i| i & 0xffff).collect();
    let all: Vec<usize> = (0..rows).collect();
    backend.reduce_signed(&vec![0; rows], &values, SignedWidth::Four, ViewMut::new(&mut buffer, &all))?;
    Ok(buffer)
}

const fn work(primes: usize, rows: usize, terms: usize, extra: usize) -> Work {
    Work { primes: primes as u64, rows: rows as u64, terms: terms as u64, extra: extra as u64 }
}

/// `count` rows from the `set`-th on.
fn span(set: usize, count: usize) -> Vec<usize> {
    (set * count..(set + 1) * count).collect()
}

/// All cases, with as many primes as `bytes` of operands allow.
pub(super) fn cases<B: Backend>(backend: &B, bytes: usize) -> Result<Vec<Case<B>>, Error> {
    let ring = backend.ring();
    let n = ring.n();
    // Primes of a call that takes so many rows for each.
    let primes = |rows: usize| (bytes / ((8 * rows + TABLE_BYTES) * n)).clamp(1, MOST_PRIMES.min(ring.moduli().len()));
    let mut all = Vec::new();
    // Operations that only move rows do not depend on the primes.
    if ring.modulus(0).bits() <= NARROW_BITS {
        all.extend(moves(primes(2)));
    }
    all.extend(element_wise(primes(3)));
    all.extend([1, 2].into_iter().flat_map(|batch| transforms(primes(2 * batch), batch)));
    let fits = |s: usize, d: usize| (s + d) * 8 * n <= bytes || s + d <= 6;
    for (sources, destinations) in [(1, 3), (2, 6), (6, 2), (3, 16), (8, 16)] {
        if sources + destinations <= ring.moduli().len() && fits(sources, destinations) {
            for mode in [ConvertMode::Replace, ConvertMode::Add] {
                for prescaled in [false, true] {
                    all.push(conversion(backend, sources, destinations, mode, prescaled)?);
                }
            }
        }
    }
    all.extend([1, 2, 5].map(|digits| inner_product(primes(3 * digits + 2), digits)));
    for (digits, pending) in [(1, 1), (2, 1), (2, 2), (5, 5), (5, 4)] {
        all.push(gadget_product(primes(3 * digits + 2), digits, pending));
    }
    for (digits, pending) in [(1, 1), (2, 1), (5, 5)] {
        all.push(gadget_product_coeff(primes(3 * digits + 2), digits, pending));
    }
    for (digits, addends, rotated) in [(1, 1, false), (2, 0, true), (2, 1, true), (5, 1, true)] {
        all.push(gadget_sums(primes(3 * digits + 6), digits, addends, rotated));
    }
    all.extend([false, true].map(|finish| tensor(primes(7), finish)));
    all.extend([(2, false), (3, true), (6, true)].map(|(terms, scaled)| sum(primes(terms + 1), terms, scaled)));
    for (addends, rotated) in [(1, false), (2, false), (1, true), (2, true)] {
        all.push(slot_sums(primes(6), addends, rotated));
    }
    Ok(all)
}

fn case<B: Backend>(
    operation: Operation,
    work: Work,
    primes: usize,
    rows: [usize; ROLES],
    run: impl Fn(&B, &mut [B::Buffer], usize) -> Result<(), BackendError> + 'static,
) -> Case<B> {
    Case { operation, work, primes, rows, run: Box::new(run) }
}

fn moves<B: Backend>(m: usize) -> Vec<Case<B>> {
    let rows = [m, m, 0, 0, 0, 0, 0, 0, 0];
    let run = move |permute: bool| {
        move |backend: &B, buffers: &mut [B::Buffer], set: usize| {
            let [from, to, ..] = buffers else { return Ok(()) };
            let at = span(set, m);
            let (src, dst) = (View::new(from, &at), ViewMut::new(to, &at));
            if permute { backend.automorphism_ntt(3, src, dst) } else { backend.copy(src, dst) }
        }
    };
    let work = work(0, m, 0, 0);
    vec![case(Operation::Copy, work, m, rows, run(false)), case(Operation::PermuteSlots, work, m, rows, run(true))]
}

fn element_wise<B: Backend>(m: usize) -> Vec<Case<B>> {
    let operations = [
        Operation::ReduceSigned,
        Operation::Uniform,
        Operation::Add,
        Operation::Mul,
        Operation::MulAcc,
        Operation::MulScalar,
        Operation::MulScalarAcc,
        Operation::PermuteCoeff,
        Operation::RadixDigit,
    ];
    let make = |operation| {
        let run = move |backend: &B, buffers: &mut [B::Buffer], set: usize| {
            let [a, b, out, ..] = buffers else { return Ok(()) };
            let (at, primes) = (span(set, m), (0..m).collect::<Vec<_>>());
            let scalars: Vec<u64> = vec![12_345; m];
            let (a, b, out) = (View::new(a, &at), View::new(b, &at), ViewMut::new(out, &at));
            match operation {
                Operation::ReduceSigned => {
                    let values: Vec<i64> = vec![-7; backend.ring().n()];
                    backend.reduce_signed(&primes, &values, SignedWidth::One, out)
                }
                Operation::Uniform => {
                    let seed = Seed::from_bytes([1; 32]);
                    backend.uniform(&primes, &seed, Purpose::PublicRandomness, 0, out)
                }
                Operation::Add => backend.add_assign(&primes, out, a),
                Operation::Mul => backend.mul_into(&primes, a, b, out),
                Operation::MulAcc => backend.mul_acc(&primes, a, b, out),
                Operation::MulScalar => backend.mul_scalar_assign(&primes, out, &scalars),
                Operation::MulScalarAcc => backend.mul_scalar_acc(&primes, a, &scalars, out),
                Operation::RadixDigit => {
                    let digit = RadixDigit { bits: 20, index: 0 };
                    backend.radix_digit(&primes, 0, digit, View::new(a.buffer, &at[..1]), out)
                }
                _ => backend.automorphism_coeff(&primes, 3, a, out),
            }
        };
        let inputs = match operation {
            Operation::ReduceSigned | Operation::Uniform | Operation::MulScalar => [0, 0],
            Operation::Mul | Operation::MulAcc => [m, m],
            _ => [m, 0],
        };
        let rows = [inputs[0], inputs[1], m, 0, 0, 0, 0, 0, 0];
        case(operation, work(0, m, 0, 0), m, rows, run)
    };
    operations.map(make).into()
}

/// In place on `batch` polynomials, and for the inverse from one buffer to another.
fn transforms<B: Backend>(m: usize, batch: usize) -> Vec<Case<B>> {
    let make = |operation| {
        let run = move |backend: &B, buffers: &mut [B::Buffer], set: usize| {
            let [x, y, ..] = buffers else { return Ok(()) };
            let (rows, primes) =
                ((set * m * batch..set * m * batch + m).collect::<Vec<_>>(), (0..m).collect::<Vec<_>>());
            let out = ViewMut { buffer: x, batch, batch_stride: m, rows: &rows };
            match operation {
                Operation::NttForward => backend.ntt_forward(&primes, out),
                Operation::NttInverse => backend.ntt_inverse(&primes, out),
                _ => {
                    let src = View { buffer: y, batch, batch_stride: m, rows: &rows };
                    backend.stage(&primes, Stage::NttInverseInto { src, dst: out })
                }
            }
        };
        let source = if operation == Operation::NttInverseInto { m * batch } else { 0 };
        case(operation, work(m, m * batch, 0, 0), m, [m * batch, source, 0, 0, 0, 0, 0, 0, 0], run)
    };
    [Operation::NttForward, Operation::NttInverse, Operation::NttInverseInto].map(make).into()
}

fn conversion<B: Backend>(
    backend: &B,
    s: usize,
    d: usize,
    mode: ConvertMode,
    prescaled: bool,
) -> Result<Case<B>, Error> {
    let (src, dst): (IndexSet, IndexSet) = ((0..s).collect(), (s..s + d).collect());
    let mut spec = ConvertSpec::new(backend.ring(), &src, &dst, &vec![1; s], &vec![1; d], Overflow::Round)?;
    if !prescaled {
        spec = spec.fold().1;
    }
    let conversion = backend.conversion(&src, &dst, &spec)?;
    let run = move |backend: &B, buffers: &mut [B::Buffer], set: usize| {
        let [from, to, ..] = buffers else { return Ok(()) };
        backend.convert(&conversion, View::new(from, &span(set, s)), ViewMut::new(to, &span(set, d)), mode)
    };
    let operation = if mode == ConvertMode::Add { Operation::ConvertAdd } else { Operation::Convert };
    Ok(case(operation, work(s, d, s * d, if prescaled { s } else { 0 }), 0, [s, d, 0, 0, 0, 0, 0, 0, 0], run))
}

/// Digits in buffer 0, keys in 1 and 2, the result in 3.
fn inner_product<B: Backend>(m: usize, digits: usize) -> Case<B> {
    let run = move |backend: &B, buffers: &mut [B::Buffer], set: usize| {
        let [d, k0, k1, out, ..] = buffers else { return Ok(()) };
        let (rows, primes) = (first_rows(set, digits, m), (0..m).collect::<Vec<_>>());
        let out_rows = first_rows(set, 2, m);
        let view = |buffer| View { buffer, batch: digits, batch_stride: m, rows: &rows };
        let out = ViewMut { buffer: out, batch: 2, batch_stride: m, rows: &out_rows };
        backend.inner_product(&primes, view(d), [view(k0), view(k1)], out, false)
    };
    let matrix = digits * m;
    let rows = [matrix, matrix, matrix, 2 * m, 0, 0, 0, 0, 0];
    case(Operation::InnerProduct, work(m, 0, matrix, 0), 0, rows, run)
}

/// As [`inner_product`], of which `pending` digits are coefficients still and the others slots of the input, buffer 4;
/// `call` is given the digits and both key columns, and the buffers that are left: the result, then four more.
fn with_gadget<B: Backend>(
    (m, digits, pending): (usize, usize, usize),
    backend: &B,
    buffers: &mut [B::Buffer],
    set: usize,
    call: impl FnOnce(&B, GadgetDigits<'_, B>, [View<'_, B>; 2], &mut [B::Buffer]) -> Result<(), BackendError>,
) -> Result<(), BackendError> {
    let [d, k0, k1, input, rest @ ..] = buffers else { return Ok(()) };
    let rows = first_rows(set, digits, m);
    let inputs = digits - pending;
    let limb = |j: usize, r: usize| {
        if j < inputs { DigitLimb::Input((set * inputs + j) * m + r) } else { DigitLimb::Coefficients }
    };
    let limbs: Vec<Vec<DigitLimb>> = (0..digits).map(|j| (0..m).map(|r| limb(j, r)).collect()).collect();
    let view = |buffer| View { buffer, batch: digits, batch_stride: m, rows: &rows };
    let gadget = GadgetDigits {
        digits: ViewMut { buffer: d, batch: digits, batch_stride: m, rows: &rows },
        limbs: &limbs,
        input: Some(input),
    };
    call(backend, gadget, [view(k0), view(k1)], rest)
}

fn gadget_product<B: Backend>(m: usize, digits: usize, pending: usize) -> Case<B> {
    let run = move |backend: &B, buffers: &mut [B::Buffer], set: usize| {
        with_gadget((m, digits, pending), backend, buffers, set, |backend, gadget, keys, rest| {
            let (rows, primes) = (first_rows(set, 2, m), (0..m).collect::<Vec<_>>());
            let out = ViewMut { buffer: &mut rest[0], batch: 2, batch_stride: m, rows: &rows };
            backend.stage(&primes, Stage::GadgetProduct { gadget, keys, out, accumulate: false })
        })
    };
    let matrix = digits * m;
    let rows = [matrix, matrix, matrix, (digits - pending) * m, 2 * m, 0, 0, 0, 0];
    case(Operation::GadgetProduct, work(m, pending * m, matrix, 0), m, rows, run)
}

fn gadget_product_coeff<B: Backend>(m: usize, digits: usize, pending: usize) -> Case<B> {
    let run = move |backend: &B, buffers: &mut [B::Buffer], set: usize| {
        with_gadget((m, digits, pending), backend, buffers, set, |backend, gadget, keys, rest| {
            let (rows, primes) = (first_rows(set, 2, m), (0..m).collect::<Vec<_>>());
            let out = ViewMut { buffer: &mut rest[0], batch: 2, batch_stride: m, rows: &rows };
            backend.stage(&primes, Stage::GadgetProductCoeff { gadget, keys, out })
        })
    };
    let matrix = digits * m;
    let rows = [matrix, matrix, matrix, (digits - pending) * m, 2 * m, 0, 0, 0, 0];
    case(Operation::GadgetProductCoeff, work(m, pending * m, matrix, 0), 2 * m, rows, run)
}

/// A gadget product whose first digit is the input's, added to the end of a key switch with `addends` addends.
fn gadget_sums<B: Backend>(m: usize, digits: usize, addends: usize, rotated: bool) -> Case<B> {
    let pending = digits - 1;
    let run = move |backend: &B, buffers: &mut [B::Buffer], set: usize| {
        with_gadget((m, digits, pending), backend, buffers, set, |backend, gadget, keys, rest| {
            let [x0, x1, y, out0, out1] = rest else { return Ok(()) };
            let (at, primes) = (span(set, m), (0..m).collect::<Vec<_>>());
            let out = |buffer| rotated.then(|| ViewMut::new(buffer, &at));
            let ys = (0..addends).map(|_| View::new(&*y, &at)).collect();
            let first = SlotSum { x: ViewMut::new(x0, &at), ys, out: out(out0) };
            let second = SlotSum { x: ViewMut::new(x1, &at), ys: Vec::new(), out: out(out1) };
            let (sums, g) = (vec![first, second], if rotated { 3 } else { 1 });
            backend.stage(&primes, Stage::GadgetSums { gadget, keys, sums, g })
        })
    };
    let (matrix, outs) = (digits * m, if rotated { m } else { 0 });
    let rows = [matrix, matrix, matrix, m, m, m, addends.min(1) * m, outs, outs];
    let work = work(m, (pending + 2) * m, matrix + addends * m, if rotated { 2 * m } else { 0 });
    case(Operation::GadgetSums, work, m, rows, run)
}

/// The tensor product of two ciphertexts in coefficients.
fn tensor<B: Backend>(m: usize, finish: bool) -> Case<B> {
    let run = move |backend: &B, buffers: &mut [B::Buffer], set: usize| {
        let [a0, a1, b0, b1, out0, out1, out2, ..] = buffers else { return Ok(()) };
        let (at, primes) = (span(set, m), (0..m).collect::<Vec<_>>());
        let [a, b] = [[a0, a1], [b0, b1]].map(|pair| pair.map(|buffer| View::new(buffer, &at)));
        let out = [out0, out1, out2].map(|buffer| ViewMut::new(buffer, &at));
        let mode = TensorMode { slots: false, accumulate: false, finish: [finish; 3] };
        backend.stage(&primes, Stage::Tensor { a, b, out, mode })
    };
    let work = work(m, 4 * m, 4 * m, if finish { 3 * m } else { 0 });
    case(Operation::Tensor, work, m, [m, m, m, m, m, m, m, 0, 0], run)
}

/// Sums of rows, multiplied by a constant or not.
fn sum<B: Backend>(m: usize, terms: usize, scaled: bool) -> Case<B> {
    let run = move |backend: &B, buffers: &mut [B::Buffer], set: usize| {
        let [x, out, ..] = buffers else { return Ok(()) };
        let (at, primes) = (span(set, m), (0..m).collect::<Vec<_>>());
        let rows: Vec<Vec<usize>> = (0..terms).map(|i| span(set * terms + i, m)).collect();
        let xs = rows.iter().map(|rows| View::new(&*x, rows)).collect();
        let scalars = vec![12_345; m];
        let (scalars, out) = (scaled.then_some(&scalars[..]), ViewMut::new(out, &at));
        backend.stage(&primes, Stage::SumInto { xs, scalars, g: 1, out })
    };
    let rows = [terms * m, m, 0, 0, 0, 0, 0, 0, 0];
    case(Operation::SumInto, work(0, m, terms * m, if scaled { m } else { 0 }), 0, rows, run)
}

/// Rows of the first of `batch` polynomials of a set.
fn first_rows(set: usize, batch: usize, m: usize) -> Vec<usize> {
    (set * batch * m..set * batch * m + m).collect()
}

/// The end of a key switch: both parts, the second addend with the first part only, as in a rotation.
fn slot_sums<B: Backend>(m: usize, addends: usize, rotated: bool) -> Case<B> {
    let run = move |backend: &B, buffers: &mut [B::Buffer], set: usize| {
        let [x0, x1, y0, y1, y2, out0, out1, ..] = buffers else { return Ok(()) };
        let (at, primes) = (span(set, m), (0..m).collect::<Vec<_>>());
        let mut ys = vec![View::new(&*y0, &at)];
        ys.extend((addends > 1).then(|| View::new(&*y2, &at)));
        let out = |buffer| rotated.then(|| ViewMut::new(buffer, &at));
        let first = SlotSum { x: ViewMut::new(x0, &at), ys, out: out(out0) };
        let second = SlotSum { x: ViewMut::new(x1, &at), ys: vec![View::new(&*y1, &at)], out: out(out1) };
        let (sums, g) = (vec![first, second], if rotated { 3 } else { 1 });
        backend.stage(&primes, Stage::SlotSums { sums, g })
    };
    let outs = if rotated { m } else { 0 };
    let rows = [m, m, m, m, (addends - 1) * m, outs, outs, 0, 0];
    case(Operation::SlotSums, work(m, 2 * m, (addends + 1) * m, if rotated { 2 * m } else { 0 }), m, rows, run)
}
