//! Frozen outputs, order independence and moments of the samplers. Seeds are fixed, so no test can fail by chance.

use super::*;

const PURPOSE: Purpose = Purpose::PublicRandomness;

fn seed(byte: u8) -> Seed {
    Seed::from_bytes([byte; 32])
}

/// First 16 hex digits of the BLAKE3 digest of the words in little-endian form.
fn digest(words: impl Iterator<Item = u64>) -> String {
    let mut hasher = blake3::Hasher::new();
    words.for_each(|w| {
        hasher.update(&w.to_le_bytes());
    });
    hasher.finalize().to_hex()[..16].to_string()
}

fn uniform(digit: u32, q: u64, n: usize) -> Vec<u64> {
    let mut out = vec![0; n];
    uniform_into(&seed(7), PURPOSE, digit, q, &mut out).unwrap();
    out
}

fn small_digest(poly: &SmallPoly) -> String {
    digest(poly.as_slice().iter().map(|x| *x as u64))
}

#[test]
fn outputs_are_frozen() {
    let mut words = vec![0; 1000];
    Stream::new(&seed(7), PURPOSE, 5, 11).fill_words(3, &mut words);
    let found = [
        digest(words.into_iter()),
        digest(uniform(3, (1 << 50) - 27, 4096).into_iter()),
        digest(uniform(3, (1 << 49) + 69, 4096).into_iter()),
        small_digest(&ternary(&seed(7), Purpose::SecretKey, 0, 4096)),
        small_digest(&cbd21(&seed(7), Purpose::EncryptionError, 1, 4096)),
        small_digest(&gaussian(&seed(7), Purpose::EncryptionError, 1, 4096)),
        digest(seed(7).derive("child", 9).as_bytes().iter().map(|b| u64::from(*b))),
    ];
    assert_eq!(
        found,
        [
            "d0cf88f26969cedb",
            "b565733ac7cc685d",
            "0004421fa3ce5dc2",
            "acc136a3e20293c5",
            "095520fc8bc7faa3",
            "660863dccdb1c6b2",
            "58289151211080b3"
        ]
    );
}

#[test]
fn stream_is_chacha20_and_random_access() {
    let mut all = vec![0; 3000];
    Stream::new(&seed(1), PURPOSE, 0, 0).fill_words(0, &mut all);
    let mut stream = Stream::new(&seed(1), PURPOSE, 0, 0);
    for (start, len) in [(0, 1), (1, 7), (7, 2), (8, 8), (13, 700), (2999, 1), (5, 0), (1024, 1976)] {
        let mut part = vec![0; len];
        stream.fill_words(start as u64, &mut part);
        assert_eq!(part, all[start..start + len], "words {start}..{}", start + len);
    }
}

#[test]
fn every_name_of_a_stream_changes_it() {
    let first = |s: &Seed, p, d, q| {
        let mut w = [0];
        Stream::new(s, p, d, q).fill_words(0, &mut w);
        w[0]
    };
    let mut words = vec![
        first(&seed(1), PURPOSE, 0, 0),
        first(&seed(2), PURPOSE, 0, 0),
        first(&seed(1), Purpose::SecretKey, 0, 0),
        first(&seed(1), PURPOSE, 1, 0),
        first(&seed(1), PURPOSE, 0, 1),
        first(&seed(1).derive("a", 0), PURPOSE, 0, 0),
        first(&seed(1).derive("a", 1), PURPOSE, 0, 0),
        first(&seed(1).derive("b", 0), PURPOSE, 0, 0),
    ];
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), 8);
}

/// The definition of the uniform sampler, one word at a time.
fn uniform_by_definition(digit: u32, q: u64, n: usize, j: usize) -> u64 {
    let mut stream = Stream::new(&seed(7), PURPOSE, digit, q);
    let mask = (u128::from(q).next_power_of_two().max(2) - 1) as u64 | q;
    (0u64..)
        .find_map(|a| {
            let mut word = [0];
            stream.fill_words(a * n as u64 + j as u64, &mut word);
            (word[0] & mask < q).then_some(word[0] & mask)
        })
        .unwrap()
}

#[test]
fn uniform_follows_its_definition_for_every_width() {
    // Just above a power of two half of all words are rejected; just below, none.
    for q in [1, 2, 3, 65_537, (1 << 20) - 3, (1 << 36) + 31, (1 << 50) - 27, (1 << 60) + 33, (1 << 61) - 1, 1 << 63] {
        for n in [1, 9, 1024, 1500] {
            let drawn = uniform(2, q, n);
            for j in (0..n).step_by(1 + n / 97) {
                assert_eq!(drawn[j], uniform_by_definition(2, q, n, j), "q {q} n {n} j {j}");
            }
            assert!(drawn.iter().all(|x| *x < q));
        }
    }
}

#[test]
fn parts_of_a_polynomial_equal_the_whole() {
    let (n, q) = (2048, (1 << 40) + 15);
    let whole = uniform(4, q, n);
    for (first, len) in [(0, 2048), (1, 2047), (511, 2), (1000, 600), (2047, 1), (2048, 0)] {
        let mut part = vec![0; len];
        uniform_part_into(&seed(7), PURPOSE, 4, q, n, first, &mut part).unwrap();
        assert_eq!(part, whole[first..first + len]);
    }
}

#[test]
fn impossible_requests_are_errors() {
    let mut out = [0; 4];
    let mut ask = |q, n, first| uniform_part_into(&seed(1), PURPOSE, 0, q, n, first, &mut out).unwrap_err();
    assert_eq!(ask(0, 4, 0), SamplerError::Modulus { q: 0 });
    assert_eq!(ask((1 << 63) + 1, 4, 0).kind(), "sampler_modulus");
    assert_eq!(ask(17, 4, 1), SamplerError::Range { first: 1, len: 4, n: 4 });
    assert_eq!(ask(17, usize::MAX, usize::MAX - 1).kind(), "sampler_range");
    assert!(uniform_into(&seed(1), PURPOSE, 0, 17, &mut []).is_ok());
}

/// Pearson's statistic of counts against probabilities.
fn chi_square(counts: &[u64], probabilities: impl Fn(usize) -> f64) -> f64 {
    let total = counts.iter().sum::<u64>() as f64;
    counts
        .iter()
        .enumerate()
        .map(|(i, c)| (*c as f64 - total * probabilities(i)).powi(2) / total / probabilities(i))
        .sum()
}

#[test]
fn uniform_residues_fill_256_cells_evenly() {
    for q in [(1u64 << 50) - 27, (1 << 49) + 69] {
        let mut counts = [0u64; 256];
        uniform(0, q, 1 << 18).iter().for_each(|x| counts[(u128::from(*x) * 256 / u128::from(q)) as usize] += 1);
        // 255 degrees of freedom: mean 255, standard deviation 22.6; six of them either way.
        let chi = chi_square(&counts, |_| 1.0 / 256.0);
        assert!((120.0..390.0).contains(&chi), "chi-square {chi}");
    }
}

/// Checks mean, variance and the whole histogram of 2^18 coefficients against `mass`, to six standard deviations.
fn check_small(poly: &SmallPoly, variance: f64, fourth: f64, bound: i64, mass: impl Fn(i64) -> f64) {
    let n = poly.len() as f64;
    let mean = poly.as_slice().iter().sum::<i64>() as f64 / n;
    let square = poly.as_slice().iter().map(|x| x * x).sum::<i64>() as f64 / n;
    assert!(mean.abs() < 6.0 * (variance / n).sqrt(), "mean {mean}");
    let margin = 6.0 * ((fourth - variance * variance) / n).sqrt();
    assert!((square - variance).abs() < margin, "variance {square}, expected {variance} within {margin}");
    assert!(poly.as_slice().iter().all(|x| x.abs() <= bound));
    // Cells with fewer than 20 expected members are merged into the two outermost kept.
    let edge = (0..=bound).take_while(|k| n * mass(*k) >= 20.0).last().unwrap();
    let mut counts = vec![0u64; 2 * edge as usize + 1];
    poly.as_slice().iter().for_each(|x| counts[((*x).clamp(-edge, edge) + edge) as usize] += 1);
    let tail: f64 = (edge + 1..=bound).map(&mass).sum();
    let chi = chi_square(&counts, |i| {
        let k = i as i64 - edge;
        mass(k.abs()) + if k.abs() == edge { tail } else { 0.0 }
    });
    let freedom = 2.0 * edge as f64;
    assert!((chi - freedom).abs() < 6.0 * (2.0 * freedom).sqrt() + 6.0, "chi-square {chi} for {freedom} degrees");
}

#[test]
fn ternary_has_its_distribution() {
    let poly = ternary(&seed(3), Purpose::SecretKey, 0, 1 << 18);
    check_small(&poly, SecretDistribution::Ternary.variance(), 2.0 / 3.0, 1, |_| 1.0 / 3.0);
}

#[test]
fn cbd21_has_its_distribution() {
    // Pr[k] = C(42, 21 + k) / 2^42.
    let choose = |r: i64| (1..=r).fold(1.0, |c, i| c * (43 - i) as f64 / i as f64);
    let poly = cbd21(&seed(3), Purpose::EncryptionError, 0, 1 << 18);
    let fourth = 3.0 * 10.5 * 10.5 - 10.5 / 2.0;
    check_small(&poly, ErrorDistribution::Cbd21.variance(), fourth, 21, |k| choose(21 + k) / 2f64.powi(42));
}

#[test]
fn gaussian_has_its_distribution() {
    let density = |k: i64| (-(k * k) as f64 / (2.0 * 3.19 * 3.19)).exp();
    let total: f64 = (-60..=60).map(density).sum();
    let poly = gaussian(&seed(3), Purpose::EncryptionError, 0, 1 << 18);
    let variance = ErrorDistribution::Gaussian319.variance();
    check_small(&poly, variance, 3.0 * variance * variance, GAUSSIAN_BOUND as i64, |k| density(k) / total);
}

#[test]
fn debug_forms_show_no_content() {
    assert_eq!(format!("{:?}", seed(9)), "Seed(..)");
    assert_eq!(format!("{:?}", SmallPoly::from_vec(vec![7, 8])), "SmallPoly(2 coefficients)");
}

#[test]
fn sparse_secrets_have_their_weight_in_uniform_places() {
    let (n, weight) = (1 << 8, 32);
    let (mut places, mut sum) = (vec![0u32; n], 0i64);
    for index in 0..512 {
        let poly = sparse_ternary(&seed(5), Purpose::SecretKey, index, n, weight);
        assert_eq!(poly.as_slice().iter().filter(|x| x.abs() == 1).count(), weight);
        assert_eq!(poly.as_slice().iter().filter(|&&x| x == 0).count(), n - weight);
        for (place, x) in places.iter_mut().zip(poly.as_slice()) {
            *place += u32::from(*x != 0);
            sum += x;
        }
    }
    // 512 / 8 = 64 each, with a standard deviation of 7.5; 16384 signs, of 128.
    assert!(places.iter().all(|&count| (20..=108).contains(&count)), "{places:?}");
    assert!(sum.abs() < 700, "{sum}");
    // All places at the largest weight.
    assert!(sparse_ternary(&seed(6), Purpose::SecretKey, 0, n, n).as_slice().iter().all(|x| x.abs() == 1));
}
