//! How fast a stored key becomes a key in use, beside a plain copy: `expand_speed [log_n] [primes]`, 16 and 24 if not given.

use std::time::Instant;

use synchromesh_ring::prime::ntt_primes_excluding;
use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::{Backend, View, ViewMut};
use synchromesh_rlwe::{
    Context, KeyPart, Params, ParamsLiteral, Randomness, SecretKey, Security, Source, SwitchKey, SwitchPlan,
};

fn best(mut run: impl FnMut()) -> f64 {
    let time = |()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    [(); 5].map(time).into_iter().fold(f64::INFINITY, f64::min)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|x| x.parse::<u32>());
    let log_n = numbers.next().unwrap_or(Ok(16))?;
    let count = numbers.next().unwrap_or(Ok(24))? as usize;
    let params = Params::new(ParamsLiteral {
        tag: "expand speed".to_owned(),
        log_n,
        q: ntt_primes_excluding(44, log_n, count, &[])?,
        p: vec![],
        aux: vec![],
        level_limbs: (1..count).collect(),
        schedule: Default::default(),
        error_multiple: "1".to_owned(),
        error: Default::default(),
        security: Security::Insecure,
    })?;
    let context = Context::new(params.clone())?;
    let backend = context.backend();
    let mut randomness = Randomness::insecure_from_number(1);
    let secret = SecretKey::generate(&context, &mut randomness)?;
    let part = KeyPart::whole(&params, SwitchPlan::level_aware(&params, 1, 1)?.shape())?;
    let key = SwitchKey::generate_part(&context, &secret, Source::Square, None, &part, &mut randomness)?;
    let row = (8 * params.n()) as f64;
    let rate = |rows: usize, seconds: f64| row * rows as f64 / seconds / 1e9;

    let rows: Vec<usize> = (0..count).collect();
    let mut to = backend.alloc(count * count)?;
    let copy = best(|| {
        for (i, b) in key.b().iter().enumerate() {
            let at: Vec<usize> = rows.iter().map(|r| i * count + r).collect();
            backend.copy(View::new(b.buffer(), &rows), ViewMut::new(&mut to, &at)).expect("a copy");
        }
    });
    println!("plain copy        {:6.1} GB/s read and written", rate(2 * count * count, copy));
    let primes: Vec<usize> = rows.clone();
    let sampling = best(|| {
        let seed = Seed::from_bytes([1; 32]);
        let out = ViewMut::new(&mut to, &rows);
        backend.uniform(&primes, &seed, Purpose::PublicRandomness, 0, out).expect("residues");
    });
    println!("uniform residues  {:6.1} GB/s written", rate(count, sampling));
    for r in [2, 4, 8] {
        let plan = SwitchPlan::level_aware(&params, r, r)?;
        let sum = best(|| {
            for (j, own) in plan.digits.iter().enumerate() {
                let views: Vec<_> = own.iter().map(|i| View::new(key.b()[i].buffer(), &rows)).collect();
                let at: Vec<usize> = rows.iter().map(|r| j * count + r).collect();
                backend.sum_into(&primes, &views, None, ViewMut::new(&mut to, &at)).expect("a sum");
            }
        });
        let moved = (count - r + plan.digits.len()) * count;
        let whole = best(|| drop(key.prepare(&context, &plan).expect("a key")));
        println!(
            "{r} primes a digit  {:6.1} GB/s for the sum of the stored half ({:.1} ms); {:.1} ms with the seeded half, \
             constants and {:.0} MB in use",
            rate(moved, sum),
            sum * 1e3,
            whole * 1e3,
            plan.prepared_bytes(&params) as f64 / 1e6
        );
    }
    Ok(())
}
