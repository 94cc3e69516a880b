//! What tells BFV, BGV and CKKS apart, behind one trait, for code that is written once for the three.
//!
//! Operations of ciphertexts are [`circuits::Arithmetic`], which the three evaluators
//! implement; a [`Scheme`] says how one comes from a plan to an evaluator, and how numbers enter and leave ciphertexts.
//! [`Values`] are the numbers of any scheme, [`Operation`] is what is computed with them as data. A
//! [`Session`](crate::session::Session) is a scheme at a plan on a device.

mod approximate;
mod exact;
mod operation;
mod values;

use std::sync::Arc;

use synchromesh_rlwe::codec::Trust;
use synchromesh_rlwe::ring::{Backend, Coeff, Cpu, Ntt, Poly, Ring};
use synchromesh_rlwe::wire::EnvelopeKey;
use synchromesh_rlwe::{
    self as rlwe, EvaluationKeys, KeyId, PublicKey, Randomness, SecretKey, SwitchDomain, SwitchPlan,
};

pub use self::operation::{Binary, Entries, Operation, Where, apply, linear_map};
pub use self::values::Values;
use crate::circuits::functions::{Approximation, Table};
use crate::circuits::{self, Arithmetic, MatrixArithmetic};
use crate::ckks::{Lineage, Published, Release};
use crate::error::{Error, Result};
pub use crate::opening::{Hiding, Opening};
use crate::plan::{Joint, Plan, SchemeName};
use crate::rotations::Rotations;

/// Who encrypts.
pub enum Encryptor<'a, B: Backend = Cpu> {
    /// Anybody.
    Public(&'a PublicKey<B>),
    /// The owner of the secret key, with less noise.
    Secret(&'a SecretKey<B>),
}

/// What a ciphertext says of itself; depends on public data only.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct State {
    /// Modulus switches or rescales that remain.
    pub level: usize,
    /// Components, 2 or 3.
    pub components: usize,
    /// The secret key that it is under.
    pub key: KeyId,
    /// log2 of the modulus.
    pub modulus_bits: f64,
    /// log2 of the certified bound on the noise.
    pub noise_bits: f64,
    /// Bits by which the noise may grow before decryption can fail.
    pub noise_budget: f64,
    /// How far a decrypted slot may be off; 0 where results are exact.
    pub error_bound: f64,
    /// Largest absolute value of a slot that the message is declared to have; infinite where messages are residues.
    pub bound: f64,
    /// Whether its certificate is believed on the user's word.
    pub on_word: bool,
    /// How it came about; nothing in exact schemes.
    pub lineage: Option<Lineage>,
}

impl State {
    /// What the layer below knows; exact, and of any bound.
    fn of<B: Backend, D: SwitchDomain>(context: &rlwe::Context<B>, x: &rlwe::Ciphertext<B, D>) -> Result<Self> {
        let params = context.params();
        Ok(Self {
            level: x.level(),
            components: x.parts().len(),
            key: x.key(),
            modulus_bits: params.ring().log2(params.level(x.level())?),
            noise_bits: f64::NAN,
            noise_budget: f64::NAN,
            error_bound: 0.0,
            bound: f64::INFINITY,
            on_word: x.noise().certificate.is_on_word(),
            lineage: None,
        })
    }
}

/// A scheme: from a plan to an evaluator, and from numbers to ciphertexts and back.
///
/// [`Bfv`](crate::bfv::Bfv), [`Bgv`](crate::bgv::Bgv) and [`Ckks`](crate::ckks::Ckks) implement it, on every device.
pub trait Scheme: Sized + 'static {
    /// Its name.
    const NAME: SchemeName;
    /// Checked parameters.
    type Params: Send + Sync;
    /// Parameters on a device.
    type Context<B: Backend>: Send + Sync + 'static;
    /// Operations on ciphertexts.
    type Evaluator<B: Backend>: MatrixArithmetic
        + Arithmetic<Backend = B, Ciphertext = Self::Ciphertext<B>, Scalar = Self::Number>
        + Clone
        + Send
        + 'static;
    /// A ciphertext.
    type Ciphertext<B: Backend>: Send + Sync + 'static;
    /// A number of a slot: an integer, or a complex number.
    type Number: circuits::Number;

    /// The parameters in a plan.
    ///
    /// # Errors
    /// [`Error::Argument`] for a plan of another scheme, or parameters that fail their checks.
    fn params(plan: &Plan) -> Result<Self::Params>;

    /// The same parameters for a key that parties hold together, made as it says: certificates then hold for it.
    fn with_joint(params: &Self::Params, joint: &Joint) -> Self::Params;

    /// The ring that a device is opened for.
    fn ring(params: &Self::Params) -> &Arc<Ring>;

    /// An evaluator without keys for the parameters on a device.
    ///
    /// # Errors
    /// When the device fails.
    fn open<B: Backend>(params: Self::Params, backend: B) -> Result<Self::Evaluator<B>>;

    /// An evaluator without keys at a plan with these parameters, which refreshes if the plan does; `device` opens a device
    /// for a ring.
    ///
    /// # Errors
    /// When the device fails; as `Bootstrap::new` of the scheme.
    fn open_plan<B: Backend>(
        plan: &Plan,
        params: Self::Params,
        device: &dyn Fn(&Arc<Ring>) -> Result<B>,
    ) -> Result<Self::Evaluator<B>>;

    /// The same evaluator with these keys.
    fn with_keys<B: Backend>(e: &Self::Evaluator<B>, keys: Arc<EvaluationKeys<B>>) -> Self::Evaluator<B>;

    /// The highest level that messages are encrypted at.
    fn top_level<B: Backend>(e: &Self::Evaluator<B>) -> usize {
        Self::rlwe(Self::context(e)).params().top_level()
    }

    /// The evaluator's context.
    fn context<B: Backend>(e: &Self::Evaluator<B>) -> &Arc<Self::Context<B>>;

    /// The context of the layer below, where keys live.
    fn rlwe<B: Backend>(context: &Self::Context<B>) -> &Arc<rlwe::Context<B>>;

    /// How keys at rest are cut.
    fn switch_plan<B: Backend>(context: &Self::Context<B>) -> &SwitchPlan;

    /// The keys that relinearisation and these rotations need.
    ///
    /// # Errors
    /// [`rlwe::Error::Entropy`] without randomness, rotations where there are no slots, or when the device fails.
    fn generate_evaluation_keys<B: Backend>(
        context: &Self::Context<B>,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>>;

    /// The keys that relinearisation, these rotations, and refreshes need where the evaluator refreshes.
    ///
    /// # Errors
    /// As [`Self::generate_evaluation_keys`].
    fn generate_all_keys<B: Backend>(
        e: &Self::Evaluator<B>,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>>;

    /// The Galois elements of rotations, in rising order and without 1.
    ///
    /// # Errors
    /// Rotations where there are no slots.
    fn galois_elements<B: Backend>(context: &Self::Context<B>, rotations: &Rotations) -> Result<Vec<usize>>;

    /// Numbers as slots have them.
    ///
    /// # Errors
    /// [`Error::NumberForm`] for a form that the scheme does not compute with.
    fn numbers(values: &Values) -> Result<Vec<Self::Number>>;

    /// The numbers of slots in a form that [`Self::encrypt`] takes.
    fn values(numbers: &[Self::Number]) -> Values;

    /// Fails unless a slot holds each of these numbers as it is.
    ///
    /// # Errors
    /// [`Error::NumberExceedsModulus`] outside -(t-1)/2 to t/2 in an exact scheme.
    fn require_held<B: Backend>(context: &Self::Context<B>, numbers: &[Self::Number]) -> Result<()>;

    /// Encrypts numbers, none larger than `bound`, at a level; slots that are not given are 0. An exact scheme looks at no
    /// bound but t/2.
    ///
    /// # Errors
    /// Numbers that the scheme cannot hold, or too many; a level that there is not or that has no room; another key.
    fn encrypt<B: Backend>(
        context: &Arc<Self::Context<B>>,
        by: &Encryptor<'_, B>,
        values: &Values,
        bound: f64,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<Self::Ciphertext<B>>;

    /// All slots: integers, or complex numbers. Those of CKKS show traces of the key; see [`Self::publish`].
    ///
    /// # Errors
    /// [`rlwe::Error::KeysDiffer`] for another key, [`rlwe::Error::Noise`] for a certificate that leaves no room.
    fn decrypt<B: Backend>(
        context: &Self::Context<B>,
        secret: &SecretKey<B>,
        x: &Self::Ciphertext<B>,
    ) -> Result<Values>;

    /// All slots for others to see, with noise that hides what the error says about the key.
    ///
    /// # Errors
    /// [`Error::Release`] for a request that leaves less precision than it asks for, and in an exact scheme; as
    /// [`Self::decrypt`].
    fn publish<B: Backend>(
        context: &Self::Context<B>,
        secret: &SecretKey<B>,
        x: &Self::Ciphertext<B>,
        release: &Release,
    ) -> Result<Published>;

    /// What parties who decrypt x together add their shares to, with the noise that each of them has to add.
    ///
    /// # Errors
    /// [`rlwe::Error::OnWord`] for a certificate that is believed on the user's word, [`rlwe::Error::Components`] for a
    /// product that was not relinearised, [`rlwe::Error::Noise`] or [`Error::Release`] where the noise leaves no room or
    /// less precision than is asked for.
    fn opening<B: Backend>(
        context: &Self::Context<B>,
        x: &Self::Ciphertext<B>,
        hiding: &Hiding,
    ) -> Result<Opening<Self::Ciphertext<B>, B>>;

    /// All slots, from the phase of an opening with everybody's noise in it; all coefficients where there are no slots.
    ///
    /// # Errors
    /// When the device fails.
    fn opened<B: Backend>(
        context: &Self::Context<B>,
        opening: &Opening<Self::Ciphertext<B>, B>,
        phase: &Poly<B, Coeff>,
    ) -> Result<Values>;

    /// The ciphertext of an opening under another key, of these components in the ring's slots.
    ///
    /// # Errors
    /// As [`Self::opening`].
    fn passed_on<B: Backend>(
        context: &Self::Context<B>,
        opening: &Opening<Self::Ciphertext<B>, B>,
        key: KeyId,
        parts: [Poly<B, Ntt>; 2],
    ) -> Result<Self::Ciphertext<B>>;

    /// The ciphertext as a container; with an envelope key, authenticated under it.
    ///
    /// # Errors
    /// [`rlwe::Error::OnWord`] for a certificate that was itself believed on the user's word where it shall be
    /// authenticated, or when the device fails.
    fn write<B: Backend>(
        context: &Self::Context<B>,
        x: &Self::Ciphertext<B>,
        envelope: Option<&EnvelopeKey>,
    ) -> Result<Vec<u8>>;

    /// The ciphertext in a container, under the secret key `key` if one is named, its certificate believed as far as
    /// `trust` gives a reason.
    ///
    /// # Errors
    /// [`rlwe::Error::Wire`] for bytes that are no ciphertext of these parameters and this key.
    fn read<B: Backend>(
        context: &Self::Context<B>,
        bytes: &[u8],
        key: Option<KeyId>,
        trust: Trust<'_>,
    ) -> Result<Self::Ciphertext<B>>;

    /// The same ciphertext on the device of another context of the same parameters.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`], or when a device fails.
    fn transfer<B: Backend, To: Backend>(
        from: &Self::Context<B>,
        x: &Self::Ciphertext<B>,
        to: &Self::Context<To>,
    ) -> Result<Self::Ciphertext<To>>;

    /// The secret key that a ciphertext is under.
    fn key<B: Backend>(x: &Self::Ciphertext<B>) -> KeyId;

    /// Where a ciphertext stands.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`] for one of other parameters.
    fn state<B: Backend>(context: &Self::Context<B>, x: &Self::Ciphertext<B>) -> Result<State>;

    /// x, which is under another secret key, under that of the evaluator's keys.
    ///
    /// # Errors
    /// [`rlwe::Error::MissingKey`] without a key from the secret key that x is under, or when the device fails.
    fn rekey<B: Backend>(e: &Self::Evaluator<B>, x: &Self::Ciphertext<B>) -> Result<Self::Ciphertext<B>>;

    /// x with a public vector; slots that it does not name meet 0.
    ///
    /// # Errors
    /// As [`Self::require_held`], and the evaluator's.
    fn plain<B: Backend>(
        e: &Self::Evaluator<B>,
        op: Binary,
        x: &Self::Ciphertext<B>,
        values: &Values,
    ) -> Result<Self::Ciphertext<B>>;

    /// x with one public number in every slot; an exact scheme takes it modulo t.
    ///
    /// # Errors
    /// The evaluator's.
    fn scalar<B: Backend>(
        e: &Self::Evaluator<B>,
        op: Binary,
        x: &Self::Ciphertext<B>,
        c: Self::Number,
    ) -> Result<Self::Ciphertext<B>>;

    /// x as the ciphertext of a message that none of its slots is further from than `error`.
    ///
    /// # Errors
    /// [`Error::NotOfScheme`] in an exact scheme; as [`declare_error`](crate::ckks::Evaluator::declare_error).
    fn approximate<B: Backend>(
        e: &Self::Evaluator<B>,
        x: &Self::Ciphertext<B>,
        error: f64,
    ) -> Result<Self::Ciphertext<B>> {
        let _ = (e, x, error);
        Err(Error::NotOfScheme { operation: "approximations", scheme: Self::NAME.name() })
    }

    /// An approximated function of as many ciphertexts as it has arguments.
    ///
    /// # Errors
    /// [`Error::NotOfScheme`] in an exact scheme; as [`Approximation::evaluate`].
    fn function<B: Backend>(
        e: &Self::Evaluator<B>,
        approximation: &Approximation,
        x: &[&Self::Ciphertext<B>],
    ) -> Result<Self::Ciphertext<B>> {
        let _ = (e, approximation, x);
        Err(Error::NotOfScheme { operation: "approximated functions", scheme: Self::NAME.name() })
    }

    /// A function of integers by its values, of one ciphertext or of the difference of two.
    ///
    /// # Errors
    /// [`Error::NotOfScheme`] in CKKS; as [`Self::require_held`] of its values, and [`Table::evaluate`].
    fn table<B: Backend>(
        e: &Self::Evaluator<B>,
        table: &Table,
        x: &[&Self::Ciphertext<B>],
    ) -> Result<Self::Ciphertext<B>> {
        let _ = (e, table, x);
        Err(Error::NotOfScheme { operation: "tables of integers", scheme: Self::NAME.name() })
    }

    /// The ciphertext, of whose message the caller says that it is 0 beside these slots.
    ///
    /// # Errors
    /// [`Error::Argument`] unless there is a word for each slot.
    fn zeros<B: Backend>(e: &Self::Evaluator<B>, x: &Self::Ciphertext<B>, own: &[bool]) -> Result<Self::Ciphertext<B>> {
        let _ = own;
        e.duplicate(x)
    }

    /// sum_i c_i T_i(u), u the affine map of an interval to \[-1, 1\], in some slots or all.
    ///
    /// # Errors
    /// [`Error::NotOfScheme`] in an exact scheme; as [`Polynomial::chebyshev`](circuits::Polynomial::chebyshev).
    fn chebyshev<B: Backend>(
        e: &Self::Evaluator<B>,
        x: &Self::Ciphertext<B>,
        coefficients: &[f64],
        interval: (f64, f64),
        slots: Where<'_>,
    ) -> Result<Self::Ciphertext<B>> {
        let _ = (e, x, coefficients, interval, slots);
        Err(Error::NotOfScheme { operation: "Chebyshev polynomials", scheme: Self::NAME.name() })
    }
}
