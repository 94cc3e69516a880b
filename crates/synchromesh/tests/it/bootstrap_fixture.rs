//! Keys for refreshes at small insecure parameters, and the judge of a refreshed message.

use std::sync::Arc;

use crate::ckks_fixture::{Slots, minus, zip};
use synchromesh::ckks::bootstrap::{Bootstrap, BootstrapLiteral, Bootstrapper, Chain, Messages};
use synchromesh::ckks::{Ciphertext, Context, Params, Rotations};
use synchromesh::rlwe::{EvaluationKeys, PublicKey, Randomness, SecretKey, Security};

pub(crate) struct Fixture {
    pub(crate) context: Arc<Context>,
    pub(crate) secret: SecretKey,
    pub(crate) public: PublicKey,
    pub(crate) keys: Arc<EvaluationKeys>,
    pub(crate) bootstrapper: Bootstrapper,
    pub(crate) randomness: Randomness,
}

pub(crate) fn literal() -> BootstrapLiteral {
    BootstrapLiteral {
        slots_to_coeffs: 2,
        coeffs_to_slots: 2,
        baby_steps: None,
        degree: 30,
        doublings: 4,
        messages: Messages::Complex,
        slots: None,
        message_bound: 1.0,
        ratio_bits: 12,
        rounds: 1,
    }
}

pub(crate) fn chain(log_n: u32) -> Chain {
    Chain {
        log_n,
        log_scale: 40,
        usable: 2,
        base_bits: 60,
        log_scale_down: 45,
        log_scale_up: 58,
        widest: 49,
        omega: 4,
        weight: 32,
        security: Security::Insecure,
    }
}

pub(crate) fn fixture(chain: Chain, literal: BootstrapLiteral, seed: u64) -> Fixture {
    let params = Params::new(chain.literal(&literal).unwrap()).unwrap();
    made(Context::new(params).unwrap(), literal, seed)
}

pub(crate) fn made(context: Arc<Context>, literal: BootstrapLiteral, seed: u64) -> Fixture {
    let bootstrap = Bootstrap::new(context.params(), literal).unwrap();
    let mut randomness = Randomness::insecure_from_number(seed);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let keys = bootstrap.generate_keys(&context, &secret, &Rotations::default(), &mut randomness).unwrap();
    let keys = Arc::new(keys);
    let bootstrapper = Bootstrapper::new(&context, bootstrap, Arc::clone(&keys)).unwrap();
    Fixture { context, secret, public, keys, bootstrapper, randomness }
}

impl Fixture {
    pub(crate) fn encrypt(&mut self, x: &Slots, level: usize) -> Ciphertext {
        let plain = self.context.encode_complex(x, 1.0).unwrap();
        self.context.encrypt_at(&self.public, &plain, level, &mut self.randomness).unwrap()
    }

    /// The largest error, which must be within the certificate, and the certificate.
    pub(crate) fn error(&self, ct: &Ciphertext, expected: &Slots) -> [f64; 2] {
        let slots = self.context.decode_complex(&self.context.decrypt(&self.secret, ct).unwrap()).unwrap();
        let error = zip(&slots, expected, minus).iter().map(|z| z.re.hypot(z.im)).fold(0.0, f64::max);
        let bound = self.context.error_bound(ct);
        assert!(error <= bound, "error {error:e} above its certificate {bound:e}");
        [error, bound]
    }
}

/// A message that repeats after as many slots as are given.
pub(crate) fn repeating(slots: &Slots, all: usize) -> Slots {
    slots.iter().copied().cycle().take(all).collect()
}
