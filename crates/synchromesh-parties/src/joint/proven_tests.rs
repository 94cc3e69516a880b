//! Joint keys with proofs: results and certificates, with shares as long as proofs let through; wrong shares are blamed.

use std::time::Duration;

use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::Arithmetic;
use synchromesh::ckks::{self, Ckks};
use synchromesh::exact::{self, Rotations};
use synchromesh::rlwe::ring::{Coeff, Cpu, Poly};
use synchromesh::rlwe::{PublicKey, Randomness, SecretKey};
use synchromesh::scheme::Scheme;

use super::generate::generate_as;
use super::test_kit::*;
use super::tests::gaps;
use super::*;
use crate::polynomials::{poly_bytes, read_poly, write_poly};
use crate::proven::Cheat;
use crate::session::{HEADER, Kind, Session};
use crate::tampering::Tamper;
use crate::{Blame, Error, Result};

/// Short, since somebody may be silent.
const PATIENT: Duration = Duration::from_secs(20);

fn plan<S: Scheme>(plan: Plan) -> Plan {
    let approximate = S::NAME == synchromesh::plan::SchemeName::Ckks;
    let plan = plan.with_decryptions(64).with_proofs();
    if approximate { plan.with_security(30) } else { plan }
}

/// The judge's keys for a plan, whose last party does this.
fn kit<S: Judged>(params: impl Fn(usize) -> S::Params, of: Plan, cheat: Cheat) -> Kit<S> {
    let (plan, rotations) = (plan::<S>(of), Rotations::by([1, 3]).and_swap());
    let wanted =
        |context: &S::Context<_>, params: &S::Params| Wanted::whole::<S>(context, S::plans(params), &rotations);
    Kit::with_cheat(S::with_joint(&params(of.parties), &plan), plan, wanted, cheat)
}

/// What is done with keys is off by no more than certificates say: honest ones, and those with a share of the secret, or of the
/// error, that is far from what it should be and passes its proof.
fn with_any_share<S: Judged>(params: impl Fn(usize) -> S::Params) {
    let cases = [
        (Plan::any_of(2, 3), Cheat::None),
        (Plan::all_of(3), Cheat::Long(0, 400)),
        (Plan::all_of(2), Cheat::Long(1, 1500)),
    ];
    for (of, cheat) in cases {
        let said = format!("{} of {}, {cheat:?}", of.threshold, of.parties);
        let all = gaps(&mut kit::<S>(&params, of, cheat), 2, &said);
        // A certificate of anything would hold too.
        assert!(all.iter().all(|(_, gap)| *gap < 60.0), "{all:?}");
    }
}

#[test]
fn certificates_hold_for_any_share_that_is_proven_bfv() {
    with_any_share::<Bfv>(Bfv::small);
}

#[test]
fn certificates_hold_for_any_share_that_is_proven_bgv() {
    with_any_share::<Bgv>(Bgv::small);
}

#[test]
fn certificates_hold_for_any_share_that_is_proven_ckks() {
    // Scales at which errors of keys are larger than those of doubles.
    with_any_share::<Ckks>(|_| ckks_params(50, &[60, 50, 50], &[]));
}

fn ckks_params(log_scale: u32, q_bits: &[u32], level_limbs: &[usize]) -> ckks::Params {
    let (q_bits, level_limbs) = (q_bits.to_vec(), level_limbs.to_vec());
    let literal = Ckks::small(1).literal().clone();
    ckks::Params::new(ckks::ParamsLiteral { log_scale, q_bits, level_limbs, primes: None, ..literal }).unwrap()
}

/// Decryptions by all, and by so many of them that it takes, each share of which is proven.
fn decrypts<S: Judged>(params: impl Fn(usize) -> S::Params) {
    for (of, quorums) in [(Plan::all_of(2), &[&[0, 1][..]][..]), (Plan::any_of(2, 3), &[&[2, 0], &[1, 2], &[0, 1, 2]])]
    {
        let mut kit = kit::<S>(&params, of, Cheat::None);
        for members in quorums {
            let x = S::sample(kit.context(), 9);
            let turned = kit.encrypt(&x);
            let turned = kit.evaluator.rotate(&turned, 3).unwrap();
            let found = kit.open(members, &[&turned], 4.0);
            assert!(S::agree(&found[0], &S::rotated(&x, 3), 4.0), "{members:?} of {}", of.parties);
        }
    }
}

#[test]
fn as_many_as_it_takes_decrypt_where_shares_are_proven() {
    decrypts::<Bfv>(Bfv::small);
    decrypts::<Bgv>(Bgv::small);
    // Scales with room for what may be in the place of noise.
    decrypts::<Ckks>(|_| ckks_params(110, &[60, 60, 55, 55], &[2, 4]));
}

/// One ciphertext passed on by all, each share of which is proven, while the last party does this to what it sends.
fn passes<S: Judged>(kit: &mut Kit<S>, at: Option<usize>) -> Vec<Result<[f64; 2]>> {
    let x = S::sample(kit.context(), 9);
    let given = kit.encrypt(&x);
    let mut randomness = Randomness::insecure_from_number(7);
    let receiver = SecretKey::<Cpu>::generate(kit.rlwe(), &mut randomness).unwrap();
    let public = PublicKey::generate(kit.rlwe(), &receiver, &mut randomness).unwrap();
    let tamper: Option<Tamper> = at.map(|at| -> Tamper {
        // Both others are told the same, of the first frame with shares or the first with proofs.
        let mut rounds = Vec::<Vec<u8>>::new();
        Box::new(move |_, _, mut frame| {
            if frame[HEADER - 4] == Kind::Decryption as u8 {
                let round = frame[32..40].to_vec();
                if !rounds.contains(&round) {
                    rounds.push(round);
                }
                if rounds.len() == at {
                    frame[HEADER + 1] ^= 1;
                }
            }
            Some(frame)
        })
    });
    run(kit.parties.len(), (PATIENT, tamper), |i, transport| {
        let mut session = Session::new(transport, "passing on")?;
        let mut quorum = Quorum::meet(&mut session, kit.rlwe(), &kit.parties[i].share)?;
        let passed = quorum.pass_on::<S>(kit.context(), &mut kit.journal(i), &[&given], &public, 4.0)?;
        assert!(S::agree(&S::decrypt(kit.context(), &receiver, &passed[0])?, &x, 4.0));
        Ok(S::errors(kit.context(), &passed[0], receiver.slots(), &x))
    })
}

fn passes_on<S: Judged>(params: impl Fn(usize) -> S::Params) {
    let mut kit = kit::<S>(&params, Plan::all_of(3), Cheat::None);
    for result in passes::<S>(&mut kit, None) {
        let [measured, certified] = result.unwrap();
        assert!(measured <= certified, "{measured} of {certified} bits");
    }
    // What is encrypted, and the proof of it.
    for at in [1, 2] {
        let results = passes::<S>(&mut kit, Some(at));
        let named = |result: &Result<_>| matches!(result, Err(Error::Abort { blame: Blame::Party(2), .. }));
        assert!(results[..2].iter().all(Result::is_err) && results[..2].iter().any(named), "{at}: {results:?}");
    }
}

#[test]
fn all_who_proved_their_shares_pass_on_to_one_receiver() {
    passes_on::<Bfv>(Bfv::small);
    passes_on::<Bgv>(Bgv::small);
    passes_on::<Ckks>(|_| ckks_params(110, &[60, 60, 55, 55], &[2, 4]));
}

/// The smallest keys there are: one prime and a special one.
pub(super) fn smallest(plan: &Plan) -> exact::Params<Bgv> {
    let params = exact::Params::new(exact_literal("65537", &[50], &[51], 1)).unwrap();
    Bgv::with_joint(&params, plan)
}

/// Keys among parties of which the last does this, and whose frames pass through `tamper`.
fn make(of: Plan, cheat: Cheat, tamper: Option<Tamper>) -> Vec<Result<()>> {
    let plan = plan::<Bgv>(of);
    let params = smallest(&plan);
    let context = synchromesh::bgv::Context::new(params.clone()).unwrap();
    let wanted = Wanted::whole::<Bgv>(&context, params.plans(), &Rotations::none()).unwrap();
    run(of.parties, (PATIENT, tamper), |i, transport| {
        let mut session = Session::new(transport, "keys")?;
        let conduct = if i + 1 == of.parties { cheat } else { Cheat::None };
        generate_as(&mut session, context.rlwe(), &plan, &wanted, &conduct).map(drop)
    })
}

#[test]
fn a_share_whose_proof_fails_is_blamed_on_its_sender_by_everybody() {
    for cheat in Cheat::FOUND {
        let results = make(Plan::all_of(3), cheat, None);
        for result in &results[..2] {
            let Err(Error::Abort { blame, deed, phase }) = result else { panic!("{cheat:?}: {result:?}") };
            // Who hears of it first from the other may not have looked yet.
            let blamed = *blame == Blame::Party(2) && deed.contains("did not prove");
            assert!(blamed || *blame == Blame::Somebody, "{cheat:?}: {result:?}");
            assert_eq!(phase.contains("relinearisation"), cheat.is_late(), "{cheat:?}: {phase}");
        }
        assert!(results[..2].iter().any(|result| matches!(result, Err(Error::Abort { blame: Blame::Party(2), .. }))));
    }
    assert!(make(Plan::all_of(3), Cheat::None, None).iter().all(Result::is_ok));
}

/// The last of three tells its secret to the first, and nothing to the second.
#[test]
fn a_secret_that_is_not_the_one_of_its_public_share_is_blamed_on_who_told_it() {
    type Deed = fn(&mut [u8]);
    let deeds: [(usize, Deed); 4] = [
        // One residue; one that is as short as the right one; none that is known; a secret for who is to have none.
        (0, |secret| secret[5] ^= 1),
        (0, |secret| secret.fill(0)),
        (0, |secret| secret.rotate_left(8)),
        (1, |secret| secret[7] = 1),
    ];
    for (number, (told, deed)) in deeds.into_iter().enumerate() {
        let tamper: Tamper = Box::new(move |_, to, mut frame| {
            if frame[HEADER - 4] == Kind::Private as u8 && to == told {
                deed(&mut frame[HEADER..]);
            }
            Some(frame)
        });
        let results = make(Plan::any_of(2, 3), Cheat::None, Some(tamper));
        let blamed = |result: &Result<()>| matches!(result, Err(Error::Abort { blame: Blame::Party(2), .. }));
        assert!(blamed(&results[told]), "deed {number}: {results:?}");
        // The other one hears of it and blames nobody.
        let heard = matches!(results[1 - told], Err(Error::Abort { blame: Blame::Somebody, .. }));
        assert!(heard, "deed {number}: {results:?}");
    }
    assert!(make(Plan::any_of(2, 3), Cheat::None, None).iter().all(Result::is_ok));
    // One that is longer than any that is drawn, and that passes its proof.
    let long = make(Plan::any_of(2, 3), Cheat::Long(0, 400), None);
    assert!(matches!(long[0], Err(Error::Abort { blame: Blame::Party(2), .. })), "{long:?}");
}

#[test]
fn each_draws_several_secrets_where_it_takes_more() {
    let mut kit = kit::<Bgv>(Bgv::small, Plan::any_of(3, 4), Cheat::None);
    assert_eq!(kit.parties[0].share.secrets.len(), 4, "of 8");
    let values = Bgv::sample(kit.context(), 3);
    for members in [&[3, 0, 2][..], &[1, 2, 3], &[0, 1, 2, 3]] {
        let x = kit.encrypt(&values);
        assert!(Bgv::agree(&kit.open(members, &[&x], 0.0)[0], &values, 0.0), "{members:?}");
    }
}

#[test]
fn a_wrong_share_of_one_of_two_who_met_is_blamed_on_it() {
    let mut kit = kit::<Bgv>(Bgv::small, Plan::any_of(2, 3), Cheat::None);
    let values = Bgv::sample(kit.context(), 3);
    for members in [[1, 0], [0, 2]] {
        let x = kit.encrypt(&values);
        let mut first = true;
        let tamper: Tamper = Box::new(move |_, _, mut frame| {
            if frame[HEADER - 4] == Kind::Decryption as u8 && std::mem::take(&mut first) {
                frame[HEADER + 1] ^= 1;
            }
            Some(frame)
        });
        let results = kit.decrypt(&members, (PATIENT, Some(tamper)), &[&x], 0.0);
        assert!(
            matches!(results[0], Err(Error::Abort { blame: Blame::Party(1), .. })),
            "{:?}",
            results[0].as_ref().err()
        );
    }
}

/// A decryption among three of which the last changes what it shows, and tells both others the same; without proofs whoever
/// adds up is told.
fn shows(kit: &mut Kit<Bgv>, deed: impl Fn(&mut [u8], usize) + Sync) -> Vec<Result<bool>> {
    let values = Bgv::sample(kit.context(), 1);
    let x = kit.encrypt(&values);
    run(3, (PATIENT, None), |i, transport| {
        let (context, rlwe, mut journal) = (kit.context(), kit.rlwe(), kit.journal(i));
        let mut session = Session::new(transport, "decryption")?;
        let mut quorum = Quorum::meet(&mut session, rlwe, &kit.parties[i].share)?;
        if i < 2 {
            let opened = quorum.decrypt::<Bgv>(context, &mut journal, &[&x], 0.0)?;
            return Ok(Bgv::agree(&opened[0].values, &values, 0.0));
        }
        let openings = quorum.agreed::<Bgv>(context, &mut journal, &[&x], (0.0, None), Bgv::opening)?;
        let proofs = quorum.proofs(rlwe, &openings, None)?;
        let shown = quorum.own.shown(rlwe, &openings[0], &[])?;
        let split = poly_bytes(rlwe, openings[0].c1.primes());
        if proofs.is_empty() {
            let mut message = Vec::new();
            write_poly(rlwe, &shown, &mut message)?;
            deed(&mut message, split);
            let primes = openings[0].c1.primes();
            return quorum.opened(rlwe, &openings, &[], |_, _| read_poly(rlwe, primes, &message)).map(|_| true);
        }
        let mut message = quorum.message(rlwe, &openings, &proofs, std::slice::from_ref(&shown))?;
        deed(&mut message, split);
        let slots = |x: Poly<Cpu, Coeff>| Ok(x.into_ntt(rlwe.backend())?);
        quorum.exchanged(rlwe, (&openings, &proofs), &message, vec![shown], slots).map(|_| true)
    })
}

#[test]
fn a_wrong_share_of_a_decryption_is_blamed_on_its_sender_where_shares_are_proven() {
    let kit = |plan: Plan| {
        let params = Bgv::with_joint(&Bgv::small(3), &plan);
        Kit::<Bgv>::new(params, plan.with_decryptions(64), &Rotations::none())
    };
    let mut proven = kit(Plan::all_of(3).with_proofs());
    // In the share, in its last residues, in the challenge of the proof, in its responses, behind them.
    let deeds: [fn(usize, usize) -> usize; 5] = [
        |_, _| 0,
        |split, _| split - 7,
        |split, _| split + 3,
        |split, all| split + (all - split) / 2,
        |_, all| all - 1,
    ];
    for (number, place) in deeds.into_iter().enumerate() {
        let results = shows(&mut proven, |message, split| message[place(split, message.len())] ^= 1);
        let blamed = |result: &Result<bool>| matches!(result, Err(Error::Abort { blame: Blame::Party(2), .. }));
        let told = |result: &Result<bool>| matches!(result, Err(Error::Abort { blame: Blame::Somebody, .. }));
        assert!(results[..2].iter().all(|result| blamed(result) || told(result)), "deed {number}: {results:?}");
        assert!(results[..2].iter().any(blamed), "deed {number}: {results:?}");
    }
    assert!(shows(&mut proven, |_, _| ()).into_iter().all(|right| right.unwrap()));
    // Without proofs it is believed.
    let believed = shows(&mut kit(Plan::all_of(3)), |message, _| message[0] ^= 1);
    assert!(believed[..2].iter().all(|right| *right == Ok(false)), "{believed:?}");
}

#[test]
fn plans_with_proofs_take_parameters_for_such_keys_and_all_parties() {
    let params = Bgv::small(3);
    let [plain, proven] = [Plan::all_of(3), Plan::all_of(3).with_proofs()];
    let rlwe = |plan: &Plan| Bgv::with_joint(&params, plan).rlwe().clone();
    for (plan, of, fits) in
        [(&plain, &plain, true), (&proven, &proven, true), (&plain, &proven, false), (&proven, &plain, false)]
    {
        assert_eq!(plan::check(plan, &rlwe(of)).is_ok(), fits, "{plan:?} under parameters of {of:?}");
    }
    assert!(plan::check(&proven, &rlwe(&Plan::all_of(2).with_proofs())).is_err());
    // A key of three secrets, whoever knows them; four parties of whom three decrypt draw eight.
    assert!(plan::check(&Plan::any_of(2, 3).with_proofs(), &rlwe(&proven)).is_ok());
    let of = Plan::any_of(3, 4).with_proofs();
    assert!(plan::check(&of, &rlwe(&of)).is_ok());
    assert!(plan::check(&of, &rlwe(&Plan::all_of(4).with_proofs())).is_err());
}
