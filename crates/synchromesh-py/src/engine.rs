//! The three schemes on any device behind one object, so that Python has one class of ciphertexts.

mod approximate;
mod exact;

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

pub(crate) use approximate::Approximate;
pub(crate) use exact::Exact;

use synchromesh::circuits::{
    Arithmetic, LinearTransform, MatrixArithmetic, MatrixChoices, MatrixPlan, Number, Polynomial, PreparedTransform,
    SlotSum, inner_product,
};
use synchromesh::plan::{Plan, SchemeName};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::{self, EvaluationKeys, KeyId, PublicKey, Randomness, SecretKey};
use synchromesh::{bfv, bgv, ckks};
use synchromesh_ring::Cpu;

use crate::fault::Fault;
use crate::matrices::{self, Layout};
use crate::values::{Decoded, Values};

/// A ciphertext, or a prepared map, of the scheme and device of one engine.
pub(crate) type Erased = Box<dyn Any + Send + Sync>;

/// Steps of a product of matrices from one decomposition: at most as many rotation keys a factor.
const WINDOW: usize = 16;

/// Operations on two ciphertexts, or a ciphertext and public numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    /// x + y
    Add,
    /// x - y
    Sub,
    /// x y
    Mul,
}

/// What a ciphertext says of itself; depends on public data only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) level: usize,
    pub(crate) components: usize,
    pub(crate) key: KeyId,
    /// Bits by which the noise may grow before decryption can fail.
    pub(crate) noise_budget: f64,
    /// How far a decrypted slot may be off; 0 where results are exact.
    pub(crate) error_bound: f64,
    /// Largest absolute value of a slot; infinite where messages are residues.
    pub(crate) bound: f64,
    /// Whether its certificate is believed on the user's word.
    pub(crate) on_word: bool,
}

/// The slots that a dimension of a map's matrix counts.
pub(crate) struct Entries {
    /// Slot of the result, for each entry.
    pub(crate) to: Vec<usize>,
    /// Slot of the argument.
    pub(crate) from: Vec<usize>,
    /// The entries.
    pub(crate) values: Values,
}

/// One scheme on one device.
pub(crate) trait Engine: Send + Sync {
    fn slots(&self) -> usize;
    fn row(&self) -> usize;
    fn top_level(&self) -> usize;
    fn binary(&self, op: Binary, x: &Erased, y: &Erased) -> Result<Erased, Fault>;
    fn plain(&self, op: Binary, x: &Erased, values: &Values) -> Result<Erased, Fault>;
    fn scalar(&self, op: Binary, x: &Erased, value: &Values) -> Result<Erased, Fault>;
    fn neg(&self, x: &Erased) -> Result<Erased, Fault>;
    fn square(&self, x: &Erased) -> Result<Erased, Fault>;
    fn rotate(&self, x: &Erased, k: i64) -> Result<Erased, Fault>;
    fn swap(&self, x: &Erased) -> Result<Erased, Fault>;
    fn at_level(&self, x: &Erased, level: usize) -> Result<Erased, Fault>;
    fn declare_bound(&self, x: &Erased, bound: f64) -> Result<Erased, Fault>;
    fn sum_slots(&self, x: &Erased, sum: &SlotSum) -> Result<Erased, Fault>;
    fn inner_product(&self, x: &[&Erased], y: &[&Erased]) -> Result<Erased, Fault>;
    fn polynomial(&self, x: &Erased, coefficients: &Values) -> Result<Erased, Fault>;
    fn chebyshev(&self, x: &Erased, coefficients: &[f64], interval: (f64, f64)) -> Result<Erased, Fault>;
    /// A linear map for ciphertexts like `x`.
    fn prepare(&self, x: &Erased, entries: &Entries) -> Result<Erased, Fault>;
    fn apply(&self, map: &Erased, x: &Erased) -> Result<Erased, Fault>;
    /// How a product of R x K times K x C is best made of factors whose elements lie at `at`.
    fn matrix_product(&self, shape: [usize; 3], at: [&[usize]; 2]) -> Result<Layout, Fault>;
    fn multiply_matrices(&self, plan: &MatrixPlan, x: &[&Erased], y: &[&Erased]) -> Result<Vec<Erased>, Fault>;
    fn state(&self, x: &Erased) -> Result<State, Fault>;
    fn write(&self, x: &Erased) -> Result<Vec<u8>, Fault>;
    fn read(&self, bytes: &[u8], trust: Trust<'_>) -> Result<Erased, Fault>;
}

/// Who encrypts.
pub(crate) enum Encryptor<'a> {
    Public(&'a PublicKey),
    Secret(&'a SecretKey),
}

/// An engine with keys: on this machine's CPU.
pub(crate) trait Keyed: Engine {
    fn rlwe(&self) -> &Arc<rlwe::Context>;
    fn generate(&self) -> Result<(SecretKey, PublicKey), Fault>;
    fn evaluation_keys(&self, secret: &SecretKey, rotations: &[i64], swap: bool) -> Result<EvaluationKeys, Fault>;
    fn add_keys(&self, keys: &Arc<EvaluationKeys>);
    fn encrypt(&self, by: Encryptor<'_>, values: &Values, bound: f64, level: usize) -> Result<Erased, Fault>;
    fn decrypt(&self, secret: &SecretKey, x: &Erased, complex: bool) -> Result<Decoded, Fault>;
}

/// What tells the schemes apart, given an evaluator.
pub(crate) trait Scheme: 'static {
    type Evaluator: MatrixArithmetic + Arithmetic<Ciphertext = Self::Ciphertext> + Clone + Send + Sync;
    type Ciphertext: Send + Sync + 'static;

    fn top_level(evaluator: &Self::Evaluator) -> usize;
    fn key(x: &Self::Ciphertext) -> KeyId;
    fn state(evaluator: &Self::Evaluator, x: &Self::Ciphertext) -> Result<State, Fault>;
    fn sub(e: &Self::Evaluator, x: &Self::Ciphertext, y: &Self::Ciphertext) -> Result<Self::Ciphertext, Fault>;
    fn neg(e: &Self::Evaluator, x: &Self::Ciphertext) -> Result<Self::Ciphertext, Fault>;
    fn plain(e: &Self::Evaluator, op: Binary, x: &Self::Ciphertext, p: &Values) -> Result<Self::Ciphertext, Fault>;
    fn scalar(e: &Self::Evaluator, op: Binary, x: &Self::Ciphertext, c: &Values) -> Result<Self::Ciphertext, Fault>;
    fn declare_bound(e: &Self::Evaluator, x: Self::Ciphertext, bound: f64) -> Result<Self::Ciphertext, Fault>;
    fn chebyshev(
        e: &Self::Evaluator,
        x: &Self::Ciphertext,
        coefficients: &[f64],
        interval: (f64, f64),
    ) -> Result<Self::Ciphertext, Fault>;
    fn numbers(e: &Self::Evaluator, values: &Values) -> Result<Vec<<Self::Evaluator as Arithmetic>::Scalar>, Fault>;
    fn write(e: &Self::Evaluator, x: &Self::Ciphertext) -> Result<Vec<u8>, Fault>;
    fn read(e: &Self::Evaluator, bytes: &[u8], trust: Trust<'_>) -> Result<Self::Ciphertext, Fault>;
}

/// The evaluators of one context: one without keys, or on the dry device the only one; and one for each secret key.
pub(crate) struct Held<S: Scheme> {
    plain: S::Evaluator,
    keyed: RwLock<HashMap<KeyId, Arc<S::Evaluator>>>,
}

impl<S: Scheme> Held<S> {
    pub(crate) fn new(plain: S::Evaluator) -> Self {
        Self { plain, keyed: RwLock::default() }
    }

    fn insert(&self, keys: &EvaluationKeys, evaluator: S::Evaluator) {
        let evaluator = Arc::new(evaluator);
        let mut held = self.keyed.write().unwrap_or_else(PoisonError::into_inner);
        for id in [Some(keys.target()), keys.second().map(EvaluationKeys::target)].into_iter().flatten() {
            held.insert(id, Arc::clone(&evaluator));
        }
    }

    /// The ciphertext inside, and the evaluator with the keys it needs.
    fn with<'a, T>(
        &self,
        x: &'a Erased,
        work: impl FnOnce(&S::Evaluator, &'a S::Ciphertext) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let x = Self::own(x)?;
        let evaluator = self.keyed.read().unwrap_or_else(PoisonError::into_inner).get(&S::key(x)).cloned();
        work(evaluator.as_deref().unwrap_or(&self.plain), x)
    }

    fn all<'a>(list: &[&'a Erased]) -> Result<Vec<&'a S::Ciphertext>, Fault> {
        list.iter().map(|x| Self::own(x)).collect()
    }

    fn own(x: &Erased) -> Result<&S::Ciphertext, Fault> {
        let remedy = "use ciphertexts and keys of one context";
        x.downcast_ref()
            .ok_or_else(|| Fault::own("scheme_differs", "the object is of another scheme or device", remedy))
    }
}

fn erased<T: Send + Sync + 'static>(value: T) -> Erased {
    Box::new(value)
}

impl<S: Scheme> Engine for Held<S>
where
    PreparedTransform<S::Evaluator>: Send + Sync + 'static,
{
    fn slots(&self) -> usize {
        self.plain.slots().map_or(0, |shape| shape.count())
    }

    fn row(&self) -> usize {
        self.plain.slots().map_or(0, |shape| shape.row)
    }

    fn top_level(&self) -> usize {
        S::top_level(&self.plain)
    }

    fn binary(&self, op: Binary, x: &Erased, y: &Erased) -> Result<Erased, Fault> {
        let y = Self::own(y)?;
        self.with(x, |e, x| {
            Ok(erased(match op {
                Binary::Add => e.add(x, y)?,
                Binary::Sub => S::sub(e, x, y)?,
                Binary::Mul => e.mul(x, y)?,
            }))
        })
    }

    fn plain(&self, op: Binary, x: &Erased, values: &Values) -> Result<Erased, Fault> {
        self.with(x, |e, x| S::plain(e, op, x, values).map(erased))
    }

    fn scalar(&self, op: Binary, x: &Erased, value: &Values) -> Result<Erased, Fault> {
        self.with(x, |e, x| S::scalar(e, op, x, value).map(erased))
    }

    fn neg(&self, x: &Erased) -> Result<Erased, Fault> {
        self.with(x, |e, x| S::neg(e, x).map(erased))
    }

    fn square(&self, x: &Erased) -> Result<Erased, Fault> {
        self.with(x, |e, x| Ok(erased(e.square(x)?)))
    }

    fn rotate(&self, x: &Erased, k: i64) -> Result<Erased, Fault> {
        self.with(x, |e, x| Ok(erased(e.rotate(x, k)?)))
    }

    fn swap(&self, x: &Erased) -> Result<Erased, Fault> {
        self.with(x, |e, x| Ok(erased(e.swap(x)?)))
    }

    fn at_level(&self, x: &Erased, level: usize) -> Result<Erased, Fault> {
        self.with(x, |e, x| Ok(erased(e.at_level(x, level)?)))
    }

    fn declare_bound(&self, x: &Erased, bound: f64) -> Result<Erased, Fault> {
        self.with(x, |e, x| S::declare_bound(e, e.duplicate(x)?, bound).map(erased))
    }

    fn sum_slots(&self, x: &Erased, sum: &SlotSum) -> Result<Erased, Fault> {
        self.with(x, |e, x| Ok(erased(sum.run(e, x)?)))
    }

    fn inner_product(&self, x: &[&Erased], y: &[&Erased]) -> Result<Erased, Fault> {
        let (xs, ys) = (Self::all(x)?, Self::all(y)?);
        let Some(first) = x.first() else {
            return Err(Fault::own("shape", "an inner product of no ciphertexts", "pass at least one on each side"));
        };
        self.with(first, |e, _| Ok(erased(inner_product(e, &xs, &ys)?)))
    }

    fn polynomial(&self, x: &Erased, coefficients: &Values) -> Result<Erased, Fault> {
        self.with(x, |e, x| {
            let coefficients = S::numbers(e, coefficients)?;
            let all = coefficients.into_iter().map(synchromesh::circuits::Coefficient::All);
            Ok(erased(Polynomial::power(all)?.evaluate(e, x)?))
        })
    }

    fn chebyshev(&self, x: &Erased, coefficients: &[f64], interval: (f64, f64)) -> Result<Erased, Fault> {
        self.with(x, |e, x| S::chebyshev(e, x, coefficients, interval).map(erased))
    }

    fn prepare(&self, x: &Erased, entries: &Entries) -> Result<Erased, Fault> {
        self.with(x, |e, x| {
            let shape = e.slots()?;
            let values = S::numbers(e, &entries.values)?;
            let mut diagonals = BTreeMap::new();
            for ((&to, &from), value) in entries.to.iter().zip(&entries.from).zip(values) {
                if to.max(from) >= shape.count() {
                    let message = format!("an entry from slot {from} to slot {to} of {}", shape.count());
                    return Err(Fault::own("shape", message, "use slots that there are"));
                }
                let step = (from % shape.row + shape.row - to % shape.row) % shape.row;
                let swap = from / shape.row != to / shape.row;
                let diagonal = diagonals.entry((swap, step)).or_insert_with(|| vec![Number::integer(0); shape.count()]);
                diagonal[to] = value;
            }
            let mut map = LinearTransform::zero(shape);
            for ((swap, step), values) in diagonals {
                map.add_diagonal(step as i64, swap, values)?;
            }
            Ok(erased(map.prepare(e, e.level(x))?))
        })
    }

    fn apply(&self, map: &Erased, x: &Erased) -> Result<Erased, Fault> {
        let map: &PreparedTransform<S::Evaluator> = map.downcast_ref().ok_or_else(|| {
            Fault::own("scheme_differs", "the map is of another scheme or device", "prepare it in this context")
        })?;
        self.with(x, |e, x| Ok(erased(map.apply(e, x)?)))
    }

    fn matrix_product(&self, shape: [usize; 3], at: [&[usize]; 2]) -> Result<Layout, Fault> {
        matrices::cheapest(self.plain.slots()?, <S::Evaluator as Arithmetic>::COST.tensor, shape, at)
    }

    fn multiply_matrices(&self, plan: &MatrixPlan, x: &[&Erased], y: &[&Erased]) -> Result<Vec<Erased>, Fault> {
        let Some(first) = x.first() else {
            return Err(Fault::own("shape", "a product of no ciphertexts", "pass those of both factors"));
        };
        self.with(first, |e, _| {
            let copies = |list: &[&Erased]| -> Result<Vec<_>, Fault> {
                Self::all(list)?.into_iter().map(|x| Ok(e.duplicate(x)?)).collect()
            };
            let product = plan.multiply(e, &MatrixChoices::mixed(WINDOW), &copies(x)?, &copies(y)?)?;
            Ok(product.into_iter().map(erased).collect())
        })
    }

    fn state(&self, x: &Erased) -> Result<State, Fault> {
        self.with(x, S::state)
    }

    fn write(&self, x: &Erased) -> Result<Vec<u8>, Fault> {
        self.with(x, S::write)
    }

    fn read(&self, bytes: &[u8], trust: Trust<'_>) -> Result<Erased, Fault> {
        S::read(&self.plain, bytes, trust).map(erased)
    }
}

/// A scheme whose contexts hold keys on the CPU.
pub(crate) trait OnCpu: Scheme {
    fn with_keys(evaluator: &Self::Evaluator, keys: &Arc<EvaluationKeys>) -> Self::Evaluator;
    fn rlwe(evaluator: &Self::Evaluator) -> &Arc<rlwe::Context>;
    fn generate(e: &Self::Evaluator, randomness: &mut Randomness) -> Result<(SecretKey, PublicKey), Fault>;
    fn evaluation_keys(
        e: &Self::Evaluator,
        secret: &SecretKey,
        rotations: &[i64],
        swap: bool,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys, Fault>;
    fn encrypt(
        e: &Self::Evaluator,
        by: Encryptor<'_>,
        values: &Values,
        bound: f64,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<Self::Ciphertext, Fault>;
    fn decrypt(e: &Self::Evaluator, secret: &SecretKey, x: &Self::Ciphertext, complex: bool) -> Result<Decoded, Fault>;
}

impl<S: OnCpu> Keyed for Held<S>
where
    PreparedTransform<S::Evaluator>: Send + Sync + 'static,
{
    fn rlwe(&self) -> &Arc<rlwe::Context> {
        S::rlwe(&self.plain)
    }

    fn generate(&self) -> Result<(SecretKey, PublicKey), Fault> {
        S::generate(&self.plain, &mut Randomness::from_os())
    }

    fn evaluation_keys(&self, secret: &SecretKey, rotations: &[i64], swap: bool) -> Result<EvaluationKeys, Fault> {
        let most = 2 * self.slots().max(2);
        if rotations.len() > most {
            let message = format!("{} rotations, and there are at most {most}", rotations.len());
            return Err(Fault::own("rotations", message, "name each rotation once"));
        }
        S::evaluation_keys(&self.plain, secret, rotations, swap, &mut Randomness::from_os())
    }

    fn add_keys(&self, keys: &Arc<EvaluationKeys>) {
        self.insert(keys, S::with_keys(&self.plain, keys));
    }

    fn encrypt(&self, by: Encryptor<'_>, values: &Values, bound: f64, level: usize) -> Result<Erased, Fault> {
        S::encrypt(&self.plain, by, values, bound, level, &mut Randomness::from_os()).map(erased)
    }

    fn decrypt(&self, secret: &SecretKey, x: &Erased, complex: bool) -> Result<Decoded, Fault> {
        S::decrypt(&self.plain, secret, Self::own(x)?, complex)
    }
}

/// The engine of a plan on this machine's CPU.
pub(crate) fn open(plan: &Plan) -> Result<Arc<dyn Keyed>, Fault> {
    let routes = plan.routes.clone().map(Arc::new);
    Ok(match plan.scheme {
        SchemeName::Bfv => {
            let context = bfv::Context::new(plan.bfv()?)?;
            Arc::new(Held::<Exact<bfv::Bfv, Cpu>>::new(bfv::Evaluator::new(&context, None).with_routes(routes)))
        }
        SchemeName::Bgv => {
            let context = bgv::Context::new(plan.bgv()?)?;
            Arc::new(Held::<Exact<bgv::Bgv, Cpu>>::new(bgv::Evaluator::new(&context, None).with_routes(routes)))
        }
        SchemeName::Ckks => {
            let context = ckks::Context::new(plan.ckks()?)?;
            Arc::new(Held::<Approximate<Cpu>>::new(ckks::Evaluator::new(&context, None).with_routes(routes)))
        }
    })
}
