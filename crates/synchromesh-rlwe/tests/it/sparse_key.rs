//! The sparse secret key: a ciphertext of level 0 goes under it, is raised and comes back as m + q I with small I; its keys
//! survive their file; and its security is that of its weight.

use num_bigint::BigInt;
use num_traits::Signed;

use crate::common::{Counted, centred, error_bits, fixture, literal, log2, message};
use synchromesh_ring::{Coeff, Ntt};
use synchromesh_rlwe::derived_key::sparse_id;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::security::{SecurityLevel, max_log_qp_sparse};
use synchromesh_rlwe::{
    EvaluationKeys, Params, ParamsLiteral, Schedule, SecretKey, Security, Source, SparseKey, SwitchDomain, SwitchPlan,
};

/// log2 of the largest multiple of q that entered a coefficient.
fn raised<D: SwitchDomain>(q: &[u32], limbs: Vec<usize>, weight: usize, t: &str) -> f64 {
    let schedule = Schedule::default().with_sparse_key(weight);
    let base = literal(10, q, &[56, 56, 56], t);
    let mut f = fixture(ParamsLiteral { schedule, level_limbs: limbs, ..base }, 43);
    let params = f.context.params().clone();
    let plan = SwitchPlan::hybrid(&params, 2).unwrap();
    let mut keys = EvaluationKeys::generate(&f.context, &f.secret, [], &plan, &mut f.randomness).unwrap();
    keys.add_raising(&f.context, &f.secret, &plan, &mut f.randomness).unwrap();
    let bytes = keys.to_bytes(&f.context, None).unwrap();
    assert_eq!(keys.wire_bytes(&params), bytes.len() as u64);
    let keys = EvaluationKeys::from_bytes(&f.context, &bytes, Some(f.secret.id()), None).unwrap();
    assert_eq!(keys.to_bytes(&f.context, None).unwrap(), bytes);
    let sparse = f.secret.sparse().unwrap();
    assert_eq!(sparse.small().as_slice().iter().filter(|&&x| x != 0).count(), weight);
    assert_eq!((sparse.id(), keys.sparse().unwrap().target()), (sparse_id(f.secret.id()), sparse.id()));
    // Nothing under the sparse secret knows more than level 0 and one special prime.
    let known = keys.sparse().unwrap().get(Source::Key(f.secret.id())).unwrap().part().primes().len();
    assert_eq!(known, params.level(0).unwrap().len() + 1);
    let (m, poly) = message(&f.context, 0, 3);
    let (ct, _) = f.secret.encrypt::<D>(&f.context, &poly, 0, &mut f.randomness).unwrap();
    let switching = KeySwitching::new(keys.into(), plan);
    let up = switching.raise(&f.context, &ct).unwrap();
    assert_eq!((up.level(), up.key()), (params.top_level(), f.secret.id()));
    // The phase is m + t e + q I, and what is not q I is as small as the certificate says.
    let phase = centred(&f.context, f.secret.phase(&f.context, &up).unwrap().poly());
    let q = BigInt::from(params.ring().product(params.level(0).unwrap()));
    let (mut largest, mut error) = (BigInt::from(0), BigInt::from(0));
    let t = BigInt::from(params.error_multiple().clone());
    for (x, m) in phase.iter().zip(&m) {
        let above = x - m + &q / 2;
        let i: BigInt = (&above - ((&above % &q) + &q) % &q) / &q;
        let e: BigInt = x - m - &i * &q;
        assert_eq!(&e % &t, BigInt::from(0));
        error = error.max((e / &t).abs());
        largest = largest.max(i.abs());
    }
    assert!(log2(&error) <= up.noise().bound(10, 128), "2^{} above 2^{}", log2(&error), up.noise().bound(10, 128));
    log2(&largest)
}

#[test]
fn raised_ciphertexts_hold_small_multiples_of_the_modulus() {
    for t in ["1", "65537"] {
        for (q, limbs) in [(&[50, 45, 45][..], vec![]), (&[40, 38, 30, 50, 45][..], vec![2, 4, 5])] {
            for weight in [1, 32] {
                let most = (1.0 + weight as f64) / 2.0 + 1e-3;
                let slots = raised::<Ntt>(q, limbs.clone(), weight, t);
                let coefficients = raised::<Coeff>(q, limbs.clone(), weight, t);
                assert!(slots <= most.log2() && coefficients <= most.log2(), "{slots} {coefficients} {weight}");
                assert!(weight == 1 || slots > 2.0, "a weight of 32 leaves more than that");
            }
        }
    }
}

#[test]
fn the_sparse_key_is_checked_by_its_weight() {
    let base = literal(10, &[50, 40, 40], &[50], "1");
    let with = |weight, special: &[usize]| {
        let sparse = Some(SparseKey { weight, special: special.to_vec() });
        Params::new(ParamsLiteral { schedule: Schedule { sparse, ..Schedule::default() }, ..base.clone() })
    };
    for (weight, special) in [(0, vec![]), (513, vec![]), (32, vec![0]), (32, vec![9]), (32, vec![3, 3])] {
        assert_eq!(with(weight, &special).unwrap_err().kind(), "params", "{weight} {special:?}");
    }
    assert_eq!(with(512, &[]).unwrap().sparse().unwrap().special.as_slice(), [3]);
    // At N = 2^14 and weight 32 a modulus of 69 bits is secure, 90 % of the limit of 77; 70 are not.
    let classical = synchromesh_rlwe::security::CostModel::ClassicalMatzov;
    let limit = |log_n, weight| max_log_qp_sparse(log_n, weight, SecurityLevel::Bits128, classical);
    assert_eq!((limit(14, 32), limit(15, 63), limit(17, 1 << 12)), (Some(69), Some(147), Some(1542)));
    assert_eq!((limit(13, 32), limit(14, 31)), (None, None));
    assert_eq!(max_log_qp_sparse(14, 32, SecurityLevel::Bits192, classical), None);
    let secure = |base_bits, security| {
        let schedule = Schedule::default().with_sparse_key(32);
        let literal = literal(14, &[base_bits, 50], &[34, 50], "1");
        Params::new(ParamsLiteral { schedule, security, ..literal })
    };
    assert_eq!(secure(35, Security::Bits128).unwrap().security_bits(), 128.0);
    for (bits, security) in [(36, Security::Bits128), (35, Security::Quantum128), (35, Security::Bits192)] {
        let error = secure(bits, security).unwrap_err();
        assert_eq!(error.kind(), "insecure_sparse_secret", "{bits} {security:?}");
        assert!(!error.remedy().is_empty());
    }
    assert_eq!(secure(36, Security::Insecure).unwrap().security_bits(), 0.0);
}

#[test]
fn nothing_is_made_under_the_sparse_key_at_a_larger_modulus() {
    let schedule = Schedule::default().with_sparse_key(32);
    let made = literal(14, &[35, 50], &[34, 50], "1");
    let mut f = fixture(ParamsLiteral { schedule, security: Security::Bits128, ..made }, 44);
    let plan = SwitchPlan::hybrid(f.context.params(), 1).unwrap();
    let sparse = f.secret.sparse().unwrap();
    let source = Source::Key(f.secret.id());
    let refused =
        synchromesh_rlwe::SwitchKey::generate(&f.context, sparse, source, Some(&f.secret), &plan, &mut f.randomness);
    assert_eq!(refused.err().map(|e| e.kind()), Some("insecure_sparse_secret"));
    // Without keys for it nothing is raised.
    let (m, poly) = message(&f.context, 0, 3);
    let (ct, _) = f.secret.encrypt::<Ntt>(&f.context, &poly, 0, &mut f.randomness).unwrap();
    assert!(error_bits(&f.context, &f.secret, &ct, &m) < 10.0);
    let keys = EvaluationKeys::<Counted>::new(f.secret.id());
    let switching = KeySwitching::new(keys.into(), plan);
    assert_eq!(switching.raise(&f.context, &ct).err().map(|e| e.kind()), Some("missing_key"));
    let again = SecretKey::from_bytes(&f.context, &f.secret.to_bytes(&f.context, None).unwrap(), None).unwrap();
    assert_eq!(again.sparse().unwrap().small().as_slice(), f.secret.sparse().unwrap().small().as_slice());
}
