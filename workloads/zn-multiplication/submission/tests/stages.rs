//! All stages, each its own process, on a toy size that takes more than one ciphertext and ends within one.

use std::path::Path;
use std::process::Command;

const NAME: &str = "toy";

/// One stage, run from the root of the checkout.
fn stage(root: &Path, name: &str, arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_zn-multiplication"))
        .args([name, NAME])
        .args(arguments)
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn products_of_all_sizes_of_numbers_are_exact_and_the_server_has_no_secret() {
    let root = std::env::temp_dir().join(format!("zn-multiplication-{}", std::process::id()));
    let data = root.join("datasets").join(NAME);
    std::fs::create_dir_all(&data).unwrap();
    let (mut state, count) = (5u64, 16_384 + 100);
    let mut word = |i: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match i % 5 {
            0 => [0, 1, u64::MAX, 1 << 63][(state >> 62) as usize],
            _ => state ^ (state >> 29),
        }
    };
    let pairs: Vec<[u64; 2]> = (0..count).map(|i| [word(i), word(i + 1)]).collect();
    for (side, name) in ["lhs.txt", "rhs.txt"].iter().enumerate() {
        let lines: String = pairs.iter().map(|pair| format!("{}\n", pair[side])).collect();
        std::fs::write(data.join(name), lines).unwrap();
    }
    let count = count.to_string();
    stage(&root, "client_key_generation", &[]);
    stage(&root, "client_preprocess_input", &[]);
    stage(&root, "client_encode_encrypt_input", &[]);
    let io = root.join("io").join(NAME);
    std::fs::rename(io.join("secret_key"), root.join("away")).unwrap();
    stage(&root, "server_encrypted_compute", &[&count]);
    std::fs::remove_dir_all(io.join("secret_key")).ok();
    std::fs::rename(root.join("away"), io.join("secret_key")).unwrap();
    stage(&root, "client_decrypt_decode", &[&count]);
    stage(&root, "client_postprocess", &[&count]);
    let found = std::fs::read_to_string(io.join("cleartext_output/out.txt")).unwrap();
    let expected: String = pairs.iter().map(|[a, b]| format!("{}\n", a.wrapping_mul(*b))).collect();
    assert!(found == expected, "products differ");
    std::fs::remove_dir_all(root).unwrap();
}
