//! All stages, each its own process, on few records of few coordinates, of which one lies within the gap.

use std::path::{Path, PathBuf};
use std::process::Command;

const RECORDS: usize = 60;
const DIMENSION: usize = 5;

/// One stage, run from the root of the checkout; what it said if it failed.
fn stage(root: &Path, name: &str, more: &[&str]) -> Result<(), String> {
    let output = Command::new(env!("CARGO_BIN_EXE_fetch-by-similarity"))
        .args([name, "4", "--seed", "7"])
        .args(more)
        .current_dir(root)
        .output()
        .unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Unit vectors whose inner products with the first axis are spread over -1 to 1, payloads, and the products.
fn data(root: &Path) -> (Vec<[i16; 7]>, Vec<f64>) {
    let folder = root.join("datasets/tiny");
    std::fs::create_dir_all(&folder).unwrap();
    let products: Vec<f64> = (0..RECORDS)
        .map(|i| match i {
            0 => 0.8105,
            1 => 0.7895,
            2 => 0.8005,
            _ => [0.95, -0.85, 0.82, 0.3, 0.77, -0.1][i % 6],
        })
        .collect();
    let vectors: Vec<f32> = products
        .iter()
        .enumerate()
        .flat_map(|(i, &x)| {
            let (rest, angle) = ((1.0 - x * x).sqrt(), i as f64);
            [x, rest * angle.cos(), 0.0, 0.0, rest * angle.sin()].map(|x| x as f32)
        })
        .collect();
    let payloads: Vec<[i16; 7]> = (0..RECORDS as i16)
        .map(|i| std::array::from_fn(|k| [0, 511, (i * 37 + k as i16 * 101) % 512][(i as usize + k) % 3]))
        .collect();
    let query = [1.0f32, 0.0, 0.0, 0.0, 0.0];
    let bytes = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    assert_eq!(vectors.len(), RECORDS * DIMENSION);
    std::fs::write(folder.join("db.bin"), bytes(&vectors)).unwrap();
    std::fs::write(folder.join("query.bin"), bytes(&query)).unwrap();
    let flat: Vec<u8> = payloads.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    std::fs::write(folder.join("payloads.bin"), flat).unwrap();
    (payloads, products)
}

fn checkout(name: &str) -> PathBuf {
    let root = std::env::temp_dir().join(format!("fetch-by-similarity-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    root
}

/// From the data to what is found; the server's stages run without the secret key.
fn answer(root: &Path, more: &[&str]) -> Vec<u8> {
    let run = |name: &str| stage(root, name, more).unwrap();
    let io = root.join("io/tiny");
    std::fs::remove_dir_all(&io).ok();
    run("client_preprocess_dataset");
    run("client_key_generation");
    run("client_encode_encrypt_db");
    run("client_preprocess_query");
    run("client_encode_encrypt_query");
    std::fs::rename(io.join("keys/secret.key"), root.join("away")).unwrap();
    run("server_preprocess_dataset");
    run("server_encrypted_compute");
    std::fs::rename(root.join("away"), io.join("keys/secret.key")).unwrap();
    run("client_decrypt_decode");
    run("client_postprocess");
    std::fs::read(io.join("results.bin")).unwrap()
}

#[test]
fn payloads_of_records_above_the_threshold_are_exact_and_so_is_their_number() {
    let root = checkout("right");
    let (payloads, products) = data(&root);
    let with = |undecided: bool| {
        let found =
            products.iter().zip(&payloads).filter(|&(&x, _)| if (x - 0.8).abs() < 0.01 { undecided } else { x > 0.8 });
        let mut found: Vec<[i16; 7]> = found.map(|(_, &payload)| payload).collect();
        found.sort_unstable();
        found
    };
    let fetched = answer(&root, &[]);
    let fetched: Vec<[i16; 7]> = fetched
        .chunks_exact(14)
        .map(|bytes| std::array::from_fn(|i| i16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]])))
        .collect();
    // The one within the gap is found with its own payload, or not at all.
    assert!(fetched == with(false) || fetched == with(true), "{fetched:?}");

    // What is not whole is refused before the server begins.
    std::fs::remove_file(root.join("io/tiny/encrypted/column_0_3")).unwrap();
    let said = stage(&root, "server_preprocess_dataset", &[]).unwrap_err();
    assert!(said.contains("column_0_3"), "{said}");

    let count = answer(&root, &["--count_only"]);
    let count = u64::from_le_bytes(count.try_into().unwrap()) as usize;
    assert!([with(false).len(), with(true).len()].contains(&count), "{count}");
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn data_that_cannot_be_searched_is_refused_by_the_record() {
    let root = checkout("wrong");
    data(&root);
    let folder = root.join("datasets/tiny");
    let preprocess = || stage(&root, "client_preprocess_dataset", &[]);
    let alter = |file: &str, at: usize, bytes: &[u8]| {
        let whole = std::fs::read(folder.join(file)).unwrap();
        let mut altered = whole.clone();
        altered[at..at + bytes.len()].copy_from_slice(bytes);
        std::fs::write(folder.join(file), altered).unwrap();
        let said = if file == "query.bin" { stage(&root, "client_preprocess_query", &[]) } else { preprocess() };
        std::fs::write(folder.join(file), whole).unwrap();
        said.unwrap_err()
    };
    preprocess().unwrap();
    let record = 4 * DIMENSION;
    assert!(alter("db.bin", 17 * record, &f32::NAN.to_le_bytes()).contains("record 17"));
    assert!(alter("db.bin", 3 * record, &2.0f32.to_le_bytes()).contains("record 3"));
    assert!(alter("payloads.bin", 14 * 9, &512i16.to_le_bytes()).contains("record 9"));
    assert!(alter("query.bin", 0, &0.5f32.to_le_bytes()).contains("length"));
    std::fs::write(folder.join("db.bin"), [0; 12]).unwrap();
    assert!(preprocess().unwrap_err().contains("12 bytes"));
    std::fs::remove_dir_all(root).unwrap();
}
