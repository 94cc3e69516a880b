//! Transforms against the definition, on every instruction set.

use super::*;
use crate::prime::ntt_primes;

const WIDTHS: [u32; 12] = [20, 30, 36, 45, 47, 48, 49, 50, 51, 54, 60, 61];

/// The largest prime of a width for N, if there is one.
fn prime(bits: u32, log_n: u32) -> Option<Modulus> {
    ntt_primes(bits, log_n, 1).ok().map(|q| Modulus::new(q[0]).unwrap())
}

/// Residues with the edge values 0, 1, q-1 among them.
fn samples(q: u64, n: usize, seed: u64) -> Vec<u64> {
    let mut x = seed;
    (0..n)
        .map(|i| {
            x = x.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x9e37_79b9_7f4a_7c15);
            match i % 16 {
                3 => 0,
                7 => 1,
                11 => q - 1,
                _ => (x >> 3) % q,
            }
        })
        .collect()
}

/// The tables of every instruction set and kind of core, with what each is called.
fn tables(m: Modulus, log_n: u32) -> impl Iterator<Item = (NttTable, String)> {
    Isa::available().into_iter().flat_map(move |isa| {
        let kinds = if isa == Isa::Ifma { &[Multipliers::Every, Multipliers::Half][..] } else { &[Multipliers::Every] };
        let table = move |&kind| NttTable::new(m, log_n, isa).unwrap().with_multipliers(kind);
        kinds.iter().map(move |kind| (table(kind), format!("{isa}, {kind:?}")))
    })
}

#[test]
fn both_directions_match_the_definition() {
    for bits in WIDTHS {
        let m = prime(bits, 10).unwrap();
        let a = samples(m.value(), 1 << 10, u64::from(bits));
        let expected = naive::forward(&m, root_of_unity(&m, 10).unwrap(), &a);
        assert_eq!(naive::inverse(&m, root_of_unity(&m, 10).unwrap(), &expected), a);
        for (table, name) in tables(m, 10) {
            let mut x = a.clone();
            table.forward(&mut x);
            assert_eq!(x, expected, "{bits} bits, {name}");
            table.inverse(&mut x);
            assert_eq!(x, a, "{bits} bits, {name}");
        }
    }
}

#[test]
fn every_degree_agrees_with_the_definition_on_some_slots_and_across_instruction_sets() {
    for log_n in 10..=18 {
        let n = 1usize << log_n;
        for bits in WIDTHS {
            if log_n == 18 && bits != 50 {
                continue;
            }
            let Some(m) = prime(bits, log_n) else { continue };
            let a = samples(m.value(), n, u64::from(bits) << 8 | u64::from(log_n));
            let mut reference: Option<Vec<u64>> = None;
            for (table, name) in tables(m, log_n) {
                let mut x = a.clone();
                table.forward(&mut x);
                let expected = reference.get_or_insert_with(|| {
                    let exponents = slot_exponents(log_n);
                    for i in [0, 1, 9, n / 2 + 13, n - 1] {
                        let point = m.pow(table.psi(), u64::from(exponents[i]));
                        assert_eq!(x[i], naive::evaluate(&m, &a, point), "slot {i}, {bits} bits, log_n {log_n}");
                    }
                    x.clone()
                });
                assert_eq!(&x, expected, "{bits} bits, log_n {log_n}, {name}");
                let mut back = vec![0; n];
                table.inverse_into(&x, &mut back);
                assert_eq!(back, a, "{bits} bits, log_n {log_n}, {name}");
                table.forward_into(&a, &mut back);
                assert_eq!(&back, expected, "{bits} bits, log_n {log_n}, {name}");
                // An aligned output is written past the caches at the larger degrees.
                let mut room = vec![0; n + 8];
                let start = room.as_ptr().align_offset(64);
                table.inverse_through(&x, &mut back, &mut room[start..start + n]);
                assert_eq!(&room[start..start + n], a, "{bits} bits, log_n {log_n}, {name}, through other memory");
            }
        }
    }
}

#[test]
fn constant_extremes_stay_in_range() {
    for bits in WIDTHS {
        let m = prime(bits, 12).unwrap();
        for value in [0, 1, m.value() - 1] {
            let a = vec![value; 1 << 12];
            for (table, name) in tables(m, 12) {
                let mut x = a.clone();
                table.forward(&mut x);
                assert!(x.iter().all(|&c| c < m.value()));
                let mut back = x.clone();
                table.inverse(&mut back);
                assert_eq!(back, a, "{bits} bits, {name}");
                table.inverse(&mut x);
                assert!(x.iter().all(|&c| c < m.value()));
            }
        }
    }
}

#[test]
fn products_of_slots_are_negacyclic_products_and_galois_permutes() {
    let m = prime(45, 10).unwrap();
    let (a, b) = (samples(m.value(), 1 << 10, 1), samples(m.value(), 1 << 10, 2));
    let table = NttTable::new(m, 10, Isa::best()).unwrap();
    let (mut x, mut y) = (a.clone(), b.clone());
    table.forward(&mut x);
    table.forward(&mut y);
    let mut product: Vec<u64> = x.iter().zip(&y).map(|(&a, &b)| m.mul(a, b)).collect();
    table.inverse(&mut product);
    assert_eq!(product, naive::negacyclic_product(&m, &a, &b));
    let g = 5u32;
    let mut image = vec![0; 1 << 10];
    for (i, &c) in a.iter().enumerate() {
        let k = i * g as usize % (2 << 10);
        image[k % (1 << 10)] = if k < 1 << 10 { c } else { m.neg(c) };
    }
    table.forward(&mut image);
    let perm = galois_permutation(10, g);
    assert!((0..1 << 10).all(|i| image[i] == x[perm[i] as usize]));
}

#[test]
fn bad_requests_are_refused() {
    let m = prime(30, 12).unwrap();
    assert_eq!(NttTable::new(m, 9, Isa::Scalar).unwrap_err(), NttError::Degree { log_n: 9 });
    assert_eq!(NttTable::new(m, 19, Isa::Scalar).unwrap_err(), NttError::Degree { log_n: 19 });
    let composite = Modulus::new((1 << 40) + 1).unwrap();
    assert!(matches!(NttTable::new(composite, 12, Isa::Scalar), Err(NttError::Prime(PrimeError::NotPrime { .. }))));
    let wrong = Modulus::new((1 << 61) - 1).unwrap();
    assert!(matches!(NttTable::new(wrong, 12, Isa::Scalar), Err(NttError::Prime(PrimeError::NoRoot { .. }))));
}
