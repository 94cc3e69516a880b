//! Times the operations on limbs: `kernel_speed [LOG_N] [BITS]`, 14 and 50 by default.
//!
//! Prints medians in nanoseconds a coefficient. The instruction set is the best one, or what `SYNCHROMESH_ISA` names.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;
use synchromesh_ring::isa::Isa;
use synchromesh_ring::kernels::LimbKernels;
use synchromesh_ring::kernels::convert::{ConvertMatrix, ConvertSpec, Count, Mode};
use synchromesh_ring::modulus::Modulus;
use synchromesh_ring::ntt::galois_permutation;
use synchromesh_ring::prime::ntt_primes;

/// Median time of one call in nanoseconds, over about 0.2 s.
fn median(mut call: impl FnMut()) -> f64 {
    call();
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < 7 || start.elapsed().as_secs_f64() < 0.2 {
        let begin = Instant::now();
        call();
        times.push(begin.elapsed().as_secs_f64() * 1e9);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn limb(q: u64, n: usize) -> Vec<u64> {
    (0..n as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % q).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<u32>());
    let log_n = args.next().transpose()?.unwrap_or(14);
    let bits = args.next().transpose()?.unwrap_or(50);
    let (isa, n) = (Isa::detect()?, 1usize << log_n);
    let moduli: Vec<Modulus> = ntt_primes(bits, log_n, 24)?.into_iter().map(Modulus::new).collect::<Result<_, _>>()?;
    let kernels = LimbKernels::new(moduli[0], isa);
    let q = moduli[0].value();
    println!("{} bits {bits} log_n {log_n}, ns a coefficient", kernels.isa());
    let report = |name: &str, time: f64, terms: usize| {
        println!("{name:24} {:.3} ({:.3} a term)", time / n as f64, time / (n * terms) as f64);
    };
    let (a, b, c) = (limb(q, n), limb(q - 2, n), moduli[0].scalar(q / 3));
    let (mut out, mut out1) = (vec![0; n], vec![0; n]);
    report("add_into", median(|| kernels.add_into(black_box(&a), &b, &mut out)), 1);
    report("mul_into", median(|| kernels.mul_into(black_box(&a), &b, &mut out)), 1);
    report("mul_acc", median(|| kernels.mul_acc(black_box(&a), &b, &mut out)), 1);
    report("mul_scalar_into", median(|| kernels.mul_scalar_into(black_box(&a), &c, &mut out)), 1);
    report("sub_mul_scalar_into", median(|| kernels.sub_mul_scalar_into(black_box(&a), &b, &c, &mut out)), 1);
    report("reduce_into", median(|| kernels.reduce_into(black_box(&a), &mut out)), 1);
    let perm = galois_permutation(log_n, 5);
    report("permute_into", median(|| kernels.permute_into(black_box(&a), &perm, &mut out)), 1);
    report("automorphism_into", median(|| kernels.automorphism_into(black_box(&a), 5, &mut out)), 1);
    let terms = 4;
    let refs: Vec<Vec<u64>> = (0..3 * terms).map(|_| a.clone()).collect();
    let part = |i: usize| refs[i * terms..][..terms].iter().map(Vec::as_slice).collect::<Vec<_>>();
    let (d, k0, k1) = (part(0), part(1), part(2));
    let time = median(|| kernels.inner_product2(black_box(&d), &k0, &k1, &mut out, &mut out1, false));
    report("inner_product2, 4 digits", time, 2 * terms);
    let (src, dst) = moduli.split_at(12);
    let spec = ConvertSpec {
        prescale: Some(src.iter().map(|p| p.value() / 3).collect()),
        matrix: dst.iter().map(|q| limb(q.value(), src.len())).collect(),
        overflow: Count::Fixed { half: true },
        correction: dst.iter().map(|q| q.value() / 5).collect(),
        bias: vec![1; dst.len()],
    };
    let matrix = ConvertMatrix::new(src, dst, spec, isa)?;
    let x: Vec<Vec<u64>> = src.iter().map(|p| limb(p.value(), n)).collect();
    let x: Vec<&[u64]> = x.iter().map(Vec::as_slice).collect();
    let mut y: Vec<Vec<u64>> = dst.iter().map(|_| vec![0; n]).collect();
    let time = median(|| {
        let mut y: Vec<&mut [u64]> = y.iter_mut().map(Vec::as_mut_slice).collect();
        matrix.apply(black_box(&x), &mut y, Mode::Replace);
    });
    report("convert, 12 to 12", time, src.len() * dst.len());
    Ok(())
}
