//! Every public function that takes numbers and returns a ciphertext or a plaintext, called with extreme ones: it refuses
//! by a typed error, or the measured error keeps the certificate. The functions are listed here; one that is missing is
//! found in the sources.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Functions that return ciphertexts or plaintexts, with how these tests reach them.
const KNOWN: &[(&str, &[&str])] = &[
    // With extreme numbers, in `extremes_ckks` and `extremes_exact`.
    (
        "numbers",
        &[
            "encode",
            "encode_bounded",
            "encode_complex",
            "encode_coefficients",
            "encrypt",
            "encrypt_at",
            "encrypt_with_secret",
            "encrypt_by",
            "add_plain",
            "sub_plain",
            "mul_plain",
            "mul_scalar",
            "add_scalar",
            "rotate",
            "rotate_many",
            "rotate_rows",
            "rotate_rows_many",
            "automorphism",
            "declare_bound",
            "declare_error",
            "as_computed",
            "declare_zeros",
            "mod_switch_to",
            "mod_raise_to",
            "relinearize_to",
            "weighted_sum",
            "with_public_norms",
            "masked",
            "replicate_blocks",
            "run",
            "apply",
            "evaluate",
            "multiply",
            "multiply_part",
            "multiply_plain",
            "to_bfv_at",
            "refresh",
            "rekey",
            "refresh_pair",
            "refresh_watched",
            "mul_monomial",
            "expand",
            "encode_query",
            "encode_column",
            "encode_carried",
        ],
    ),
    // Ciphertexts alone go in: `adversary` looks for an excess there.
    (
        "ciphertexts",
        &[
            "add",
            "sub",
            "neg",
            "mul",
            "square",
            "mul_no_relin",
            "square_no_relin",
            "relinearize",
            "conjugate",
            "rescale",
            "mod_switch",
            "sum_of_products",
            "sum_of_products_no_relin",
            "rotate_columns",
            "product",
            "inner_product",
            "to_bgv",
            "to_bfv",
            "duplicate",
            "decrypt",
            "decrypt_by",
            "into_parts",
            "expanded",
            "found",
            "scored",
            "find",
            "joined",
        ],
    ),
    // From files and parts: certificates are the writer's claim, tested with the files.
    ("claims", &["from_parts"]),
];

/// The names of public functions of a source file that return a ciphertext, a plaintext or an arithmetic's ciphertext.
fn returning(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in source.match_indices("    pub fn ").chain(source.match_indices("\npub fn ")) {
        let rest = source[at..].trim_start();
        let name: String = rest["pub fn ".len()..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let signature = rest.split('{').next().unwrap_or_default();
        let returns = signature.rsplit("->").next().unwrap_or_default();
        // `Self` is one in the files of that name only.
        let own = returns.contains("Self")
            && ["pub struct Ciphertext", "pub struct Plaintext"].iter().any(|s| source.contains(s));
        if signature.contains("->") && (returns.contains("Ciphertext") || returns.contains("Plaintext") || own) {
            names.push(name);
        }
    }
    names
}

fn sources(folder: &Path, into: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
            into.push(path);
        }
    }
}

#[test]
fn no_function_that_returns_a_ciphertext_is_unknown_here() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    for part in ["bfv", "bgv", "ckks", "exact", "circuits", "bfv.rs", "bgv.rs", "search.rs", "search"] {
        let path = root.join(part);
        if path.is_dir() { sources(&path, &mut files) } else { files.push(path) }
    }
    let known = |name: &str| KNOWN.iter().any(|(_, names)| names.contains(&name));
    let mut found = Vec::new();
    for file in &files {
        for name in returning(&std::fs::read_to_string(file).unwrap()) {
            assert!(known(&name), "{}: call {name} with extreme numbers in these tests, and list it", file.display());
            found.push(name);
        }
    }
    let listed = || KNOWN.iter().flat_map(|(_, names)| *names);
    let gone: Vec<_> = listed().filter(|name| !found.iter().any(|f| f == **name)).collect();
    assert!(gone.is_empty(), "listed and not in the sources: {gone:?}");
}

/// What went wrong in a table of calls, all of it.
#[derive(Default)]
pub(crate) struct Findings {
    calls: usize,
    served: usize,
    found: Vec<String>,
}

impl Findings {
    /// One call: `Ok(None)` for a typed refusal, `Ok(Some(excess))` for a result, with what exceeds its certificate.
    pub(crate) fn call(&mut self, what: impl FnOnce() -> String, call: impl FnOnce() -> Option<Result<(), String>>) {
        self.calls += 1;
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(None) => {}
            Ok(Some(Ok(()))) => self.served += 1,
            Ok(Some(Err(excess))) => self.found.push(format!("{}: {excess}", what())),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                self.found.push(format!("{}: panic: {}", what(), text.unwrap_or_default()));
            }
        }
    }

    /// As [`Self::finish`] for calls that are all to be refused.
    pub(crate) fn refused(self) {
        assert_eq!((self.served, self.found), (0, Vec::<String>::new()), "of {} calls", self.calls);
    }

    /// Fails with all findings; a table of which nothing is served tests nothing.
    pub(crate) fn finish(self) {
        let Self { calls, served, found } = self;
        assert!(found.is_empty(), "{} of {calls} calls:\n{}", found.len(), found.join("\n"));
        assert!(5 * served > calls, "only {served} of {calls} calls gave a result");
        println!("{calls} calls, {served} served, the rest refused");
    }
}
