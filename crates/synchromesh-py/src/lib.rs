//! The native half of the Python package `synchromesh`: contexts, keys, ciphertexts, plans and files. What users see of
//! it is in `python/synchromesh`.

#![deny(unsafe_code)]

mod ciphertext;
mod context;
mod fault;
mod files;
mod growing;
mod keys;
mod matrices;
mod operation;
mod parties;
mod plan;
mod run;
mod search;
mod triples;
mod values;

/// The module `synchromesh._native`.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;
    use synchromesh_cuda::DeviceChoice;
    use synchromesh_ring::Threads;
    use synchromesh_ring::isa::Isa;

    use crate::fault::Fault;

    #[pymodule_export]
    use crate::ciphertext::{Ciphertext, PreparedMap};
    #[pymodule_export]
    use crate::context::Context;
    #[pymodule_export]
    use crate::fault::Cause;
    #[pymodule_export]
    use crate::files::{Column, read_file, write_file};
    #[pymodule_export]
    use crate::keys::{EnvelopeKey, EvaluationKeys, PublicKey, SecretKey, save_keys};
    #[pymodule_export]
    use crate::matrices::MatrixProduct;
    #[pymodule_export]
    use crate::operation::{Approximation, Operation, each};
    #[pymodule_export]
    use crate::parties::{
        Stop, decrypt_together, hand_on_together, make_joint_key, pass_on_together, refresh_together,
    };
    #[pymodule_export]
    use crate::plan::{check_plan, plan, plan_function, slot_prime};
    #[pymodule_export]
    use crate::search::{Query, Search, SearchFiles, available_memory, plan_search};

    #[pymodule_export]
    use crate::triples::{TripleSetup, deal_triples, run_triples_party, triples_identity};

    /// The threads that this process computes on.
    #[pyfunction]
    fn threads() -> PyResult<usize> {
        Ok(Threads::of_process().map_err(Fault::from)?.count())
    }

    /// Makes `count` that number.
    #[pyfunction]
    fn set_threads(count: usize) -> PyResult<()> {
        Threads::settle(count).map_err(Fault::from)?;
        Ok(())
    }

    /// Version, instruction set in use, instruction sets available, devices available.
    #[pyfunction]
    fn info() -> (&'static str, String, Vec<&'static str>, Vec<String>) {
        let isa = Isa::detect().map_or_else(|e| e.to_string(), |isa| isa.name().to_owned());
        let isas = Isa::available().into_iter().map(Isa::name).collect();
        let devices = DeviceChoice::available().iter().map(ToString::to_string).collect();
        (env!("CARGO_PKG_VERSION"), isa, isas, devices)
    }
}
