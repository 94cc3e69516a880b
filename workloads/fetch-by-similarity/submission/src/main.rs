//! The stages of the workload, each by its name: `fetch-by-similarity STAGE SIZE [--seed S] [--count_only]`.

use anyhow::{Context as _, Result};

mod stages {
    pub(crate) mod client_decrypt_decode;
    pub(crate) mod client_encode_encrypt_db;
    pub(crate) mod client_encode_encrypt_query;
    pub(crate) mod client_key_generation;
    pub(crate) mod client_postprocess;
    pub(crate) mod client_preprocess_dataset;
    pub(crate) mod client_preprocess_query;
    pub(crate) mod server_encrypted_compute;
    pub(crate) mod server_preprocess_dataset;
}

type Run = fn() -> Result<()>;

const STAGES: [(&str, Run); 9] = [
    ("client_decrypt_decode", stages::client_decrypt_decode::run),
    ("client_encode_encrypt_db", stages::client_encode_encrypt_db::run),
    ("client_encode_encrypt_query", stages::client_encode_encrypt_query::run),
    ("client_key_generation", stages::client_key_generation::run),
    ("client_postprocess", stages::client_postprocess::run),
    ("client_preprocess_dataset", stages::client_preprocess_dataset::run),
    ("client_preprocess_query", stages::client_preprocess_query::run),
    ("server_encrypted_compute", stages::server_encrypted_compute::run),
    ("server_preprocess_dataset", stages::server_preprocess_dataset::run),
];

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or_default();
    let stage = STAGES.iter().find(|stage| stage.0 == name);
    let (_, run) =
        stage.with_context(|| format!("which stage? There are {}", STAGES.map(|stage| stage.0).join(", ")))?;
    run()
}
