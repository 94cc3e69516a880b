//! Every way of multiplying in BFV: it decrypts, its certificate covers its error, and it costs what is claimed.

use std::sync::Arc;

use crate::oracle::{Ct, Device, Fixture, Model, T128, big, deep, fixture, literal};
use num_bigint::BigInt;
use synchromesh::Error;
use synchromesh::bfv::{Bfv, Decryption, Dropping, Encoding, Encryption, Evaluator, Multiplication, Tensor};
use synchromesh::exact::{Context, Params, Rotations};
use synchromesh::rlwe::Randomness;
use synchromesh::rlwe::ring::rns::Overflow;
use synchromesh::rlwe::ring::{Counts, Cpu};

type Ciphertext = Ct<Bfv>;

const OVERFLOWS: [Overflow; 6] =
    [Overflow::Fast, Overflow::Floor, Overflow::Round, Overflow::HpsFloor, Overflow::HpsRound, Overflow::Behz];

/// The named ways, every pair of overflow rules, both directions, merged or not, with a cushion.
fn every_way() -> Vec<Multiplication> {
    let mut ways: Vec<Multiplication> = Multiplication::NAMED.iter().map(|(_, how)| *how).collect();
    for extend in OVERFLOWS {
        for scale in OVERFLOWS {
            ways.push(Multiplication { extend, scale, ..Multiplication::NEW });
            ways.push(Multiplication { extend, scale, ..Multiplication::ORIGINAL });
        }
        ways.push(Multiplication { scale: extend, merged: false, ..Multiplication::LEVELED });
    }
    for bits in [0, 10, 30] {
        ways.push(Multiplication { dropping: Dropping::Cushion(bits), ..Multiplication::NEW });
        ways.push(Multiplication { dropping: Dropping::Cushion(bits), merged: false, ..Multiplication::ORIGINAL });
    }
    ways
}

/// A chain for `depth` products at N = 2^10, with special primes to spare for the second base of Algorithm 1.
fn chain(t: &str, depth: usize, seed: u64) -> Fixture<Bfv> {
    let bits = big(t).bits() as u32 + 30;
    let mut literal = deep(10, t, bits + 8, bits, depth);
    literal.p_bits.extend([59, 58, 57]);
    fixture(literal, &Rotations::none(), seed)
}

/// The same keys and context, multiplying in another way.
fn by(f: Fixture<Bfv>, how: Multiplication) -> Fixture<Bfv> {
    Fixture { evaluator: f.evaluator.with_variant(how), ..f }
}

#[test]
fn every_way_decrypts_within_its_certificate() {
    for t in ["2", "65537", T128] {
        let mut f = chain(t, 3, 60);
        let (a, b) = (f.random(), f.random());
        let (x, y) = (f.encrypt(&a), f.encrypt_at(&b, 2));
        let (ab, abb) = (f.mul(&a, &b), f.mul(&f.mul(&a, &b), &b));
        for how in every_way() {
            f = by(f, how);
            let product = f.evaluator.mul(&x, &y).unwrap_or_else(|e| panic!("{how:?}, t = {t}: {e}"));
            f.judge(&product, &ab);
            assert!(product.level() == 2 || !how.raise);
            let lazy = f.evaluator.mul_no_relin(&product, &y).unwrap_or_else(|e| panic!("{how:?}, t = {t}: {e}"));
            f.judge(&lazy, &abb);
        }
    }
}

#[test]
fn products_go_down_to_the_last_level() {
    // Unequal primes, the last one short; the lowest level holds one product of ciphertexts fresh there.
    for (t, q_bits) in [("65537", vec![61, 45, 50, 30, 33]), ("2", vec![50, 41, 30, 60, 25])] {
        let mut f = fixture::<Bfv>(literal(10, t, &q_bits, &[61, 60, 59], &[2, 3, 4, 5], 3), &Rotations::none(), 61);
        let m = f.random();
        let square = f.mul(&m, &m);
        for level in 0..=3 {
            let x = f.encrypt_at(&m, level);
            for (_, how) in Multiplication::NAMED {
                f = by(f, how);
                f.judge(&f.evaluator.square(&x).unwrap(), &square);
            }
        }
    }
}

#[test]
fn leveled_products_descend_as_the_noise_grows_and_lose_half_a_bit_at_most() {
    let mut f = chain("65537", 6, 62);
    let m = f.random();
    let (mut ct, mut model) = (f.encrypt(&m), m);
    let mut levels = Vec::new();
    for _ in 0..6 {
        f = by(f, Multiplication::NEW);
        let new = f.evaluator.square(&ct).unwrap();
        f = by(f, Multiplication::DESCENDING);
        let descending = f.evaluator.square(&ct).unwrap();
        f = by(f, Multiplication::LEVELED);
        let leveled = f.evaluator.square(&ct).unwrap();
        model = f.mul(&model, &model);
        for product in [&new, &descending, &leveled] {
            f.judge(product, &model);
        }
        let budget = |ct: &Ciphertext| f.context.noise_budget(ct).unwrap();
        assert!(budget(&leveled) > budget(&new) - 0.51, "{} {}", budget(&leveled), budget(&new));
        assert!((budget(&descending) - budget(&leveled)).abs() < 0.01, "raising keeps the room");
        levels.push(descending.level());
        ct = leveled;
    }
    assert_eq!(ct.level(), 6, "the result is where its operands were");
    assert!(levels.is_sorted_by(|a, b| a >= b) && levels[0] >= 5 && levels[5] <= 3, "{levels:?}");
}

#[test]
fn raising_is_exact() {
    let mut f = chain("1073479681", 3, 63);
    let m = f.random();
    let low = f.encrypt_at(&m, 1);
    let high = f.evaluator.mod_raise_to(&low, 3).unwrap();
    f.judge(&high, &m);
    let factor = f.modulus(3) / f.modulus(1);
    let raised: Vec<BigInt> = f.phase(&low).iter().map(|x| x * &factor).collect();
    assert!(f.phase(&high) == raised);
    f.judge(&f.evaluator.mod_switch_to(&high, 1).unwrap(), &m);
    assert_eq!(f.evaluator.mod_raise_to(&high, 2).err().map(|e| e.kind()), Some("level"));
    assert_eq!(f.evaluator.mod_raise_to(&low, 4).err().map(|e| e.kind()), Some("level"));
}

#[test]
fn lazy_sums_decrypt_and_are_no_worse_than_sums_of_products() {
    for t in ["257", "65537", T128] {
        let mut f = chain(t, 2, 64);
        for (terms, (_, how)) in [1, 2, 5, 17].into_iter().flat_map(|n| Multiplication::NAMED.map(|way| (n, way))) {
            f = by(f, how);
            let models: Vec<[Model; 2]> = (0..terms.min(3)).map(|_| [f.random(), f.random()]).collect();
            let level = |i: usize| 2 - i % 2;
            let cts: Vec<[Ciphertext; 2]> =
                models.iter().enumerate().map(|(i, [a, b])| [f.encrypt_at(a, level(i)), f.encrypt_at(b, 2)]).collect();
            let pairs: Vec<[&Ciphertext; 2]> = (0..terms).map(|i| cts[i % cts.len()].each_ref()).collect();
            let sum = f.evaluator.sum_of_products(&pairs).unwrap();
            let products: Vec<Model> = models.iter().map(|[a, b]| f.mul(a, b)).collect();
            let model = (1..terms).fold(products[0].clone(), |sum, i| f.add(&sum, &products[i % products.len()]));
            f.judge(&sum, &model);
            let three = f.evaluator.sum_of_products_no_relin(&pairs).unwrap();
            assert_eq!(three.components(), 3);
            f.judge(&three, &model);
            let plain = pairs.iter().map(|[a, b]| f.evaluator.mul(a, b).unwrap());
            let plain = plain.reduce(|sum, term| f.evaluator.add(&sum, &term).unwrap()).unwrap();
            let budget = |ct: &Ciphertext| f.context.noise_budget(ct).unwrap();
            // Operands of a sum are lowered before their products, where a fresh one feels the rounding.
            let early = if terms > 1 { 1.6 } else { 0.51 };
            assert!(budget(&sum) > budget(&plain) - early, "{terms} terms: {} {}", budget(&sum), budget(&plain));
            let [x, y] = &cts[0];
            let bare: Evaluator<Device> = Evaluator::new(&f.context, None).with_variant(how);
            let sum = bare.sum_of_products_no_relin(&vec![[x, y]; terms]).unwrap();
            let one = bare.mul_no_relin(x, y).unwrap();
            let plain = (1..terms).fold(one.duplicate(&f.context).unwrap(), |sum, _| bare.add(&sum, &one).unwrap());
            let loss = if how.dropping == Dropping::Never { 0.01 } else { 0.51 };
            assert!(budget(&sum) > budget(&plain) - loss, "{terms} terms: {} {}", budget(&sum), budget(&plain));
        }
    }
}

#[test]
fn sums_that_cannot_be_are_typed_errors() {
    // One special prime is too few for the second base of Algorithm 1 at the top level, and enough below it.
    let mut f = fixture::<Bfv>(literal(10, T128, &[60; 8], &[60], &[], 8), &Rotations::none(), 65);
    f = by(f, Multiplication::ORIGINAL);
    let m = f.random();
    let x = f.encrypt(&m);
    let error = f.evaluator.mul(&x, &x).err().unwrap();
    assert!(matches!(error, Error::SecondBase { level: 7, terms: 1, .. }), "{error}");
    assert!(error.kind() == "second_base" && !error.remedy().is_empty());
    let low = f.encrypt_at(&m, 5);
    f.judge(&f.evaluator.mul(&low, &low).unwrap(), &f.mul(&m, &m));
    assert_eq!(f.evaluator.sum_of_products(&[]).err().map(|e| e.kind()), Some("argument"));
    let (_, public) = f.context.generate_keys(&mut f.randomness).unwrap();
    let other = f.context.encrypt(&public, &f.encode(&m), &mut f.randomness).unwrap();
    assert_eq!(f.evaluator.sum_of_products(&[[&x, &x], [&x, &other]]).err().map(|e| e.kind()), Some("keys_differ"));
    let keyless: Evaluator<Device> = Evaluator::new(&f.context, None).with_variant(Multiplication::NEW);
    assert_eq!(keyless.variant(), Multiplication::NEW);
    assert_eq!(keyless.sum_of_products(&[[&x, &x]]).err().map(|e| e.kind()), Some("no_keys"));
    let three = keyless.mul_no_relin(&x, &x).unwrap();
    assert_eq!(keyless.sum_of_products_no_relin(&[[&three, &x]]).err().map(|e| e.kind()), Some("components"));
}

#[test]
fn the_original_encryption_is_a_noisier_ciphertext() {
    for t in ["2", "65537", "1073479681", T128] {
        let mut f = chain(t, 2, 66);
        let m = f.random();
        let plaintext = f.encode(&m);
        let mut budgets = Vec::new();
        for encoding in [Encoding::Rounded, Encoding::Floor] {
            for scaled in [true, false] {
                let how = Encryption { encoding, scaled };
                for level in 0..=2 {
                    let ct = f.context.encrypt_by(how, &f.public, &plaintext, level, &mut f.randomness);
                    if t == T128 && encoding == Encoding::Floor && level == 0 {
                        // (Q mod t) / 2 alone is more than level 0 has room for.
                        assert_eq!(ct.err().map(|e| e.kind()), Some("noise"));
                        continue;
                    }
                    let ct = ct.unwrap();
                    let slack = f.judge(&ct, &m);
                    // (Q mod t) / 2 is reached when the message fills Z_t.
                    assert!(slack < 12.0, "{how:?}, t = {t}: the certificate is {slack} bits above the error");
                    if level == 2 {
                        budgets.push(f.context.noise_budget(&ct).unwrap());
                        f.judge(&f.evaluator.square(&ct).unwrap(), &f.mul(&m, &m));
                    }
                }
            }
        }
        assert!(budgets[0] >= budgets[1] && budgets[0] >= budgets[2] && budgets[2] >= budgets[3], "{budgets:?}");
        if t == T128 {
            assert!(budgets[0] > budgets[2] + 90.0, "r_t(Q) costs about log2 t bits: {budgets:?}");
        }
    }
}

#[test]
fn integers_decrypt_up_to_the_last_bit_of_noise() {
    for t in ["2", "1000000", "65537", "2305843009213693951", "2305843009213693921"] {
        let mut f = fixture::<Bfv>(literal(10, t, &[61, 45, 30, 50], &[61, 61], &[], 2), &Rotations::none(), 67);
        let mut m = f.random();
        let mut ct = f.encrypt(&m);
        let mut doubled = 0;
        while let Ok(next) = f.evaluator.add(&ct, &ct) {
            (ct, m, doubled) = (next, f.scale(&m, &2.into()), doubled + 1);
        }
        assert!(doubled > 60);
        let halved = f.context.decrypt_by(Decryption::Integers, &f.secret, &ct).unwrap();
        assert!(f.decode(&halved) == m, "t = {t}");
        assert_eq!(f.context.decode_coefficients_big(&halved).unwrap().len(), 1024);
    }
}

/// What one call costs.
fn cost(f: &Fixture<Bfv>, work: impl FnOnce() -> Ciphertext) -> (Counts, Ciphertext) {
    let (result, counts) = f.context.backend().measure(work);
    (counts, result)
}

#[test]
fn costs_are_those_of_table_1() {
    let k = 5u64;
    let mut f = fixture::<Bfv>(literal(10, "65537", &[50; 5], &[60; 3], &[], 2), &Rotations::none(), 42);
    let m = f.random();
    let (x, y) = (f.encrypt(&m), f.encrypt(&m));
    // Twice: constants are made at first use.
    let tensor = |how: Multiplication, x: &Ciphertext, y: &Ciphertext| {
        let evaluator = Evaluator::new(&f.context, None).with_variant(how);
        evaluator.mul_no_relin(x, y).unwrap();
        cost(&f, || evaluator.mul_no_relin(x, y).unwrap())
    };
    // Table 1 has 9 k^2 + 15 k: constants of the last scaling ride on the second operand and save 3 k + 3 k, and the
    // tensor product takes 4 multiplications where Table 1 takes 3 and 4 more additions.
    let (new, _) = tensor(Multiplication::NEW, &x, &y);
    assert_eq!((new.ntt, new.convert_mac, new.mul), (14 * k, 9 * k * k, 14 * k));
    // Table 1 has 14 k + 7 and 10 k^2 + 26 k + 9 with one prime more in P; each of 10 extensions is k p.
    let p = k + 1;
    for how in [Multiplication::ORIGINAL, Multiplication::HPS, Multiplication::BEHZ] {
        let (original, _) = tensor(how, &x, &y);
        assert_eq!((original.ntt, original.convert_mac), (14 * k + 7, 10 * k * p), "{how:?}");
        assert_eq!(original.mul, 4 * k + 2 * k + 4 * (k + p) + 3 * p, "{how:?}");
    }
    // A lazy sum scales once: 9 extensions for the first term, 6 for each further one, and 8 of 14 k transforms.
    let evaluator = Evaluator::new(&f.context, None);
    let pairs = [[&x, &y], [&y, &x], [&x, &x], [&y, &y]];
    evaluator.sum_of_products_no_relin(&pairs).unwrap();
    let (lazy, _) = cost(&f, || evaluator.sum_of_products_no_relin(&pairs).unwrap());
    assert_eq!((lazy.ntt, lazy.convert_mac), (4 * 8 * k + 6 * k, 4 * 6 * k * k + 3 * k * k));
    // Relinearised, ePrint 2021/204, section 5.2 and appendix B: 14 k + (2 + d)(k + k_P) transforms, less the 2 k of the
    // first two components modulo Q, which go back with the key switch.
    f.evaluator.mul(&x, &y).unwrap();
    let (relinearised, _) = cost(&f, || f.evaluator.mul(&x, &y).unwrap());
    assert_eq!(relinearised.ntt, 12 * k + (2 + 2) * (k + 3));
}

#[test]
fn products_relinearised_at_once_have_the_bits_of_those_relinearised_afterwards() {
    // Special primes wider than the auxiliary ones, which therefore are the second base in both cases.
    let literals = [
        literal(10, "65537", &[50, 47, 30, 58], &[60, 61, 59], &[], 2),
        literal(11, T128, &[60, 45, 50, 30, 33, 59, 60], &[61, 61, 60], &[], 7),
    ];
    for (seed, literal) in literals.into_iter().enumerate() {
        let params = Params::<Bfv>::new(literal).unwrap();
        let cpu = Cpu::open(Arc::clone(params.rlwe().ring())).unwrap();
        // The fused stages of a device here, what they stand for in the other tests' counting device.
        let context = Context::<Bfv, Cpu>::with_backend(params, cpu).unwrap();
        let mut randomness = Randomness::insecure_from_number(seed as u64);
        let (secret, public) = context.generate_keys(&mut randomness).unwrap();
        let keys = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness).unwrap();
        let keys = Arc::new(keys);
        let message: Vec<i64> = (0..context.params().n() as i64).map(|i| i * i % 251 - 125).collect();
        let message = context.encode_coefficients(&message).unwrap();
        let x = context.encrypt(&public, &message, &mut randomness).unwrap();
        let words = |ct: &synchromesh::bfv::Ciphertext| -> Vec<Vec<u64>> {
            ct.inner().parts().iter().map(|p| p.to_words(context.backend()).unwrap()).collect()
        };
        for (name, how) in Multiplication::NAMED {
            let evaluator = Evaluator::new(&context, Some(Arc::clone(&keys))).with_variant(how);
            for terms in [1, 3] {
                let pairs = vec![[&x, &x]; terms];
                let at_once = evaluator.sum_of_products(&pairs).unwrap();
                let three = evaluator.sum_of_products_no_relin(&pairs).unwrap();
                let afterwards = evaluator.relinearize(&three).unwrap();
                if at_once.level() == afterwards.level() && !how.raise || how.dropping == Dropping::Never {
                    assert!(words(&at_once) == words(&afterwards), "{name}, {terms} terms");
                }
                let [a, b] = [&at_once, &afterwards].map(|ct| context.decrypt(&secret, ct).unwrap());
                let [a, b] = [a, b].map(|plaintext| context.decode_coefficients_big(&plaintext).unwrap());
                assert!(a == b, "{name}");
            }
        }
    }
}

#[test]
fn products_whose_second_base_begins_with_the_special_primes_decrypt() {
    let bits = [58, 57, 56, 58, 47, 58, 50];
    for (t, q_bits, p_bits, omega) in [
        ("2", &[58, 47, 30, 50, 41][..], &[57, 56, 55][..], 2),
        ("65537", &[58, 47, 50, 50, 41], &[57, 56, 55], 2),
        ("1073479681", &bits, &[58], 7),
        (T128, &bits, &[57, 58, 58, 50], 3),
    ] {
        let mut f: Fixture<Bfv> = fixture(literal(10, t, q_bits, p_bits, &[], omega), &Rotations::none(), 69);
        let (a, b) = (f.random(), f.random());
        let (x, y) = (f.encrypt(&a), f.encrypt(&b));
        let product = f.mul(&a, &b);
        let three = f.scale(&product, &3.into());
        let overflows = OVERFLOWS.into_iter().map(|scale| Multiplication { scale, ..Multiplication::NEW });
        for how in Multiplication::NAMED.into_iter().map(|(_, how)| how).chain(overflows) {
            f = by(f, how);
            f.judge(&f.evaluator.mul(&x, &y).unwrap(), &product);
            f.judge(&f.evaluator.sum_of_products(&[[&x, &y]; 3]).unwrap(), &three);
        }
        // It is this way that ran: 2 k transforms fewer.
        f = by(f, Multiplication::NEW);
        let (k, p, d) =
            (q_bits.len() as u64, p_bits.len() as u64, q_bits.len().div_ceil(q_bits.len().div_ceil(omega)) as u64);
        let (counts, _) = cost(&f, || f.evaluator.mul(&x, &y).unwrap());
        assert!(counts.ntt <= 12 * k + (2 + d) * (k + p) - 2 * p, "t = {t}: {counts:?}");
    }
}

#[test]
fn leveled_costs_are_those_of_table_1() {
    let mut f = fixture::<Bfv>(literal(10, "65537", &[50; 12], &[50; 4], &[], 3), &Rotations::none(), 43);
    let m = f.random();
    let mut ct = f.encrypt(&m);
    for _ in 0..5 {
        ct = f.evaluator.square(&ct).unwrap();
    }
    let k = 12u64;
    for (merged, raise) in [(true, true), (true, false), (false, true)] {
        f = by(f, Multiplication { merged, raise, ..Multiplication::LEVELED });
        let l = {
            let low = by_level(&f, &ct);
            low as u64 + 1
        };
        assert!((6..k).contains(&l), "{l}");
        f.evaluator.mul_no_relin(&ct, &ct).unwrap();
        let (counts, _) = cost(&f, || f.evaluator.mul_no_relin(&ct, &ct).unwrap());
        assert_eq!(counts.ntt, 14 * l);
        // Remark 3.4: k l + l^2 for the second operand's way through Q_l, k l for the direct one; twice.
        let detour = if merged { 2 * k * l } else { 2 * (k - l) * l + 2 * l * l };
        assert_eq!(counts.convert_mac, 2 * (k - l) * l + detour + 7 * l * l);
        if merged {
            assert_eq!(counts.convert_mac, 4 * k * l + 5 * l * l);
            // Table 1 has 2 k + 18 l.
            assert_eq!(counts.mul, 4 * k + 12 * l + if raise { 3 * l } else { 0 });
        }
        // Remark 3.3: the key switch works at l primes too.
        f.evaluator.mul(&ct, &ct).unwrap();
        let (whole, _) = cost(&f, || f.evaluator.mul(&ct, &ct).unwrap());
        let digits = l.div_ceil(4);
        // The special primes are part of the second base, whose division by P is that of the key switch.
        assert_eq!(whole.ntt, 12 * l + (2 + digits) * (l + 4) - 2 * 4);
    }
}

/// The level at which the evaluator multiplies.
fn by_level(f: &Fixture<Bfv>, ct: &Ciphertext) -> usize {
    let how = Multiplication { raise: false, ..f.evaluator.variant() };
    let evaluator: Evaluator<Device> = Evaluator::new(&f.context, None).with_variant(how);
    evaluator.mul_no_relin(ct, ct).unwrap().level()
}

#[test]
fn at_real_size_all_named_ways_decrypt() {
    let mut real = literal(13, "65537", &[49, 49, 49], &[50], &[], 3);
    real.security = synchromesh::rlwe::Security::Bits128;
    let mut f: Fixture<Bfv> = fixture(real, &Rotations::none(), 68);
    let (a, b) = (f.random(), f.random());
    let (x, y) = (f.encrypt(&a), f.encrypt(&b));
    let expected = f.mul(&a, &b);
    for (name, how) in Multiplication::NAMED {
        f = by(f, how);
        assert_eq!(how.tensor == Tensor::Original, ["original", "behz", "hps"].contains(&name));
        f.judge(&f.evaluator.mul(&x, &y).unwrap(), &expected);
    }
}
