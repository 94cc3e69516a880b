//! The three schemes behind one object, so that JavaScript has one class of columns.

mod approximate;
mod exact;

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use synchromesh::plan::{Plan, SchemeName};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::{self, EvaluationKeys, KeyId, PublicKey, Randomness, SecretKey};
use synchromesh::{bfv, bgv, ckks};

use crate::fault::Fault;
use crate::numbers::{Kind, Number};
use approximate::Approximate;
use exact::Exact;

/// A ciphertext of the scheme of one engine.
pub(crate) type Erased = Box<dyn Any>;

/// Operations on two ciphertexts, or a ciphertext and public numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
}

/// Operations on one ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Neg,
    Square,
    /// Slot i + k of its row to slot i.
    Rotate(i64),
    /// The complex conjugate; in an exact scheme the two rows change places.
    Conjugate,
}

/// What a ciphertext says of itself; depends on public data only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) level: usize,
    pub(crate) key: KeyId,
    /// Bits by which the noise may grow before decryption can fail.
    pub(crate) noise_budget: f64,
    /// How far a decrypted number may be off; 0 where results are exact.
    pub(crate) error_bound: f64,
    /// Whether its certificate is believed on the user's word.
    pub(crate) on_word: bool,
}

/// What tells the schemes apart: an evaluator and its operations.
pub(crate) trait Scheme: 'static {
    type Evaluator: 'static;
    type Ciphertext: 'static;

    fn slots(e: &Self::Evaluator) -> usize;
    fn row(e: &Self::Evaluator) -> usize;
    /// How decrypted numbers are handed out.
    fn kind(e: &Self::Evaluator) -> Kind;
    fn rlwe(e: &Self::Evaluator) -> &Arc<rlwe::Context>;
    fn with_keys(e: &Self::Evaluator, keys: Arc<EvaluationKeys>) -> Self::Evaluator;
    fn generate(e: &Self::Evaluator, randomness: &mut Randomness) -> Result<(SecretKey, PublicKey), Fault>;
    fn evaluation_keys(
        e: &Self::Evaluator,
        secret: &SecretKey,
        plan: &Plan,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys, Fault>;
    fn encrypt(
        e: &Self::Evaluator,
        key: &PublicKey,
        values: &[Number],
        bound: f64,
        randomness: &mut Randomness,
    ) -> Result<Self::Ciphertext, Fault>;
    fn decrypt(e: &Self::Evaluator, secret: &SecretKey, x: &Self::Ciphertext) -> Result<Vec<Number>, Fault>;
    fn unary(e: &Self::Evaluator, op: Unary, x: &Self::Ciphertext) -> Result<Self::Ciphertext, Fault>;
    fn binary(
        e: &Self::Evaluator,
        op: Binary,
        x: &Self::Ciphertext,
        y: &Self::Ciphertext,
    ) -> Result<Self::Ciphertext, Fault>;
    /// With a public number for each slot.
    fn plain(e: &Self::Evaluator, op: Binary, x: &Self::Ciphertext, p: &[Number]) -> Result<Self::Ciphertext, Fault>;
    /// With one public number for all slots.
    fn scalar(e: &Self::Evaluator, op: Binary, x: &Self::Ciphertext, c: &Number) -> Result<Self::Ciphertext, Fault>;
    fn state(e: &Self::Evaluator, x: &Self::Ciphertext) -> Result<State, Fault>;
    fn write(e: &Self::Evaluator, x: &Self::Ciphertext) -> Result<Vec<u8>, Fault>;
    fn read(e: &Self::Evaluator, bytes: &[u8], trust: Trust<'_>) -> Result<Self::Ciphertext, Fault>;
}

/// One scheme of a plan, with the evaluation keys it was given last.
pub(crate) trait Engine {
    fn slots(&self) -> usize;
    fn row(&self) -> usize;
    fn kind(&self) -> Kind;
    fn rlwe(&self) -> Arc<rlwe::Context>;
    fn use_keys(&self, keys: Arc<EvaluationKeys>);
    fn generate(&self, plan: &Plan) -> Result<(SecretKey, PublicKey, EvaluationKeys), Fault>;
    fn encrypt(&self, key: &PublicKey, values: &[Number], bound: f64) -> Result<Erased, Fault>;
    fn decrypt(&self, secret: &SecretKey, x: &Erased) -> Result<Vec<Number>, Fault>;
    fn unary(&self, op: Unary, x: &Erased) -> Result<Erased, Fault>;
    fn binary(&self, op: Binary, x: &Erased, y: &Erased) -> Result<Erased, Fault>;
    fn plain(&self, op: Binary, x: &Erased, p: &[Number]) -> Result<Erased, Fault>;
    fn scalar(&self, op: Binary, x: &Erased, c: &Number) -> Result<Erased, Fault>;
    fn state(&self, x: &Erased) -> Result<State, Fault>;
    fn write(&self, x: &Erased) -> Result<Vec<u8>, Fault>;
    fn read(&self, bytes: &[u8], trust: Trust<'_>) -> Result<Erased, Fault>;
}

struct Held<S: Scheme>(RefCell<S::Evaluator>);

impl<S: Scheme> Held<S> {
    fn own(x: &Erased) -> Result<&S::Ciphertext, Fault> {
        let remedy = "use columns and keys of one context";
        x.downcast_ref().ok_or_else(|| Fault::own("scheme_differs", "the column is of another scheme", remedy))
    }

    /// What `work` makes of the ciphertext inside.
    fn made(
        &self,
        x: &Erased,
        work: impl FnOnce(&S::Evaluator, &S::Ciphertext) -> Result<S::Ciphertext, Fault>,
    ) -> Result<Erased, Fault> {
        Ok(Box::new(work(&self.0.borrow(), Self::own(x)?)?))
    }
}

impl<S: Scheme> Engine for Held<S> {
    fn slots(&self) -> usize {
        S::slots(&self.0.borrow())
    }

    fn row(&self) -> usize {
        S::row(&self.0.borrow())
    }

    fn kind(&self) -> Kind {
        S::kind(&self.0.borrow())
    }

    fn rlwe(&self) -> Arc<rlwe::Context> {
        Arc::clone(S::rlwe(&self.0.borrow()))
    }

    fn use_keys(&self, keys: Arc<EvaluationKeys>) {
        let keyed = S::with_keys(&self.0.borrow(), keys);
        self.0.replace(keyed);
    }

    fn generate(&self, plan: &Plan) -> Result<(SecretKey, PublicKey, EvaluationKeys), Fault> {
        let (evaluator, mut randomness) = (self.0.borrow(), Randomness::from_os());
        let (secret, public) = S::generate(&evaluator, &mut randomness)?;
        let keys = S::evaluation_keys(&evaluator, &secret, plan, &mut randomness)?;
        let keys = plan.trim(S::rlwe(&evaluator), keys)?;
        Ok((secret, public, keys))
    }

    fn encrypt(&self, key: &PublicKey, values: &[Number], bound: f64) -> Result<Erased, Fault> {
        Ok(Box::new(S::encrypt(&self.0.borrow(), key, values, bound, &mut Randomness::from_os())?))
    }

    fn decrypt(&self, secret: &SecretKey, x: &Erased) -> Result<Vec<Number>, Fault> {
        S::decrypt(&self.0.borrow(), secret, Self::own(x)?)
    }

    fn unary(&self, op: Unary, x: &Erased) -> Result<Erased, Fault> {
        self.made(x, |e, x| S::unary(e, op, x))
    }

    fn binary(&self, op: Binary, x: &Erased, y: &Erased) -> Result<Erased, Fault> {
        let y = Self::own(y)?;
        self.made(x, |e, x| S::binary(e, op, x, y))
    }

    fn plain(&self, op: Binary, x: &Erased, p: &[Number]) -> Result<Erased, Fault> {
        self.made(x, |e, x| S::plain(e, op, x, p))
    }

    fn scalar(&self, op: Binary, x: &Erased, c: &Number) -> Result<Erased, Fault> {
        self.made(x, |e, x| S::scalar(e, op, x, c))
    }

    fn state(&self, x: &Erased) -> Result<State, Fault> {
        S::state(&self.0.borrow(), Self::own(x)?)
    }

    fn write(&self, x: &Erased) -> Result<Vec<u8>, Fault> {
        S::write(&self.0.borrow(), Self::own(x)?)
    }

    fn read(&self, bytes: &[u8], trust: Trust<'_>) -> Result<Erased, Fault> {
        Ok(Box::new(S::read(&self.0.borrow(), bytes, trust)?))
    }
}

/// The engine of a plan.
pub(crate) fn open(plan: &Plan) -> Result<Rc<dyn Engine>, Fault> {
    let routes = plan.routes.clone().map(Arc::new);
    Ok(match plan.scheme {
        SchemeName::Bfv => {
            let evaluator = bfv::Evaluator::new(&bfv::Context::new(plan.bfv()?)?, None).with_routes(routes);
            Rc::new(Held::<Exact<bfv::Bfv>>(RefCell::new(evaluator)))
        }
        SchemeName::Bgv => {
            let evaluator = bgv::Evaluator::new(&bgv::Context::new(plan.bgv()?)?, None).with_routes(routes);
            Rc::new(Held::<Exact<bgv::Bgv>>(RefCell::new(evaluator)))
        }
        SchemeName::Ckks => {
            let evaluator = ckks::Evaluator::new(&ckks::Context::new(plan.ckks()?)?, None).with_routes(routes);
            Rc::new(Held::<Approximate>(RefCell::new(evaluator)))
        }
    })
}
