//! Limb operations against wide integer arithmetic, on every instruction set.

use super::*;
use crate::prime::ntt_primes;

pub(super) const WIDTHS: [u32; 11] = [20, 30, 36, 45, 47, 49, 50, 51, 54, 60, 61];

pub(super) fn modulus(bits: u32) -> Modulus {
    Modulus::new(ntt_primes(bits, 10, 1).unwrap()[0]).unwrap()
}

/// Words with the given values among them.
pub(super) fn words(n: usize, seed: u64, edges: &[u64]) -> Vec<u64> {
    let mut x = seed;
    (0..n)
        .map(|i| {
            x = x.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            if i % 3 == 0 { edges[(mixed >> 33) as usize % edges.len()] } else { mixed ^ (mixed >> 32) }
        })
        .collect()
}

pub(super) fn residues(q: u64, n: usize, seed: u64) -> Vec<u64> {
    words(n, seed, &[0, 1, 2, q - 2, q - 1]).into_iter().map(|x| x % q).collect()
}

pub(super) fn refs(limbs: &[Vec<u64>]) -> Vec<&[u64]> {
    limbs.iter().map(Vec::as_slice).collect()
}

/// Runs a check for every width, at its top and near its bottom where quotients fall shortest, every instruction set
/// and two lengths, one of them odd.
fn for_all(check: impl Fn(LimbKernels, usize)) {
    for bits in WIDTHS {
        let bottom = Modulus::new((1 << (bits - 1)) + (1 << (bits - 13)) + 5).unwrap();
        for modulus in [modulus(bits), bottom] {
            for isa in Isa::available() {
                let kernels = LimbKernels::new(modulus, isa);
                assert_eq!(kernels.isa(), if bits > 50 { isa.min(Isa::Avx512) } else { isa });
                for n in [2048, 203] {
                    check(kernels, n);
                }
            }
        }
    }
}

#[test]
fn sums_and_products() {
    for_all(|k, n| {
        let q = k.modulus().value();
        let big = u128::from(q);
        let (a, b, o) = (residues(q, n, 1), residues(q, n, 2), residues(q, n, 3));
        let each = |f: &dyn Fn(u128, u128, u128) -> u128| -> Vec<u64> {
            (0..n).map(|i| (f(u128::from(a[i]), u128::from(b[i]), u128::from(o[i])) % big) as u64).collect()
        };
        let into = |f: &dyn Fn(&mut [u64])| {
            let mut out = o.clone();
            f(&mut out);
            out
        };
        let c = k.modulus().scalar(q - 3);
        let w = u128::from(c.value);
        assert_eq!(into(&|x| k.add_into(&a, &b, x)), each(&|a, b, _| a + b));
        let streamed = |x: &mut [u64]| {
            let mut room = vec![0; n + 8];
            let start = room.as_ptr().align_offset(64);
            k.stream_sum(&a, &b, &mut room[start..start + n]);
            settle_streams();
            x.copy_from_slice(&room[start..start + n]);
        };
        assert_eq!(into(&streamed), each(&|a, b, _| a + b));
        assert_eq!(into(&|x| k.sub_into(&a, &b, x)), each(&|a, b, _| a + big - b));
        assert_eq!(into(&|x| k.add_assign(x, &b)), each(&|_, b, o| o + b));
        assert_eq!(into(&|x| k.sub_assign(x, &b)), each(&|_, b, o| o + big - b));
        assert_eq!(into(&|x| k.neg_assign(x)), each(&|_, _, o| big - o));
        assert_eq!(into(&|x| k.mul_into(&a, &b, x)), each(&|a, b, _| a * b));
        assert_eq!(into(&|x| k.mul_assign(x, &b)), each(&|_, b, o| o * b));
        assert_eq!(into(&|x| k.mul_acc(&a, &b, x)), each(&|a, b, o| o + a * b));
        assert_eq!(into(&|x| k.mul_scalar_assign(x, &c)), each(&|_, _, o| o * w));
        assert_eq!(into(&|x| k.mul_scalar_into(&a, &c, x)), each(&|a, _, _| a * w));
        assert_eq!(into(&|x| k.mul_scalar_acc(&a, &c, x)), each(&|a, _, o| o + a * w));
        assert_eq!(into(&|x| k.sub_mul_scalar_into(&a, &b, &c, x)), each(&|a, b, _| (a + big - b) * w));
    });
}

#[test]
fn words_and_signed_words_are_reduced() {
    for_all(|k, n| {
        let q = k.modulus().value();
        let src = words(
            n,
            4,
            &[0, q - 1, q, q + 1, 2 * q, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, (1 << 52) - 1, 1 << 52],
        );
        let mut out = vec![0; n];
        k.reduce_into(&src, &mut out);
        assert!((0..n).all(|i| out[i] == src[i] % q));
        let signed: Vec<i64> = src.iter().map(|&x| x as i64).collect();
        k.from_signed_into(&signed, &mut out);
        assert!((0..n).all(|i| i128::from(out[i]) == i128::from(signed[i]).rem_euclid(i128::from(q))));
    });
}

#[test]
fn inner_products_of_any_length() {
    for_all(|k, n| {
        let m = k.modulus();
        let q = m.value();
        for terms in [0usize, 1, 2, 15, 16, 33, 70] {
            // The greatest residues everywhere in the last columns: sums as large as they get.
            let make = |seed: u64| -> Vec<Vec<u64>> {
                (0..terms as u64)
                    .map(|j| {
                        let mut limb = residues(q, n, seed + j);
                        limb[n - 20..].fill(q - 1);
                        limb
                    })
                    .collect()
            };
            let (d, k0, k1) = (make(100), make(300), make(500));
            let start = residues(q, n, 7);
            for accumulate in [false, true] {
                let expected = |keys: &[Vec<u64>], i: usize| {
                    let zero = if accumulate { start[i] } else { 0 };
                    (0..terms).fold(zero, |sum, j| m.add(sum, m.mul(d[j][i], keys[j][i])))
                };
                let (mut out0, mut out1) = (start.clone(), start.clone());
                k.inner_product2(&refs(&d), &refs(&k0), &refs(&k1), &mut out0, &mut out1, accumulate);
                for i in 0..n {
                    assert_eq!((out0[i], out1[i]), (expected(&k0, i), expected(&k1, i)), "{terms} terms");
                }
            }
        }
    });
}

#[test]
fn permutations_and_automorphisms() {
    for isa in Isa::available() {
        let k = LimbKernels::new(modulus(50), isa);
        let q = k.modulus().value();
        let n = 1 << 10;
        let src = residues(q, n, 9);
        let perm: Vec<u32> = (0..n as u32).map(|i| (i * 77 + 5) % n as u32).collect();
        let mut out = vec![0; n];
        k.permute_into(&src, &perm, &mut out);
        assert!((0..n).all(|i| out[i] == src[perm[i] as usize]));
        for g in [1u32, 3, 5, 2 * n as u32 - 1, 1025] {
            k.automorphism_into(&src, g, &mut out);
            for i in 0..n {
                let e = i * g as usize % (2 * n);
                let expected = if e < n { src[i] } else { k.modulus().neg(src[i]) };
                assert_eq!(out[e % n], expected);
            }
        }
    }
}

#[test]
fn products_whose_quotient_falls_short_by_two() {
    // Found by search: the remainder before correction is above 2q in 52-bit and in 64-bit lanes.
    for (q, x, y) in [
        (565_056_683_809_293, 563_951_913_841_336, 564_318_491_582_808),
        (1_158_377_470_578_633_947, 1_156_346_639_225_126_902, 1_152_081_990_036_761_640),
    ] {
        let m = Modulus::new(q).unwrap();
        for isa in Isa::available() {
            let mut out = [0; 64];
            LimbKernels::new(m, isa).mul_into(&[x; 64], &[y; 64], &mut out);
            assert_eq!(out, [m.mul(x, y); 64], "{q}, {isa}");
        }
    }
}
