//! A joint key over TLS, from outside of the crate: made, used and decrypted with by parties that know each other's fingerprints.

use std::thread;
use std::time::Duration;

use crate::tls::{peers, setting};
use synchromesh::bfv::{Bfv, Context, Params, ParamsLiteral};
use synchromesh::rlwe::{Randomness, Security};
use synchromesh::rotations::Rotations;
use synchromesh::scheme::{Encryptor, Scheme, Values};
use synchromesh_parties::joint::{Plan, Quorum, Wanted, generate};
use synchromesh_parties::session::Session;
use synchromesh_parties::tls::Tls;

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_key_is_made_and_used_over_tls_in_one_session() {
    let literal = ParamsLiteral {
        log_n: 10,
        t: "65537".to_owned(),
        q_bits: vec![58, 57, 55, 51],
        p_bits: vec![61, 61],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 2,
        security: Security::Insecure,
        primes: None,
    };
    let context = Context::new(Params::new(literal).unwrap().with_parties(3)).unwrap();
    let wanted = Wanted::whole::<Bfv>(&context, context.params().plans(), &Rotations::none()).unwrap();
    let (identities, listeners) = setting(3);
    let list = peers(&identities, &listeners);
    let root = tempfile::tempdir().unwrap();
    let party = |number: usize| {
        let transport = Tls::connect(number, &identities[number], &listeners[number], &list, PATIENCE).unwrap();
        let mut session = Session::new(transport, "a joint key").unwrap();
        let (keys, share) = generate(&mut session, context.rlwe(), &Plan::any_of(2, 3), &wanted).unwrap();
        let path = root.path().join(format!("{number}.journal"));
        share.begin_journal(&path).unwrap();
        // All encrypt the same here, so that all have the same ciphertext.
        let (values, mut randomness): (Values, _) = (vec![7i64, -8].into(), Randomness::insecure_from_number(1));
        let by = Encryptor::Public(&keys.public);
        let x = Bfv::encrypt(&context, &by, &values, 1.0, context.params().top_level(), &mut randomness).unwrap();
        let mut quorum = Quorum::meet(&mut session, context.rlwe(), &share).unwrap();
        assert_eq!(quorum.members(), [0, 1, 2]);
        let mut journal = share.open_journal(&path).unwrap();
        let found = quorum.decrypt::<Bfv>(&context, &mut journal, &[&x], 0.0).unwrap();
        assert_eq!(found[0].values.words().unwrap()[..3], [7, -8, 0]);
        // All are refused, each by its own journal, before anything is sent.
        assert_eq!(quorum.decrypt::<Bfv>(&context, &mut journal, &[&x], 0.0).err().unwrap().kind(), "decrypted_before");
    };
    thread::scope(|scope| {
        let party = &party;
        let threads: Vec<_> = (0..3).map(|number| scope.spawn(move || party(number))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
