//! The fused stages of a key switch against the primitives they stand for, on every instruction set.

use std::sync::Arc;

use synchromesh_ring::backend::{DigitLimb, GadgetDigits, SlotSum, TensorMode};
use synchromesh_ring::cpu::CpuBuffer;
use synchromesh_ring::isa::Isa;
use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::{Backend, Counting, Cpu, Ring, View, ViewMut};
use synchromesh_testing::toy;

/// Primes on both sides of every border between kernels.
const WIDTHS: [u32; 6] = [30, 47, 48, 49, 50, 60];
const PRIMES: [usize; WIDTHS.len()] = [0, 1, 2, 3, 4, 5];
const LIMBS: usize = WIDTHS.len();
const DIGITS: usize = 3;

/// Some digits' limbs are still coefficients, some slots, some slots of the input.
fn states() -> Vec<Vec<DigitLimb>> {
    let state = |j: usize, r: usize| match (r + j) % 3 {
        0 => DigitLimb::Coefficients,
        1 => DigitLimb::Slots,
        _ => DigitLimb::Input(r),
    };
    (0..DIGITS).map(|j| (0..LIMBS).map(|r| state(j, r)).collect()).collect()
}

/// `count` random polynomials.
fn random<B: Backend>(backend: &B, count: usize, which: u32) -> B::Buffer {
    let mut buffer = backend.alloc(count * LIMBS).unwrap();
    for j in 0..count {
        let rows: Vec<usize> = (0..LIMBS).map(|r| j * LIMBS + r).collect();
        let view = ViewMut::new(&mut buffer, &rows);
        let seed = Seed::from_bytes([9; 32]);
        backend.uniform(&PRIMES, &seed, Purpose::PublicRandomness, which + j as u32, view).unwrap();
    }
    buffer
}

/// The product brought to coefficients, a sum that is rotated, one in place, the product on top of slots, coefficients put
/// elsewhere, and two tensor products added, some components in slots.
fn results<B: Backend<Buffer = CpuBuffer>>(backend: &B) -> [Vec<u64>; 6] {
    let (states, input) = (states(), random(backend, 1, 30));
    let (k0, k1) = (random(backend, DIGITS, 10), random(backend, DIGITS, 20));
    let many = |buffer| View { buffer, batch: DIGITS, batch_stride: LIMBS, rows: &PRIMES };
    let keys = [many(&k0), many(&k1)];
    let mut matrices: [_; 4] = std::array::from_fn(|_| random(backend, DIGITS, 0));
    let [mut first, mut second, mut third, mut fourth] = matrices
        .each_mut()
        .map(|buffer| GadgetDigits {
            digits: ViewMut { buffer, batch: DIGITS, batch_stride: LIMBS, rows: &PRIMES },
            limbs: &states,
            input: Some(&input),
        })
        .map(Some);
    let mut product = backend.alloc(2 * LIMBS).unwrap();
    let out = ViewMut { buffer: &mut product, batch: 2, batch_stride: LIMBS, rows: &PRIMES };
    backend.gadget_product_coeff(&PRIMES, first.take().unwrap(), keys, out).unwrap();

    let addend = random(backend, 1, 40);
    let sums = |gadget: GadgetDigits<'_, B>, g: usize| {
        let mut x = [random(backend, 1, 50), random(backend, 1, 51)];
        let mut out = [random(backend, 1, 60), random(backend, 1, 60)];
        let pairs = x.iter_mut().zip(&mut out).enumerate();
        let sums = pairs.map(|(part, (x, out))| SlotSum {
            x: ViewMut::new(x, &PRIMES),
            ys: if part == 0 { vec![View::new(&addend, &PRIMES)] } else { vec![] },
            out: (g != 1).then(|| ViewMut::new(out, &PRIMES)),
        });
        backend.gadget_sums(&PRIMES, gadget, keys, sums.collect(), g).unwrap();
        let from = if g == 1 { &x } else { &out };
        [from[0].words(), from[1].words()].concat()
    };
    let (rotated, in_place) = (sums(second.take().unwrap(), 5), sums(third.take().unwrap(), 1));
    let mut x = [random(backend, 1, 50), random(backend, 1, 51)];
    let both = x.each_mut().map(|x| ViewMut::new(x, &PRIMES));
    backend.gadget_product_onto(&PRIMES, fourth.take().unwrap(), keys, both).unwrap();
    let coefficients = [x[0].words(), x[1].words()].concat();
    let (src, mut dst) = (random(backend, 1, 70), random(backend, 1, 71));
    backend.ntt_inverse_into(&PRIMES, View::new(&src, &PRIMES), ViewMut::new(&mut dst, &PRIMES)).unwrap();
    let tensor = tensor_products(backend);
    [product.words().to_vec(), rotated, in_place, coefficients, dst.words().to_vec(), tensor]
}

/// Two tensor products added, with every choice of components that leave in coefficients.
fn tensor_products<B: Backend<Buffer = CpuBuffer>>(backend: &B) -> Vec<u64> {
    let operands = [80, 81, 82, 83].map(|which| random(backend, 1, which));
    let [a, b, c, d] = operands.each_ref().map(|buffer| View::new(buffer, &PRIMES));
    let mut words = Vec::new();
    for choice in 0..8 {
        let mut out = [84, 85, 86].map(|which| random(backend, 1, which));
        for last in [false, true] {
            let finish = [0, 1, 2].map(|i| last && choice >> i & 1 == 1);
            let views = out.each_mut().map(|buffer| ViewMut::new(buffer, &PRIMES));
            backend.tensor(&PRIMES, [a, b], [c, d], views, TensorMode { accumulate: last, finish }).unwrap();
        }
        out.iter().for_each(|buffer| words.extend_from_slice(buffer.words()));
    }
    words
}

#[test]
fn fused_stages_return_the_bits_of_their_primitives() {
    for log_n in [10, 11, 13] {
        let primes = toy::distinct_primes(&WIDTHS, log_n);
        let ring = Arc::new(Ring::new(log_n, &primes).unwrap());
        let expected = results(&Counting::new(Cpu::with_isa(Arc::clone(&ring), Isa::Scalar).unwrap()));
        for isa in Isa::available() {
            let got = results(&Cpu::with_isa(Arc::clone(&ring), isa).unwrap());
            for (stage, (got, expected)) in got.iter().zip(&expected).enumerate() {
                let differ = got.iter().zip(expected).position(|(a, b)| a != b);
                let place = differ.map(|i| ((i >> log_n) % LIMBS, i % (1 << log_n)));
                assert_eq!(place, None, "stage {stage}, N = 2^{log_n}, {isa}: limb and slot");
            }
        }
    }
}
