//! The word arithmetic before an SMT solver: `xtask/proofs/prove.py` in an environment of its own.

use std::path::Path;

use anyhow::{Context, Result};

use super::{Counts, Scale, output, skipped};
use crate::python;
use crate::steps::Invocation;

const REQUIREMENTS: &str = "xtask/proofs/requirements.txt";
const VENV: &str = "proofs";

/// All statements, those that are wrong on purpose among them.
pub(in crate::harden) fn run(root: &Path, _scale: Scale) -> Result<Counts> {
    if let Err(error) = python::make_environment(root, VENV, REQUIREMENTS) {
        return Ok(skipped(&format!("{error:#}")));
    }
    let (_, text) = output(root, &Invocation::new(python::program(root, VENV, "python"), "-B xtask/proofs/prove.py"))?;
    serde_json::from_str(&text).context("the proofs did not print a line of JSON")
}
