//! Bootstrapping judged by decryption: messages come back within their certificates, at more levels.

use std::sync::Arc;

use crate::bootstrap_fixture::{Fixture, chain, fixture, literal, made, repeating};
use crate::ckks_fixture::{Slots, times, values, zip};
use synchromesh::ckks::bootstrap::{Bootstrap, BootstrapLiteral, Bootstrapper, Chain, Messages, Stage};
use synchromesh::ckks::{Ciphertext, Complex64, Context, Params, ParamsLiteral, Rotations};
use synchromesh::plan::bootstrap::BootstrapRequest;
use synchromesh::rlwe::ring::{Cpu, Threads};
use synchromesh::rlwe::{EvaluationKeys, Security, Source};

#[test]
fn a_refreshed_message_is_the_same_at_more_levels() {
    let other = BootstrapLiteral { slots_to_coeffs: 3, degree: 62, doublings: 3, ..literal() };
    let wide = Chain { base_bits: 62, log_scale: 35, log_scale_down: 46, widest: 60, omega: 3, ..chain(11) };
    let heavier = Chain { weight: 64, usable: 1, ..chain(10) };
    let cases = [
        (chain(10), literal(), 2, [19, 11]),
        (wide, other, 3, [19, 6]),
        (heavier, BootstrapLiteral { degree: 62, ..literal() }, 2, [19, 9]),
    ];
    for (i, (chain, literal, level, [measured, certified])) in cases.into_iter().enumerate() {
        let mut f = fixture(chain, literal, 500 + i as u64);
        let x = values(1 << (chain.log_n - 1), 1.0, 501);
        let ct = f.encrypt(&x, level);
        let refreshed = f.bootstrapper.refresh(&ct).unwrap();
        assert_eq!(refreshed.level(), level + chain.usable);
        let [error, bound] = f.error(&refreshed, &x);
        assert!(error < 2f64.powi(-measured), "case {i}: error 2^{:.1}", error.log2());
        assert!(bound < 2f64.powi(-certified), "case {i}: certificate 2^{:.1}", bound.log2());
    }
}

/// Levels of 58 bits of narrow primes: more primes than levels, which come and go; the modulus and the scales are the same.
#[test]
fn wide_levels_share_narrow_primes() {
    let [wide, narrow] = [60, 49].map(|widest| {
        let literal = Chain { widest, ..chain(10) }.literal(&literal()).unwrap();
        (Params::new(literal.clone()).unwrap(), literal)
    });
    assert!(wide.1.q_bits.iter().filter(|&&bits| bits == 58).count() >= 10, "{:?}", wide.1.q_bits);
    assert!(narrow.1.q_bits[1..].iter().all(|&bits| bits <= 50), "{:?}", narrow.1.q_bits);
    assert!(narrow.1.q_bits.len() <= wide.1.q_bits.len() + 5, "{:?}", narrow.1.q_bits);
    let nested = |literal: &ParamsLiteral| {
        literal.schedule.levels.windows(2).all(|pair| pair[0].iter().all(|i| pair[1].contains(i)))
    };
    assert!(wide.1.schedule.levels.is_empty() && !nested(&narrow.1));
    assert_eq!(wide.0.top_level(), narrow.0.top_level());
    for level in 0..=wide.0.top_level() {
        let [wide, narrow] = [&wide.0, &narrow.0].map(|params| {
            let modulus = params.rlwe().ring().log2(params.rlwe().level(level).unwrap());
            [modulus, params.scale(level).unwrap().log2()]
        });
        assert!((wide[0] - narrow[0]).abs() < 0.6 && (wide[1] - narrow[1]).abs() < 0.1, "{level}: {wide:?} {narrow:?}");
    }
}

/// Real parts alone.
fn real(x: &Slots) -> Slots {
    x.iter().map(|z| Complex64::new(z.re, 0.0)).collect()
}

#[test]
fn real_messages_take_one_sine_and_two_of_them_take_two() {
    let choices = BootstrapLiteral { messages: Messages::Real, ..literal() };
    let mut f = fixture(chain(10), choices, 540);
    let [x, y] = [541, 542].map(|seed| real(&values(1 << 9, 1.0, seed)));
    let [a, b] = [&x, &y].map(|x| f.encrypt(x, 3));
    let mut made = Vec::new();
    let refreshed =
        f.bootstrapper.refresh_watched(&a, |stage, ciphertexts| made.push((stage, ciphertexts.len()))).unwrap();
    assert_eq!(made.iter().map(|&(_, count)| count).collect::<Vec<_>>(), [1, 1, 1, 1]);
    let [alone, _] = f.error(&refreshed, &x);
    let pair = f.bootstrapper.refresh_pair(&a, &b).unwrap();
    let mut worst = alone;
    for (refreshed, message) in pair.iter().zip([&x, &y]) {
        assert_eq!((refreshed.level(), refreshed.bound()), (4, 1.0));
        worst = worst.max(f.error(refreshed, message)[0]);
    }
    assert!(worst < 2f64.powi(-19) && worst > 2f64.powi(-30), "2^{:.1}", worst.log2());
    // What is not real is gone, and it was no error.
    let complex = values(1 << 9, 1.0, 543);
    let ct = f.encrypt(&complex, 2);
    f.error(&f.bootstrapper.refresh(&ct).unwrap(), &real(&complex));
    // A message of either that may be too large is refused.
    let large = f.context.encode_complex(&x, 1.5).unwrap();
    let large = f.context.encrypt_at(&f.public, &large, 3, &mut f.randomness).unwrap();
    for [x, y] in [[&a, &large], [&large, &a]] {
        assert_eq!(f.bootstrapper.refresh_pair(x, y).err().map(|e| e.kind()), Some("message_bound"));
    }
}

#[test]
fn errors_that_real_messages_bring_along_are_in_the_certificates() {
    let coarse = Chain { log_scale: 24, log_scale_down: 27, ..chain(10) };
    for messages in [Messages::Complex, Messages::Real] {
        let mut f = fixture(coarse, BootstrapLiteral { messages, ..literal() }, 550);
        let [x, y] = [551, 552].map(|seed| real(&values(1 << 9, 1.0, seed)));
        let [a, b] = [&x, &y].map(|x| f.encrypt(x, 3));
        let [before, _] = f.error(&a, &x);
        assert!(before > 2f64.powi(-19), "the message's own error is the larger one: 2^{:.1}", before.log2());
        f.error(&f.bootstrapper.refresh(&a).unwrap(), &x);
        for (refreshed, message) in f.bootstrapper.refresh_pair(&a, &b).unwrap().iter().zip([&x, &y]) {
            let [error, bound] = f.error(refreshed, message);
            assert!(bound < 300.0 * error, "2^{:.1} and 2^{:.1}", error.log2(), bound.log2());
        }
    }
    // An error that no refresh's own certificate would cover.
    let off = 2f64.powi(-7);
    for messages in [Messages::Complex, Messages::Real] {
        let mut f = fixture(chain(10), BootstrapLiteral { messages, ..literal() }, 555);
        let [x, y] = [556, 557].map(|seed| real(&values(1 << 9, 0.9, seed)));
        let evaluator = f.bootstrapper.evaluator().clone();
        let [a, b] = [&x, &y].map(|x| {
            let shifted: Vec<Complex64> = x.iter().map(|z| Complex64::new(z.re + off, 0.0)).collect();
            let far = evaluator.declare_error(f.encrypt(&shifted, 3), 1.1 * off).unwrap();
            evaluator.declare_bound(far, 1.0).unwrap()
        });
        let alone = f.bootstrapper.refresh(&a).unwrap();
        let [one, two] = f.bootstrapper.refresh_pair(&a, &b).unwrap();
        for (refreshed, message) in [(&alone, &x), (&one, &x), (&two, &y)] {
            let [error, bound] = f.error(refreshed, message);
            assert!(error > 0.9 * off && bound < 4.0 * off, "2^{:.1} and 2^{:.1}", error.log2(), bound.log2());
        }
    }
}

#[test]
fn rounds_make_a_refresh_more_precise() {
    for messages in [Messages::Complex, Messages::Real] {
        let mut reached = Vec::new();
        for rounds in 1..=3 {
            let wide = Chain { log_scale: 58, ..chain(10) };
            let mut f = fixture(wide, BootstrapLiteral { messages, rounds, ..literal() }, 560);
            let output = f.bootstrapper.bootstrap().output_level();
            assert_eq!(output, if rounds == 1 { 4 } else { 3 });
            let [x, y] = [561, 562].map(|seed| match messages {
                Messages::Complex => values(1 << 9, 1.0, seed),
                _ => real(&values(1 << 9, 1.0, seed)),
            });
            let [a, b] = [&x, &y].map(|x| f.encrypt(x, 3));
            let mut stages = 0;
            let refreshed = f.bootstrapper.refresh_watched(&a, |_, _| stages += 1).unwrap();
            assert_eq!((refreshed.level(), refreshed.bound(), stages), (output, 1.0, 4 * rounds));
            let mut found = f.error(&refreshed, &x);
            if messages == Messages::Real {
                for (refreshed, message) in f.bootstrapper.refresh_pair(&a, &b).unwrap().iter().zip([&x, &y]) {
                    assert_eq!(refreshed.level(), output);
                    found = f.error(refreshed, message);
                }
            }
            // As often as one likes.
            let again = f.bootstrapper.refresh(&refreshed).unwrap();
            f.error(&again, &x);
            reached.push(found.map(f64::log2));
        }
        // Until the scale of what is refreshed is the limit.
        let [one, two, three] = [0, 1, 2].map(|at| reached[at]);
        assert!(two[0] < one[0] - 12.0 && two[1] < one[1] - 12.0, "{reached:?}");
        assert!(three[1] < two[1] - 2.0 && three[1] < -40.0, "{reached:?}");
    }
}

#[test]
fn messages_that_repeat_take_one_sine_and_fewer_diagonals() {
    let all = 1 << 9;
    let mut bytes = vec![fixture(chain(10), literal(), 570).bootstrapper.bytes()];
    for (period, messages, rounds) in [
        (256, Messages::Complex, 1),
        (16, Messages::Complex, 1),
        (16, Messages::Real, 1),
        (2, Messages::Complex, 1),
        (16, Messages::Complex, 2),
    ] {
        let maps = if period == 2 { 1 } else { 2 };
        let [slots_to_coeffs, coeffs_to_slots] = [maps; 2];
        let sparse =
            BootstrapLiteral { slots_to_coeffs, coeffs_to_slots, messages, rounds, slots: Some(period), ..literal() };
        let wide = Chain { log_scale: 50, ..chain(10) };
        let mut f = fixture(wide, sparse, 571 + period as u64);
        bytes.push(f.bootstrapper.bytes());
        let packed = usize::from(messages == Messages::Complex);
        let output = f.bootstrapper.bootstrap().output_level();
        assert_eq!(output, f.bootstrapper.bootstrap().input_level() + 2 - packed - (rounds - 1) as usize);
        let own = values(period, 1.0, 572);
        let own = if messages == Messages::Real { real(&own) } else { own };
        let [x, other] = [repeating(&own, all), values(all, 1.0, 573)];
        let ct = f.encrypt(&x, maps + 1);
        let mut made = Vec::new();
        let refreshed = f.bootstrapper.refresh_watched(&ct, |_, ciphertexts| made.push(ciphertexts.len())).unwrap();
        assert!(made.iter().all(|&count| count == 1), "one sine: {made:?}");
        assert_eq!((refreshed.level(), refreshed.bound()), (output, 1.0));
        let [error, bound] = f.error(&refreshed, &x);
        let least = if rounds == 1 { [19, 10] } else { [30, 24] };
        assert!(
            error < 2f64.powi(-least[0]) && bound < 2f64.powi(-least[1]),
            "2^{:.1}, 2^{:.1}",
            error.log2(),
            bound.log2()
        );
        // As often as one likes, and two at once.
        f.error(&f.bootstrapper.refresh(&refreshed).unwrap(), &x);
        let real_ones = [574, 575].map(|seed| repeating(&real(&values(period, 1.0, seed)), all));
        let [a, b] = [0, 1].map(|at| f.encrypt(&real_ones[at], maps));
        for (refreshed, message) in f.bootstrapper.refresh_pair(&a, &b).unwrap().iter().zip(&real_ones) {
            f.error(refreshed, message);
        }
        // Of one that does not repeat the mean is left, and the certificate is of that.
        let mean: Slots = (0..all)
            .map(|i| {
                let same = || (i % period..all).step_by(period).map(|j| other[j]);
                let [re, im] = [same().map(|z| z.re).sum::<f64>(), same().map(|z| z.im).sum()];
                let copies = (all / period) as f64;
                Complex64::new(re / copies, if messages == Messages::Real { 0.0 } else { im / copies })
            })
            .collect();
        let other = f.encrypt(&other, maps);
        let refreshed = f.bootstrapper.refresh(&other).unwrap();
        f.error(&refreshed, &mean);
    }
    assert!(bytes[2] < bytes[0] / 2, "{bytes:?}");
    // Periods that are none, and messages in coefficients.
    let params = Params::new(chain(10).literal(&literal()).unwrap()).unwrap();
    for slots in [0, 1, 3, 1024] {
        let refused = Bootstrap::new(&params, BootstrapLiteral { slots: Some(slots), ..literal() }).err().unwrap();
        assert!(refused.kind() == "params" && refused.to_string().contains("from 2 to 512"), "{refused}");
    }
}

#[test]
fn products_go_on_without_end() {
    let mut f = fixture(chain(10), literal(), 510);
    let mut expected = values(1 << 9, 1.0, 511);
    let mut x = f.encrypt(&expected, 4);
    let evaluator = f.bootstrapper.evaluator().clone();
    for round in 0..6 {
        for _ in 0..2 {
            x = evaluator.square(&x).unwrap();
            expected = zip(&expected, &expected, times);
        }
        f.error(&x, &expected);
        x = f.bootstrapper.refresh(&x).unwrap();
        assert_eq!(x.level(), 4, "round {round}");
        f.error(&x, &expected);
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let params = Params::new(chain(10).literal(&literal()).unwrap()).unwrap();
    let mut results = Vec::new();
    for threads in [1, 2, 7] {
        let threads = Threads::new(threads).unwrap().with_grain(0);
        let backend = Cpu::open(Arc::clone(params.rlwe().ring())).unwrap().with_threads(threads);
        let context = Context::with_backend(params.clone(), backend).unwrap();
        let mut f = made(context, literal(), 520);
        let ct = f.encrypt(&values(1 << 9, 1.0, 521), 3);
        let refreshed = f.bootstrapper.refresh(&ct).unwrap();
        let words = |i: usize| refreshed.inner().parts()[i].to_words(f.context.rlwe().backend()).unwrap();
        results.push((words(0), words(1)));
    }
    assert!(results[0] == results[1] && results[0] == results[2]);
}

#[test]
fn what_cannot_be_refreshed_is_refused() {
    let mut f = fixture(chain(10), literal(), 530);
    let x = values(1 << 9, 1.0, 531);
    let too_low = f.encrypt(&x, 1);
    assert_eq!(f.bootstrapper.refresh(&too_low).err().map(|e| e.kind()), Some("level"));
    let large = f.context.encode_complex(&x, 1.5).unwrap();
    let large = f.context.encrypt_at(&f.public, &large, 2, &mut f.randomness).unwrap();
    let error = f.bootstrapper.refresh(&large).err().unwrap();
    assert_eq!(error.kind(), "message_bound");
    assert!(error.remedy().contains('1'), "{}", error.remedy());
    // Keys for rotations alone, and keys for raising alone.
    let (context, bootstrap) = (Arc::clone(&f.context), f.bootstrapper.bootstrap().clone());
    let plain = context.generate_evaluation_keys(&f.secret, &Rotations::by([1]), &mut f.randomness).unwrap();
    let refused = Bootstrapper::new(&context, bootstrap.clone(), Arc::new(plain));
    assert_eq!(refused.err().map(|e| e.kind()), Some("missing_key"));
    let params = |change: &dyn Fn(&mut Chain, &mut BootstrapLiteral)| {
        let (mut chain, mut choices) = (chain(10), literal());
        change(&mut chain, &mut choices);
        let params = Params::new(chain.literal(&choices)?)?;
        Bootstrap::new(&params, choices)
    };
    type Change = dyn Fn(&mut Chain, &mut BootstrapLiteral);
    let changes: [(&str, &Change); 7] = [
        ("params", &|_, choices| choices.degree = 31),
        ("params", &|_, choices| choices.degree = 0),
        ("params", &|_, choices| choices.doublings = 9),
        ("params", &|_, choices| choices.message_bound = f64::NAN),
        ("params", &|_, choices| choices.ratio_bits = 16),
        ("params", &|_, choices| choices.coeffs_to_slots = 0),
        ("params", &|chain, _| chain.weight = 0),
    ];
    for (i, (kind, change)) in changes.into_iter().enumerate() {
        let error = params(change).err().unwrap();
        assert_eq!(error.kind(), kind, "case {i}: {error}");
    }
    let wide = Chain { widest: 60, ..chain(10) };
    let none = Params::new(ParamsLiteral { schedule: Default::default(), ..wide.literal(&literal()).unwrap() });
    assert_eq!(Bootstrap::new(&none.unwrap(), literal()).err().map(|e| e.kind()), Some("params"));
    // At real parameters the sparse key is checked as well: 60 + 60 bits at N = 2^15 and weight 32 are secure, more are not.
    let secure = |base_bits| {
        let small = Chain { log_n: 15, log_scale: 30, log_scale_down: 30, log_scale_up: 40, usable: 1, ..chain(15) };
        let literal = Chain { base_bits, omega: 8, security: Security::Bits128, ..small }.literal(&literal()).unwrap();
        Params::new(literal).map(|params| params.rlwe().security_bits())
    };
    assert_eq!(secure(60).unwrap(), 128.0);
    assert_eq!(secure(100).err().map(|e| e.kind()), Some("insecure_sparse_secret"));
}

#[test]
fn certificates_hold_for_messages_at_their_bound() {
    let mut f = fixture(chain(10), literal(), 540);
    let n = 1 << 9;
    let tone = |k: usize| -> Slots {
        let turn = |j: usize| std::f64::consts::TAU * (j * k) as f64 / n as f64;
        (0..n).map(|j| Complex64::new(turn(j).cos(), turn(j).sin())).collect()
    };
    let single = |k: usize| -> Slots { (0..n).map(|j| f64::from(u8::from(j == k)).into()).collect() };
    let ones: Slots = vec![1.0.into(); n];
    let messages = [tone(0), tone(1), tone(n / 2), single(0), single(n - 1), ones, vec![Complex64::default(); n]];
    for x in messages {
        let ct = f.encrypt(&x, 2);
        let refreshed = f.bootstrapper.refresh(&ct).unwrap();
        f.error(&refreshed, &x);
    }
}

#[test]
fn certificates_hold_for_a_hundred_refreshes() {
    refreshes_keep_their_certificates([6, 10, 84]);
}

#[test]
#[ignore = "ten thousand refreshes take minutes; cargo xtask verify runs them"]
fn certificates_hold_for_ten_thousand_refreshes() {
    refreshes_keep_their_certificates([600, 1000, 8400]);
}

/// So many refreshes of messages in all slots, of pairs of real ones, and of messages that repeat, which take least time.
fn refreshes_keep_their_certificates([complex, real_ones, repeated]: [usize; 3]) {
    let cases =
        [(None, Messages::Complex, complex), (None, Messages::Real, real_ones), (Some(8), Messages::Complex, repeated)];
    let narrow = Chain { usable: 1, log_scale_up: 50, ..chain(10) };
    let judged = |(slots, messages, count): (Option<usize>, Messages, usize)| {
        let maps = if slots.is_some() { 1 } else { 2 };
        let choices = BootstrapLiteral { slots_to_coeffs: maps, coeffs_to_slots: maps, messages, slots, ..literal() };
        let mut f = fixture(narrow, choices, 590);
        let mut nearest = 0f64;
        let mut judge = |f: &Fixture, refreshed: &Ciphertext, message: &Slots| {
            let [error, bound] = f.error(refreshed, message);
            nearest = nearest.max(error / bound);
        };
        let pairs = messages == Messages::Real;
        for at in (0..count).step_by(if pairs { 2 } else { 1 }) {
            let message = |seed: usize| {
                let own = values(slots.unwrap_or(512), 1.0, seed as u64);
                repeating(&if pairs { real(&own) } else { own }, 512)
            };
            let x = message(at);
            let ct = f.encrypt(&x, maps);
            if pairs {
                let y = message(at + 1);
                let other = f.encrypt(&y, maps);
                let [first, second] = f.bootstrapper.refresh_pair(&ct, &other).unwrap();
                judge(&f, &first, &x);
                judge(&f, &second, &y);
            } else {
                judge(&f, &f.bootstrapper.refresh(&ct).unwrap(), &x);
            }
        }
        nearest
    };
    let nearest: Vec<f64> = std::thread::scope(|scope| {
        let workers: Vec<_> = cases.into_iter().map(|case| scope.spawn(move || judged(case))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    // Certificates are not so wide that nothing could be wrong.
    assert!(nearest.iter().all(|&ratio| (1e-4..=1.0).contains(&ratio)), "{nearest:?}");
}

/// Two levels of 40 bits between refreshes, at a degree that tests have time for.
fn request() -> BootstrapRequest {
    BootstrapRequest { levels: Some(2), security: Security::Insecure, ..BootstrapRequest::new(11, 40, 12) }
}

#[test]
fn parameters_are_found_for_a_precision_and_a_refresh_is_as_forecast() {
    let request = request();
    let found = request.find(None).unwrap();
    let forecast = &found.forecast;
    assert!(forecast.precision_bits >= 12.0, "{}", forecast.precision_bits);
    assert!((forecast.usable_levels, forecast.stages.len()) == (2, 4) && forecast.usable_bits > 75.0);
    assert!(forecast.stages.iter().map(|stage| stage.stage).eq(Stage::ALL));
    let params = Params::new(found.params.clone()).unwrap();
    let mut f = made(Context::new(params).unwrap(), found.bootstrap.clone(), 550);
    let x = values(1 << 10, 1.0, 551);
    let ct = f.encrypt(&x, f.bootstrapper.bootstrap().output_level());
    let mut stages = Vec::new();
    let refreshed = f.bootstrapper.refresh_watched(&ct, |stage, _| stages.push(stage)).unwrap();
    assert!(stages.into_iter().eq(Stage::ALL));
    let [error, bound] = f.error(&refreshed, &x);
    assert!(error < 2f64.powi(-14), "error 2^{:.1}", error.log2());
    // What is measured of public vectors is only likely in a forecast.
    let ratio = forecast.error_bound / bound;
    assert!((1.0..4.0).contains(&ratio), "2^{:.2} of 2^{:.2}", bound.log2(), forecast.error_bound.log2());
    let keys = &f.keys;
    assert_eq!(forecast.key_bytes, keys.wire_bytes(f.context.params().rlwe()));
    assert_eq!(forecast.prepared_bytes, keys.prepared_bytes());
    assert_eq!(forecast.vector_bytes, f.bootstrapper.bytes() as u64);

    // Fewer digits, smaller keys.
    let wide = BootstrapRequest { digits: Some(3), ..request.clone() }.find(None).unwrap();
    assert_eq!((found.params.omega, wide.params.omega), (4, 3));
    assert!(wide.forecast.key_bytes < forecast.key_bytes, "{} of {}", wide.forecast.key_bytes, forecast.key_bytes);

    // Fewer baby steps, fewer keys, the same message.
    let frugal = BootstrapRequest { baby_steps: Some(2), ..request.clone() }.find(None).unwrap();
    assert!(frugal.forecast.keys * 3 < forecast.keys * 2, "{} of {}", frugal.forecast.keys, forecast.keys);
    let params = Params::new(frugal.params.clone()).unwrap();
    let mut f = made(Context::new(params).unwrap(), frugal.bootstrap.clone(), 552);
    let ct = f.encrypt(&x, f.bootstrapper.bootstrap().input_level());
    let refreshed = f.bootstrapper.refresh(&ct).unwrap();
    f.error(&refreshed, &x);

    // A wider level 0: the sine bends less, which shows where messages are as large as they may be.
    let largest = vec![Complex64::new(1.0, 0.0); 1 << 10];
    let off = [9, 11].map(|ratio| {
        let found = BootstrapRequest { ratio_bits: Some(ratio), ..request.clone() }.find(None).unwrap();
        assert_eq!(found.bootstrap.ratio_bits, ratio);
        let mut f = made(Context::new(Params::new(found.params).unwrap()).unwrap(), found.bootstrap, 555);
        let ct = f.encrypt(&largest, f.bootstrapper.bootstrap().input_level());
        let refreshed = f.bootstrapper.refresh(&ct).unwrap();
        f.error(&refreshed, &largest)[0]
    });
    assert!(2.0 * off[1] < off[0], "2^{:.1} and 2^{:.1}", off[0].log2(), off[1].log2());

    // Messages that repeat: fewer keys, as many levels.
    let sparse = BootstrapRequest { slots: Some(64), ..request.clone() }.find(None).unwrap();
    assert_eq!(sparse.forecast.usable_levels, 2);
    assert!(sparse.forecast.keys < forecast.keys && sparse.forecast.vector_bytes * 4 < forecast.vector_bytes);
    let params = Params::new(sparse.params.clone()).unwrap();
    let mut f = made(Context::new(params).unwrap(), sparse.bootstrap.clone(), 553);
    let x = repeating(&values(64, 1.0, 554), 1 << 10);
    let ct = f.encrypt(&x, f.bootstrapper.bootstrap().input_level());
    let refreshed = f.bootstrapper.refresh(&ct).unwrap();
    let [_, bound] = f.error(&refreshed, &x);
    assert!(bound < 2f64.powi(-11), "2^{:.2}", bound.log2());

    // What cannot be had: the nearest is named.
    let refused = |request: BootstrapRequest| request.find(None).err().map(|error| (error.kind(), error.to_string()));
    let precise = refused(BootstrapRequest { precision: 40, ..request });
    assert!(precise.is_some_and(|(kind, text)| kind == "request" && text.contains("40 bits of precision")));
}

/// Scales wider than a prime, inside and between refreshes: what one round is certified for, twice.
#[test]
fn two_rounds_of_levels_of_two_primes_are_twice_as_precise() {
    let request = BootstrapRequest { rounds: 2, precision: 40, log_scale: 64, ..request() };
    let found = request.find(None).unwrap();
    assert!(found.params.log_scales.last() > Some(&60), "{:?}", found.params.log_scales);
    let mut f = made(Context::new(Params::new(found.params).unwrap()).unwrap(), found.bootstrap, 556);
    let x = values(1 << 10, 1.0, 557);
    // On the lowest level scales leave no more than one round does.
    let lowest = f.bootstrapper.bootstrap().input_level();
    let [low, high] = [lowest, lowest + 1].map(|level| {
        let ct = f.encrypt(&x, level);
        let refreshed = f.bootstrapper.refresh(&ct).unwrap();
        f.error(&refreshed, &x)
    });
    assert!(high[1] < 2f64.powi(-40) && high[0] < 2f64.powi(-43), "{:?}", high.map(f64::log2));
    assert!(low[1] > 2f64.powi(-38), "{:?}", low.map(f64::log2));
}

#[test]
fn numbers_out_of_range_are_refused_before_anything_is_searched() {
    let request = request();
    let odd = [
        (BootstrapRequest { log_n: 40, ..request.clone() }, "from 2^8 to 2^18"),
        (BootstrapRequest { precision: u32::MAX, ..request.clone() }, "4294967295 bits: from 1 to 60"),
        (BootstrapRequest { ratio_bits: Some(31), ..request.clone() }, "2^31 to the message bound"),
        (BootstrapRequest { log_scale: 0, ..request.clone() }, "2^0: from 2^1 to 2^90"),
        (BootstrapRequest { levels: Some(usize::MAX), ..request.clone() }, "from 1 to 64"),
        (BootstrapRequest { message_bound: f64::NAN, ..request.clone() }, "bounded by NaN"),
        (BootstrapRequest { message_bound: -1.0, ..request.clone() }, "bounded by -1"),
        (BootstrapRequest { baby_steps: Some(3), ..request.clone() }, "3 baby steps"),
        (BootstrapRequest { digits: Some(1), ..request.clone() }, "1 digits of a key switch: from 2 to 12"),
        (BootstrapRequest { widest: Some(61), ..request.clone() }, "at most 61 bits: from 30 to 60"),
        (BootstrapRequest { slots: Some(3), ..request.clone() }, "after 3 slots"),
        (
            BootstrapRequest { slots: Some(1 << 11), ..request.clone() },
            "after 2048 slots: a power of two from 2 to 1024",
        ),
        (BootstrapRequest { levels: None, ..request }, "say how many"),
    ];
    for (request, said) in odd {
        let error = request.find(None).err().unwrap();
        assert!(error.kind() == "request" && error.to_string().contains(said), "{error}");
    }
}

#[test]
fn keys_end_at_the_levels_they_switch_at() {
    let mut f = fixture(chain(10), literal(), 560);
    let rlwe = f.context.params().rlwe().clone();
    let keys = Arc::clone(&f.keys);
    let all: Vec<_> = keys.iter().map(|key| key.source()).filter(|source| !matches!(source, Source::Key(_))).collect();
    let plan = f.context.params().plan();
    let whole = EvaluationKeys::generate(f.context.rlwe(), &f.secret, all, plan, &mut f.randomness).unwrap();
    let sparse = keys.sparse().map_or(0, |sparse| sparse.wire_bytes(&rlwe));
    let part = (keys.wire_bytes(&rlwe) - sparse) as f64 / whole.wire_bytes(&rlwe) as f64;
    assert!(part < 0.93, "{part}");
}
