//! BFV from nothing: encrypt a number, evaluate 4 (x^2 + 1) (x + 1)^2 on it, decrypt; what noise and relinearisation are.

use std::sync::Arc;

use synchromesh::bfv::{Ciphertext, Context, Evaluator, Plaintext, Rotations};
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::{Error as RlweError, PublicKey, Randomness, SecretKey};
use synchromesh::{Error, Result};

/// What the client encrypts.
const X: i64 = 6;

/// Everything the first steps make.
struct Setup {
    context: Arc<Context>,
    secret: SecretKey,
    public: PublicKey,
    randomness: Randomness,
}

fn main() -> Result<()> {
    let expected = 4 * (X * X + 1) * (X + 1) * (X + 1);
    println!("4 (x^2 + 1) (x + 1)^2 at x = {X} is {expected}\n");
    let mut setup = set_up()?;
    let x = setup.encrypt(X)?;
    let one = setup.context.encode_coefficients(&[1i64])?;
    without_relinearisation(&setup, &x, &one)?;
    let result = with_relinearisation(&mut setup, &x, &one)?;
    assert_eq!(setup.decrypt(&result)?, expected);
    println!("\ndecrypted: {expected}, as it should be");
    Ok(())
}

/// BFV computes with integers modulo t, the plaintext modulus: exactly, as long as the results stay within +-t/2.
///
/// Everything else about the parameters follows from what is to be computed. Here that is a product of products, so the
/// depth is 2. Before each product and at the end some ciphertexts are added: up to 4 x, which is 3 additions. The plan
/// is the smallest set of parameters at 128 bits of security in which this circuit surely decrypts.
fn set_up() -> Result<Setup> {
    let mut description = Description::new(SchemeName::Bfv, 2);
    description.t = Some("65537".to_owned());
    description.additions = 3;
    let plan = description.plan()?;
    println!("the plan: N = 2^{}, primes of {:?} bits, t = 65537", plan.log_n, plan.q_bits);
    println!("security: {} bits", plan.security_bits);
    assert!(plan.security_bits >= 128.0);

    // The context holds the parameters with all their tables. Whoever has the public key can encrypt; only the secret
    // key decrypts.
    let context = Context::new(plan.bfv()?)?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    Ok(Setup { context, secret, public, randomness })
}

impl Setup {
    /// A plaintext is a polynomial modulo t with N coefficients. One number goes into the constant coefficient; the
    /// next example fills all of them.
    fn encrypt(&mut self, x: i64) -> Result<Ciphertext> {
        let plaintext = self.context.encode_coefficients(&[x])?;
        let ciphertext = self.context.encrypt(&self.public, &plaintext, &mut self.randomness)?;
        self.show("x, freshly encrypted", &ciphertext)?;
        Ok(ciphertext)
    }

    fn decrypt(&self, ciphertext: &Ciphertext) -> Result<i64> {
        let plaintext = self.context.decrypt(&self.secret, ciphertext)?;
        Ok(self.context.decode_coefficients(&plaintext)?[0])
    }

    /// Every ciphertext holds some noise, and every operation adds to it. When it outgrows the modulus, decryption
    /// gives nonsense, with no sign of it in the ciphertext. Other libraries can only tell with the secret key. Here
    /// each ciphertext carries a bound on its noise that needs no key: the budget is what is left of it, in bits.
    fn show(&self, what: &str, ciphertext: &Ciphertext) -> Result<()> {
        let (budget, components) = (self.context.noise_budget(ciphertext)?, ciphertext.components());
        println!("  {what:<28} {components} components, noise budget {budget:5.1} bits");
        Ok(())
    }
}

/// The naive way. The product of two ciphertexts of two components has three. It decrypts, but it is larger, and the
/// next product would have five: this library stops at three and says what to do.
fn without_relinearisation(setup: &Setup, x: &Ciphertext, one: &Plaintext) -> Result<()> {
    println!("\nwithout relinearisation:");
    let evaluator = Evaluator::new(&setup.context, None);
    let square = evaluator.mul_no_relin(x, x)?;
    setup.show("x^2", &square)?;
    let left = evaluator.add_plain(&square, one)?;
    setup.show("x^2 + 1", &left)?;
    assert_eq!(setup.decrypt(&left)?, X * X + 1);

    let error = evaluator.mul_no_relin(&left, x).err();
    assert!(matches!(error, Some(Error::Rlwe(RlweError::Components { expected: 2, got: 3 }))));
    if let Some(error) = error {
        println!("  (x^2 + 1) x: {error}\n  what to do:  {}", error.remedy());
    }
    Ok(())
}

/// The right way. Relinearisation turns three components into two, with a key that the owner of the secret key makes and
/// the server holds. `mul` does it at once.
fn with_relinearisation(setup: &mut Setup, x: &Ciphertext, one: &Plaintext) -> Result<Ciphertext> {
    println!("\nwith relinearisation:");
    let keys = setup.context.generate_evaluation_keys(&setup.secret, &Rotations::none(), &mut setup.randomness)?;
    let evaluator = Evaluator::new(&setup.context, Some(Arc::new(keys)));
    let square = evaluator.square(x)?;
    setup.show("x^2", &square)?;
    let left = evaluator.add_plain(&square, one)?;
    setup.show("x^2 + 1", &left)?;
    let right = evaluator.square(&evaluator.add_plain(x, one)?)?;
    setup.show("(x + 1)^2", &right)?;
    let product = evaluator.mul(&left, &right)?;
    setup.show("(x^2 + 1) (x + 1)^2", &product)?;
    let result = evaluator.mul_scalar(&product, 4)?;
    setup.show("4 (x^2 + 1) (x + 1)^2", &result)?;
    assert!(setup.context.noise_budget(&result)? > 0.0);
    Ok(result)
}
