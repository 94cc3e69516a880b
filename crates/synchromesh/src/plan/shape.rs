//! The shape of a chain: how many bits each level has, split into primes, and the digits and special primes for it.

use synchromesh_rlwe::ring::prime::{MIN_PRIME_BITS, ntt_primes_excluding};
use synchromesh_rlwe::{DigitSizes, LevelPlans, Params, ParamsLiteral, Schedule, Security};

use super::Description;

use crate::cost::{self, Profile};
use crate::error::Result;

/// Widest prime that a plan uses unless told otherwise: below 2^50 products are of 52 bits, in words or in doubles.
pub(super) const WIDTH: u32 = 50;

/// Bits for each level, lowest first, as prime widths.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) q_bits: Vec<u32>,
    pub(super) level_limbs: Vec<usize>,
    pub(super) schedule: Schedule,
    /// Widest prime.
    pub(super) width: u32,
}

/// Digits from which twice the degree with two of them is considered: omega^2 - 9 omega + 2 > 0 (ePrint 2023/1642,
/// section 3.5).
const RAISE_FROM: usize = 9;

/// Rotation keys from which their bytes count beside time.
const MANY_KEYS: usize = 8;

/// Most digits of a plan.
const MOST_DIGITS: usize = 16;

/// A number of digits, with their special primes, and what a switch costs with them: counted operations, or seconds.
pub(super) type Digits = (usize, Vec<u32>, f64);

/// What a key switch at twice the degree with two digits would take, as fractions of what it takes here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Raise {
    /// Counted operations.
    pub(super) operations: f64,
    /// Bytes of a key.
    pub(super) key: f64,
}

/// Most bits of QP at this degree, in words.
pub(super) fn limit_text(log_n: u32, security: Security) -> String {
    if security == Security::Insecure { "any number of".to_owned() } else { security.max_log_qp(log_n).to_string() }
}

/// `bits` as the fewest equal primes of at most `width` bits; their sum is at least `bits`.
pub(super) fn split(bits: u32, width: u32) -> Vec<u32> {
    let count = bits.div_ceil(width).max(1);
    vec![bits.div_ceil(count).max(MIN_PRIME_BITS); count as usize]
}

/// `bits` as primes of at most `width` bits whose widths add up to exactly `bits`; fewer and longer ones where that many
/// would be shorter than a prime can be.
pub(super) fn split_exactly(bits: u32, width: u32) -> Vec<u32> {
    let count = bits.div_ceil(width).min(bits / MIN_PRIME_BITS).max(1);
    (0..count).map(|i| bits / count + u32::from(i < bits % count)).collect()
}

impl Shape {
    /// Level 0 of `base` primes, then `depth` levels of `level` primes each.
    pub(super) fn new(base: &[u32], level: &[u32], depth: usize, width: u32) -> Self {
        let mut q_bits = base.to_vec();
        let mut level_limbs = vec![base.len()];
        for _ in 0..depth {
            q_bits.extend(level);
            level_limbs.push(q_bits.len());
        }
        Self { q_bits, level_limbs, schedule: Schedule::default(), width }
    }

    /// The chain that a description asks for: by prime switching where it wants that and the widths allow it, with a
    /// second secret key below its leading levels.
    pub(super) fn of(description: &Description, base: &[u32], level: &[u32]) -> Self {
        let sum = |widths: &[u32]| widths.iter().sum();
        let width = description.width();
        let switched = description.prime_switching.and_then(|switching| {
            let chain = switching.chain(sum(base), sum(level), description.depth, width).ok()?;
            Some(Self { q_bits: chain.q_bits, level_limbs: Vec::new(), schedule: chain.schedule, width })
        });
        let mut shape = switched.unwrap_or_else(|| Self::new(base, level, description.depth, width));
        if (1..=description.depth).contains(&description.leading_levels) {
            shape.schedule = shape.schedule.with_second_key(description.leading_levels);
        }
        shape
    }

    /// Widths of the primes of a level.
    pub(super) fn level(&self, level: usize) -> Vec<u32> {
        let positions = self.schedule.positions(&self.level_limbs, self.q_bits.len()).unwrap_or_default();
        positions.get(level).map_or_else(Vec::new, |set| set.iter().map(|&i| self.q_bits[i]).collect())
    }

    /// Widths of the primes that the first level above the lowest takes.
    pub(super) fn step(&self) -> Vec<u32> {
        let positions = self.schedule.positions(&self.level_limbs, self.q_bits.len()).unwrap_or_default();
        let [lowest, next, ..] = &positions[..] else { return Vec::new() };
        next.iter().filter(|i| !lowest.contains(i)).map(|&i| self.q_bits[i]).collect()
    }

    /// Widths of special primes for `omega` digits: P has 4 bits more than the largest digit, so that the digits'
    /// error stays below the rounding error.
    pub(super) fn special(&self, omega: usize) -> Vec<u32> {
        let sizes = match self.schedule.levels.is_empty() {
            true => DigitSizes::equal(self.q_bits.len(), omega),
            false => DigitSizes::balanced(&self.q_bits, omega),
        };
        let mut widths = self.q_bits.iter();
        let digits = sizes.map_or_else(|_| Vec::new(), |sizes| sizes.0);
        let largest = digits.iter().map(|&size| widths.by_ref().take(size).sum::<u32>()).max().unwrap_or(0);
        split(largest + 4, self.width)
    }

    /// Bits of QP with these special primes, from above.
    pub(super) fn log_qp(&self, p_bits: &[u32]) -> u32 {
        self.q_bits.iter().chain(p_bits).sum()
    }

    /// The digits, at most `most`, that are secure at this degree with their special primes,
    /// cheapest first: by the profile's time of a relinearisation at the top level, or by counted operations.
    pub(super) fn digits(
        &self,
        log_n: u32,
        security: Security,
        most: Option<usize>,
        profile: Option<&Profile>,
    ) -> Result<Vec<Digits>> {
        let limit = security.max_log_qp(log_n);
        let mut found: Vec<Digits> = Vec::new();
        for omega in 1..=self.q_bits.len().min(MOST_DIGITS).min(most.unwrap_or(MOST_DIGITS)) {
            let p_bits = self.special(omega);
            if self.log_qp(&p_bits) > limit {
                continue;
            }
            let cost = match profile {
                Some(profile) => self.seconds(log_n, omega, &p_bits, profile)?,
                None => self.cost(log_n, omega, p_bits.len()),
            };
            found.push((omega, p_bits, cost));
        }
        found.sort_by(|a, b| a.2.total_cmp(&b.2));
        Ok(found)
    }

    /// Predicted seconds of a relinearisation at the top level; primes of these widths stand for the scheme's.
    fn seconds(&self, log_n: u32, omega: usize, p_bits: &[u32], profile: &Profile) -> Result<f64> {
        let mut primes: Vec<u64> = Vec::new();
        for &bits in self.q_bits.iter().chain(p_bits) {
            primes.extend(ntt_primes_excluding(bits, log_n, 1, &primes)?);
        }
        let p = primes.split_off(self.q_bits.len());
        let params = Params::new(ParamsLiteral {
            tag: "plan".to_owned(),
            log_n,
            q: primes,
            p,
            aux: vec![],
            level_limbs: vec![],
            schedule: Schedule::of(self.schedule.levels.clone()),
            error_multiple: "1".to_owned(),
            error: Default::default(),
            security: Security::Insecure,
        })?;
        let plans = LevelPlans::of(&params, omega)?;
        let shape = cost::Shape { op: cost::Op::Relin, ..cost::Shape::ROTATION };
        cost::predict(profile, &params, plans.at(params.top_level()), [params.q(), params.q()], shape)
    }

    /// Operations of a switch per coefficient: (omega + 2)(l + k) transforms and l (l + 2 omega + 2k + 3) products
    /// (ePrint 2023/1642, Table 2 and section 4).
    fn cost(&self, log_n: u32, omega: usize, special: usize) -> f64 {
        let (w, l, k) = (omega as f64, self.q_bits.len() as f64, special as f64);
        (w + 2.0) * (l + k) * f64::from(log_n) * 0.5 + l * (l + 2.0 * w + 2.0 * k + 3.0)
    }

    /// What raising N to 2N with two digits would change, for digits of which there are many; none for few, or where
    /// two digits are not secure there either.
    pub(super) fn raise(&self, log_n: u32, security: Security, digits: &Digits) -> Option<Raise> {
        let (omega, p_bits, _) = digits;
        let special = self.special(2);
        if *omega < RAISE_FROM || log_n >= 17 || self.log_qp(&special) > security.max_log_qp(log_n + 1) {
            return None;
        }
        let limbs = |p: &[u32]| (self.q_bits.len() + p.len()) as f64;
        Some(Raise {
            operations: 2.0 * self.cost(log_n + 1, 2, special.len()) / self.cost(log_n, *omega, p_bits.len()),
            key: 2.0 * 2.0 * limbs(&special) / (*omega as f64 * limbs(p_bits)),
        })
    }

    /// Fewest bits of P beside a modulus of so many bits.
    pub(super) const fn least_special(q_bits: u32) -> u32 {
        q_bits / MOST_DIGITS as u32
    }

    /// Fewest bits of QP that any number of digits reaches.
    pub(super) fn least_log_qp(&self) -> u32 {
        (1..=self.q_bits.len().min(MOST_DIGITS)).map(|omega| self.log_qp(&self.special(omega))).min().unwrap_or(0)
    }
}

/// Why N is raised or not, in words.
pub(super) fn explain_raise(log_n: u32, omega: usize, raise: Raise) -> String {
    let Raise { operations, key } = raise;
    format!(
        "{omega} digits at N = 2^{log_n}: two digits at 2^{} would take {:.0} % of the operations and {:.0} % of the key",
        log_n + 1,
        100.0 * operations,
        100.0 * key
    )
}

impl Raise {
    /// What it is worth, below 1 if it is: operations, and where there are many rotation keys their bytes, which count half.
    pub(super) fn price(&self, rotations: usize) -> f64 {
        self.operations * if rotations < MANY_KEYS { 1.0 } else { self.key.sqrt() }
    }
}

/// Lines that explain the choice of digits.
pub(super) fn explain_digits(found: &[Digits], profile: Option<&Profile>) -> String {
    let unit = if profile.is_some() { "time by the machine's profile" } else { "operations" };
    let Some((omega, p_bits, cost)) = found.first() else { return String::new() };
    let first = format!("{omega} digit(s) with {} special prime(s) of {} bits", p_bits.len(), p_bits[0]);
    match found.get(1) {
        None => format!("key switching: {first}; no other number of digits is secure at this degree"),
        Some((other, _, more)) => format!(
            "key switching: {first}; the runner-up, {other} digit(s), would cost {:.0} % more {unit}",
            100.0 * (more / cost - 1.0)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_prime_is_shorter_than_a_prime_can_be() {
        assert_eq!((split(38, 30), split(75, 30)), (vec![20, 20], vec![25; 3]));
        assert_eq!((split_exactly(38, 29), split_exactly(59, 29)), (vec![38], vec![30, 29]));
        assert_eq!((split_exactly(50, 29), split_exactly(24, 30)), (vec![25, 25], vec![24]));
    }

    #[test]
    fn raising_the_degree_is_weighed_where_there_are_many_digits() {
        // One prime a digit near the limit of N = 2^15: the example of ePrint 2023/1642, Table 8, with 19 digits.
        let shape = Shape::new(&[40], &[40], 18, WIDTH);
        let special = shape.special(19);
        let cost = shape.cost(15, 19, special.len());
        let many = shape.raise(15, Security::Bits128, &(19, special, cost)).unwrap();
        assert!(many.operations < 1.0 && many.key < 0.5, "{many:?}");
        // Few digits gain nothing; nor is there a degree above the last.
        let special = shape.special(4);
        let cost = shape.cost(15, 4, special.len());
        assert_eq!(shape.raise(15, Security::Bits128, &(4, special, cost)), None);
        assert_eq!(shape.raise(17, Security::Bits128, &(19, vec![44], 1.0)), None);
        let long = Shape::new(&[50], &[50], 40, WIDTH);
        assert_eq!(long.raise(15, Security::Bits128, &(19, vec![44], 1.0)), None, "two digits are not secure");
        // More operations, but a third of the bytes of keys.
        let smaller = Raise { operations: 1.2, key: 0.3 };
        assert!(smaller.price(0) > 1.0 && smaller.price(MANY_KEYS) < 1.0);
        assert!(explain_raise(15, 19, many).starts_with("19 digits at N = 2^15: two digits at 2^16 would take "));
        // At most so many digits.
        assert!(shape.digits(15, Security::Bits128, Some(2), None).unwrap().is_empty());
        assert!(shape.digits(16, Security::Bits128, Some(2), None).unwrap().iter().all(|(omega, ..)| *omega <= 2));
    }
}
