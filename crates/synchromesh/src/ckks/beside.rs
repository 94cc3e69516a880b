//! What is known of the slots beside those that hold a message: it is 0 there, and the error may be less than elsewhere.
//!
//! A certificate bounds the error at every root alike. Where slots were multiplied by 0, though, what came before is gone,
//! and a sum of slots, of which few hold a message, is then no worse than these few. Certificates of errors at some roots are
//! computed as those at all of them, with 0 for the message and for the public numbers there.

use std::sync::Arc;

use synchromesh_rlwe::Noise;

use super::noise::Factor;

/// The slots that may hold a message, and the error in all others.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    pub(crate) own: Arc<[bool]>,
    pub(crate) noise: Noise,
}

impl Beside {
    /// An error beside these slots; none where there is nothing beside them.
    pub(crate) fn new(own: Arc<[bool]>, noise: Noise) -> Option<Self> {
        own.contains(&false).then(|| Self { own, noise: noise.with_estimates(None) })
    }

    /// How many slots may hold a message.
    pub(crate) fn held(&self) -> usize {
        self.own.iter().filter(|&&own| own).count()
    }

    /// As the factor of a product.
    pub(crate) const fn factor(&self) -> Factor {
        Factor { log2_message: f64::NEG_INFINITY, noise: self.noise }
    }

    /// The same slots with another error.
    pub(crate) fn with(&self, noise: Noise) -> Self {
        Self { own: Arc::clone(&self.own), noise: noise.with_estimates(None) }
    }

    /// Of the sum of two ciphertexts of which this is known.
    pub(crate) fn plus(&self, other: &Self) -> Option<Self> {
        let noise = self.noise.plus(other.noise);
        if Arc::ptr_eq(&self.own, &other.own) || self.own == other.own {
            return Some(self.with(noise));
        }
        let own: Vec<bool> = self.own.iter().zip(&*other.own).map(|(a, b)| a | b).collect();
        Self::new(own.into(), noise)
    }

    /// After a rotation of the slots to the left, whose key switch leaves an error.
    pub(crate) fn rotated(&self, k: i64, added: Noise) -> Self {
        let mut own = self.own.to_vec();
        let steps = k.rem_euclid(own.len() as i64) as usize;
        own.rotate_left(steps);
        Self { own: own.into(), noise: self.noise.plus_switching(added).with_estimates(None) }
    }

    /// For each slot j of a row, whether a sum of `count` slots from there at a distance meets any of its own, and how many
    /// it meets at the most.
    pub(crate) fn windows(&self, count: usize, stride: i64) -> (Arc<[bool]>, usize) {
        let ones: Vec<usize> = self.own.iter().map(|&own| usize::from(own)).collect();
        let met = sums(&ones, count, stride);
        (met.iter().map(|&n| n > 0).collect(), met.into_iter().max().unwrap_or(0))
    }
}

/// Slot j becomes the sum over i < count of slot j + i stride, by doubling.
fn sums(of: &[usize], count: usize, stride: i64) -> Vec<usize> {
    if count < 2 {
        return of.to_vec();
    }
    let row = of.len() as i64;
    let moved = |x: &[usize], steps: usize| -> Vec<usize> {
        let by = stride.rem_euclid(row) * ((steps % of.len()) as i64) % row;
        (0..row).map(|j| x[((j + by) % row) as usize]).collect()
    };
    let half = sums(of, count / 2, stride);
    let double = half.iter().zip(moved(&half, count / 2)).map(|(a, b)| a.saturating_add(b));
    if count.is_multiple_of(2) {
        return double.collect();
    }
    double.zip(moved(of, count - 1)).map(|(a, b)| a.saturating_add(b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_count_what_a_sum_meets() {
        let own: Arc<[bool]> = (0..64).map(|j| j < 32 && j % 8 == 3).collect();
        let beside = Beside::new(own, Noise::ZERO).unwrap();
        for (count, stride) in [(2, 1), (3, -1), (5, 7), (8, -1), (8, 8), (13, 3), (64, 1)] {
            let (met, most) = beside.windows(count, stride);
            let plain =
                |j: i64| (0..count as i64).filter(|i| beside.own[(j + i * stride).rem_euclid(64) as usize]).count();
            let all: Vec<usize> = (0..64).map(plain).collect();
            assert_eq!(met.to_vec(), all.iter().map(|&n| n > 0).collect::<Vec<_>>(), "{count} at {stride}");
            assert_eq!(Some(&most), all.iter().max(), "{count} at {stride}");
        }
        assert!(beside.windows(usize::MAX, i64::MIN).1 > 0);
        let moved = beside.rotated(-3, Noise::ZERO);
        assert!((0..64).all(|j: i64| moved.own[j as usize] == beside.own[(j - 3).rem_euclid(64) as usize]));
        assert!(Beside::new([true; 4].into(), Noise::ZERO).is_none());
    }
}
