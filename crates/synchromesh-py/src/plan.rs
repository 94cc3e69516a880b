//! Plans: from a description, or from a Python function that is run without data.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use synchromesh::Error;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::Arithmetic;
use synchromesh::ckks::Ckks;
use synchromesh::cost::DryLedger;
use synchromesh::plain_modulus::PlainModulus;
use synchromesh::plan::{Description, Plan, SchemeName};
use synchromesh::scheme::Scheme;
use synchromesh::session::{Engine, Erased};

use crate::ciphertext::Ciphertext;
use crate::context::Context;
use crate::fault::{Fault, cause_of};
use crate::growing::Growing;
use crate::run::{detached, interruptible};

/// A description in JSON.
fn described(description: &str) -> Result<Description, Fault> {
    let bad =
        |e: serde_json::Error| Fault::own("params", format!("the description: {e}"), "correct the argument named");
    serde_json::from_str(description).map_err(bad)
}

/// The plan of a description, as JSON.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, description: String) -> PyResult<String> {
    interruptible(py, move || Ok(described(&description)?.plan()?.to_json()?))
}

/// A plan in JSON, checked: its security, and the plan with all that is made anew where it is gone.
#[pyfunction]
pub(crate) fn check_plan(py: Python<'_>, plan: String) -> PyResult<(f64, String)> {
    interruptible(py, move || {
        let plan = Plan::from_json(&plan)?;
        Ok((plan.security_bits, plan.to_json()?))
    })
}

/// The smallest prime t above 2^(bits - 1), of exactly `bits` bits, that gives slots at every degree up to 2^log_n.
#[pyfunction]
pub(crate) fn slot_prime(py: Python<'_>, bits: u32, log_n: u32) -> PyResult<String> {
    let found = || Ok(PlainModulus::smallest_slot_prime(bits, log_n).map_err(Error::from)?.to_string());
    detached(py, found)
}

/// The function, the exception it raised that is its own affair, and whether anybody still waits for it.
struct Circuit {
    function: Py<PyAny>,
    raised: Mutex<Option<PyErr>>,
    abandoned: AtomicBool,
    /// The most bytes of a map's entries and numbers in the last call.
    maps: AtomicU64,
}

impl Circuit {
    /// Calls the function with a dry context and fresh ciphertexts; it returns ciphertexts.
    fn call<S: Scheme>(
        &self,
        evaluator: &S::Evaluator<DryLedger>,
        fresh: &[S::Ciphertext<DryLedger>],
    ) -> Result<Vec<S::Ciphertext<DryLedger>>, Error> {
        if self.abandoned.load(Ordering::Relaxed) {
            return Err(Error::Argument { rule: "nobody waits for this plan any more".into() });
        }
        let growing = Arc::new(Growing::<S>::new(evaluator.clone()));
        let engine: Arc<dyn Engine> = Arc::<Growing<S>>::clone(&growing);
        let copies = fresh.iter().map(|x| evaluator.duplicate(x)).collect::<Result<Vec<_>, _>>()?;
        let fresh: Vec<Ciphertext> = copies.into_iter().map(|x| Ciphertext::new(&engine, Erased::new(x))).collect();
        Python::attach(|py| {
            let results: PyResult<Vec<Ciphertext>> = (|| {
                let results = self.function.bind(py).call1((Context::of_dry_run(engine), fresh))?;
                let results: Vec<Bound<'_, Ciphertext>> = results.extract()?;
                Ok(results.iter().map(|x| x.get().clone()).collect())
            })();
            let results = results.map_err(|error| {
                let failed = Error::Argument { rule: "the function raised an exception".into() };
                cause_of(py, &error).unwrap_or_else(|| {
                    *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    failed
                })
            })?;
            growing.require_none_found()?;
            self.maps.store(growing.map_bytes(), Ordering::Relaxed);
            let own = |x: &Ciphertext| match x.cipher.get() {
                Ok(x) => evaluator.duplicate(x),
                Err(_) => {
                    Err(Error::Argument { rule: "the function returned a ciphertext that is not its own".into() })
                }
            };
            results.iter().map(own).collect()
        })
    }
}

/// The plan, as JSON, at which `function(context, ciphertexts)` runs: on one fresh ciphertext for each of `bounds`, the
/// largest absolute value of a slot in CKKS; and the most bytes of entries and numbers of a map, which the plan does not know.
#[pyfunction]
pub(crate) fn plan_function(
    py: Python<'_>,
    description: &str,
    bounds: Vec<f64>,
    function: Py<PyAny>,
) -> PyResult<(String, u64)> {
    let description = described(description)?;
    let abandoned = AtomicBool::new(false);
    let circuit = Arc::new(Circuit { function, raised: Mutex::new(None), abandoned, maps: AtomicU64::new(0) });
    let shared = Arc::clone(&circuit);
    let planned = interruptible(py, move || {
        let circuit = &*shared;
        let plan = match description.scheme {
            SchemeName::Bfv => description.plan_exact(bounds.len(), |e, x| circuit.call::<Bfv>(e, x)),
            SchemeName::Bgv => description.plan_exact(bounds.len(), |e, x| circuit.call::<Bgv>(e, x)),
            SchemeName::Ckks => description.plan_ckks(&bounds, |e, x| circuit.call::<Ckks>(e, x)),
        };
        Ok((plan?.to_json()?, circuit.maps.load(Ordering::Relaxed)))
    });
    circuit.abandoned.store(true, Ordering::Relaxed);
    let raised = circuit.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    raised.map_or(planned, Err)
}
