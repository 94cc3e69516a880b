//! Batching: N integers in one ciphertext, computed on slot by slot; what coefficients do instead, and what wraps.

use std::sync::Arc;

use synchromesh::Result;
use synchromesh::bfv::{Ciphertext, Context, Evaluator, Rotations};
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::{PublicKey, Randomness, SecretKey};

struct Setup {
    context: Arc<Context>,
    secret: SecretKey,
    public: PublicKey,
    evaluator: Evaluator,
    randomness: Randomness,
}

fn main() -> Result<()> {
    let mut setup = set_up("65537")?;
    coefficients_multiply_as_polynomials(&mut setup)?;
    slots_multiply_one_by_one(&mut setup)?;
    results_wrap_around_t(&mut setup)?;
    // 1073479681 = 2^30 - 2^18 + 1 is a prime that is 1 mod 2N as well, and large enough.
    let mut setup = set_up("1073479681")?;
    a_larger_t_holds_them(&mut setup)
}

/// Slots exist when t is a prime that is 1 mod 2N: Z_t[X]/(X^N + 1) then splits into N copies of Z_t. `min_slots` makes
/// the plan insist on them.
fn set_up(t: &str) -> Result<Setup> {
    let mut description = Description::new(SchemeName::Bfv, 1);
    description.t = Some(t.to_owned());
    description.additions = 1;
    description.min_slots = 4096;
    let plan = description.plan()?;
    println!("t = {t}: N = 2^{}, {} slots, {} bits of security", plan.log_n, plan.slots, plan.security_bits);
    assert!(plan.slots >= 4096 && plan.security_bits >= 128.0);
    let context = Context::new(plan.bfv()?)?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?;
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    Ok(Setup { context, secret, public, evaluator, randomness })
}

impl Setup {
    fn encrypt(&mut self, values: &[i64]) -> Result<Ciphertext> {
        let ciphertext = self.context.encrypt(&self.public, &self.context.encode(values)?, &mut self.randomness)?;
        self.show("encrypted", &ciphertext)?;
        Ok(ciphertext)
    }

    fn decrypt(&self, ciphertext: &Ciphertext) -> Result<Vec<i64>> {
        self.context.decode(&self.context.decrypt(&self.secret, ciphertext)?)
    }

    fn show(&self, what: &str, ciphertext: &Ciphertext) -> Result<()> {
        println!("  {what:<22} noise budget {:5.1} bits", self.context.noise_budget(ciphertext)?);
        Ok(())
    }
}

/// The naive way: one number in each coefficient. Sums act on each, but a product is one of polynomials, in which every
/// coefficient meets every other.
fn coefficients_multiply_as_polynomials(setup: &mut Setup) -> Result<()> {
    println!("\n(1 + 2 X + 3 X^2)^2, in coefficients:");
    let plaintext = setup.context.encode_coefficients(&[1i64, 2, 3])?;
    let x = setup.context.encrypt(&setup.public, &plaintext, &mut setup.randomness)?;
    setup.show("encrypted", &x)?;
    let square = setup.evaluator.square(&x)?;
    setup.show("squared", &square)?;
    let result = setup.context.decode_coefficients(&setup.context.decrypt(&setup.secret, &square)?)?;
    println!("  decrypted: {:?}, a convolution", &result[..5]);
    assert_eq!(result[..5], [1, 4, 10, 12, 9]);
    assert!(result[5..].iter().all(|&c| c == 0));
    Ok(())
}

/// In slots every operation acts on each number alone. The slots are a matrix of two rows of N/2; `encode` fills it row
/// by row, and what is not given is 0.
fn slots_multiply_one_by_one(setup: &mut Setup) -> Result<()> {
    let n = setup.context.params().n() as i64;
    println!("\nx_i^2 + x_i for {n} numbers at once, in slots:");
    let values: Vec<i64> = (0..n).map(|i| i % 201 - 100).collect();
    let x = setup.encrypt(&values)?;
    let square = setup.evaluator.square(&x)?;
    setup.show("squared", &square)?;
    let sum = setup.evaluator.add(&square, &x)?;
    setup.show("and x added", &sum)?;
    let result = setup.decrypt(&sum)?;
    assert!(result.iter().zip(&values).all(|(r, x)| *r == x * x + x));
    println!("  decrypted: {:?}, ..", &result[..4]);
    Ok(())
}

/// Slots hold integers modulo t. What leaves +-t/2 wraps around, and no budget can tell: to the scheme it is a correct
/// result.
fn results_wrap_around_t(setup: &mut Setup) -> Result<()> {
    println!("\n300^2 with t = 65537:");
    let x = setup.encrypt(&[300])?;
    let square = setup.evaluator.square(&x)?;
    setup.show("squared", &square)?;
    let result = setup.decrypt(&square)?[0];
    println!("  decrypted: {result}, which is 90000 - 65537");
    assert_eq!(result, 90_000 - 65_537);
    println!();
    Ok(())
}

/// A larger t costs noise budget, and so larger parameters; t may have up to 256 bits.
fn a_larger_t_holds_them(setup: &mut Setup) -> Result<()> {
    println!("\n300^2 with t = 2^30 - 2^18 + 1:");
    let x = setup.encrypt(&[300, -20_000])?;
    let square = setup.evaluator.square(&x)?;
    setup.show("squared", &square)?;
    let result = setup.decrypt(&square)?;
    println!("  decrypted: {:?}", &result[..2]);
    assert_eq!(result[..2], [90_000, 400_000_000]);
    Ok(())
}
