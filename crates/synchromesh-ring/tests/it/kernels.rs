//! The limb kernels on every instruction set against scalar arithmetic with 128-bit words.

use synchromesh_ring::isa::Isa;
use synchromesh_ring::kernels::LimbKernels;
use synchromesh_ring::kernels::convert::{ConvertMatrix, ConvertSpec, Count, Mode};
use synchromesh_ring::modulus::Modulus;
use synchromesh_testing::random::SplitMix;
use synchromesh_testing::toy;

const N: usize = 256;
const WIDTHS: [u32; 11] = [20, 30, 36, 45, 47, 49, 50, 51, 54, 60, 61];

fn primes() -> Vec<Modulus> {
    toy::distinct_primes(&WIDTHS, 10).into_iter().map(|q| Modulus::new(q).unwrap()).collect()
}

/// Random residues with 0, 1 and q - 1 among them.
fn limb(random: &mut SplitMix, q: u64) -> Vec<u64> {
    let mut x = random.residues(N, q);
    x[..3].copy_from_slice(&[0, 1, q - 1]);
    x[N - 2..].copy_from_slice(&[q - 1, q - 2]);
    x
}

fn mul(q: u64, a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(q)) as u64
}

fn each(mut check: impl FnMut(&LimbKernels, u64, &str)) {
    for modulus in primes() {
        for isa in Isa::available() {
            let place = format!("{} bits on {}", modulus.bits(), isa.name());
            check(&LimbKernels::new(modulus, isa), modulus.value(), &place);
        }
    }
}

fn zip(a: &[u64], b: &[u64], f: impl Fn(u64, u64) -> u64) -> Vec<u64> {
    a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect()
}

#[test]
fn element_wise_operations_equal_their_definitions() {
    each(|kernels, q, place| {
        let mut random = SplitMix::new(q);
        let (a, b, o) = (limb(&mut random, q), limb(&mut random, q), limb(&mut random, q));
        let run = |f: &dyn Fn(&mut [u64])| {
            let mut out = o.clone();
            f(&mut out);
            out
        };
        let sum = |x: u64, y: u64| ((u128::from(x) + u128::from(y)) % u128::from(q)) as u64;
        assert_eq!(run(&|x| kernels.add_assign(x, &a)), zip(&o, &a, sum), "add, {place}");
        assert_eq!(run(&|x| kernels.sub_assign(x, &a)), zip(&o, &a, |x, y| sum(x, q - y)), "sub, {place}");
        assert_eq!(run(&|x| kernels.neg_assign(x)), zip(&o, &o, |x, _| (q - x) % q), "neg, {place}");
        let product = zip(&a, &b, |x, y| mul(q, x, y));
        assert_eq!(run(&|x| kernels.mul_into(&a, &b, x)), product, "mul, {place}");
        assert_eq!(run(&|x| kernels.mul_acc(&a, &b, x)), zip(&o, &product, sum), "mul_acc, {place}");
        for c in [0, 1, q - 1, b[7]] {
            let scalar = kernels.modulus().scalar(c);
            let scaled = zip(&o, &o, |x, _| mul(q, x, c));
            assert_eq!(run(&|x| kernels.mul_scalar_assign(x, &scalar)), scaled, "mul_scalar, {place}");
            let scaled = zip(&o, &a, |o, x| sum(o, mul(q, x, c)));
            assert_eq!(run(&|x| kernels.mul_scalar_acc(&a, &scalar, x)), scaled, "mul_scalar_acc, {place}");
        }
        let mut signed: Vec<i64> = (0..N).map(|_| random.word() as i64).collect();
        signed[..6].copy_from_slice(&[0, -1, 1, i64::MIN, i64::MAX, -21]);
        let expected: Vec<u64> = signed.iter().map(|&x| i128::from(x).rem_euclid(i128::from(q)) as u64).collect();
        assert_eq!(run(&|x| kernels.from_signed_into(&signed, x)), expected, "from_signed, {place}");
    });
}

#[test]
fn inner_products_of_any_length_equal_their_definition() {
    each(|kernels, q, place| {
        let mut random = SplitMix::new(q);
        for terms in [1, 2, 14, 15, 16, 31, 33, 64] {
            let mut limbs = || (0..terms).map(|_| limb(&mut random, q)).collect::<Vec<_>>();
            let (d, k0, k1) = (limbs(), limbs(), limbs());
            let start = limb(&mut random, q);
            let [ds, k0s, k1s] = [&d, &k0, &k1].map(|x| x.iter().map(Vec::as_slice).collect::<Vec<_>>());
            for accumulate in [false, true] {
                let (mut out0, mut out1) = (start.clone(), start.clone());
                kernels.inner_product2(&ds, &k0s, &k1s, &mut out0, &mut out1, accumulate);
                for (k, out) in [(&k0, &out0), (&k1, &out1)] {
                    for i in 0..N {
                        let begin = if accumulate { start[i] } else { 0 };
                        let sum =
                            d.iter().zip(k).fold(u128::from(begin), |s, (d, k)| s + u128::from(mul(q, d[i], k[i])));
                        assert_eq!(out[i], (sum % u128::from(q)) as u64, "{terms} terms, {accumulate}, {place}");
                    }
                }
            }
        }
    });
}

#[test]
fn conversions_equal_their_definition_for_every_mix_of_widths() {
    let primes = primes();
    let splits: [(&[usize], &[usize]); 6] = [
        (&[2, 3, 4], &[5, 8, 0]),
        (&[8, 9], &[1, 5, 7, 6]),
        (&[0, 1, 2, 3, 4, 5], &[6, 7, 8, 9]),
        (&[6, 7, 8, 9], &[0, 1, 2, 3, 4, 5]),
        (&[5], &[3]),
        (&[3, 4, 5], &[0, 1, 2]),
    ];
    for (case, (src, dst)) in splits.into_iter().enumerate() {
        let mut random = SplitMix::new(case as u64);
        let pick = |set: &[usize]| set.iter().map(|&i| primes[i]).collect::<Vec<_>>();
        let (src, dst) = (pick(src), pick(dst));
        let mut residues = |set: &[Modulus]| set.iter().map(|m| random.below(m.value())).collect::<Vec<_>>();
        let overflows = [
            Count::None,
            Count::Fixed { half: false },
            Count::Fixed { half: true },
            Count::Double { half: true },
            Count::Montgomery32 { weights: src.iter().map(|p| p.value() as u32 | 1).collect() },
        ];
        for overflow in overflows {
            for prescale in [None, Some(residues(&src))] {
                let spec = ConvertSpec {
                    prescale,
                    matrix: dst.iter().map(|q| src.iter().map(|p| p.value() % q.value()).collect()).collect(),
                    overflow: overflow.clone(),
                    correction: residues(&dst),
                    bias: residues(&dst),
                };
                compare(&src, &dst, &spec);
            }
        }
    }
}

/// Runs one conversion on every instruction set, in every mode and at odd lengths, against the scalar one.
fn compare(src: &[Modulus], dst: &[Modulus], spec: &ConvertSpec) {
    let mut random = SplitMix::new(11);
    for n in [16, 272, 1024] {
        let mut limbs = |set: &[Modulus]| set.iter().map(|m| random.residues(n, m.value())).collect::<Vec<_>>();
        let (x, start) = (limbs(src), limbs(dst));
        let x: Vec<&[u64]> = x.iter().map(Vec::as_slice).collect();
        for mode in [Mode::Replace, Mode::Stream, Mode::Add] {
            let run = |isa| {
                let mut out = start.clone();
                let mut rows: Vec<&mut [u64]> = out.iter_mut().map(Vec::as_mut_slice).collect();
                ConvertMatrix::new(src, dst, spec.clone(), isa).unwrap().apply(&x, &mut rows, mode);
                out
            };
            let expected = run(Isa::Scalar);
            for isa in Isa::available() {
                assert!(
                    run(isa) == expected,
                    "{} {mode:?} n = {n} {:?} prescale {}",
                    isa.name(),
                    spec.overflow,
                    spec.prescale.is_some()
                );
            }
        }
    }
}
