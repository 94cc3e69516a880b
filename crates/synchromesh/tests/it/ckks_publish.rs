//! Release of CKKS values: noise of the width that the certificate asks for, the same for the same ciphertext.

use crate::ckks_fixture::{Fixture, Slots, fixture, literal, minus, values};
use synchromesh::ckks::{Ciphertext, Complex64, Release};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::noise::FailureLimit;
use synchromesh::rlwe::wire::EnvelopeKey;

const REQUEST: Release = Release { precision: 8.0, shares: 16, security: 30 };

fn setup() -> (Fixture, Slots, Ciphertext) {
    let mut f = fixture(literal(11, 55, &[60, 55], &[61]), 77);
    let x = values(f.context.params().slots(), 1.0, 5);
    let ct = f.encrypt(&x, 1.0);
    (f, x, ct)
}

fn distance(x: &Complex64, y: &Complex64) -> f64 {
    let z = minus(*x, *y);
    z.re.hypot(z.im)
}

#[test]
fn a_release_has_the_width_and_the_precision_it_states() {
    let (f, x, ct) = setup();
    let published = f.context.publish(&f.secret, &ct, &REQUEST).unwrap();
    // sqrt(12 * 16) 2^15 times the certificate, up to a factor of 2.
    let error = f.context.slot_bound(ct.inner().noise(), FailureLimit::Negligible);
    let wanted = error + 15.0 + (12.0f64 * 16.0).log2() / 2.0;
    assert!((0.0..1.0).contains(&(f64::from(published.sigma_bits) - wanted)), "{published:?}");
    assert!(published.precision >= REQUEST.precision);
    let largest = published.values.iter().zip(&x).map(|(p, x)| distance(p, x)).fold(0.0, f64::max);
    assert!(largest <= (-published.precision).exp2(), "off by {largest}, stated {}", published.precision);
    // The noise is that wide: N times the variance of a coefficient in each slot.
    let own = f.context.decode_complex(&f.context.decrypt(&f.secret, &ct).unwrap()).unwrap();
    let square = own.iter().zip(&published.values).map(|(p, q)| distance(p, q).powi(2)).sum::<f64>() / own.len() as f64;
    let measured = square.log2() / 2.0 + ct.log2_scale() - 11.0 / 2.0;
    assert!((measured - f64::from(published.sigma_bits)).abs() < 0.1, "2^{measured:.3}, {published:?}");
}

#[test]
fn asking_twice_gives_the_same_and_another_ciphertext_other_noise() {
    let (mut f, x, ct) = setup();
    let first = f.context.publish(&f.secret, &ct, &REQUEST).unwrap();
    let copy = ct.duplicate(&f.context).unwrap();
    assert_eq!(
        f.context.publish(&f.secret, &copy, &Release { precision: 5.0, ..REQUEST }).unwrap().values,
        first.values
    );
    // The same message, encrypted again.
    let again = f.encrypt(&x, 1.0);
    let other = f.context.publish(&f.secret, &again, &REQUEST).unwrap();
    let differ = first.values.iter().zip(&other.values).filter(|(p, q)| distance(p, q) > 1e-9).count();
    assert!(differ * 10 > 9 * x.len(), "{differ}");
    // More shares, wider noise.
    let shared = Release { precision: 3.0, shares: 16 << 10, ..REQUEST };
    let wider = f.context.publish(&f.secret, &ct, &shared).unwrap();
    assert_eq!(wider.sigma_bits, first.sigma_bits + 5);
    assert_ne!(wider.values, first.values);
}

#[test]
fn several_widths_of_one_ciphertext_say_no_more_than_the_narrowest() {
    let (f, _, ct) = setup();
    let own = f.context.decode_complex(&f.context.decrypt(&f.secret, &ct).unwrap()).unwrap();
    // Four times the shares, twice the width.
    let noises: Vec<Slots> = (0..4)
        .map(|i| {
            let request = Release { precision: 3.0, shares: 16 << (2 * i), ..REQUEST };
            let published = f.context.publish(&f.secret, &ct, &request).unwrap();
            published.values.iter().zip(&own).map(|(p, q)| minus(*p, *q)).collect()
        })
        .collect();
    let power =
        |noise: &dyn Fn(usize) -> Complex64| (0..own.len()).map(noise).map(|z| z.re * z.re + z.im * z.im).sum::<f64>();
    let narrowest = power(&|i| noises[0][i]);
    for (k, wider) in noises.iter().enumerate().skip(1) {
        let ratio = power(&|i| wider[i]) / narrowest / 4f64.powi(k as i32);
        assert!((ratio - 1.0).abs() < 0.2, "width {k}: {ratio}");
    }
    // The best average of independent noises has 3/4 of the variance of the narrowest.
    let weights: Vec<f64> = (0..4).map(|k| 0.25f64.powi(k) / (1.0 + 0.25 + 0.0625 + 0.015625)).collect();
    let part = |i: usize, of: fn(&Complex64) -> f64| noises.iter().zip(&weights).map(|(n, w)| w * of(&n[i])).sum();
    let average = power(&|i| Complex64 { re: part(i, |z| z.re), im: part(i, |z| z.im) }) / narrowest;
    assert!(average > 0.95, "an average of four widths has {average:.3} of the narrowest one's variance");
    // And what a wider one adds is nothing of it.
    let product = |i: usize| {
        let (x, y) = (noises[0][i], minus(noises[1][i], noises[0][i]));
        x.re * y.re + x.im * y.im
    };
    let common = (0..own.len()).map(product).sum::<f64>() / narrowest;
    assert!(common.abs() < 0.15, "{common}");
}

#[test]
fn what_is_believed_on_the_users_word_is_not_released() {
    let (f, _, ct) = setup();
    let bytes = ct.to_bytes(&f.context, None).unwrap();
    let told = Ciphertext::from_bytes(&f.context, &bytes, None, Trust::Certificate).unwrap();
    f.context.decrypt(&f.secret, &told).unwrap();
    let error = f.context.publish(&f.secret, &told, &REQUEST).unwrap_err();
    assert_eq!(error.kind(), "certificate_on_word");
    assert!(!error.remedy().is_empty());
    // Neither is it vouched for.
    let key = EnvelopeKey::random().unwrap();
    assert_eq!(told.to_bytes(&f.context, Some(&key)).unwrap_err().kind(), "certificate_on_word");
    let sealed = ct.to_bytes(&f.context, Some(&key)).unwrap();
    let read = Ciphertext::from_bytes(&f.context, &sealed, None, Trust::Envelope(&key)).unwrap();
    let released = f.context.publish(&f.secret, &read, &REQUEST).unwrap();
    assert_eq!(released.values, f.context.publish(&f.secret, &ct, &REQUEST).unwrap().values);
}

#[test]
fn what_cannot_be_released_is_refused() {
    let (f, _, ct) = setup();
    let requests = [
        Release { security: 29, ..REQUEST },
        Release { shares: 0, ..REQUEST },
        Release { precision: f64::NAN, ..REQUEST },
        Release { precision: 40.0, ..REQUEST },
        Release { shares: u64::MAX, ..REQUEST },
        Release { security: 250, ..REQUEST },
    ];
    for request in requests {
        let error = f.context.publish(&f.secret, &ct, &request).unwrap_err();
        assert_eq!(error.kind(), "release", "{request:?}: {error}");
        assert!(!error.remedy().is_empty());
    }
    let (_, left) = f.context.released(&ct, &REQUEST).unwrap();
    f.context.publish(&f.secret, &ct, &Release { precision: left, ..REQUEST }).unwrap();
    let more = f.context.publish(&f.secret, &ct, &Release { precision: left + 0.01, ..REQUEST });
    assert_eq!(more.unwrap_err().kind(), "release");
}

#[test]
fn a_certificate_nobody_believes_allows_no_release() {
    let (f, _, ct) = setup();
    let (inner, header) = ct.into_parts();
    let doubted = Ciphertext::from_parts(&f.context, inner.assume_noise(synchromesh::rlwe::Noise::UNKNOWN), header);
    assert_eq!(doubted.err().map(|e| e.kind()), Some("unknown_noise"));
}
