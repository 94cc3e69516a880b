//! Times packing, unpacking and sealing of one limb at N = 2^16: median of 41 runs, one thread, microseconds.

use std::time::Instant;
use synchromesh_ring::sampler::{Purpose, Seed, uniform_into};
use synchromesh_rlwe::wire::{Expected, Header, KeyId, ObjectType, ParamsDigest, Reader, WireError, Writer};

fn median(mut f: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = (0..41).map(|_| f()).collect();
    times.sort_by(f64::total_cmp);
    times[20]
}

fn timed(f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64() * 1e6
}

fn main() -> Result<(), WireError> {
    let n = 1 << 16;
    for q in [(1u64 << 36) - 5, (1 << 50) - 27, (1 << 60) - 93] {
        let mut limb = vec![0; n];
        uniform_into(&Seed::from_bytes([1; 32]), Purpose::PublicRandomness, 0, q, &mut limb).expect("valid modulus");
        let writer = || Writer::new(Header::new(ObjectType::Ciphertext, ParamsDigest([0; 32]), KeyId::NONE), 8 * n);
        let pack = median(|| {
            let mut w = writer();
            timed(|| w.limb(q, &limb).expect("reduced"))
        });
        let mut w = writer();
        w.limb(q, &limb)?;
        let bytes = w.finish(None);
        let expected = Expected::any(ObjectType::Ciphertext, 1 << 20);
        let open = median(|| timed(|| assert!(Reader::open(&bytes, &expected).is_ok())));
        let unpack = median(|| {
            let mut r = Reader::open(&bytes, &expected).expect("good container");
            timed(|| r.limb_into(q, &mut limb).expect("good limb"))
        });
        println!("{} bits: pack {pack:.1} us, unpack {unpack:.1} us, open {open:.1} us", 64 - q.leading_zeros());
    }
    Ok(())
}
