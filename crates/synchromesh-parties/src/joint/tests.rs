//! Joint keys where everybody follows the protocol: results, certificates, members who are missing, odd parameters.

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::Arithmetic;
use synchromesh::ckks::Ckks;
use synchromesh::exact::{self, Rotations};
use synchromesh::opening::Hiding;
use synchromesh::plain_modulus::PlainModulus;
use synchromesh::rlwe::noise::DigitSize;
use synchromesh::rlwe::ring::Cpu;
use synchromesh::rlwe::ring::rns::Overflow;
use synchromesh::rlwe::ring::sampler::Purpose;
use synchromesh::rlwe::switch_key::inverse_galois;
use synchromesh::rlwe::{PublicKey, Randomness, SecretKey, Security, Source, UniformHalves};
use synchromesh::scheme::{Encryptor, Scheme, Values};

use super::test_kit::*;
use super::*;
use crate::proofs::encryption::uniform;
use crate::session::Session;

/// A plan whose noise leaves room in small parameters: of CKKS 40 bits and a few decryptions.
fn plan<S: Scheme>(plan: Plan) -> Plan {
    let approximate = S::NAME == synchromesh::plan::SchemeName::Ckks;
    let plan = plan.with_decryptions(64);
    if approximate { plan.with_security(40) } else { plan }
}

/// x y rotated, plus x, decrypted by all.
fn computes_and_decrypts<S: Judged>() {
    for parties in [1, 2, 3, 5] {
        let mut kit = Kit::<S>::new(S::small(parties), plan::<S>(Plan::all_of(parties)), &Rotations::by([3]));
        let [x, y] = [1, 2].map(|seed| S::sample(kit.context(), seed));
        let [a, b] = [&x, &y].map(|values| kit.encrypt(values));
        let product = kit.evaluator.mul(&a, &b).unwrap();
        let turned = kit.evaluator.rotate(&product, 3).unwrap();
        let expected = S::rotated(&S::product(kit.context(), &x, &y), 3);
        let members: Vec<usize> = (0..parties).collect();
        let found = kit.open(&members, &[&a, &turned], 20.0);
        assert!(S::agree(&found[0], &x, 20.0) && S::agree(&found[1], &expected, 20.0), "{parties} parties");
        assert!(kit.parties.iter().all(|party| party.keys.public.id() == party.share.key()));
        assert_eq!(kit.journal(0).made(), 2);
    }
}

#[test]
fn all_parties_together_decrypt_what_was_computed_bfv() {
    computes_and_decrypts::<Bfv>();
}

#[test]
fn all_parties_together_decrypt_what_was_computed_bgv() {
    computes_and_decrypts::<Bgv>();
}

#[test]
fn all_parties_together_decrypt_what_was_computed_ckks() {
    computes_and_decrypts::<Ckks>();
}

/// Every operation that keys go into, its error measured under the sum of all shares: the bits by which its certificate
/// exceeds the largest.
pub(super) fn gaps<S: Judged>(kit: &mut Kit<S>, seeds: u64, of: &str) -> [(&'static str, f64); 6] {
    let secret = kit.secret();
    let mut gaps = Vec::new();
    for seed in 0..seeds {
        let [x, y] = [2 * seed, 2 * seed + 1].map(|seed| S::sample(kit.context(), seed));
        let [a, b] = [&x, &y].map(|values| kit.encrypt(values));
        let e = &kit.evaluator;
        let square = S::product(kit.context(), &x, &x);
        let product = S::product(kit.context(), &x, &y);
        let both = S::product(kit.context(), &square, &product);
        let [of_square, of_product] = [e.square(&a).unwrap(), e.mul(&a, &b).unwrap()];
        let turned = e.rotate(&a, 3).unwrap();
        let again = e.rotate(&turned, 1).unwrap();
        let deep = e.mul(&of_square, &of_product).unwrap();
        let low = e.at_level(&e.rotate(&of_product, 1).unwrap(), 0).unwrap();
        let cases = [
            ("fresh", &a, x.clone()),
            ("rotation", &turned, S::rotated(&x, 3)),
            ("rotations", &again, S::rotated(&x, 4)),
            ("square", &of_square, square),
            ("product", &of_product, product.clone()),
            ("depth 2", &deep, both),
            ("level 0", &low, S::rotated(&product, 1)),
        ];
        for (name, ciphertext, values) in cases {
            let [measured, certified] = S::errors(kit.context(), ciphertext, &secret, &values);
            assert!(measured <= certified, "{name}, {of}: {measured:.1} of {certified:.1} bits");
            gaps.push((name, certified - measured));
        }
    }
    let nearest = |name: &str| gaps.iter().filter(|(n, _)| *n == name).map(|x| x.1).fold(f64::INFINITY, f64::min);
    let all = ["fresh", "rotation", "square", "product", "depth 2", "level 0"].map(|name| (name, nearest(name)));
    println!("{} {of}: {all:.1?}", S::NAME.name());
    all
}

fn errors_stay_below_certificates<S: Judged>() {
    for (parties, tight) in [(1, true), (3, true), (3, false), (5, true)] {
        let params = if tight { S::tight(parties) } else { S::small(parties) };
        let mut kit = Kit::<S>::new(params, plan::<S>(Plan::all_of(parties)), &Rotations::by([1, 3]).and_swap());
        let all = gaps(&mut kit, 4, &format!("{parties} parties, tight: {tight}"));
        // A certificate of anything would hold too.
        assert!(all.iter().all(|(_, gap)| *gap < 16.0), "{parties} parties: {all:?}");
    }
}

#[test]
fn errors_under_joint_keys_stay_below_their_certificates_bfv() {
    errors_stay_below_certificates::<Bfv>();
}

#[test]
fn errors_under_joint_keys_stay_below_their_certificates_bgv() {
    errors_stay_below_certificates::<Bgv>();
}

#[test]
fn errors_under_joint_keys_stay_below_their_certificates_ckks() {
    errors_stay_below_certificates::<Ckks>();
}

/// |e|_2 of a row b_j + a_j s - P g_j s', as log2, largest and smallest over all rows of a key.
fn row_errors(kit: &Kit<Bgv>, source: Source) -> [f64; 2] {
    let (context, secret) = (kit.rlwe(), kit.secret());
    let (backend, params) = (context.backend(), context.params());
    let key = kit.parties[1].keys.evaluation.get(source).unwrap();
    let (under, from) = match source {
        Source::Galois(g) => {
            let inverse = inverse_galois(g, 2 * params.n());
            (secret.poly().automorphism(backend, inverse).unwrap(), secret.poly().duplicate(backend).unwrap())
        }
        _ => (secret.poly().duplicate(backend).unwrap(), secret.poly().mul(backend, secret.poly()).unwrap()),
    };
    let rows = key.shape().rows(params);
    let norms = key.b().iter().enumerate().map(|(j, b)| {
        let a = match key.uniform() {
            UniformHalves::Given(a) => a[j].duplicate(backend).unwrap(),
            UniformHalves::Seed(seed) => {
                uniform(context, b.primes(), seed, Purpose::SwitchKeyUniform, rows[j].index as u32).unwrap()
            }
        };
        let mut error = a.mul(backend, &under).unwrap();
        error.add_assign(backend, b).unwrap();
        let special = params.ring().residues(b.primes(), &params.ring().product(&key.shape().special));
        let gadget = b.primes().iter().zip(special).map(|(prime, p)| {
            let of_digit = rows[j].own.contains(prime);
            if of_digit { params.ring().modulus(prime).neg(p) } else { 0 }
        });
        error.mul_scalar_acc(backend, &from, &gadget.collect::<Vec<u64>>()).unwrap();
        let t = BigInt::from(params.error_multiple().clone());
        let square: f64 = integers(params.ring(), backend, error.into_coeff(backend).unwrap())
            .iter()
            .map(|x| {
                assert_eq!(x % &t, BigInt::ZERO);
                (x / &t).to_f64().unwrap().powi(2)
            })
            .sum();
        square.log2() / 2.0
    });
    norms.fold([f64::NEG_INFINITY, f64::INFINITY], |[high, low], x| [high.max(x), low.min(x)])
}

/// What certificates take the rows of keys to be is what they are, and not much less: a relinearisation key's are larger by
/// about s.
#[test]
fn rows_of_joint_keys_have_the_errors_that_certificates_say() {
    for parties in [2, 3, 5] {
        let kit = Kit::<Bgv>::new(Bgv::tight(parties), plan::<Bgv>(Plan::all_of(parties)), &Rotations::by([1]));
        let params = kit.rlwe().params();
        // A digit uniform in +-1/2.
        let digit = [DigitSize { log2: 0.0, primes: 1, errors: 1 }];
        let claims = [
            (
                Source::Galois(kit.context().galois_element(1).unwrap()),
                params.rotation_noise(&digit, 0.0, Overflow::Round),
            ),
            (Source::Square, params.gadget_noise(&digit, 0.0, Overflow::Round)),
        ];
        for (source, claim) in claims {
            let [high, low] = row_errors(&kit, source).map(|norm| norm - 12f64.log2() / 2.0);
            let claim = claim.certificate.sigma;
            println!("{parties} parties, {source}: {low:.1} to {high:.1} of {claim:.1} bits");
            assert!(high <= claim, "{parties} parties, {source}: {high:.2} of {claim:.2} bits");
            assert!(low > claim - 6.0, "{parties} parties, {source}: {low:.2} of {claim:.2} bits");
        }
    }
}

/// Each pair of three, and all of them, whichever of them comes first.
fn any_two_of_three<S: Judged>() {
    let mut kit = Kit::<S>::new(S::small(3), plan::<S>(Plan::any_of(2, 3)), &Rotations::none());
    let [x, y] = [1, 2].map(|seed| S::sample(kit.context(), seed));
    let expected = S::product(kit.context(), &x, &y);
    for members in [&[0, 1][..], &[2, 0], &[1, 2], &[2, 1, 0]] {
        let [a, b] = [&x, &y].map(|values| kit.encrypt(values));
        let product = kit.evaluator.mul(&a, &b).unwrap();
        let found = kit.open(members, &[&product], 20.0);
        assert!(S::agree(&found[0], &expected, 20.0), "{members:?}");
    }
    let a = kit.encrypt(&x);
    let alone = kit.decrypt(&[1], (PATIENCE, None), &[&a], 20.0);
    assert!(alone[0].as_ref().is_err_and(|error| error.kind() == "too_few_parties"));
}

#[test]
fn any_two_of_three_decrypt_whoever_is_missing_bfv() {
    any_two_of_three::<Bfv>();
}

#[test]
fn any_two_of_three_decrypt_whoever_is_missing_bgv() {
    any_two_of_three::<Bgv>();
}

#[test]
fn any_two_of_three_decrypt_whoever_is_missing_ckks() {
    any_two_of_three::<Ckks>();
}

/// What leaves a party is hidden by noise as wide as its certificate takes, always the same for one ciphertext among the same
/// members, and other noise otherwise.
fn shares_are_hidden<S: Judged>() {
    let mut kit = Kit::<S>::new(S::small(3), plan::<S>(Plan::any_of(2, 3)), &Rotations::none());
    let a = kit.encrypt(&S::sample(kit.context(), 1));
    let context = kit.rlwe();
    let (backend, ring) = (context.backend(), context.params().ring());
    let noise = |members: &'static [usize], to: &'static [u8]| {
        let results = run(members.len(), (PATIENCE, None), |i, transport| {
            let mut session = Session::new(transport, "a look").unwrap();
            let share = &kit.parties[members[i]].share;
            let quorum = Quorum::meet(&mut session, context, share).unwrap();
            let hiding = Hiding {
                parties: members.len(),
                security: share.plan().security,
                decryptions: share.plan().decryptions,
                precision: 10.0,
                encrypted: false,
                proven: false,
            };
            let opening = S::opening(kit.context(), &a, &hiding).unwrap();
            let mut shown = quorum.own.shown(context, &opening, to).unwrap();
            let part = quorum.own.part.poly().restrict(backend, opening.c1.primes()).unwrap();
            let hidden = opening.c1.mul(backend, &part).unwrap().into_coeff(backend).unwrap();
            shown.sub_assign(backend, &hidden).unwrap();
            let multiple = BigInt::from(opening.multiple.clone());
            let width = f64::from(opening.sigma_bits).exp2();
            let scaled = |x: BigInt| {
                assert_eq!(&x % &multiple, BigInt::ZERO);
                (x / &multiple).to_f64().unwrap() / width
            };
            // sqrt(12 D) 2^(s/2) |e|_2, and e is larger than its least.
            let least = (12.0 * 64.0f64).log2() / 2.0 + f64::from(hiding.security) / 2.0;
            assert!(f64::from(opening.sigma_bits) > least + 8.0);
            integers(ring, backend, shown.duplicate(backend).unwrap()).into_iter().map(scaled).collect::<Vec<f64>>()
        });
        results.into_iter().next().unwrap()
    };
    let all = [noise(&[0, 1], b""), noise(&[0, 2], b""), noise(&[0, 1, 2], b""), noise(&[0, 1], b"somebody")];
    assert_eq!(all[0], noise(&[0, 1], b""));
    for (i, x) in all.iter().enumerate() {
        for (j, y) in all.iter().enumerate() {
            let mean = x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>() / 1024.0;
            // 1024 products: a deviation of 1/32, or of 1/23 where they are squares.
            assert!((mean - f64::from(u8::from(i == j))).abs() < 0.22, "{} {i} {j}: {mean}", S::NAME.name());
        }
    }
}

#[test]
fn shares_are_hidden_by_as_much_noise_as_certificates_take() {
    shares_are_hidden::<Bfv>();
    shares_are_hidden::<Bgv>();
    shares_are_hidden::<Ckks>();
}

/// To somebody who takes no part.
fn to_a_receiver<S: Judged>(parties: Plan, members: &[usize]) {
    let mut kit = Kit::<S>::new(S::small(parties.parties), plan::<S>(parties), &Rotations::none());
    let mut randomness = Randomness::insecure_from_number(99);
    let receiver = SecretKey::<Cpu>::generate(kit.rlwe(), &mut randomness).unwrap();
    let public = PublicKey::generate(kit.rlwe(), &receiver, &mut randomness).unwrap();
    let x = S::sample(kit.context(), 5);
    let squared = S::product(kit.context(), &x, &x);
    let a = kit.encrypt(&x);
    let square = kit.evaluator.square(&a).unwrap();
    let results = run(members.len(), (PATIENCE, None), |i, transport| {
        let mut session = Session::new(transport, "for a receiver").unwrap();
        let mut journal = kit.journal(members[i]);
        let mut quorum = Quorum::meet(&mut session, kit.rlwe(), &kit.parties[members[i]].share).unwrap();
        quorum.pass_on::<S>(kit.context(), &mut journal, &[&a, &square], &public, 20.0).unwrap()
    });
    for passed in &results {
        for (ciphertext, values) in passed.iter().zip([&x, &squared]) {
            assert_eq!(S::key(ciphertext), receiver.id());
            let found = S::decrypt(kit.context(), &receiver, ciphertext).unwrap();
            assert!(S::agree(&found, values, 20.0));
            let [measured, certified] = S::errors(kit.context(), ciphertext, receiver.slots(), values);
            assert!(measured <= certified && certified < measured + 12.0, "{measured} of {certified} bits");
        }
    }
    let bytes = |i: usize| S::write(kit.context(), &results[i][1], None).unwrap();
    assert!((1..members.len()).all(|i| bytes(i) == bytes(0)), "all make the same ciphertext");
}

#[test]
fn a_receiver_who_takes_no_part_reads_what_is_passed_on() {
    to_a_receiver::<Bfv>(Plan::all_of(3), &[0, 1, 2]);
    to_a_receiver::<Bgv>(Plan::any_of(2, 3), &[2, 0]);
    to_a_receiver::<Ckks>(Plan::all_of(2), &[0, 1]);
}

fn exact_params<S: exact::Scheme>(t: &str, q: &[u32], p: &[u32], omega: usize) -> exact::Params<S> {
    exact::Params::new(exact_literal(t, q, p, omega)).unwrap()
}

/// Sums and products modulo 2, which has no slots, and modulo a prime of 255 bits.
fn other_moduli<S: Exact>() {
    let params = exact_params::<S>("2", &[60, 60, 50], &[61, 61], 2).with_parties(2);
    let kit = Kit::<S>::new(params, plan::<S>(Plan::all_of(2)), &Rotations::none());
    let mut randomness = Randomness::insecure_from_number(3);
    let bits: Vec<i64> = (0..1024).map(|i| i64::from(i % 3 == 0)).collect();
    let encoded = kit.context().encode_coefficients(&bits[..]).unwrap();
    let a = kit.context().encrypt(&kit.parties[1].keys.public, &encoded, &mut randomness).unwrap();
    let sum =
        kit.evaluator.add(&a, &kit.evaluator.mul_no_relin(&a, &a).and_then(|x| kit.evaluator.relinearize(&x)).unwrap());
    let found = kit.open(&[0, 1], &[&a, &sum.unwrap()], 0.0);
    assert_eq!(found[0].integers("a test").unwrap(), bits.iter().map(|&x| BigInt::from(x)).collect::<Vec<_>>());
    // x^2 = x(X^2) modulo 2, of which half of the coefficients meet themselves.
    let mut expected = bits.clone();
    bits.iter().enumerate().for_each(|(i, x)| expected[2 * i % 1024] ^= x);
    assert_eq!(found[1].integers("a test").unwrap(), expected.iter().map(|&x| BigInt::from(x)).collect::<Vec<_>>());

    let wide = PlainModulus::next_slot_prime(255, 16).unwrap().to_string();
    let params = exact_params::<S>(&wide, &[60; 15], &[61; 6], 3).with_parties(2);
    let mut kit = Kit::<S>::new(params, plan::<S>(Plan::all_of(2)), &Rotations::none());
    let [x, y] = [1, 2].map(|seed| S::sample(kit.context(), seed));
    let [a, b] = [&x, &y].map(|values| kit.encrypt(values));
    let product = kit.evaluator.mul(&a, &b).unwrap();
    let found = kit.open(&[0, 1], &[&product], 0.0);
    assert!(S::agree(&found[0], &S::product(kit.context(), &x, &y), 0.0));
}

#[test]
fn moduli_without_slots_and_of_255_bits_bfv() {
    other_moduli::<Bfv>();
}

#[test]
fn moduli_without_slots_and_of_255_bits_bgv() {
    other_moduli::<Bgv>();
}

/// Keys that serve level 1 and no higher one.
fn trimmed<S: Judged>() {
    let wanted = |context: &S::Context<Cpu>, params: &S::Params| {
        let rlwe = S::rlwe(context).params();
        let part = S::plans(params).needed(rlwe, 1)?;
        let rotation = S::galois_elements(context, &Rotations::by([3]))?[0];
        Wanted::parts(rlwe, [(Source::Square, part.clone()), (Source::Galois(rotation), part)])
    };
    let mut kit = Kit::<S>::with_keys(S::small(2), plan::<S>(Plan::all_of(2)), wanted);
    let x = S::sample(kit.context(), 1);
    let a = kit.encrypt(&x);
    assert!(kit.evaluator.rotate(&a, 3).is_err());
    let low = kit.evaluator.at_level(&a, 1).unwrap();
    let turned = kit.evaluator.rotate(&low, 3).unwrap();
    let [measured, certified] = S::errors(kit.context(), &turned, &kit.secret(), &S::rotated(&x, 3));
    assert!(measured <= certified, "{measured} of {certified}");
    let square = kit.evaluator.square(&a);
    assert!(square.is_err() || S::NAME == synchromesh::plan::SchemeName::Bgv);
}

#[test]
fn keys_for_the_lower_levels_are_made_alone() {
    trimmed::<Bfv>();
    trimmed::<Bgv>();
    trimmed::<Ckks>();
}

/// 128 bits of everything, and up to a million decryptions: N = 2^14 for BFV and BGV, and 2^15 for CKKS with 40 bits.
#[test]
fn real_parameters_of_each_scheme() {
    fn check<S: Judged>(params: S::Params, plan: Plan, precision: f64) {
        let mut kit = Kit::<S>::new(params, plan, &Rotations::by([1]));
        let x: Values = match S::NAME {
            synchromesh::plan::SchemeName::Ckks => vec![0.5, -0.25, 1.0, 0.125].into(),
            _ => vec![5i64, -3, 4, 7].into(),
        };
        let context = std::sync::Arc::clone(kit.context());
        let level = kit.rlwe().params().top_level();
        let by = Encryptor::Public(&kit.parties[0].keys.public);
        let a = S::encrypt(&context, &by, &x, 1.0, level, &mut kit.randomness).unwrap();
        let square = kit.evaluator.square(&kit.evaluator.rotate(&a, 1).unwrap()).unwrap();
        let members: Vec<usize> = (0..plan.threshold).collect();
        let found = kit.open(&members, &[&square], precision)[0].reals();
        let expected = x.reals();
        for i in 0..3 {
            assert!(
                (found[i] - expected[i + 1].powi(2)).abs() < (-precision).exp2(),
                "{} {i}: {}",
                S::NAME.name(),
                found[i]
            );
        }
    }
    let exact = |q: &[u32], p: &[u32]| exact::ParamsLiteral {
        log_n: 14,
        security: Security::Bits128,
        ..exact_literal("65537", q, p, 3)
    };
    let (q, p) = ([56, 55, 55, 55, 55], [58, 58]);
    check::<Bfv>(exact::Params::new(exact(&q, &p)).unwrap(), Plan::any_of(2, 3), 1.0);
    check::<Bgv>(exact::Params::new(exact(&q, &p)).unwrap(), Plan::all_of(2), 1.0);
    let literal = synchromesh::ckks::ParamsLiteral {
        log_n: 15,
        q_bits: vec![60, 60, 50, 50, 50, 50],
        log_scale: 100,
        p_bits: vec![60, 60],
        security: Security::Bits128,
        ..Ckks::small(1).literal().clone()
    };
    let literal = synchromesh::ckks::ParamsLiteral { primes: None, ..literal };
    let params = synchromesh::ckks::Params::new(literal).unwrap();
    check::<Ckks>(params, Plan::all_of(3).with_security(40).with_decryptions(1000), 16.0);
}
