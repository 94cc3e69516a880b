//! Adding a ciphertext to itself until it is refused: every result before that is right, and there is none after it.
//!
//! Whoever makes others decrypt garbage learns about their key: in BFV and BGV a decryption that fails says how large
//! the noise was, and by doubling a ciphertext anyone can drive it there (ePrint 2024/116, 2024/127). So the noise bound
//! of a ciphertext, which depends on public data only, is held against the room at every step, and what could decrypt
//! wrongly is an error with a remedy.

use synchromesh::exact::{Context, Evaluator, Params, Scheme};
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::Randomness;
use synchromesh::rlwe::noise::FailureLimit;
use synchromesh::{Error, Result, ckks};

/// No ciphertext can be doubled more often than this: its modulus has fewer bits.
const MOST: u32 = 4000;

fn main() -> Result<()> {
    for limit in FailureLimit::ALL {
        println!("at failure probability {limit} per decryption:");
        exact(Description::new(SchemeName::Bfv, 1).plan()?.bfv()?.with_failure_limit(limit))?;
        exact(Description::new(SchemeName::Bgv, 1).plan()?.bgv()?.with_failure_limit(limit))?;
        approximate(Description::new(SchemeName::Ckks, 1).plan()?.ckks()?.with_failure_limit(limit))?;
    }
    Ok(())
}

fn refused(scheme: &str, doublings: u32, error: &Error) {
    assert_eq!(error.kind(), "noise", "{error}");
    println!("  {scheme}: right after {doublings} doublings, then: {error}\n    what to do: {}", error.remedy());
}

/// 2^k x modulo t, centred.
fn expected(x: i64, k: u32, t: i64) -> i64 {
    let r = (0..k).fold(x, |r, _| 2 * r % t).rem_euclid(t);
    if r > t / 2 { r - t } else { r }
}

fn exact<S: Scheme>(params: Params<S>) -> Result<()> {
    let context = Context::new(params)?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let evaluator = Evaluator::new(&context, None);
    let mut sum = context.encrypt(&public, &context.encode(&[7i64, -3])?, &mut randomness)?;
    for doublings in 0..MOST {
        let decoded = context.decode(&context.decrypt(&secret, &sum)?)?;
        assert_eq!(decoded[..2], [7, -3].map(|x| expected(x, doublings, 65_537)));
        match evaluator.add(&sum, &sum) {
            Ok(next) => sum = next,
            Err(error) => {
                refused(S::NAME, doublings, &error);
                return Ok(());
            }
        }
    }
    panic!("a ciphertext was doubled {MOST} times");
}

fn approximate(params: ckks::Params) -> Result<()> {
    let context = ckks::Context::new(params)?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let evaluator = ckks::Evaluator::new(&context, None);
    let mut sum = context.encrypt(&public, &context.encode(&[0.5, -0.25])?, &mut randomness)?;
    for doublings in 0..MOST {
        let decoded = context.decode(&context.decrypt(&secret, &sum)?)?;
        let size = f64::from(doublings).exp2();
        for (z, x) in decoded.iter().zip([0.5, -0.25]) {
            assert!((z - x * size).abs() <= context.error_bound(&sum), "{z} for {}", x * size);
        }
        match evaluator.add(&sum, &sum) {
            Ok(next) => sum = next,
            Err(error) => {
                refused("ckks", doublings, &error);
                return Ok(());
            }
        }
    }
    panic!("a ciphertext was doubled {MOST} times");
}
