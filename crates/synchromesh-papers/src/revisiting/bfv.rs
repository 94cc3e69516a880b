//! BFV's circuits, on ciphertexts and on plain values at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use synchromesh::bfv::{
    Ciphertext, Context, Encryption, Evaluator, Multiplication, Params, ParamsLiteral, Plaintext, Rotations,
};
use synchromesh::exact::PrimeLists;
use synchromesh_rlwe::ring::prime::primes_one_mod;
use synchromesh_rlwe::{PublicKey, Randomness, SecretKey, Security};

use super::{Circuit, Measured, Products, Published, mix, noise};
use synchromesh_bench::Error;
use synchromesh_bench::key_switch::{suitable_width, widths};
use synchromesh_bench::timing::median;

/// A ciphertext with the values it should hold.
struct Value {
    ct: Ciphertext,
    plain: Vec<u64>,
}

/// Parameters, keys and a way of multiplying.
struct Setup {
    context: Arc<Context>,
    secret: SecretKey,
    public: PublicKey,
    evaluator: Evaluator,
    encryption: Encryption,
    randomness: Randomness,
    /// A different input each time.
    counter: u64,
    spent: Duration,
}

/// What a setup is for.
struct Request<'a> {
    log_n: u32,
    t: u64,
    q_bits: Vec<u32>,
    /// Digits of a key switch; none: one for each prime.
    digits: Option<usize>,
    variant: &'a str,
}

impl<'a> Request<'a> {
    /// The cell's, each prime longer by `extra` bits: more primes where they outgrow a word.
    fn of(published: &'a Published, extra: u32) -> Self {
        let &Published { log_n, log_qi, log_q, t, digits, ref variant, .. } = published;
        let count = log_q / log_qi;
        let q_bits = match log_qi + extra {
            bits if bits <= 60 => vec![bits; count as usize],
            bits => widths(count * bits, 60),
        };
        Self { log_n, t, q_bits, digits, variant }
    }

    /// For `depth` products one after another, by section 3.2: equation (10) and the bound of depth L after it, with
    /// delta = 2 sqrt(N), the noise of a key switch left out.
    fn of_depth(variant: &'a str, log_n: u32, t: u64, depth: usize) -> Result<Self, Error> {
        let delta = f64::from(log_n).mul_add(0.5, 1.0);
        let log_t = (t as f64).log2();
        // log C1 = log(delta t (5 + delta)) and log C2 = log((1 + delta + delta^2) / 2); a bit for what else there is.
        let (c1, c2) = (2.0f64.mul_add(delta, log_t) + 0.5, 2.0 * delta);
        let log_q = (depth - 1) as f64 * c1 + c1.max(c2) + delta + log_t + (depth as f64).log2() + 4.0;
        Ok(Self { log_n, t, q_bits: widths(log_q.ceil() as u32, suitable_width()?), digits: Some(3), variant })
    }
}

fn setup(request: Request<'_>) -> Result<Setup, Error> {
    let Request { log_n, t, q_bits, digits, variant } = request;
    let omega = digits.unwrap_or(q_bits.len()).min(q_bits.len());
    let digit: u32 = q_bits.len().div_ceil(omega) as u32 * q_bits[0];
    // The second base of the original multiplication is longer than Q by about log2(t N) bits: further special primes.
    let original = ["behz", "hps"].contains(&variant);
    let longer = if original { t.ilog2() + log_n + 8 } else { 0 };
    // Narrow primes are faster; wide ones among them would make conversions as slow as for all wide ones.
    let narrow = suitable_width()?;
    let width = if q_bits[0] <= narrow.max(50) { narrow } else { 60 };
    let p_bits = [widths(digit, width), if original { widths(longer, width) } else { vec![] }].concat();
    let params = Params::new(ParamsLiteral {
        log_n,
        t: t.to_string(),
        q_bits,
        p_bits,
        level_limbs: vec![],
        schedule: Default::default(),
        omega,
        security: Security::Insecure,
        primes: None,
    })?;
    let params = if original { one_modulo_t(&params, t)? } else { params };
    let how = match variant {
        "behz" => Multiplication::BEHZ,
        "hps" => Multiplication::HPS,
        "leveled" => Multiplication::LEVELED,
        _ => Multiplication::NEW,
    };
    let context = Context::new(params)?;
    let mut randomness = Randomness::insecure_from_number(2021);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?;
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys))).with_variant(how);
    let encryption = if original { Encryption::ORIGINAL } else { Encryption::NEW };
    Ok(Setup { context, secret, public, evaluator, encryption, randomness, counter: 0, spent: Duration::ZERO })
}

/// The same parameters with ciphertext primes that are 1 modulo t, where their width has as many: the original encoding
/// errs by (Q mod t) m / t (section 3), which is then least.
fn one_modulo_t(params: &Params, t: u64) -> Result<Params, Error> {
    let literal = params.literal().clone();
    let (bits, Some(lists)) = (literal.q_bits[0], &literal.primes) else { return Ok(params.clone()) };
    let others = [lists.p.as_slice(), &lists.aux].concat();
    let Some(congruence) = t.checked_mul(2 << literal.log_n).filter(|_| literal.q_bits.iter().all(|b| *b == bits))
    else {
        return Ok(params.clone());
    };
    match primes_one_mod(bits, congruence, literal.q_bits.len(), &others) {
        Ok(q) => Ok(Params::new(ParamsLiteral { primes: Some(PrimeLists { q, ..lists.clone() }), ..literal })?),
        Err(_) => Ok(params.clone()),
    }
}

impl Setup {
    fn t(&self) -> u64 {
        self.context.params().t().as_u64().unwrap_or(u64::MAX)
    }

    fn slots(&self) -> bool {
        self.context.slot_encoder().is_ok()
    }

    /// Without slots values are constant polynomials, whose products are as cheap on plain values as slots.
    fn encode(&self, plain: &[u64]) -> Result<Plaintext, Error> {
        Ok(if self.slots() { self.context.encode(plain) } else { self.context.encode_coefficients(&plain[..1]) }?)
    }

    fn input(&mut self) -> Result<Value, Error> {
        let (n, t) = (self.context.params().n(), self.t());
        let mut plain: Vec<u64> = (0..n).map(|_| mix(&mut self.counter) % t).collect();
        if !self.slots() {
            plain.truncate(1);
            // Of products of bits only those of ones say anything.
            plain[0] = 1 % t;
        }
        let (plaintext, top) = (self.encode(&plain)?, self.context.params().top_level());
        let ct = self.context.encrypt_by(self.encryption, &self.public, &plaintext, top, &mut self.randomness)?;
        Ok(Value { ct, plain })
    }

    /// Runs `work` on the clock.
    fn timed<T>(&mut self, work: impl FnOnce(&Evaluator) -> synchromesh::Result<T>) -> Result<T, Error> {
        let start = Instant::now();
        let result = work(&self.evaluator);
        self.spent += start.elapsed();
        Ok(result?)
    }

    fn log_e(&self, value: &Value) -> Result<f64, Error> {
        noise::measure(&self.context, &self.secret, &value.ct, &self.encode(&value.plain)?)
    }

    /// Products of pairs of one depth. What their operands are said to err by is what the first of them does, so that
    /// the level of a leveled product follows the noise.
    fn products(&mut self, values: &[Value], pairs: &[[usize; 2]]) -> Result<Vec<Value>, Error> {
        let (t, context) = (self.t(), Arc::clone(&self.context));
        let mut out = Vec::with_capacity(pairs.len());
        let Some(&[first, _]) = pairs.first() else { return Ok(out) };
        let log_e = self.log_e(&values[first])?;
        for &[i, j] in pairs {
            let claim = |log2: f64| -> Result<[Ciphertext; 2], Error> {
                let of = |i: usize| noise::said(&context, &values[i].ct, log2);
                Ok([of(i)?, of(j)?])
            };
            let [x, y] = claim(log_e)?;
            let ct = match self.timed(|e| e.mul(&x, &y)) {
                Err(Error::Scheme(error)) if error.kind() == "noise" => {
                    let [x, y] = claim(f64::NEG_INFINITY)?;
                    self.timed(|e| e.mul(&x, &y))
                }
                other => other,
            }?;
            let plain = values[i].plain.iter().zip(&values[j].plain);
            let plain = plain.map(|(a, b)| (u128::from(*a) * u128::from(*b) % u128::from(t)) as u64).collect();
            out.push(Value { ct, plain });
        }
        Ok(out)
    }

    fn add(&mut self, a: &Value, b: &Value) -> Result<Value, Error> {
        let t = self.t();
        let [x, y] = [a, b].map(|v| noise::said(&self.context, &v.ct, f64::NEG_INFINITY));
        let (x, y) = (x?, y?);
        let plain = a.plain.iter().zip(&b.plain).map(|(a, b)| (a + b) % t).collect();
        Ok(Value { ct: self.timed(|e| e.add(&x, &y))?, plain })
    }
}

fn tree(f: &mut Setup, k: usize) -> Result<Value, Error> {
    let mut values = (0..1 << k).map(|_| f.input()).collect::<Result<Vec<_>, _>>()?;
    while values.len() > 1 {
        let pairs: Vec<[usize; 2]> = (0..values.len() / 2).map(|i| [2 * i, 2 * i + 1]).collect();
        values = f.products(&values, &pairs)?;
    }
    values.pop().ok_or_else(|| Error::Request { reason: "an empty tree".to_owned() })
}

/// Powers by the tree that has x^i at depth log2 i, then the sum.
fn polynomial(f: &mut Setup, k: usize) -> Result<Value, Error> {
    let t = f.t();
    let mut powers = vec![f.input()?];
    while powers.len() < k {
        let known = powers.len();
        // powers[i] is x^(i+1).
        let pairs: Vec<[usize; 2]> = (known + 1..=k.min(2 * known)).map(|i| [i.div_ceil(2) - 1, i / 2 - 1]).collect();
        let next = f.products(&powers, &pairs)?;
        powers.extend(next);
    }
    let mut sum: Option<Value> = None;
    for power in &powers {
        let a = if t == 2 { 1 } else { mix(&mut f.counter) % 16 };
        let x = noise::said(&f.context, &power.ct, f64::NEG_INFINITY)?;
        let plain = power.plain.iter().map(|x| (u128::from(*x) * u128::from(a) % u128::from(t)) as u64).collect();
        let term = Value { ct: if a == 1 { x } else { f.timed(|e| e.mul_scalar(&x, a))? }, plain };
        sum = Some(match sum {
            Some(sum) => f.add(&sum, &term)?,
            None => term,
        });
    }
    let mut sum = sum.ok_or_else(|| Error::Request { reason: "an empty polynomial".to_owned() })?;
    let constant = vec![mix(&mut f.counter) % t.min(16); sum.plain.len()];
    let plaintext = f.encode(&constant)?;
    let x = noise::said(&f.context, &sum.ct, f64::NEG_INFINITY)?;
    sum.ct = f.timed(|e| e.add_plain(&x, &plaintext))?;
    sum.plain.iter_mut().zip(&constant).for_each(|(x, c)| *x = (*x + c) % t);
    Ok(sum)
}

fn inner_product(f: &mut Setup, published: &Published) -> Result<Value, Error> {
    let t = u128::from(f.t());
    let values = (0..2 * published.k).map(|_| f.input()).collect::<Result<Vec<_>, _>>()?;
    let said = |v: &Value| noise::said(&f.context, &v.ct, f64::NEG_INFINITY);
    let claimed = values.iter().map(said).collect::<Result<Vec<_>, _>>()?;
    let pairs: Vec<[&Ciphertext; 2]> = claimed.chunks_exact(2).map(|pair| [&pair[0], &pair[1]]).collect();
    let ct = f.timed(|e| match published.variant.as_str() {
        "lazy" => e.sum_of_products(&pairs),
        variant => {
            let product = |[x, y]: [&Ciphertext; 2]| match variant {
                "lazy-switch" => e.mul_no_relin(x, y),
                _ => e.mul(x, y),
            };
            let mut sum = product(pairs[0])?;
            for &pair in &pairs[1..] {
                sum = e.add(&sum, &product(pair)?)?;
            }
            if variant == "lazy-switch" { e.relinearize(&sum) } else { Ok(sum) }
        }
    })?;
    let plain = (0..values[0].plain.len()).map(|s| {
        let terms = values.chunks_exact(2).map(|v| u128::from(v[0].plain[s]) * u128::from(v[1].plain[s]) % t);
        (terms.sum::<u128>() % t) as u64
    });
    Ok(Value { ct, plain: plain.collect() })
}

/// The cell with every prime longer by `extra` bits, and the security; none where the certificates refuse it.
pub(super) fn measure(published: &Published, extra: u32) -> Result<(Option<Measured>, f64), Error> {
    let mut f = setup(Request::of(published, extra))?;
    let security_bits = f.context.params().rlwe().security_bits();
    match run(&mut f, published) {
        Err(Error::Scheme(error)) if error.kind() == "noise" => Ok((None, security_bits)),
        other => Ok((Some(other?), security_bits)),
    }
}

/// Constants and keys are made at first use.
fn warm_up(f: &mut Setup) -> Result<(), Error> {
    let warm = f.input()?;
    let warm = noise::said(&f.context, &warm.ct, f64::NEG_INFINITY)?;
    f.timed(|e| e.mul(&warm, &warm)).map(|_| ())
}

fn circuit(f: &mut Setup, published: &Published) -> Result<Value, Error> {
    f.spent = Duration::ZERO;
    match published.circuit {
        Circuit::Tree => tree(f, published.k),
        Circuit::Polynomial => polynomial(f, published.k),
        Circuit::InnerProduct => inner_product(f, published),
    }
}

fn run(f: &mut Setup, published: &Published) -> Result<Measured, Error> {
    warm_up(f)?;
    let mut runs = vec![one_run(f, published)?];
    while runs.len() < super::runs(runs[0].seconds) {
        runs.push(one_run(f, published)?);
    }
    let params = f.context.params();
    Ok(Measured {
        ours_log_n: params.log_n(),
        ours_log_q: params.log2_modulus(params.top_level())?,
        ours_log_e: median(runs.iter().map(|run| run.log_e).collect()),
        ours_s: runs.iter().map(|run| run.seconds).fold(f64::INFINITY, f64::min),
        correct: runs.iter().all(|run| run.correct),
    })
}

/// What one run of a circuit on inputs of its own comes to.
struct OneRun {
    log_e: f64,
    seconds: f64,
    correct: bool,
}

fn one_run(f: &mut Setup, published: &Published) -> Result<OneRun, Error> {
    let result = circuit(f, published)?;
    let expected = f.encode(&result.plain)?;
    let claimed = noise::said(&f.context, &result.ct, f64::NEG_INFINITY)?;
    let decrypted = f.context.decrypt(&f.secret, &claimed)?;
    Ok(OneRun {
        log_e: f.log_e(&result)?,
        seconds: f.spent.as_secs_f64(),
        correct: f.context.decode_coefficients_big(&decrypted)? == f.context.decode_coefficients_big(&expected)?,
    })
}

/// See [`super::products`].
pub(super) fn products(variant: &str, log_n: u32, t: u64, depth: usize) -> Result<Products, Error> {
    let mut f = setup(Request::of_depth(variant, log_n, t, depth)?)?;
    let mut values = vec![f.input()?, f.input()?];
    let mut milliseconds = Vec::with_capacity(depth);
    for _ in 0..depth {
        // The first pair makes the constants of its level.
        f.products(&values, &[[0, 1]])?;
        f.spent = Duration::ZERO;
        values = f.products(&values, &[[0, 1], [1, 0]])?;
        milliseconds.push(f.spent.as_secs_f64() * 1e3 / 2.0);
    }
    let params = f.context.params();
    let log_q = params.log2_modulus(params.top_level())?;
    let claimed = noise::said(&f.context, &values[0].ct, f64::NEG_INFINITY)?;
    let decrypted = f.context.decode_coefficients_big(&f.context.decrypt(&f.secret, &claimed)?)?;
    if decrypted != f.context.decode_coefficients_big(&f.encode(&values[0].plain)?)? {
        return Err(Error::Request { reason: format!("{depth} products in {variant} with t = {t} decrypted wrongly") });
    }
    Ok(Products { milliseconds, log_q, security_bits: params.rlwe().security_bits() })
}
