//! Three processes multiply two matrices that none of them knows, over TLS, and notice when one of them cheats.
//!
//! A dealer makes the shares here: see the crate's README for what that means.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context, Result, bail, ensure};
use synchromesh_triples::dealer::TrustedDealer;
use synchromesh_triples::field::{DEFAULT_PRIME, Field};
use synchromesh_triples::journal::TripleStore;
use synchromesh_triples::mp_spdz::Preprocessing;
use synchromesh_triples::online::Online;
use synchromesh_triples::parties::tls::{Identity, Peer, Tls};
use synchromesh_triples::session::Session;
use synchromesh_triples::{Matrix, Shape, Shared};

const PARTIES: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(20);

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [] => both_runs(),
        [party, directory, conduct] => run_party(party.parse()?, Path::new(directory), conduct == "cheat"),
        _ => bail!("this example takes no arguments"),
    }
}

fn both_runs() -> Result<()> {
    let (product, outputs) = deal_and_run("honest")?;
    for output in &outputs {
        ensure!(output.trim() == product, "a party got {output}");
    }
    println!("honest: {PARTIES} processes agree on the product, which is right");
    let (_, outputs) = deal_and_run("cheat")?;
    for output in &outputs {
        ensure!(output.contains("MAC does not fit"), "a flipped share went unnoticed: {output}");
    }
    println!("with a flipped share: {}", outputs[0].trim());
    Ok(())
}

/// Deals X, Y and a triple to a directory for each party, starts the parties, and returns X Y and what they printed.
fn deal_and_run(conduct: &str) -> Result<(String, Vec<String>)> {
    let (field, shape): (Field, Shape) = (DEFAULT_PRIME.parse()?, "16x24x8".parse()?);
    let root = tempfile::tempdir()?;
    let dealer = TrustedDealer::new(&field, PARTIES)?;
    let (x, y) = (Matrix::random(&field, 16, 24)?, Matrix::random(&field, 24, 8)?);
    let shares = dealer.share(&x)?.into_iter().zip(dealer.share(&y)?).zip(dealer.triple(shape)?);
    for (party, ((x, y), triple)) in shares.enumerate() {
        let own = root.path().join(party.to_string());
        Preprocessing::new(&own, &field, party, PARTIES)?.write_key(&dealer.keys()[party])?;
        TripleStore::create(&own, &field, (party, PARTIES), shape, &dealer.keys()[party], vec![triple])?;
        fs::write(own.join("x"), &*x.to_bytes(&field))?;
        fs::write(own.join("y"), &*y.to_bytes(&field))?;
    }
    let mut parties = Vec::new();
    for party in 0..PARTIES {
        let mut command = Command::new(env::current_exe()?);
        command.arg(party.to_string()).arg(root.path()).arg(conduct);
        parties.push(command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?);
    }
    let outputs = parties.into_iter().map(|child| Ok(String::from_utf8(child.wait_with_output()?.stdout)?));
    Ok((digest(&field, &x.mul(&field, &y)?), outputs.collect::<Result<_>>()?))
}

/// One party: reads its shares, meets the others, multiplies, reveals.
fn run_party(party: usize, root: &Path, cheat: bool) -> Result<()> {
    let (field, shape): (Field, Shape) = (DEFAULT_PRIME.parse()?, "16x24x8".parse()?);
    let own = root.join(party.to_string());
    let key = Preprocessing::new(&own, &field, party, PARTIES)?.read_key()?;
    let x = Shared::from_bytes(&field, 16, 24, &fs::read(own.join("x"))?)?;
    let mut y = Shared::from_bytes(&field, 24, 8, &fs::read(own.join("y"))?)?;
    if cheat && party == PARTIES - 1 {
        let mut entries = y.value().entries().to_vec();
        entries[5] = field.add(entries[5], field.small(1));
        y = Shared::new(Matrix::new(24, 8, entries)?, y.mac().clone())?;
    }
    let store = TripleStore::path(&own, shape, party);
    let mut store = TripleStore::open(&store, &field, (party, PARTIES), shape)?;
    let triple = store.take()?.context("every triple was used")?;

    let transport = meet(party, root)?;
    let mut online = Online::new(Session::new(transport, &field, 80, "X Y, 16 x 24 by 24 x 8")?, key)?;
    let z = online.multiply(&x, &y, triple)?;
    match online.reveal(&[&z]) {
        Ok(result) => println!("{}", digest(&field, &result[0])),
        Err(error) => println!("{error}"),
    }
    Ok(())
}

/// Tells the others, by a file in a directory they all trust, where this party listens and who it is, and connects.
fn meet(party: usize, root: &Path) -> Result<Tls> {
    let (identity, listener) = (Identity::new()?, TcpListener::bind("127.0.0.1:0")?);
    let line = format!("{} {}", listener.local_addr()?, hex(&identity.fingerprint()));
    fs::write(root.join("new").with_extension(party.to_string()), line)?;
    fs::rename(root.join("new").with_extension(party.to_string()), root.join(format!("peer-{party}")))?;
    let begin = Instant::now();
    let mut peers = Vec::new();
    while peers.len() < PARTIES {
        match fs::read_to_string(root.join(format!("peer-{}", peers.len()))) {
            Ok(line) => peers.push(parse_peer(&line).context("a damaged list of parties")?),
            Err(_) if begin.elapsed() < TIMEOUT => thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Tls::connect(party, &identity, &listener, &peers, TIMEOUT)?)
}

fn parse_peer(line: &str) -> Option<Peer> {
    let (address, digits) = line.split_once(' ')?;
    let mut fingerprint = [0; 32];
    for (byte, pair) in fingerprint.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(Peer { address: address.to_owned(), fingerprint })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A short form of a matrix, to compare by eye.
fn digest(field: &Field, matrix: &Matrix) -> String {
    let mut bytes = Vec::new();
    matrix.entries().iter().for_each(|&entry| field.write(entry, &mut bytes));
    blake3::hash(&bytes).to_hex()[..16].to_owned()
}
