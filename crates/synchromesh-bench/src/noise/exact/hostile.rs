//! Operands that have something in common, and messages chosen to hurt: for the certificate alone.

use synchromesh::ckks::embedding::Embedding;
use synchromesh::exact::{Ciphertext, Plaintext};
use synchromesh_rlwe::SecretKey;
use synchromesh_rlwe::codec::{Attached, Trust};
use synchromesh_rlwe::noise::Estimates;

use super::{Measured, Setup, T, Table, Values, add, enter, mul, rotate, swap, zip};
use crate::Error;

/// Products and sums of a ciphertext with what was made of it.
pub(super) fn operands<S: Measured>(setup: &mut Setup<S>, table: &mut Table) -> Result<(), Error> {
    let (a, b) = (setup.uniform(), setup.uniform());
    let (x, y) = (setup.encrypt(&a)?, setup.encrypt(&b)?);
    let e = &setup.evaluator;
    let conjugate = e.rotate_columns(&x)?;
    enter(setup, table, ("x times its conjugate", false, 1), &e.mul(&x, &conjugate)?, &mul(&a, &swap(&a)))?;
    let (rotated, moved) = (e.rotate_rows(&x, 1)?, rotate(&a, 1));
    enter(setup, table, ("x times its rotation", false, 1), &e.mul(&x, &rotated)?, &mul(&a, &moved))?;
    let squares = e.square(&e.square(&x)?)?;
    let fourth = mul(&mul(&a, &a), &mul(&a, &a));
    enter(setup, table, ("(x x) (x x)", false, 2), &squares, &fourth)?;
    let [plus, minus] = [e.add(&x, &rotated)?, e.sub(&x, &rotated)?];
    let difference = zip(&mul(&a, &a), &mul(&moved, &moved), |x, y| x + T - y);
    enter(setup, table, ("(x + x') (x - x'), x' rotated", false, 1), &e.mul(&plus, &minus)?, &difference)?;
    let [xy, xz] = [e.mul(&x, &y)?, e.mul(&x, &e.add(&x, &y)?)?];
    let both = mul(&a, &add(&a, &add(&b, &b)));
    enter(setup, table, ("x y + x (x + y)", false, 1), &e.add(&xy, &xz)?, &both)?;
    let lowered = e.mod_switch(&e.add(&e.mod_switch(&x)?, &x)?)?;
    enter(setup, table, ("x + x lowered, lowered", false, 0), &lowered, &add(&a, &a))?;
    let file = y.inner().to_bytes(
        setup.context.rlwe(),
        Attached { scheme_header: &S::header_to_bytes(y.header()), seed: None },
        None,
    )?;
    let read = synchromesh_rlwe::Ciphertext::from_bytes(setup.context.rlwe(), &file, None, Trust::Certificate)?;
    // A file has a certificate and no estimates: as much error as it certifies.
    let noise = read.ciphertext.noise();
    let (sigma, rest) = (noise.certificate.sigma, noise.certificate.remainder);
    let estimates = Estimates::gaussian(sigma).plus(&Estimates::uniform(rest));
    let read = read.ciphertext.assume_noise(noise.with_estimates(Some(estimates)));
    let read = Ciphertext::from_parts(setup.context.params(), read, y.header().clone())?;
    enter(setup, table, ("x times y from a file", false, 1), &e.mul(&x, &read)?, &mul(&a, &b))
}

/// All energy on the frequency at which the key is largest, or all coefficients the largest.
pub(super) fn messages<S: Measured>(setup: &mut Setup<S>, table: &mut Table) -> Result<(), Error> {
    let (a, b) = (setup.uniform(), setup.uniform());
    let (x, y) = (setup.encrypt(&a)?, setup.encrypt(&b)?);
    let n = setup.context.params().n();
    let tone = tone(largest_root(&setup.secret)?, n);
    let largest = setup.context.encode_coefficients(&vec![T / 2; n])?;
    let tone = setup.context.encode_coefficients(&tone)?;
    for (name, times, message) in
        [("tone times y", "x times a tone", &tone), ("largest times y", "x times the largest", &largest)]
    {
        let values = setup.context.decode_u64(message)?;
        let z = encrypt(setup, message)?;
        let e = &setup.evaluator;
        enter(setup, table, (name, false, 1), &e.mul(&z, &y)?, &mul(&values, &b))?;
        enter(setup, table, (times, false, 0), &e.mul_plain(&x, message)?, &mul(&a, &values))?;
    }
    let values = setup.context.decode_u64(&tone)?;
    let [u, v, w] = [encrypt(setup, &tone)?, encrypt(setup, &tone)?, encrypt(setup, &tone)?];
    let e = &setup.evaluator;
    let uv = e.mul(&u, &v)?;
    enter(setup, table, ("x y, both tones", false, 1), &uv, &mul(&values, &values))?;
    let cube = mul(&mul(&values, &values), &values);
    enter(setup, table, ("(x y) z, all tones", false, 2), &e.mul(&uv, &w)?, &cube)
}

fn encrypt<S: Measured>(setup: &mut Setup<S>, message: &Plaintext) -> Result<Ciphertext<S>, Error> {
    Ok(setup.context.encrypt(&setup.public, message, &mut setup.randomness)?)
}

/// The exponent g of the root exp(i pi g / N) at which a key is largest.
fn largest_root(secret: &SecretKey) -> Result<usize, Error> {
    let small: Vec<f64> = secret.small().as_slice().iter().map(|&x| x as f64).collect();
    let embedding = Embedding::new(small.len().trailing_zeros()).map_err(synchromesh::Error::from)?;
    let slots = embedding.decode(&small).map_err(synchromesh::Error::from)?;
    let sizes = slots.iter().map(|z| z.re.hypot(z.im));
    let at = sizes.enumerate().max_by(|x, y| x.1.total_cmp(&y.1)).map_or(0, |(slot, _)| slot);
    // Slot k is the value at the 3^k-th power of exp(i pi / N).
    Ok((0..at).fold(1, |g, _| g * 3 % (2 * small.len())))
}

/// +-T/2 by the sign of cos(pi g j / N).
fn tone(g: usize, n: usize) -> Values {
    let phase = |j: usize| (g * j % (2 * n)) as f64 / n as f64;
    (0..n).map(|j| if (std::f64::consts::PI * phase(j)).cos() > 0.0 { T / 2 } else { T / 2 + 1 }).collect()
}
