//! Columns: encrypted numbers, the operations on them, and their files.

use std::rc::Rc;

use synchromesh::bundle::{Bundle, CIPHERTEXT, COLUMN, ColumnHead, Kind, PLAN};
use synchromesh::scheme::{Binary, Operation, State};
use synchromesh::session::Erased;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::Shared;
use crate::fault::Fault;
use crate::numbers::{self, Number};

/// An encrypted column of numbers. Operations act on each number, and return another column.
#[wasm_bindgen]
pub struct Column {
    pub(crate) shared: Rc<Shared>,
    pub(crate) head: ColumnHead,
    pub(crate) parts: Vec<Erased>,
}

impl Column {
    fn made(&self, parts: impl Iterator<Item = Result<Erased, Fault>>) -> Result<Self, JsValue> {
        let parts = parts.collect::<Result<_, _>>()?;
        Ok(Self { shared: Rc::clone(&self.shared), head: self.head.clone(), parts })
    }

    fn apply(&self, operation: &Operation<'_>, x: &[&Erased]) -> Result<Erased, Fault> {
        Ok(self.shared.session.apply(operation, x)?)
    }

    fn unary(&self, operation: &Operation<'_>) -> Result<Self, JsValue> {
        self.made(self.parts.iter().map(|x| self.apply(operation, &[x])))
    }

    fn binary(&self, op: Binary, other: &Self) -> Result<Self, JsValue> {
        if self.head.rows != other.head.rows {
            let message = format!("columns of {} and {} rows", self.head.rows, other.head.rows);
            return Err(Fault::own("shape", message, "use columns of one length").into());
        }
        self.made(self.parts.iter().zip(&other.parts).map(|(x, y)| self.apply(&Operation::Binary(op), &[x, y])))
    }

    /// With public numbers, one for each row or one for all.
    fn plain(&self, op: Binary, values: &JsValue) -> Result<Self, JsValue> {
        let scheme = self.shared.plan.scheme;
        if !values.is_object() {
            let c = numbers::values(&[Number::from_js(values)?], scheme)?;
            return self.unary(&Operation::Scalar(op, &c));
        }
        let given = Number::all_from_js(values)?;
        if given.len() != self.head.rows {
            let message = format!("{} public numbers for {} rows", given.len(), self.head.rows);
            return Err(Fault::own("shape", message, "pass one number for each row, or one for all").into());
        }
        let plain = |(x, part): (&Erased, &[Number])| {
            let p = numbers::values(part, scheme)?;
            self.shared.session.require_held(&p)?;
            self.apply(&Operation::Plain(op, &p), &[x])
        };
        self.made(self.parts.iter().zip(given.chunks(self.shared.slots()?)).map(plain))
    }

    /// The least, or the greatest, of what the ciphertexts say.
    fn worst(&self, of: impl Fn(State) -> f64, pick: fn(f64, f64) -> f64) -> Result<f64, JsValue> {
        let all = self.parts.iter().map(|x| self.shared.session.state(x).map(&of)).collect::<Result<Vec<_>, _>>();
        Ok(all.map_err(Fault::from)?.into_iter().reduce(pick).unwrap_or_default())
    }
}

#[wasm_bindgen]
impl Column {
    /// Its name in tables.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn name(&self) -> String {
        self.head.name.clone()
    }

    /// Numbers in it.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn rows(&self) -> usize {
        self.head.rows
    }

    /// What remains of the modulus: the level of its ciphertexts.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(getter)]
    pub fn level(&self) -> Result<f64, JsValue> {
        self.worst(|state| state.level as f64, f64::min)
    }

    /// Bits by which the noise may grow before decryption can fail.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(getter, js_name = noiseBudget)]
    pub fn noise_budget(&self) -> Result<f64, JsValue> {
        self.worst(|state| state.noise_budget, f64::min)
    }

    /// How far a decrypted number may be off; 0 in bfv and bgv.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(getter, js_name = errorBound)]
    pub fn error_bound(&self) -> Result<f64, JsValue> {
        self.worst(|state| state.error_bound, f64::max)
    }

    /// Its file, as the command line and the Python package read it: sealed if the context has the envelope key of its keys
    /// and no certificate is believed on the user's word.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(js_name = toFile)]
    pub fn to_file(&self) -> Result<Vec<u8>, JsValue> {
        let session = &self.shared.session;
        let states = self.parts.iter().map(|x| session.state(x)).collect::<Result<Vec<_>, _>>().map_err(Fault::from)?;
        let envelope = states.first().and_then(|state| self.shared.envelope(state.key));
        let envelope = envelope.filter(|_| !states.iter().any(|state| state.on_word));
        let containers = self.parts.iter().map(|x| session.write(x)).collect::<Result<Vec<_>, _>>();
        let containers = containers.map_err(Fault::from)?;
        let head = self.head.to_bytes().map_err(Fault::from)?;
        let mut sections = vec![(PLAN, self.shared.text.as_bytes()), (COLUMN, &head[..])];
        sections.extend(containers.iter().map(|bytes| (CIPHERTEXT, &bytes[..])));
        let file = Bundle::encode(Kind::Column, &sections, envelope.as_deref().map(|envelope| &envelope.key));
        Ok(file.map_err(Fault::from)?.to_vec())
    }

    /// The sum with another column.
    ///
    /// @throws {SynchromeshError}
    pub fn add(&self, other: &Self) -> Result<Self, JsValue> {
        self.binary(Binary::Add, other)
    }

    /// The difference to another column.
    ///
    /// @throws {SynchromeshError}
    pub fn sub(&self, other: &Self) -> Result<Self, JsValue> {
        self.binary(Binary::Sub, other)
    }

    /// The product with another column; needs evaluation keys.
    ///
    /// @throws {SynchromeshError}
    pub fn mul(&self, other: &Self) -> Result<Self, JsValue> {
        self.binary(Binary::Mul, other)
    }

    /// The sum with public numbers: one for each row, or one for all.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(js_name = addPlain)]
    pub fn add_plain(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Numbers | number | bigint")] values: &JsValue,
    ) -> Result<Self, JsValue> {
        self.plain(Binary::Add, values)
    }

    /// The difference to public numbers: one for each row, or one for all.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(js_name = subPlain)]
    pub fn sub_plain(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Numbers | number | bigint")] values: &JsValue,
    ) -> Result<Self, JsValue> {
        self.plain(Binary::Sub, values)
    }

    /// The product with public numbers: one for each row, or one for all.
    ///
    /// @throws {SynchromeshError}
    #[wasm_bindgen(js_name = mulPlain)]
    pub fn mul_plain(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Numbers | number | bigint")] values: &JsValue,
    ) -> Result<Self, JsValue> {
        self.plain(Binary::Mul, values)
    }

    /// Minus the column.
    ///
    /// @throws {SynchromeshError}
    pub fn neg(&self) -> Result<Self, JsValue> {
        self.unary(&Operation::Neg)
    }

    /// The squares; needs evaluation keys.
    ///
    /// @throws {SynchromeshError}
    pub fn square(&self) -> Result<Self, JsValue> {
        self.unary(&Operation::Square)
    }

    /// Slot i + steps of its row in slot i, in each ciphertext; needs a key for the rotation.
    ///
    /// @throws {SynchromeshError}
    pub fn rotate(&self, steps: i32) -> Result<Self, JsValue> {
        self.unary(&Operation::Rotate(steps.into()))
    }

    /// The complex conjugate; in bfv and bgv the two rows of each ciphertext change places. Needs a key.
    ///
    /// @throws {SynchromeshError}
    pub fn conjugate(&self) -> Result<Self, JsValue> {
        self.unary(&Operation::Swap)
    }
}
