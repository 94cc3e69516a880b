//! Files: a client and a server that share nothing but bytes; what is secret, what is trusted, what a damaged file does.

use std::path::Path;
use std::sync::Arc;

use synchromesh::bgv::{Ciphertext, Context, Evaluator, Rotations};
use synchromesh::plan::{Description, Plan, SchemeName};
use synchromesh::rlwe::codec::{Trust, largest_container};
use synchromesh::rlwe::file::{self, Access, Existing};
use synchromesh::rlwe::wire::{EnvelopeKey, ObjectType};
use synchromesh::rlwe::{EvaluationKeys, PublicKey, Randomness, SecretKey};
use zeroize::Zeroizing;

/// Files have errors of their own.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const X: [i64; 4] = [3, -1, 4, 1];
const Y: [i64; 4] = [5, 9, -2, 6];

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("synchromesh-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let result = session(&folder);
    std::fs::remove_dir_all(&folder)?;
    result
}

fn session(folder: &Path) -> Result<()> {
    the_client_begins(folder)?;
    the_server_computes(folder)?;
    the_client_reads(folder)?;
    certificates_are_claims(folder)?;
    damaged_files_are_refused(folder)
}

/// Files are written whole or not at all.
fn write(folder: &Path, name: &str, bytes: &[u8], access: Access) -> Result<()> {
    println!("  writes {name:<18} {:7} bytes", bytes.len());
    Ok(file::write(&folder.join(name), bytes, access, Existing::Keep)?)
}

/// The parameters: both sides read the same plan, and every file names their digest.
fn context(folder: &Path) -> Result<Arc<Context>> {
    let text = String::from_utf8(file::read(&folder.join("plan.json"), 1 << 20)?)?;
    Ok(Context::new(Plan::from_json(&text)?.bgv()?)?)
}

/// No object of these parameters is larger than a known size, so no file can make the reader take more memory.
fn read(folder: &Path, name: &str, context: &Context, object: ObjectType) -> Result<Vec<u8>> {
    Ok(file::read(&folder.join(name), largest_container(context.params().rlwe(), object))?)
}

fn read_ciphertext(folder: &Path, name: &str, context: &Context, trust: Trust<'_>) -> Result<Ciphertext> {
    let bytes = read(folder, name, context, ObjectType::Ciphertext)?;
    Ok(Ciphertext::from_bytes(context, &bytes, None, trust)?)
}

fn read_secret(folder: &Path, context: &Context) -> Result<SecretKey> {
    let bytes = Zeroizing::new(read(folder, "secret.key", context, ObjectType::SecretKey)?);
    Ok(SecretKey::from_bytes(context.rlwe(), &bytes, None)?)
}

fn read_envelope(folder: &Path, context: &Context) -> Result<EnvelopeKey> {
    let bytes = Zeroizing::new(read(folder, "envelope.key", context, ObjectType::EnvelopeKey)?);
    Ok(EnvelopeKey::from_container(context.params().rlwe(), &bytes)?.0)
}

/// The client makes all keys. The secret key goes to a file that only its owner may read; the others are public.
fn the_client_begins(folder: &Path) -> Result<()> {
    println!("the client");
    let mut description = Description::new(SchemeName::Bgv, 1);
    description.additions = 3;
    let plan = description.plan()?;
    assert!(plan.security_bits >= 128.0);
    write(folder, "plan.json", plan.to_json()?.as_bytes(), Access::Public)?;
    let context = context(folder)?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?;
    let envelope = EnvelopeKey::random()?;
    let rlwe = context.rlwe();
    write(folder, "secret.key", &secret.to_bytes(rlwe, None)?, Access::Secret)?;
    // Whoever holds this one is trusted to say how much noise a ciphertext has: here the client and its server.
    write(folder, "envelope.key", &envelope.to_container(rlwe.params(), secret.id())?, Access::Secret)?;
    write(folder, "public.key", &public.to_bytes(rlwe, None)?, Access::Public)?;
    write(folder, "evaluation.keys", &keys.to_bytes(rlwe, None)?, Access::Public)?;
    // Whoever has the public key can encrypt, here the client itself.
    let public = PublicKey::from_bytes(rlwe, &public.to_bytes(rlwe, None)?, Some(secret.id()), None)?;
    for (name, values) in [("x.ct", X), ("y.ct", Y)] {
        let ciphertext = context.encrypt(&public, &context.encode(&values)?, &mut randomness)?;
        println!("  {name}: noise budget {:.1} bits", context.noise_budget(&ciphertext)?);
        write(folder, name, &ciphertext.to_bytes(&context, Some(&envelope))?, Access::Public)?;
    }
    Ok(())
}

/// The server has no secret key: it computes x y + 2 x from what it reads.
///
/// A noise bound that is read from a file is a claim. It is believed since the file is authenticated under the envelope
/// key, and so will the result be.
fn the_server_computes(folder: &Path) -> Result<()> {
    println!("the server");
    let context = context(folder)?;
    let bytes = read(folder, "evaluation.keys", &context, ObjectType::SwitchKeySet)?;
    let keys = EvaluationKeys::from_bytes(context.rlwe(), &bytes, None, None)?;
    let envelope = read_envelope(folder, &context)?;
    let x = read_ciphertext(folder, "x.ct", &context, Trust::Envelope(&envelope))?;
    let y = read_ciphertext(folder, "y.ct", &context, Trust::Envelope(&envelope))?;
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    let product = evaluator.mul(&x, &y)?;
    println!("  x y: noise budget {:.1} bits", context.noise_budget(&product)?);
    let result = evaluator.add(&product, &evaluator.mul_scalar(&x, 2)?)?;
    println!("  x y + 2 x: noise budget {:.1} bits", context.noise_budget(&result)?);
    write(folder, "result.ct", &result.to_bytes(&context, Some(&envelope))?, Access::Public)
}

/// The client decrypts what somebody wrote who holds the envelope key.
fn the_client_reads(folder: &Path) -> Result<()> {
    println!("the client");
    let context = context(folder)?;
    let secret = read_secret(folder, &context)?;
    let envelope = read_envelope(folder, &context)?;
    let result = read_ciphertext(folder, "result.ct", &context, Trust::Envelope(&envelope))?;
    let values = context.decode(&context.decrypt(&secret, &result)?)?;
    println!("  x y + 2 x = {:?}", &values[..4]);
    assert!((0..4).all(|i| values[i] == X[i] * Y[i] + 2 * X[i]));
    Ok(())
}

/// A file from somebody without the envelope key says nothing about the noise: a ciphertext made to decrypt wrongly could,
/// by what its decryption shows, give away the key. So operations refuse it. The remedies are an envelope key that both
/// sides hold, or the explicit word `Trust::Certificate` for a maker who is trusted by other means; what was computed on
/// such a word is not authenticated.
fn certificates_are_claims(folder: &Path) -> Result<()> {
    println!("without trust");
    let context = context(folder)?;
    let secret = read_secret(folder, &context)?;
    let envelope = read_envelope(folder, &context)?;
    let result = read_ciphertext(folder, "result.ct", &context, Trust::Envelope(&envelope))?;
    let from_a_stranger = result.to_bytes(&context, None)?;
    let result = Ciphertext::from_bytes(&context, &from_a_stranger, None, Trust::Nothing)?;
    let refused = context.decrypt(&secret, &result).err();
    assert!(refused.as_ref().is_some_and(|error| error.kind() == "unknown_noise"));
    if let Some(error) = refused {
        println!("  {error}\n  what to do: {}", error.remedy());
    }
    let told = Ciphertext::from_bytes(&context, &from_a_stranger, None, Trust::Certificate)?;
    context.decrypt(&secret, &told)?;
    let refused = told.to_bytes(&context, Some(&envelope)).err();
    assert!(refused.is_some_and(|error| error.kind() == "certificate_on_word"));
    Ok(())
}

/// A file that is cut short, altered, or of another kind is an error with a name, before anything is computed with it.
fn damaged_files_are_refused(folder: &Path) -> Result<()> {
    println!("damaged files");
    let context = context(folder)?;
    let envelope = read_envelope(folder, &context)?;
    let bytes = read(folder, "result.ct", &context, ObjectType::Ciphertext)?;
    let mut altered = bytes.clone();
    altered[bytes.len() / 2] ^= 1;
    let key = read(folder, "public.key", &context, ObjectType::PublicKey)?;
    for (what, bytes) in [("cut", &bytes[..100]), ("altered", &altered[..]), ("a public key", &key[..])] {
        let refused = Ciphertext::from_bytes(&context, bytes, None, Trust::Envelope(&envelope)).err();
        assert!(refused.is_some());
        if let Some(error) = refused {
            println!("  {what}: {error}\n    what to do: {}", error.remedy());
        }
    }
    Ok(())
}
