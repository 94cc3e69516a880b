//! Rounds of a refresh for more precision (ePrint 2022/1167): each but the first refreshes what is left of a message when what
//! was refreshed before is taken from it, made as large as a message may be.

use synchromesh_rlwe::ring::Backend;

use super::{Bootstrapper, Messages};
use crate::ckks::ciphertext::Ciphertext;
use crate::error::{Error, Result};

/// log2 of the largest number that what is left is multiplied by.
const LARGEST: f64 = 40.0;

/// A message in the course of its rounds.
struct Course<B: Backend> {
    /// What it decrypts to, without error: rounds come closer to that, of real messages to its real part.
    whole: Ciphertext<B>,
    /// How far that is from the message.
    off: f64,
    /// No slot of the message exceeds this.
    bound: f64,
    /// What rounds made, as they decrypt, and log2 of what each is divided by: the message is about their sum.
    parts: Vec<(Ciphertext<B>, i32)>,
    /// How far that sum is from what comes closer.
    error: f64,
}

impl<B: Backend> Bootstrapper<B> {
    /// What `once` makes of messages in as many rounds as are planned.
    pub(super) fn in_rounds<const K: usize>(
        &self,
        x: [&Ciphertext<B>; K],
        messages: Messages,
        mut once: impl FnMut([&Ciphertext<B>; K]) -> Result<[Ciphertext<B>; K]>,
    ) -> Result<[Ciphertext<B>; K]> {
        let made = once(x)?;
        if self.bootstrap().literal.rounds == 1 {
            return Ok(made);
        }
        let begin = |(x, made): (&Ciphertext<B>, Ciphertext<B>)| -> Result<Course<B>> {
            let (whole, off) = self.evaluator().as_computed(x)?;
            // Of a message with its error, so that this is in what comes out.
            let (made, error) = self.evaluator().as_computed(&made)?;
            Ok(Course { whole, off, bound: x.bound(), parts: vec![(made, 0)], error: error + off })
        };
        let mut courses = x.into_iter().zip(made).map(begin).collect::<Result<Vec<_>>>()?;
        for _ in 1..self.bootstrap().literal.rounds {
            let left = courses.iter().map(|course| self.left(course, messages)).collect::<Result<Vec<_>>>()?;
            let made = once(Self::exactly(left.iter().map(|(left, _)| left).collect())?)?;
            for (course, (made, (_, log2_multiple))) in courses.iter_mut().zip(made.iter().zip(&left)) {
                let (made, error) = self.evaluator().as_computed(made)?;
                course.error = error * f64::from(-log2_multiple).exp2();
                course.parts.push((made, *log2_multiple));
            }
        }
        Self::exactly(courses.iter().map(|course| self.finished(course, messages)).collect::<Result<_>>()?)
    }

    /// What is left of the message, times a power of two that makes it as large as a message may be, and log2 of that.
    fn left(&self, course: &Course<B>, messages: Messages) -> Result<(Ciphertext<B>, i32)> {
        let (evaluator, most) = (self.evaluator(), self.bootstrap().literal.message_bound);
        // The imaginary part of a real message is error: no round comes closer to it.
        let left = course.error + course.off;
        let sum = self.sum(&course.parts, 1.0)?;
        let level = course.whole.level().min(sum.level());
        let [whole, sum] = [&course.whole, &sum].map(|x| evaluator.mod_switch_to(x, level));
        // What does not repeat, of a message that should, comes closer to nothing: it is not small, and goes first.
        let (difference, copies) = self.sum_over_periods(&evaluator.sub(&whole?, &sum?)?)?;
        let difference = evaluator.declare_bound(difference, left * copies)?;
        let (doubled, once) = match messages {
            Messages::Complex => (difference, 0),
            Messages::Real => (self.real(&difference)?, 1),
        };
        let log2_multiple = (most / left).log2().floor().clamp(0.0, LARGEST) as i32;
        if log2_multiple <= once {
            let reason = format!("{} rounds of a refresh of 2^{:.1}", self.bootstrap().literal.rounds, left.log2());
            return Err(Error::params(format!(
                "{reason} on the way, in messages of up to {most}: one round is as good"
            )));
        }
        Ok((evaluator.mul_scalar(&doubled, f64::from(log2_multiple - once).exp2() / copies)?, log2_multiple))
    }

    /// The message as rounds made it, with its certificate.
    fn finished(&self, course: &Course<B>, messages: Messages) -> Result<Ciphertext<B>> {
        let evaluator = self.evaluator();
        // Of what the first rounds were off by the later ones only took away what repeats.
        let number = (self.bootstrap().extent.copies() as f64).recip();
        let made = match messages {
            Messages::Complex => self.sum(&course.parts, number)?,
            Messages::Real => self.real(&self.sum(&course.parts, number / 2.0)?)?,
        };
        let (made, _) = self.sum_over_periods(&made)?;
        let made = evaluator.mod_switch_to(&made, self.bootstrap().output_level())?;
        evaluator.declare_bound(evaluator.declare_error(made, course.error + course.off)?, course.bound)
    }

    /// Twice the real parts.
    fn real(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.evaluator().add(x, &self.evaluator().conjugate(x)?)
    }

    /// The sum of all parts, times a number.
    fn sum(&self, parts: &[(Ciphertext<B>, i32)], number: f64) -> Result<Ciphertext<B>> {
        let evaluator = self.evaluator();
        let scaled = |(part, log2_divisor): &(Ciphertext<B>, i32)| -> Result<Ciphertext<B>> {
            match number * f64::from(-log2_divisor).exp2() {
                1.0 => evaluator.mod_switch_to(part, part.level()),
                factor => evaluator.mul_scalar(part, factor),
            }
        };
        let mut sum: Option<Ciphertext<B>> = None;
        for part in parts {
            let part = scaled(part)?;
            sum = Some(match sum {
                None => part,
                Some(sum) => {
                    let level = sum.level().min(part.level());
                    let [sum, part] = [&sum, &part].map(|x| evaluator.mod_switch_to(x, level));
                    evaluator.add(&sum?, &part?)?
                }
            });
        }
        sum.ok_or_else(|| Error::argument("a sum of no rounds"))
    }
}
