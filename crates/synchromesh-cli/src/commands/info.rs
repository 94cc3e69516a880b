//! `info`: what this program and this machine can do.

use super::place::cards;
use crate::error::Error;
use crate::output::Report;
use serde::Serialize;
use synchromesh_cuda::Properties;
use synchromesh_ring::Threads;
use synchromesh_ring::isa::Isa;
use synchromesh_rlwe::security::{CostModel, ESTIMATOR, LOG_N, SecurityLevel, max_log_qp_for};

#[derive(Serialize)]
struct Info {
    version: &'static str,
    /// In use.
    isa: &'static str,
    /// Available.
    isas: Vec<&'static str>,
    threads: usize,
    devices: Vec<Device>,
    /// Why `devices` is empty, when it is.
    why_none: Option<String>,
    /// Whether `--device emulated` is there.
    emulator: bool,
    security_table: SecurityTable,
}

/// An accelerator.
#[derive(Serialize)]
struct Device {
    name: String,
    model: String,
    kind: &'static str,
    memory_bytes: u64,
}

impl From<Properties> for Device {
    fn from(card: Properties) -> Self {
        Self { name: card.name, model: card.model, kind: "cuda", memory_bytes: card.memory_bytes }
    }
}

#[derive(Serialize)]
struct SecurityTable {
    estimator: &'static str,
    cost_model: &'static str,
    /// Most bits of the product of all primes.
    max_log_qp: Vec<SecurityRow>,
}

#[derive(Serialize)]
struct SecurityRow {
    log_n: u32,
    security_128: Option<u32>,
    security_192: Option<u32>,
    security_256: Option<u32>,
}

/// Runs the command.
pub(super) fn run() -> Result<Report, Error> {
    let (devices, why_none) = match cards() {
        Ok(cards) => (cards.into_iter().map(Device::from).collect(), None),
        Err(reason) => (Vec::new(), Some(reason.to_string())),
    };
    let model = CostModel::default();
    let limit = |log_n, level| max_log_qp_for(log_n, level, model);
    let row = |log_n| SecurityRow {
        log_n,
        security_128: limit(log_n, SecurityLevel::Bits128),
        security_192: limit(log_n, SecurityLevel::Bits192),
        security_256: limit(log_n, SecurityLevel::Bits256),
    };
    Report::new(&Info {
        version: env!("CARGO_PKG_VERSION"),
        isa: Isa::detect()?.name(),
        isas: Isa::available().into_iter().map(Isa::name).collect(),
        threads: Threads::of_process()?.count(),
        devices,
        why_none,
        emulator: cfg!(feature = "emulated"),
        security_table: SecurityTable {
            estimator: ESTIMATOR,
            cost_model: model.name(),
            max_log_qp: LOG_N.map(row).collect(),
        },
    })
}
