//! Times on a card as one JSON object: transforms, and key switches by each method, by primitives and fused.
//!
//! `cargo run --release -p synchromesh-cuda --features driver --example measure [-- LOG_N]`

#[cfg(feature = "driver")]
mod card {
    use std::sync::Arc;
    use std::time::Instant;

    use serde_json::{Value, json};
    use synchromesh_cuda::{Cuda, Driver, Properties, Stages};
    use synchromesh_ring::backend::{Backend, ViewMut};
    use synchromesh_ring::prime::ntt_primes_excluding;
    use synchromesh_ring::sampler::{Purpose, Seed};
    use synchromesh_ring::{Coeff, Ntt, Poly};
    use synchromesh_rlwe::operations::KeySwitching;
    use synchromesh_rlwe::{
        Context, Error, EvaluationKeys, Params, ParamsLiteral, Randomness, SecretKey, Security, Source, SwitchPlan,
    };

    const REPEATS: usize = 25;

    /// Median seconds of one run, the work waited for.
    fn seconds(device: &Cuda<Driver>, mut run: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
        let mut times = Vec::with_capacity(REPEATS);
        for i in 0..REPEATS + 3 {
            let start = Instant::now();
            run()?;
            device.synchronize().map_err(|e| Error::from(synchromesh_ring::Error::Backend(e.into())))?;
            // The first runs load kernels and fill the pool.
            if i >= 3 {
                times.push(start.elapsed().as_secs_f64());
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times[REPEATS / 2])
    }

    fn params(log_n: u32, q: &[u32], p: &[u32], aux: &[u32]) -> Result<Params, Error> {
        let mut primes: Vec<u64> = Vec::new();
        for &width in q.iter().chain(p).chain(aux) {
            primes.extend(ntt_primes_excluding(width, log_n, 1, &primes).unwrap_or_default());
        }
        let aux = primes.split_off((q.len() + p.len()).min(primes.len()));
        let p = primes.split_off(q.len().min(primes.len()));
        Params::new(ParamsLiteral {
            tag: "measure".to_owned(),
            log_n,
            q: primes,
            p,
            aux,
            level_limbs: vec![],
            schedule: Default::default(),
            error_multiple: "65537".to_owned(),
            error: Default::default(),
            security: Security::Insecure,
        })
    }

    fn open(params: &Params, stages: Stages) -> Result<Cuda<Driver>, Error> {
        let opened = Cuda::<Driver>::open(Arc::clone(params.ring()), 0);
        Ok(opened.map_err(|e| Error::from(synchromesh_ring::Error::Backend(e)))?.with_stages(stages))
    }

    /// Forward and inverse transforms of `limbs` limbs in one launch.
    fn transforms(log_n: u32, limbs: usize) -> Result<Value, Error> {
        let params = params(log_n, &vec![50; limbs], &[51], &[])?;
        let device = open(&params, Stages::Fused)?;
        let primes: Vec<usize> = (0..limbs).collect();
        let mut buffer = device.alloc(limbs).map_err(synchromesh_ring::Error::from)?;
        let seed = Seed::from_bytes([1; 32]);
        let view = ViewMut::new(&mut buffer, &primes);
        device.uniform(&primes, &seed, Purpose::PublicRandomness, 0, view).map_err(synchromesh_ring::Error::from)?;
        let mut time = |inverse| {
            seconds(&device, || {
                let view = ViewMut::new(&mut buffer, &primes);
                let done = if inverse { device.ntt_inverse(&primes, view) } else { device.ntt_forward(&primes, view) };
                Ok(done.map_err(synchromesh_ring::Error::from)?)
            })
        };
        let (forward, inverse) = (time(false)?, time(true)?);
        Ok(json!({"log_n": log_n, "limbs": limbs, "forward_us": forward * 1e6, "inverse_us": inverse * 1e6}))
    }

    /// One rotation's key switch.
    fn key_switch(method: &str, params: &Params, plan: &SwitchPlan, stages: Stages) -> Result<Value, Error> {
        let context = Context::with_backend(params.clone(), open(params, stages)?);
        let mut randomness = Randomness::insecure_from_number(1);
        let secret = SecretKey::generate(&context, &mut randomness)?;
        let keys = EvaluationKeys::generate(&context, &secret, [Source::Galois(3)], plan, &mut randomness)?;
        let switching = KeySwitching::new(Arc::new(keys), plan.clone());
        let message = Poly::<_, Coeff>::zero(context.backend(), params.level(params.top_level())?)?;
        let (ct, _) = secret.encrypt::<Ntt>(&context, &message, params.top_level(), &mut randomness)?;
        let time = seconds(context.backend(), || switching.automorphism(&context, &ct, 3).map(|_| ()))?;
        Ok(json!({
            "method": method, "log_n": params.ring().log_n(), "limbs": params.q().len(), "p": params.p().len(),
            "stages": format!("{stages:?}"), "ms": time * 1e3, "device_bytes": context.backend().memory_in_use(),
        }))
    }

    pub(crate) fn measure(log_n: u32) -> Result<Value, Error> {
        let transforms: Vec<Value> =
            [(log_n, 1), (log_n, 32)].into_iter().map(|(n, limbs)| transforms(n, limbs)).collect::<Result<_, _>>()?;
        let mut switches = Vec::new();
        for limbs in [8, 24, 32] {
            let q = vec![40; limbs];
            let (one, eight) = (params(log_n, &q, &[55], &[60; 4])?, params(log_n, &q, &[55; 6], &[])?);
            let plans = [
                ("hybrid, 1 prime a digit", &one, SwitchPlan::hybrid(&one, limbs)),
                ("linear", &one, SwitchPlan::linear(&one, 1)),
                ("double", &one, SwitchPlan::double(&one, limbs, 6)),
                ("hybrid, 8 primes a digit", &eight, SwitchPlan::hybrid(&eight, limbs / 8)),
            ];
            for (method, params, plan) in plans {
                for stages in [Stages::Primitive, Stages::Fused] {
                    let outcome = plan.clone().and_then(|plan| key_switch(method, params, &plan, stages));
                    switches.push(outcome.unwrap_or_else(|e| json!({"method": method, "error": e.to_string()})));
                }
            }
        }
        let cards = Driver::list().unwrap_or_default();
        let card =
            cards.first().map(|Properties { model, memory_bytes, .. }| json!({"model": model, "bytes": memory_bytes}));
        Ok(json!({"card": card, "transforms": transforms, "key_switches": switches}))
    }
}

fn main() -> std::process::ExitCode {
    #[cfg(feature = "driver")]
    {
        let log_n = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(16);
        let (report, code) = match card::measure(log_n) {
            Ok(report) => (report, 0),
            Err(error) => (serde_json::json!({"error": {"kind": error.kind(), "message": error.to_string()}}), 2),
        };
        println!("{report:#}");
        std::process::ExitCode::from(code)
    }
    #[cfg(not(feature = "driver"))]
    {
        eprintln!("built without the feature driver");
        std::process::ExitCode::from(2)
    }
}
