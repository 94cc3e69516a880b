//! Holders from files to files, each a thread with TLS on the loopback: columns made fresh, and a key handed on.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::bundle::{CIPHERTEXT, COLUMN, ColumnHead, Kind, PLAN};
use synchromesh::circuits::Arithmetic;
use synchromesh::ckks::Ckks;
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::file::{Access, Existing};
use synchromesh::rlwe::ring::Cpu;
use synchromesh::rlwe::{PublicKey, Randomness, Security};
use synchromesh::scheme::{Encryptor, Scheme, Values};

use super::*;

const FLOOR: Floor = Floor { security: 0.0, statistical_security: 40 };

/// Parties with certificates, in one folder.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(parties: usize) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        (0..parties).for_each(|i| Identity::new().unwrap().write(&folder.path(&format!("{i}.identity"))).unwrap());
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A list of these, at ports that are free.
    fn list(&self, name: &str, parties: &[usize]) {
        let listeners: Vec<TcpListener> = parties.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let peer = |(i, listener): (&usize, &TcpListener)| Peer {
            address: listener.local_addr().unwrap().to_string(),
            fingerprint: Identity::read(&self.path(&format!("{i}.identity"))).unwrap().fingerprint(),
        };
        let peers: Vec<Peer> = parties.iter().zip(&listeners).map(peer).collect();
        hosts::write(&self.path(name), &peers).unwrap();
    }

    /// What these do, all at once, as members of a list.
    fn all<R: Send>(
        &self,
        list: &str,
        parties: &[usize],
        with: Option<&[usize]>,
        run: impl Fn(usize, Party) -> R + Sync,
    ) -> Vec<R> {
        let party = |i: usize| Party {
            hosts: self.path(list),
            identity: self.path(&format!("{i}.identity")),
            with: with.map(<[usize]>::to_vec),
            timeout: Duration::from_secs(60),
            stop: Stop::default(),
        };
        thread::scope(|scope| {
            let (run, party) = (&run, &party);
            let threads: Vec<_> = parties.iter().map(|&i| scope.spawn(move || run(i, party(i)))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// Keys of two of three.
    fn with_keys(scheme: SchemeName, parties: usize) -> (Self, Plan) {
        let folder = Self::new(parties);
        folder.list("hosts", &[0, 1, 2]);
        let joint = Joint::any_of(2, 3).with_security(40).with_decryptions(16);
        let description =
            Description { security: Security::Insecure, joint: Some(joint), ..Description::new(scheme, 2) };
        let plan = description.plan().unwrap();
        let made = folder.all("hosts", &[0, 1, 2], None, |i, party| {
            party.generate_keys(&plan, &FLOOR, &folder.path(&format!("party-{i}"))).unwrap().member
        });
        assert_eq!(made, [0, 1, 2]);
        (folder, plan)
    }

    /// A column, brought to a level.
    fn encrypt<S: Scheme>(&self, plan: &Plan, values: &Values, level: usize, name: &str) {
        let opened = plan.open::<S>().unwrap();
        let envelope = envelope(&self.path("party-0")).unwrap().unwrap();
        let key = authentic(&self.path("party-0"), Kind::PublicKey, &envelope).unwrap();
        let key = PublicKey::from_bytes(opened.rlwe(), key.one(KEY).unwrap(), None, None).unwrap();
        let params = S::params(plan).unwrap();
        let cpu = Cpu::open(Arc::clone(S::ring(&params))).unwrap();
        let evaluator = S::open::<Cpu>(params, cpu).unwrap();
        let (context, top) = (S::context(&evaluator), S::top_level(&evaluator));
        let by = Encryptor::Public(&key);
        let fresh = S::encrypt(context, &by, values, 1.0, top, &mut Randomness::from_os()).unwrap();
        let bytes = S::write(context, &evaluator.at_level(&fresh, level).unwrap(), None).unwrap();
        let head = ColumnHead { name: "v".into(), rows: values.len() }.to_bytes().unwrap();
        let plan = plan.bare().to_json().unwrap();
        let sections = [(PLAN, plan.as_bytes()), (COLUMN, &head[..]), (CIPHERTEXT, &bytes[..])];
        let how = (Access::Public, Existing::Keep);
        Bundle::write(&self.path(name), Kind::Column, &sections, Some(&envelope), how).unwrap();
    }
}

/// The first values of a decrypted column, and how far they may be off.
fn first(decrypted: &Decrypted) -> (Vec<f64>, f64) {
    let column = &decrypted.columns[0];
    (column.values[0].reals()[..column.head.rows].to_vec(), column.error_bound)
}

fn refreshed<S: Scheme>(values: &Values, level: usize) {
    let (folder, plan) = Folder::with_keys(S::NAME, 3);
    folder.encrypt::<S>(&plan, values, level, "x.ct");
    let fresh = folder.all("hosts", &[0, 2], Some(&[0, 2]), |i, party| {
        let (keys, input, out) =
            (folder.path(&format!("party-{i}")), folder.path("x.ct"), folder.path(&format!("{i}.ct")));
        party.refresh(&keys, &[&input], (&[&out], Existing::Keep), &FLOOR).unwrap()
    });
    for made in &fresh {
        assert!(made.level > level && made.authenticated && made.members == [0, 2] && made.decryptions == (1, 16));
    }
    assert_eq!(std::fs::read(folder.path("0.ct")).unwrap(), std::fs::read(folder.path("2.ct")).unwrap());
    let decrypt = |file: &str| {
        folder.all("hosts", &[1, 2], Some(&[1, 2]), |i, party| {
            party.decrypt(&folder.path(&format!("party-{i}")), &[&folder.path(file)], 4.0, &FLOOR)
        })
    };
    for shown in decrypt("0.ct") {
        let (found, bound) = first(&shown.unwrap());
        assert!(found.iter().zip(values.reals().iter()).all(|(x, y)| (x - y).abs() <= bound.max(0.0)) && bound < 0.06);
    }
    let again = decrypt("x.ct");
    assert!(again.iter().any(|result| result.as_ref().is_err_and(|error| error.kind() == "decrypted_before")));
}

#[test]
fn columns_are_made_fresh_from_files_to_files() {
    refreshed::<Bgv>(&vec![3i64, -4, 5].into(), 1);
    refreshed::<Bfv>(&vec![3i64, -4, 5].into(), 1);
    refreshed::<Ckks>(&vec![0.5, -0.25, 1.0].into(), 1);
}

/// Of three one is away, one leaves and one stays, and three come: three of four decrypt what was encrypted before.
#[test]
fn a_key_is_handed_on_from_files_to_files() {
    let (folder, plan) = Folder::with_keys(SchemeName::Bgv, 6);
    let values: Values = vec![3i64, -4, 5].into();
    for name in ["x.ct", "y.ct"] {
        folder.encrypt::<Bgv>(&plan, &values, 1, name);
    }
    let decrypt = |list: &str, of: &str, parties: &[usize], members: &[usize], file: &str| {
        folder.all(list, parties, Some(members), |i, party| {
            party.decrypt(&folder.path(&format!("{of}-{i}")), &[&folder.path(file)], 1.0, &FLOOR)
        })
    };
    assert!(decrypt("hosts", "party", &[0, 1], &[0, 1], "y.ct").iter().all(|result| result.is_ok()));
    folder.list("new", &[3, 4, 5, 2]);
    std::fs::create_dir(folder.path("copy")).unwrap();
    for name in ["public.key", "eval.keys", "envelope.key"] {
        std::fs::copy(folder.path(&format!("party-2/{name}")), folder.path(&format!("copy/{name}"))).unwrap();
    }
    let to = NewHolders { hosts: folder.path("new"), threshold: Some(3) };
    let hand = |givers: &'static [usize], parties: &[usize]| {
        folder.all("hosts", parties, Some(givers), |i, party| {
            let keys = folder.path(&if i < 3 { format!("party-{i}") } else { "copy".into() });
            party.hand_on(&keys, &to, &FLOOR, &folder.path(&format!("new-{i}")))
        })
    };
    // Before anybody is called: too few give, and a stranger.
    assert_eq!(hand(&[0], &[0])[0].as_ref().unwrap_err().kind(), "too_few_parties");
    assert_eq!(hand(&[0, 2], &[1])[0].as_ref().unwrap_err().kind(), "unlisted_party");
    let done: Vec<HandedOn> = hand(&[0, 2], &[0, 2, 3, 4, 5]).into_iter().map(|result| result.unwrap()).collect();
    assert_eq!(done.iter().map(|done| done.member).collect::<Vec<_>>(), [None, Some(3), Some(0), Some(1), Some(2)]);
    assert!(done.iter().all(|done| done.givers == [0, 2] && done.joint.makers() == 3));
    assert!(done[0].files.is_empty() && done[0].spent.len() == 2 && done[2].spent.is_empty());
    assert!(!folder.path("new-0").exists());
    for name in ["public.key", "eval.keys", "envelope.key"] {
        let [new, old] = ["new-4", "party-0"].map(|of| std::fs::read(folder.path(&format!("{of}/{name}"))).unwrap());
        assert_eq!(new, old, "{name}");
    }
    // y, the comparison, and then x.
    let before = decrypt("new", "new", &[3, 4, 5], &[0, 1, 2], "y.ct");
    assert!(before.iter().any(|result| result.as_ref().is_err_and(|error| error.kind() == "decrypted_before")));
    for shown in decrypt("new", "new", &[3, 5, 2], &[0, 2, 3], "x.ct") {
        let shown = shown.unwrap();
        assert_eq!((first(&shown).0, shown.decryptions), (vec![3.0, -4.0, 5.0], (3, 16)));
    }
    let few = decrypt("new", "new", &[3, 4], &[0, 1], "x.ct");
    assert!(few.iter().all(|result| result.as_ref().is_err_and(|error| error.kind() == "too_few_parties")));
    // A share of before among those of after, with its journal.
    folder.encrypt::<Bgv>(&plan, &values, 1, "w.ct");
    for name in [SHARE, JOURNAL] {
        std::fs::copy(folder.path(&format!("party-2/{name}")), folder.path(&format!("new-2/{name}"))).unwrap();
    }
    assert!(decrypt("new", "new", &[3, 5, 2], &[0, 2, 3], "w.ct").iter().all(|result| result.is_err()));
}
