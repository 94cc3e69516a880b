//! Numbers on their way between JavaScript and the library.

use js_sys::{Array, BigInt as JsBigInt};
use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive};
use synchromesh::plan::SchemeName;
use synchromesh::scheme::Values;
use wasm_bindgen::{JsCast, JsValue};

use crate::fault::Fault;

/// A `number` or a `bigint`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Number {
    Real(f64),
    Integer(BigInt),
}

impl Number {
    /// Of a `number` or a `bigint`.
    pub(crate) fn from_js(value: &JsValue) -> Result<Self, Fault> {
        if let Some(real) = value.as_f64() {
            return Ok(Self::Real(real));
        }
        let digits = value.dyn_ref::<JsBigInt>().and_then(|x| x.to_string(10).ok());
        let integer = digits.and_then(|digits| String::from(digits).parse().ok());
        let refuse = || Fault::own("number", format!("{value:?} is no number"), "pass a number or a bigint");
        integer.map(Self::Integer).ok_or_else(refuse)
    }

    /// Of a typed array, or an array of `number` or `bigint`.
    pub(crate) fn all_from_js(values: &JsValue) -> Result<Vec<Self>, Fault> {
        if !values.is_object() {
            let message = format!("{values:?} is no array");
            return Err(Fault::own("number", message, "pass a typed array, or an array of numbers"));
        }
        Array::from(values).iter().map(|value| Self::from_js(&value)).collect()
    }

    pub(crate) fn real(&self) -> Result<f64, Fault> {
        let refuse = |x: &BigInt| Fault::own("number", format!("{x} is too large for ckks"), "scale the numbers down");
        match self {
            Self::Real(x) => Ok(*x),
            Self::Integer(x) => x.to_f64().filter(|x| x.is_finite()).ok_or_else(|| refuse(x)),
        }
    }

    pub(crate) fn integer(&self) -> Result<BigInt, Fault> {
        let refuse = |x: f64| {
            let message = format!("{x} is no integer that a number holds exactly");
            Fault::own("not_integer", message, "round the numbers, pass a bigint, or use ckks")
        };
        match self {
            Self::Integer(x) => Ok(x.clone()),
            Self::Real(x) if x.fract() == 0.0 && x.abs() < 2f64.powi(53) => {
                BigInt::from_f64(*x).ok_or_else(|| refuse(*x))
            }
            Self::Real(x) => Err(refuse(*x)),
        }
    }
}

/// Numbers as a scheme takes them.
pub(crate) fn values(numbers: &[Number], scheme: SchemeName) -> Result<Values, Fault> {
    Ok(match scheme {
        SchemeName::Ckks => numbers.iter().map(Number::real).collect::<Result<Vec<f64>, _>>()?.into(),
        SchemeName::Bfv | SchemeName::Bgv => numbers.iter().map(Number::integer).collect::<Result<Vec<_>, _>>()?.into(),
    })
}

/// The first `rows` of decrypted numbers as one array: `Float64Array` for reals, `BigInt64Array` for integers of a word, else
/// an array of `bigint`.
pub(crate) fn to_js(parts: &[Values], rows: usize) -> Result<JsValue, Fault> {
    if parts.iter().all(|part| matches!(part, Values::Reals(_) | Values::Complexes(_))) {
        let reals: Vec<f64> = parts.iter().flat_map(|part| part.reals().to_vec()).take(rows).collect();
        return Ok(js_sys::Float64Array::from(&reals[..]).into());
    }
    if let Ok(words) = parts.iter().map(Values::words).collect::<Result<Vec<_>, _>>() {
        let words: Vec<i64> = words.concat().into_iter().take(rows).collect();
        return Ok(js_sys::BigInt64Array::from(&words[..]).into());
    }
    let mut integers = Vec::new();
    for part in parts {
        integers.extend(part.integers("bigint")?);
    }
    let bigint = |x: &BigInt| {
        let made = JsBigInt::new(&JsValue::from(x.to_string())).map(JsValue::from);
        made.map_err(|_| Fault::own("number", "a decrypted integer is too large", "read it elsewhere"))
    };
    Ok(integers.iter().take(rows).map(bigint).collect::<Result<Array, Fault>>()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_integer_is_refused() {
        assert_eq!(Number::Real(-3.0).integer().unwrap(), BigInt::from(-3));
        for wrong in [0.5, f64::NAN, f64::INFINITY, 2f64.powi(53)] {
            assert!(Number::Real(wrong).integer().is_err(), "{wrong}");
        }
        let huge = Number::Integer(BigInt::from(10).pow(400));
        assert!(huge.real().is_err() && huge.integer().is_ok());
    }
}
