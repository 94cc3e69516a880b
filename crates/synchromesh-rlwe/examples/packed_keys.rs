//! Would keys packed in memory be faster? `packed_keys [log_n] [digits]`, 16 and 2 if not given.
//!
//! An inner product reads both key columns once. Residues of 48 bits, four to three words, need a quarter less of
//! memory, and have to be unpacked on the way. Three times of one core tell: the product with keys from memory, with
//! keys that are in cache, and the unpacking of packed keys from memory into a few KiB. Packing pays where the second and
//! third together take less than the first.
//!
//! The unpacking is a plain loop: build with `RUSTFLAGS="-C target-cpu=native"` for it to use what the machine has.

use std::hint::black_box;
use std::time::Instant;

use synchromesh_ring::prime::ntt_primes;
use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::{Backend, Cpu, Ring, View, ViewMut};

/// Keys that no cache holds.
const BYTES: usize = 512 << 20;
/// Residues unpacked at a time.
const TILE: usize = 1024;
const MASK: u64 = (1 << 48) - 1;

fn best(mut run: impl FnMut()) -> f64 {
    let time = |()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    [(); 7].map(time).into_iter().fold(f64::INFINITY, f64::min)
}

/// Four residues of 48 bits in three words: the fourth in the upper quarters of the others.
fn unpack(packed: &[u64], out: &mut [u64]) {
    let quarter = out.len() / 4;
    let (x, rest) = packed.split_at(quarter);
    let (y, z) = rest.split_at(quarter);
    let (a, rest) = out.split_at_mut(quarter);
    let (b, rest) = rest.split_at_mut(quarter);
    let (c, d) = rest.split_at_mut(quarter);
    for i in 0..quarter {
        (a[i], b[i], c[i]) = (x[i] & MASK, y[i] & MASK, z[i] & MASK);
        d[i] = x[i] >> 48 | y[i] >> 48 << 16 | z[i] >> 48 << 32;
    }
}

fn pack(residues: &[u64], out: &mut [u64]) {
    let quarter = residues.len() / 4;
    for i in 0..quarter {
        let d = residues[3 * quarter + i];
        for part in 0..3 {
            out[part * quarter + i] = residues[part * quarter + i] | (d >> (16 * part)) << 48;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|x| x.parse::<u32>());
    let log_n = numbers.next().unwrap_or(Ok(16))?;
    let digits = numbers.next().unwrap_or(Ok(2))? as usize;
    let backend = Cpu::open(std::sync::Arc::new(Ring::new(log_n, &ntt_primes(47, log_n, 1)?)?))?;
    let n = 1usize << log_n;
    let limbs = BYTES / (8 * n * 2 * digits);
    let mut small = backend.alloc(digits)?;
    let mut out = backend.alloc(2)?;
    let mut columns = [backend.alloc(limbs * digits)?, backend.alloc(limbs * digits)?];
    let seed = Seed::from_bytes([1; 32]);
    let [first, second] = &mut columns;
    for (i, (buffer, rows)) in
        [(first, limbs * digits), (second, limbs * digits), (&mut small, digits)].into_iter().enumerate()
    {
        for r in 0..rows {
            let number = (i * limbs * digits + r) as u32;
            backend.uniform(&[0], &seed, Purpose::PublicRandomness, number, ViewMut::new(buffer, &[r]))?;
        }
    }
    let mut product = |limb: usize| -> Result<(), synchromesh_ring::BackendError> {
        let at = [limb * digits];
        let keys = columns.each_ref().map(|buffer| View { buffer, batch: digits, batch_stride: 1, rows: &at });
        let view = View { buffer: &small, batch: digits, batch_stride: 1, rows: &[0] };
        let output = ViewMut { buffer: &mut out, batch: 2, batch_stride: 1, rows: &[0] };
        backend.inner_product(&[0], view, keys, output, false)
    };
    let cold = best(|| (0..limbs).for_each(|limb| product(limb).expect("a product"))) / limbs as f64;
    let hot = best(|| (0..limbs).for_each(|_| product(0).expect("a product"))) / limbs as f64;

    let residues = 2 * digits * limbs * n;
    let mut packed = vec![0u64; residues / 4 * 3];
    let (mut tile, mut words) = (vec![0u64; TILE], vec![0u64; n]);
    backend.download(&columns[0], 0, &mut words)?;
    for (i, out) in packed.chunks_mut(TILE / 4 * 3).enumerate() {
        let from = i * TILE % n;
        pack(&words[from..from + TILE], out);
    }
    unpack(&packed[..TILE / 4 * 3], &mut tile);
    assert_eq!(tile, words[..TILE], "packing lost something");
    let unpacking = best(|| {
        for packed in packed.chunks(TILE / 4 * 3) {
            unpack(packed, &mut tile);
            black_box(&mut tile);
        }
    }) / limbs as f64;

    let us = |s: f64| s * 1e6;
    println!("N = 2^{log_n}, {digits} digits, one limb of both columns:");
    println!("  product with keys from memory        {:8.1} us", us(cold));
    println!("  product with keys in cache           {:8.1} us", us(hot));
    println!("  unpacking keys from memory           {:8.1} us", us(unpacking));
    println!("  packed against plain                 {:8.2}", (hot + unpacking) / cold);
    Ok(())
}
