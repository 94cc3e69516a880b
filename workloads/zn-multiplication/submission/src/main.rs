//! The stages of the workload, each by its name: `zn-multiplication STAGE SIZE [COUNT]`.

use anyhow::{Context as _, Result};

mod stages {
    pub(crate) mod client_decrypt_decode;
    pub(crate) mod client_encode_encrypt_input;
    pub(crate) mod client_key_generation;
    pub(crate) mod client_postprocess;
    pub(crate) mod client_preprocess_input;
    pub(crate) mod server_encrypted_compute;
}

type Run = fn() -> Result<()>;

const STAGES: [(&str, Run); 6] = [
    ("client_decrypt_decode", stages::client_decrypt_decode::run),
    ("client_encode_encrypt_input", stages::client_encode_encrypt_input::run),
    ("client_key_generation", stages::client_key_generation::run),
    ("client_postprocess", stages::client_postprocess::run),
    ("client_preprocess_input", stages::client_preprocess_input::run),
    ("server_encrypted_compute", stages::server_encrypted_compute::run),
];

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or_default();
    let stage = STAGES.iter().find(|stage| stage.0 == name);
    let (_, run) =
        stage.with_context(|| format!("which stage? There are {}", STAGES.map(|stage| stage.0).join(", ")))?;
    run()
}
