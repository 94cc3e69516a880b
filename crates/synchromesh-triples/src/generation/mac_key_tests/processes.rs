//! Sessions whose parties are processes of the command line; a cheater that does not behave is a thread that meets them.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use synchromesh_parties::hosts;
use synchromesh_parties::tls::{Peer, Tls};

use super::*;
use crate::party::Want;

/// The command line, if it is built.
pub(super) fn command() -> PathBuf {
    // Beside this test: target/<profile>/deps/<test> and target/<profile>/synchromesh.
    std::env::current_exe().unwrap().parent().and_then(Path::parent).unwrap().join("synchromesh")
}

impl Parties {
    /// A session of the command line whose `count` triples go to `out`, and how it ended for the honest parties. The
    /// last party is a process like the others while it behaves.
    pub(super) fn processes(&self, out: &str, count: usize, kept: Kept, cheat: Cheat) -> Vec<End> {
        let command = command();
        assert!(command.exists(), "cargo build -p synchromesh-cli makes {}", command.display());
        let identity = |party: usize| Identity::read(&self.directory(party).join("identity")).unwrap();
        let listeners: Vec<_> = (0..PARTIES).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let peer = |(party, listener): (usize, &TcpListener)| Peer {
            address: listener.local_addr().unwrap().to_string(),
            fingerprint: identity(party).fingerprint(),
        };
        let peers: Vec<Peer> = listeners.iter().enumerate().map(peer).collect();
        let hosts = self.root.path().join("hosts");
        let _ = std::fs::remove_file(&hosts);
        hosts::write(&hosts, &peers).unwrap();
        let mut listeners = listeners;
        let listener = listeners.pop().unwrap();
        drop(listeners);
        let spawn = |party: usize| {
            let directory = self.directory(party);
            let mut process = Command::new(&command);
            process.args(["triples", "party", "--json", "--insecure", "--threads", "1", "--timeout", "20"]);
            process.args(["--least-statistical-security", "40", "--format", kept.word()]);
            process
                .args(["--count", &count.to_string(), "--id", &party.to_string()])
                .arg("--hosts")
                .arg(&hosts)
                .arg("--setup")
                .arg(&directory);
            process.arg("--identity").arg(directory.join("identity")).arg("--out").arg(directory.join(out));
            process.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
        };
        let honest: Vec<_> = (0..PARTIES - 1).map(spawn).collect();
        let last = PARTIES - 1;
        let mut behaving = None;
        if cheat == Cheat::None {
            drop(listener);
            behaving = Some(spawn(last));
        } else {
            let setup = &dealt().0;
            let key = PartyKey::read(&PartyKey::path(&self.directory(last), last), setup, last).unwrap();
            let transport = Tls::connect(last, &identity(last), &listener, &peers, PATIENCE).unwrap();
            let journal = self.root.path().join("cheater.journal");
            let journal = journal_of(&journal, &key, setup.plan().most_decryptions()).unwrap();
            let mut generator = Generator::new(transport, setup, &key, journal, Box::new(|_| ())).unwrap();
            generator.conduct = Box::new(cheat);
            // As the command line begins, or nobody would get as far as the attack.
            crate::party::keep_step(&mut generator, key.mac(), last).unwrap();
            let want = Want::Matrices { shape: Some(setup.plan().shape()), count };
            generator.same(&[want.to_string()]).unwrap();
            assert!(generator.generate(count).is_err());
        }
        let end = |process: std::process::Child| {
            let output = process.wait_with_output().unwrap();
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let error = &report["error"];
            let kind = error["kind"].as_str().map(str::to_owned);
            assert_eq!(output.status.code(), Some(if kind.is_some() { 2 } else { 0 }), "{report}");
            End { kind, void: serde_json::from_value(error["void"].clone()).unwrap_or_default() }
        };
        let ends: Vec<End> = honest.into_iter().map(end).collect();
        if let Some(mut process) = behaving {
            // It would wait for those that refused.
            if ends.iter().any(|end| end.kind.is_some()) {
                process.kill().unwrap();
            }
            process.wait_with_output().unwrap();
        }
        ends
    }
}
