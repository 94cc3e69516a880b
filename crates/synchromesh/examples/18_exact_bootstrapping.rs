//! Bootstrapping in BFV and BGV: `18_exact_bootstrapping [SCHEME [LOG_N [T [REFRESHES]]]]` multiplies until no noise budget is
//! left, refreshes and goes on, for any plaintext modulus, and compares every result.
//!
//! N = 2^10 is quick and insecure; from 2^15 on the parameters have 128 bits.

use std::sync::Arc;
use std::time::Instant;

use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::ckks;
use synchromesh::exact::bootstrap::{Bootstrap, Bootstrapper};
use synchromesh::exact::{Context, Evaluator, Params, Rotations, Scheme};
use synchromesh::plan::bootstrap::ExactBootstrapRequest;
use synchromesh::rlwe::{Randomness, Security};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

#[expect(clippy::print_stdout, reason = "an example")]
fn refresh<S: Scheme>(request: &ExactBootstrapRequest, refreshes: usize) -> Outcome {
    let found = request.find::<S>(None)?;
    let (forecast, security) = (&found.forecast, found.forecast.security_bits);
    println!("{forecast:#?}");
    let (ring, params) = (ckks::Params::new(found.ring)?, Params::<S>::new(found.params)?);
    let bootstrap = Bootstrap::new(&params, &ring, found.bootstrap)?;
    let (context, inside) = (Context::new(params)?, ckks::Context::new(ring)?);
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let own = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?;
    let evaluator = Evaluator::new(&context, Some(Arc::new(own)));
    let start = Instant::now();
    let keys = Arc::new(bootstrap.generate_keys(&inside, &secret, &mut randomness)?);
    let bootstrapper = Bootstrapper::new(&context, &inside, bootstrap, keys)?;
    println!("keys and public vectors in {:.1} s, {security:.1} bits of security", start.elapsed().as_secs_f64());

    // A power of X times a number: its square is another, whatever t is.
    let (t, two_n) = (context.params().t().value().clone(), 2 * context.params().n());
    let (mut number, mut power) = (num_bigint::BigUint::from(3u32) % &t, 1);
    let mut coefficients = vec![num_bigint::BigInt::from(0); context.params().n()];
    coefficients[power] = number.clone().into();
    let mut x = context.encrypt(&public, &context.encode_coefficients(&coefficients)?, &mut randomness)?;
    let least = bootstrapper.bootstrap().least_budget()?;
    let mut left = refreshes;
    while left > 0 {
        let square = evaluator.square(&x).ok();
        let enough = |x: &_| Ok::<_, synchromesh::Error>(context.noise_budget(x)? >= least);
        match square {
            Some(square) if enough(&square)? => {
                x = square;
                (number, power) = (&number * &number % &t, 2 * power % two_n);
                println!("a product: {:.1} bits of noise budget", context.noise_budget(&x)?);
            }
            _ => {
                let start = Instant::now();
                x = bootstrapper.refresh_watched(&x, |_| print!("a pass, "))?;
                let seconds = start.elapsed().as_secs_f64();
                println!("refreshed in {seconds:.2} s: {:.1} bits of noise budget", context.noise_budget(&x)?);
                left -= 1;
            }
        }
        let found = context.decode_coefficients_unsigned(&context.decrypt(&secret, &x)?)?;
        let n = two_n / 2;
        let expected = if power < n { number.clone() } else { (&t - &number) % &t };
        let right = |(i, value): (usize, &num_bigint::BigUint)| {
            *value == if i == power % n { expected.clone() } else { Default::default() }
        };
        if !found.iter().enumerate().all(right) {
            return Err("decrypted wrongly".into());
        }
    }
    Ok(())
}

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let at = |i: usize, default: &str| args.get(i).cloned().unwrap_or_else(|| default.to_owned());
    let log_n: u32 = at(1, "10").parse()?;
    let security = if log_n < 15 { Security::Insecure } else { Security::Bits128 };
    // Few keys.
    let request = ExactBootstrapRequest { log_n, t: at(2, "65537"), products: 1, baby_steps: Some(4), security };
    let refreshes = at(3, "2").parse()?;
    if at(0, "bfv") == "bgv" { refresh::<Bgv>(&request, refreshes) } else { refresh::<Bfv>(&request, refreshes) }
}
