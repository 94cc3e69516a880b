//! Functions of integers in BFV and BGV, exact: the polynomial modulo t through all values on a declared range.
//!
//! A [`Table`] is data: the integer that its range begins with, and a value for each. Modulo t it is one polynomial of a
//! degree below the number of its values (Newton's divided differences), evaluated at the least depth and with the fewest
//! products among those ([`Polynomial`]). A table that reads the same from both ends, as that of equality does, is one of half
//! that degree in the square of the distance from its middle. Over all of F_t the degree would be t - 1 (Iliashenko and
//! Zucca, ePrint 2021/315, section 3, where comparisons are such polynomials); a range that holds the arguments is what makes
//! them cheap.
//!
//! Arguments outside the range give any residue: that they lie in it is the caller's word.

use std::sync::{Arc, OnceLock};

use num_bigint::BigInt;
use num_traits::{One, Zero};

use super::FunctionPlan;
use crate::circuits::{Arithmetic, Coefficient, Combination, Polynomial};
use crate::error::{Error, Result};

/// Most values of a table.
const MOST_VALUES: usize = 1 << 12;

/// Integers have absolute values below this: their sums and squares are exact.
const MOST_ARGUMENT: i64 = 1 << 40;

/// A function of the integers from `low` on, by its values.
#[derive(Debug, Clone)]
pub struct Table {
    low: i64,
    values: Vec<BigInt>,
    /// As it is computed modulo the t that it was last asked for with.
    made: OnceLock<(BigInt, Arc<Interpolation>)>,
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        (self.low, &self.values) == (other.low, &other.values)
    }
}

/// A table modulo t.
#[derive(Debug, Clone, PartialEq)]
struct Interpolation {
    polynomial: Polynomial<BigInt>,
    /// In the square of `scale` x - `centre`, or in x itself.
    square: Option<(i64, i64)>,
}

impl Table {
    /// The function that is `values[i]` at `low` + i.
    ///
    /// # Errors
    /// [`Error::Argument`] for no values, more than 4096, or arguments of 2^40 and above.
    pub fn new<T: Into<BigInt>>(low: i64, values: impl IntoIterator<Item = T>) -> Result<Self> {
        let values: Vec<BigInt> = values.into_iter().take(MOST_VALUES + 1).map(Into::into).collect();
        if values.is_empty() || values.len() > MOST_VALUES {
            return Err(Error::argument(format!("a table has 1 to {MOST_VALUES} values: declare a smaller range")));
        }
        if low <= -MOST_ARGUMENT || low >= MOST_ARGUMENT - MOST_VALUES as i64 {
            return Err(Error::argument(format!("a table from {low} on: arguments are below {MOST_ARGUMENT}")));
        }
        Ok(Self { low, values, made: OnceLock::new() })
    }

    /// Of a difference x - y from -`reach` to `reach`: 1 where the operands are equal, else 0.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn equal(reach: u32) -> Result<Self> {
        Self::of_difference(reach, |d| d == 0)
    }

    /// Of a difference x - y from -`reach` to `reach`: 1 where x < y, else 0.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn less(reach: u32) -> Result<Self> {
        Self::of_difference(reach, |d| d < 0)
    }

    fn of_difference(reach: u32, holds: impl Fn(i64) -> bool) -> Result<Self> {
        let reach = i64::from(reach);
        Self::new(-reach, (-reach..=reach).map(|d| i64::from(holds(d))))
    }

    /// The integers that it has values for: the least and the largest.
    #[must_use]
    pub const fn range(&self) -> (i64, i64) {
        (self.low, self.low + self.values.len() as i64 - 1)
    }

    /// The values, from that of the least integer on.
    #[must_use]
    pub fn values(&self) -> &[BigInt] {
        &self.values
    }

    /// Whether it reads the same from both ends, and is no constant for that reason alone.
    fn is_even(&self) -> bool {
        self.values.len() > 2 && self.values.iter().eq(self.values.iter().rev())
    }

    /// What arithmetic A takes for it at most, whatever t is.
    ///
    /// # Errors
    /// None for a table that is made.
    pub fn plan<A: Arithmetic<Scalar = BigInt>>(&self) -> Result<FunctionPlan> {
        let even = usize::from(self.is_even());
        let degree = if even == 1 { self.values.len() / 2 } else { self.values.len() - 1 };
        let plan = Polynomial::power(vec![BigInt::one(); degree + 1])?.plan::<A>();
        let [depth, products, key_switches] = [plan.depth, plan.products, plan.key_switches].map(|n| n + even);
        Ok(FunctionPlan { depth, products, key_switches })
    }

    /// The polynomial modulo t.
    fn interpolated(&self, t: &BigInt) -> Result<Arc<Interpolation>> {
        if let Some((known, made)) = self.made.get()
            && known == t
        {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new(self.interpolate(t)?);
        // Another t than before is computed again each time: plans and sessions have one.
        let _ = self.made.set((t.clone(), Arc::clone(&made)));
        Ok(made)
    }

    fn interpolate(&self, t: &BigInt) -> Result<Interpolation> {
        let (low, high) = self.range();
        // 1 / n for all that differences of points are made of.
        let most = if self.is_even() { self.values.len() + 1 } else { self.values.len().saturating_sub(1) };
        let inverse = |n: usize| {
            BigInt::from(n).modinv(t).ok_or_else(|| {
                Error::argument(format!(
                    "a table from {low} to {high} modulo {t}, which shares a factor with {n}: take a prime above {most}"
                ))
            })
        };
        let inverses = (1..=most).map(inverse).collect::<Result<Vec<_>>>()?;
        let of = |n: usize| &inverses[n - 1];
        if !self.is_even() {
            let points: Vec<BigInt> = (low..=high).map(BigInt::from).collect();
            let coefficients = newton(&points, &self.values, t, |i, j| of(i - j).clone());
            return Ok(Interpolation { polynomial: Polynomial::power(coefficients)?, square: None });
        }
        let half = self.values.len().div_ceil(2);
        let upper = &self.values[self.values.len() - half..];
        let odd = self.values.len() % 2;
        // Twice the distance from the middle where that lies between two integers.
        let (scale, centre) = if odd == 1 { (1, (low + high) / 2) } else { (2, low + high) };
        let distance = |i: usize| if odd == 1 { i } else { 2 * i + 1 };
        let points: Vec<BigInt> = (0..half).map(|i| BigInt::from(distance(i)).pow(2)).collect();
        // i^2 - j^2, and (2 i + 1)^2 - (2 j + 1)^2 = 4 (i - j) (i + j + 1).
        let apart = |i: usize, j: usize| {
            if odd == 1 { of(i - j) * of(i + j) } else { of(i - j) * of(i + j + 1) * of(2) * of(2) }
        };
        let coefficients = newton(&points, upper, t, apart);
        Ok(Interpolation { polynomial: Polynomial::power(coefficients)?, square: Some((scale, centre)) })
    }

    /// The function of every slot of x modulo t, or of the difference of both operands.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are one or two ciphertexts, [`Error::Argument`] where t has a small factor, or as
    /// [`Polynomial::evaluate`].
    pub fn evaluate<A: Arithmetic<Scalar = BigInt>>(
        &self,
        a: &A,
        t: &BigInt,
        x: &[&A::Ciphertext],
    ) -> Result<A::Ciphertext> {
        let difference;
        let x = match x {
            [x] => *x,
            [x, y] => {
                difference = a.sub(x, y)?;
                &difference
            }
            _ => return Err(Error::shape(format!("a table of {} ciphertexts: it takes one or two", x.len()))),
        };
        let made = self.interpolated(t)?;
        let Some((scale, centre)) = made.square else { return made.polynomial.evaluate(a, x) };
        let [weight, shift] = [scale, -centre].map(|c| Coefficient::All(BigInt::from(c)));
        let constant = (centre != 0).then_some(&shift);
        let moved = if scale == 1 && centre == 0 {
            a.duplicate(x)?
        } else {
            a.combine(&Combination { products: Vec::new(), weights: vec![(x, &weight)], constant })?
        };
        made.polynomial.evaluate(a, &a.square(&moved)?)
    }
}

/// The coefficients, between -t/2 and t/2, of the polynomial modulo t that has these values at these points; `inverse(i, j)`
/// is 1 / (points\[i\] - points\[j\]), j < i.
fn newton(points: &[BigInt], values: &[BigInt], t: &BigInt, inverse: impl Fn(usize, usize) -> BigInt) -> Vec<BigInt> {
    let mut divided: Vec<BigInt> = values.iter().map(|value| value % t).collect();
    for k in 1..divided.len() {
        for i in (k..divided.len()).rev() {
            divided[i] = (&divided[i] - &divided[i - 1]) * inverse(i, i - k) % t;
        }
    }
    // d_0 + (x - x_0) (d_1 + (x - x_1) (..)).
    let mut sum: Vec<BigInt> = Vec::with_capacity(divided.len());
    for (own, point) in divided.iter().zip(points).rev() {
        sum.insert(0, BigInt::zero());
        for i in 0..sum.len() - 1 {
            sum[i] = (&sum[i] - point * &sum[i + 1]) % t;
        }
        sum[0] = (&sum[0] + own) % t;
    }
    let half: BigInt = t >> 1u32;
    let centred = |c: BigInt| {
        let c = ((c % t) + t) % t;
        if c > half { c - t } else { c }
    };
    sum.into_iter().map(centred).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a table at an integer, by the polynomial alone.
    fn at(table: &Table, x: i64, t: &BigInt) -> BigInt {
        let made = table.interpolate(t).unwrap();
        let u = made.square.map_or_else(|| BigInt::from(x), |(scale, centre)| BigInt::from(scale * x - centre).pow(2));
        let sum = made.polynomial.coefficients().iter().rev().fold(BigInt::zero(), |sum, c| match c {
            Coefficient::All(c) => (sum * &u + c) % t,
            Coefficient::Slots(_) => unreachable!("numbers alone"),
        });
        (sum + t) % t
    }

    #[test]
    fn polynomials_go_through_all_values() {
        for t in [257i64, 65_537, (1 << 61) - 1] {
            let t = BigInt::from(t);
            for count in [1usize, 2, 3, 4, 7, 8, 33, 64] {
                for low in [-40, -3, 0, 5] {
                    let mixed: Vec<i64> = (0..count as i64).map(|i| (i * i * 31 + 7 * i) % 100 - 50).collect();
                    let even: Vec<i64> = (0..count).map(|i| mixed[i.min(count - 1 - i)]).collect();
                    for values in [mixed, even] {
                        let table = Table::new(low, values.iter().copied()).unwrap();
                        for (i, &value) in values.iter().enumerate() {
                            let expected = ((BigInt::from(value) % &t) + &t) % &t;
                            assert_eq!(at(&table, low + i as i64, &t), expected, "{low} {values:?} at {i} mod {t}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_reads_the_same_from_both_ends_is_of_half_the_degree() {
        let t = BigInt::from(65_537);
        let degree = |table: Table| table.interpolate(&t).unwrap().polynomial.degree();
        assert_eq!(degree(Table::equal(15).unwrap()), 15);
        assert_eq!(degree(Table::less(15).unwrap()), 30);
        assert_eq!(degree(Table::new(3, [1, 0, 0, 1]).unwrap()), 1);
        assert_eq!(degree(Table::new(3, [7, 7]).unwrap()), 0);
    }

    #[test]
    fn what_no_polynomial_goes_through_is_refused() {
        let none: [i64; 0] = [];
        assert!(Table::new(0, none).is_err() && Table::new(0, vec![1; MOST_VALUES + 1]).is_err());
        assert!(Table::new(i64::MIN, [1]).is_err() && Table::equal(u32::MAX).is_err());
        // Two points that are one modulo t.
        let refused = Table::less(7).unwrap().interpolate(&BigInt::from(13)).unwrap_err();
        assert!(refused.to_string().contains("13"), "{refused}");
        assert!(Table::equal(2).unwrap().interpolate(&BigInt::from(1 << 20)).is_err());
    }
}
