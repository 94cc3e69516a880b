//! The npm package `synchromesh`: keys, columns of encrypted numbers and arithmetic on them, in JavaScript.
//!
//! Files are those of the command line and of the Python package. Randomness comes from `crypto.getRandomValues` and from
//! nowhere else. What users see is described in `README.md` and in the declarations for TypeScript.

#![deny(unsafe_code)]

mod column;
mod fault;
mod numbers;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use synchromesh::bundle::{Bundle, CIPHERTEXT, ColumnHead, KEY, Kind, PLAN};
use synchromesh::plan::{Description, Plan, SchemeName};
use synchromesh::rlwe::derived_key::second_id;
use synchromesh::rlwe::{self, KeyId, Randomness, wire};
use synchromesh::scheme::Encryptor;
use synchromesh::session::AnySession;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::Zeroizing;

use column::Column;
use fault::Fault;
use numbers::Number;

/// Bits of security under which keys are refused unless the caller insists.
const SECURE_BITS: f64 = 128.0;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** Numbers for slots: integers in bfv and bgv, reals in ckks. */
export type Numbers = ArrayLike<number> | ArrayLike<bigint>;

/** What every function of the package throws. */
export interface SynchromeshError extends Error {
    name: "SynchromeshError";
    /** A stable word for programs. */
    kind: string;
    /** What to do about it. */
    remedy: string;
}
"#;

/// The envelope key of a context, and the secret key whose files it is for.
struct Envelope {
    key: wire::EnvelopeKey,
    id: KeyId,
}

/// What a context shares with its keys and columns.
struct Shared {
    session: Arc<dyn AnySession>,
    plan: Plan,
    text: String,
    envelope: RefCell<Option<Arc<Envelope>>>,
}

impl Shared {
    /// Numbers in a ciphertext.
    fn slots(&self) -> Result<usize, Fault> {
        Ok(self.session.slots()?.count())
    }

    /// The envelope key for files under a secret key, or under the second one that belongs to it.
    fn envelope(&self, id: KeyId) -> Option<Arc<Envelope>> {
        self.envelope.borrow().clone().filter(|envelope| envelope.id == id || second_id(envelope.id) == id)
    }

    /// The file of a key of the secret key `id`: sealed if there is an envelope key for it.
    fn file(&self, kind: Kind, key: &[u8], id: KeyId) -> Result<Vec<u8>, Fault> {
        let envelope = self.envelope(id);
        let sections = [(PLAN, self.text.as_bytes()), (KEY, key)];
        Ok(Bundle::encode(kind, &sections, envelope.as_deref().map(|envelope| &envelope.key))?.to_vec())
    }

    /// The key in a file, read by `read`; refused if it is not authentic though there is an envelope key for it.
    fn key<K>(
        &self,
        kind: Kind,
        file: Vec<u8>,
        read: impl FnOnce(&rlwe::Context, &[u8]) -> Result<K, rlwe::Error>,
    ) -> Result<Arc<K>, Fault> {
        let bundle = Bundle::decode(file)?.require(kind)?;
        if let Some(envelope) = self.envelope(bundle.key_id()?) {
            bundle.authentic(Some(&envelope.key))?;
        }
        Ok(Arc::new(read(self.session.rlwe(), bundle.one(KEY)?)?))
    }
}

/// The plan of a description, both JSON: the smallest secure parameters at which what it describes can be computed. The
/// description names `scheme` ("bfv", "bgv" or "ckks"), `depth` (multiplications one after the other) and what else it wants
/// of `t`, `precision`, `additions`, `rotations`, `swap`, `min_slots`, `security`, and the other choices of `synchromesh plan`.
///
/// @throws {SynchromeshError}
#[wasm_bindgen]
pub fn plan(description: &str) -> Result<String, JsValue> {
    Ok(described(description)?.plan().and_then(|plan| plan.to_json()).map_err(Fault::from)?)
}

/// A description of which all but the scheme may be left out.
fn described(text: &str) -> Result<Description, Fault> {
    let wrong = |e: serde_json::Error| Fault::own("params", format!("the description: {e}"), "correct the field named");
    let given: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).map_err(wrong)?;
    if !given.contains_key("scheme") {
        return Err(Fault::own("params", "the description names no scheme", "name bfv, bgv or ckks"));
    }
    let mut whole = serde_json::to_value(Description::new(SchemeName::Bfv, 0)).map_err(wrong)?;
    whole.as_object_mut().into_iter().for_each(|fields| fields.extend(given.clone()));
    serde_json::from_value(whole).map_err(wrong)
}

/// The vectors that this build computes with: "simd128" or "scalar".
#[wasm_bindgen(js_name = instructionSet)]
#[must_use]
pub fn instruction_set() -> String {
    synchromesh_ring::isa::Isa::best().name().to_owned()
}

/// The parameters of a plan, and what is made under them.
#[wasm_bindgen]
pub struct Context(Rc<Shared>);

#[wasm_bindgen]
impl Context {
    /// The context of a plan, the JSON text that `synchromesh plan` writes. A plan of less than 128 bits of security is
    /// refused unless `insecure` is true.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(constructor)]
    pub fn new(plan: &str, insecure: Option<bool>) -> Result<Self, JsValue> {
        let parsed = Plan::from_json(plan).map_err(Fault::from)?;
        let bits = parsed.security_bits;
        if bits < SECURE_BITS && insecure != Some(true) {
            let message = format!("the plan has {bits:.1} bits of security, less than {SECURE_BITS}");
            return Err(Fault::own("insecure", message, "plan anew, or pass insecure = true for tests").into());
        }
        let session = parsed.open_any().map_err(Fault::from)?;
        let text = parsed.to_json().map_err(Fault::from)?;
        Ok(Self(Rc::new(Shared { session, plan: parsed, text, envelope: RefCell::default() })))
    }

    /// The context of the plan inside a file of keys or ciphertexts.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(js_name = ofFile)]
    pub fn of_file(file: Vec<u8>, insecure: Option<bool>) -> Result<Self, JsValue> {
        let bundle = Bundle::decode(file).map_err(Fault::from)?;
        let plan = bundle.plan().map_err(Fault::from)?.to_json().map_err(Fault::from)?;
        Self::new(&plan, insecure)
    }

    /// "bfv", "bgv" or "ckks".
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn scheme(&self) -> String {
        self.0.plan.scheme.name().to_owned()
    }

    /// Numbers in a ciphertext; 0 where t has no slots.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn slots(&self) -> usize {
        self.0.slots().unwrap_or(0)
    }

    /// Numbers that `rotate` turns as one ring: all slots in ckks, half of them in bfv and bgv.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn row(&self) -> usize {
        self.0.session.slots().map_or(0, |shape| shape.row)
    }

    /// The plan, as JSON.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn plan(&self) -> String {
        self.0.text.clone()
    }

    /// New keys of the plan, with the envelope key of their files, which the context uses from then on.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(js_name = generateKeys)]
    pub fn generate_keys(&self) -> Result<Keys, JsValue> {
        let (session, mut randomness) = (&self.0.session, Randomness::from_os());
        let (secret, public) = session.generate_keys(&mut randomness).map_err(Fault::from)?;
        let evaluation =
            session.generate_keys_for(&secret, session.rotations(), &mut randomness).map_err(Fault::from)?;
        let key = wire::EnvelopeKey::random().map_err(|e| Fault::from(rlwe::Error::from(e)))?;
        let envelope = Arc::new(Envelope { key, id: secret.id() });
        self.0.envelope.replace(Some(Arc::clone(&envelope)));
        let shared = || Rc::clone(&self.0);
        Ok(Keys {
            secret: SecretKey { shared: shared(), key: Arc::new(secret) },
            public: PublicKey { shared: shared(), key: Arc::new(public) },
            evaluation: EvaluationKeys { shared: shared(), key: Arc::new(evaluation) },
            envelope: EnvelopeKey { shared: shared(), key: envelope },
        })
    }

    /// The secret key in a file, `secret.key`.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(js_name = readSecretKey)]
    pub fn read_secret_key(&self, file: Vec<u8>) -> Result<SecretKey, JsValue> {
        let key =
            self.0.key(Kind::SecretKey, file, |context, bytes| rlwe::SecretKey::from_bytes(context, bytes, None))?;
        Ok(SecretKey { shared: Rc::clone(&self.0), key })
    }

    /// The public key in a file, `public.key`.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(js_name = readPublicKey)]
    pub fn read_public_key(&self, file: Vec<u8>) -> Result<PublicKey, JsValue> {
        let read = |context: &rlwe::Context, bytes: &[u8]| rlwe::PublicKey::from_bytes(context, bytes, None, None);
        let key = self.0.key(Kind::PublicKey, file, read)?;
        Ok(PublicKey { shared: Rc::clone(&self.0), key })
    }

    /// The evaluation keys in a file, `eval.keys`.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(js_name = readEvaluationKeys)]
    pub fn read_evaluation_keys(&self, file: Vec<u8>) -> Result<EvaluationKeys, JsValue> {
        let read = |context: &rlwe::Context, bytes: &[u8]| rlwe::EvaluationKeys::from_bytes(context, bytes, None, None);
        let key = self.0.key(Kind::EvaluationKeys, file, read)?;
        Ok(EvaluationKeys { shared: Rc::clone(&self.0), key })
    }

    /// The envelope key in a file, `envelope.key`, which the context uses from then on.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(js_name = readEnvelopeKey)]
    pub fn read_envelope_key(&self, file: Vec<u8>) -> Result<EnvelopeKey, JsValue> {
        let bundle = Bundle::decode(file).and_then(|bundle| bundle.require(Kind::EnvelopeKey)).map_err(Fault::from)?;
        let container = bundle.one(KEY).map_err(Fault::from)?;
        let read = wire::EnvelopeKey::from_container(self.0.session.rlwe().params(), container);
        let (key, id) = read.map_err(Fault::from)?;
        bundle.authentic(Some(&key)).map_err(Fault::from)?;
        let key = Arc::new(Envelope { key, id });
        self.0.envelope.replace(Some(Arc::clone(&key)));
        Ok(EnvelopeKey { shared: Rc::clone(&self.0), key })
    }

    /// Multiplies and rotates with these keys from then on.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(js_name = useKeys)]
    pub fn use_keys(&self, keys: &EvaluationKeys) -> Result<(), JsValue> {
        if keys.shared.session.rlwe().params() != self.0.session.rlwe().params() {
            let message = "the evaluation keys were made under other parameters";
            return Err(Fault::own("params_differ", message, "use keys of this context's plan").into());
        }
        self.0.session.add_keys(&keys.key);
        Ok(())
    }

    /// Encrypts numbers, as many ciphertexts as they take. In ckks none may be larger than `bound`, which is public; 1
    /// unless it is given. In bfv and bgv they are integers from -t/2 to t/2.
    ///
    /// @throws {SynchromeshError}
    pub fn encrypt(
        &self,
        key: &PublicKey,
        #[wasm_bindgen(unchecked_param_type = "Numbers")] values: &JsValue,
        bound: Option<f64>,
        name: Option<String>,
    ) -> Result<Column, JsValue> {
        let given = Number::all_from_js(values)?;
        if given.is_empty() {
            return Err(Fault::own("shape", "a column of no numbers", "pass at least one").into());
        }
        let (session, by) = (&self.0.session, Encryptor::Public(&key.key));
        let (bound, top, mut randomness) = (bound.unwrap_or(1.0), session.top_level(), Randomness::from_os());
        let encrypt = |part: &[Number]| {
            let held = numbers::values(part, self.0.plan.scheme)?;
            session.require_held(&held)?;
            Ok(session.encrypt(&by, &held, bound, top, &mut randomness)?)
        };
        let parts = given.chunks(self.0.slots()?).map(encrypt).collect::<Result<_, Fault>>()?;
        let head = ColumnHead { name: name.unwrap_or_else(|| "x".to_owned()), rows: given.len() };
        Ok(Column { shared: Rc::clone(&self.0), head, parts })
    }

    /// The encrypted column in a file. Its certificates are believed if the file is authentic under the envelope key, or if
    /// `trustCertificate` is true.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(js_name = readColumn)]
    pub fn read_column(&self, file: Vec<u8>, trust_certificate: Option<bool>) -> Result<Column, JsValue> {
        Ok(self.column(file, trust_certificate == Some(true))?)
    }
}

impl Context {
    fn column(&self, file: Vec<u8>, on_word: bool) -> Result<Column, Fault> {
        let bundle = Bundle::decode(file)?.require(Kind::Column)?;
        let envelope = self.0.envelope(bundle.key_id()?);
        let trust = bundle.trust(envelope.as_deref().map(|envelope| &envelope.key), on_word)?;
        let head = ColumnHead::of(&bundle)?;
        let (count, slots) = (bundle.all(CIPHERTEXT).count(), self.0.slots()?);
        if head.rows == 0 || count != head.rows.div_ceil(slots) {
            let message = format!("{count} ciphertexts of {slots} slots do not make a column of {} rows", head.rows);
            return Err(Fault::own("session", message, "give the file that was meant"));
        }
        let parts =
            bundle.all(CIPHERTEXT).map(|bytes| self.0.session.read(bytes, None, trust)).collect::<Result<_, _>>()?;
        Ok(Column { shared: Rc::clone(&self.0), head, parts })
    }
}

/// The keys of a plan.
#[wasm_bindgen]
pub struct Keys {
    secret: SecretKey,
    public: PublicKey,
    evaluation: EvaluationKeys,
    envelope: EnvelopeKey,
}

/// A class of JavaScript around a key, with what all keys have and what stands in braces.
macro_rules! key_class {
    ($(#[$doc:meta])* $name:ident($key:ty, $field:ident, $kind:expr, |$k:ident| $id:expr, |$of:ident, $context:ident| $bytes:expr)) => {
        $(#[$doc])*
        #[wasm_bindgen]
        #[derive(Clone)]
        pub struct $name {
            shared: Rc<Shared>,
            key: Arc<$key>,
        }

        #[wasm_bindgen]
        impl $name {
            /// Names the secret key that it belongs to.
            #[wasm_bindgen(getter, js_name = keyId)]
            #[must_use]
            pub fn key_id(&self) -> String {
                let $k = &*self.key;
                $id.to_string()
            }

            /// Its file, as the command line and the Python package read it.
            ///
            /// @throws {SynchromeshError}
            #[wasm_bindgen(js_name = toFile)]
            pub fn to_file(&self) -> Result<Vec<u8>, JsValue> {
                let ($k, $of, $context) = (&*self.key, &*self.key, &**self.shared.session.rlwe());
                let bytes: Zeroizing<Vec<u8>> = Zeroizing::from($bytes.map_err(Fault::from)?);
                Ok(self.shared.file($kind, &bytes, $id)?)
            }
        }

        #[wasm_bindgen]
        impl Keys {
            #[doc = concat!("Of these keys, the ", stringify!($field), " one.")]
            #[wasm_bindgen(getter)]
            #[must_use]
            pub fn $field(&self) -> $name {
                self.$field.clone()
            }
        }
    };
}

key_class! {
    /// The key that decrypts. Whoever has its file can read everything.
    SecretKey(rlwe::SecretKey, secret, Kind::SecretKey, |key| key.id(), |of, context| of.to_bytes(context, None))
}

key_class! {
    /// The key that encrypts.
    PublicKey(rlwe::PublicKey, public, Kind::PublicKey, |key| key.id(), |of, context| of.to_bytes(context, None))
}

key_class! {
    /// The keys to multiply and rotate with.
    EvaluationKeys(
        rlwe::EvaluationKeys, evaluation, Kind::EvaluationKeys, |key| key.target(), |of, context| of.to_bytes(context, None)
    )
}

key_class! {
    /// The key under which files are authenticated: who holds it is trusted to state certificates.
    EnvelopeKey(
        Envelope, envelope, Kind::EnvelopeKey, |key| key.id, |of, context| of.key.to_container(context.params(), of.id)
    )
}

#[wasm_bindgen]
impl SecretKey {
    /// The numbers of a column: a `Float64Array` in ckks; in bfv and bgv a `BigInt64Array`, or where t has more than 63 bits
    /// an array of `bigint`.
    ///
    /// Who gives numbers of ckks to others gives away something of the key: see SECURITY.md.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(unchecked_return_type = "Float64Array | BigInt64Array | bigint[]")]
    pub fn decrypt(&self, column: &Column) -> Result<JsValue, JsValue> {
        let session = &column.shared.session;
        let parts = column.parts.iter().map(|part| session.decrypt(&self.key, part)).collect::<Result<Vec<_>, _>>();
        Ok(numbers::to_js(&parts.map_err(Fault::from)?, column.head.rows)?)
    }
}
