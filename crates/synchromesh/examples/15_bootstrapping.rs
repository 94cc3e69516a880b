//! Bootstrapping in CKKS: `15_bootstrapping [LOG_N]` encrypts, computes until no level is left, refreshes and goes on.
//!
//! N = 2^12 is quick and insecure; from 2^15 on the parameters have 128 bits.

use std::sync::Arc;
use std::time::Instant;

use synchromesh::ckks::bootstrap::{Bootstrap, Bootstrapper};
use synchromesh::ckks::{Ciphertext, Context, Params, Rotations};
use synchromesh::plan::bootstrap::BootstrapRequest;
use synchromesh::rlwe::{Randomness, Security};

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let log_n: u32 = std::env::args().nth(1).map_or(Ok(12), |text| text.parse())?;
    let insecure = log_n < 15;
    let (log_scale, precision) = if log_n == 15 { (30, 6) } else { (40, 15) };
    let request = BootstrapRequest {
        levels: insecure.then_some(3),
        // Few keys: at N = 2^16 the fastest number of baby steps takes twice the memory.
        baby_steps: Some(4),
        security: if insecure { Security::Insecure } else { Security::Bits128 },
        ..BootstrapRequest::new(log_n, log_scale, precision)
    };
    let found = request.find(None)?;
    let bytes = found.forecast.peak_bytes - found.forecast.stored_bytes;
    println!("a refresh will take {} MB of memory", bytes >> 20);
    let params = Params::new(found.params)?;
    let bootstrap = Bootstrap::new(&params, found.bootstrap)?;
    println!(
        "N = 2^{log_n}, log QP = {}, {:.1} bits of security; levels {} to {} are the user's",
        params.rlwe().log_qp(),
        params.rlwe().security_bits(),
        bootstrap.input_level(),
        bootstrap.output_level()
    );
    let context = Context::new(params)?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let start = Instant::now();
    let keys = bootstrap.generate_keys(&context, &secret, &Rotations::by([]), &mut randomness)?;
    println!(
        "{} keys of {} MB in {:.1} s",
        keys.iter().len(),
        keys.wire_bytes(context.params().rlwe()) >> 20,
        start.elapsed().as_secs_f64()
    );
    // They are computed with from here on, and nothing else: a third of their memory is free again.
    let keys = keys.into_prepared(context.rlwe(), context.params().plans())?;
    let start = Instant::now();
    let bootstrapper = Bootstrapper::new(&context, bootstrap, Arc::new(keys))?;
    println!("public vectors of {} MB in {:.1} s", bootstrapper.bytes() >> 20, start.elapsed().as_secs_f64());
    let slots = context.params().slots();
    let mut expected: Vec<f64> = (0..slots).map(|i| 2.0 * i as f64 / slots as f64 - 1.0).collect();
    let level = bootstrapper.bootstrap().output_level();
    let mut x = context.encrypt_at(&public, &context.encode(&expected)?, level, &mut randomness)?;
    let evaluator = bootstrapper.evaluator();
    let report = |what: &str, x: &Ciphertext, expected: &[f64]| -> Result<(), Box<dyn std::error::Error>> {
        let found = context.decode(&context.decrypt(&secret, x)?)?;
        let error = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        println!(
            "{what}: level {}, error 2^{:.1}, certificate 2^{:.1}",
            x.level(),
            error.log2(),
            context.error_bound(x).log2()
        );
        Ok(())
    };
    report("fresh", &x, &expected)?;
    for _ in 0..2 {
        while x.level() > bootstrapper.bootstrap().input_level() {
            // 1 - x^2 stays between 0 and 1, which the evaluator cannot know.
            x = evaluator.add_scalar(&evaluator.neg(&evaluator.square(&x)?)?, 1.0)?;
            x = evaluator.declare_bound(x, 1.0)?;
            expected.iter_mut().for_each(|x| *x = 1.0 - *x * *x);
        }
        report("computed", &x, &expected)?;
        let start = Instant::now();
        x = bootstrapper.refresh(&x)?;
        println!("refreshed in {:.2} s", start.elapsed().as_secs_f64());
        report("refreshed", &x, &expected)?;
    }
    Ok(())
}
