//! Levels that are wider than their primes: how many narrow ones divide by what each level should.
//!
//! A level of 58 bits can drop one prime of 58, or two of 29, which are twice as many words. With narrow primes only, of 49 bits
//! at the most, it would have to drop one and a fifth. So two or three primes that are narrower still leave and return: this is
//! prime switching (ePrint 2023/1642, section 3.7) the other way round, with more primes than levels. The highest level has all
//! primes, so that no key has more.

/// Narrow primes for wide levels.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NarrowChain {
    /// Widths in bits: of those that return, then of those that leave once, the first to leave last.
    pub q_bits: Vec<u32>,
    /// Positions of those active, rising, below all these levels, below all but the lowest, .., at the highest.
    pub levels: Vec<Vec<usize>>,
}

/// What has left at a level, and how that came about.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Primes that have left for good, and their bits.
    gone: usize,
    bits: u32,
    /// Those of the returning ones that are away, a bit each.
    away: u32,
    /// Primes that are away or gone, summed over the levels so far.
    absent: usize,
    /// The place on the level above.
    from: usize,
}

/// The best way down with one choice of returning primes.
struct Course {
    returning: Vec<u32>,
    /// Each level, the highest first.
    places: Vec<Place>,
}

impl NarrowChain {
    /// The chain with the fewest active primes, summed over the levels, whose modulus loses so many bits at each level, the
    /// lowest level first, by primes of at most `widest` and at least `narrowest` bits; none where there is no such chain. The
    /// highest level drops two of the returning primes.
    #[must_use]
    pub fn new(steps: &[u32], widest: u32, narrowest: u32) -> Option<Self> {
        let first = *steps.last().filter(|_| steps.len() > 1)?;
        let pairs = (narrowest..=first / 2).map(|least| [least, first - least]).filter(|pair| pair[1] <= widest);
        let choices = pairs.flat_map(|pair| {
            let third = (narrowest..=widest).map(move |third| vec![pair[0], pair[1], third]);
            std::iter::once(pair.to_vec()).chain(third)
        });
        let courses = choices.filter_map(|returning| Course::new(steps, returning, [narrowest, widest]));
        courses.min_by_key(Course::work).map(|course| course.chain())
    }

    /// Active primes, summed over the levels.
    #[must_use]
    pub fn work(&self) -> usize {
        self.levels.iter().map(Vec::len).sum()
    }
}

impl Course {
    /// The way with the fewest primes. On each level but the first below the top a prime leaves for good, which is as wide as
    /// the scale wants it.
    fn new(steps: &[u32], mut returning: Vec<u32>, [narrowest, widest]: [u32; 2]) -> Option<Self> {
        returning.sort_unstable();
        let all = (1u32 << returning.len()) - 1;
        let width = |away: u32| -> u32 {
            returning.iter().enumerate().filter(|(i, _)| away >> i & 1 == 1).map(|(_, bits)| bits).sum()
        };
        let mut total = *steps.last()?;
        let top = Place { gone: 0, bits: 0, away: 0, absent: 0, from: 0 };
        let pairs = (0..=all).filter(|away| away.count_ones() == 2 && width(*away) == total);
        let mut layers = vec![vec![top], pairs.take(1).map(|away| Place { away, absent: 2, ..top }).collect()];
        for (below, step) in steps.iter().rev().enumerate().skip(1) {
            total += step;
            let last = below + 1 == steps.len();
            let mut layer: Vec<Place> = Vec::new();
            for (from, place) in layers.last()?.iter().enumerate() {
                for away in if last { all..=all } else { 0..=all } {
                    let Some(left) = total.checked_sub(width(away) + place.bits) else { continue };
                    let count = left.div_ceil(widest);
                    if left < narrowest || left < narrowest * count {
                        continue;
                    }
                    let (gone, bits) = (place.gone + count as usize, place.bits + left);
                    let absent = place.absent + gone + away.count_ones() as usize;
                    let next = Place { gone, bits, away, absent, from };
                    match layer.iter_mut().find(|known| (known.gone, known.bits) == (gone, bits)) {
                        Some(known) if known.absent < absent => *known = next,
                        Some(_) => {}
                        None => layer.push(next),
                    }
                }
            }
            layers.push(layer);
        }
        let work = |place: &Place| (layers.len() * (place.gone + returning.len()) - place.absent, place.gone);
        let mut place = *layers.last()?.iter().min_by_key(|place| work(place))?;
        let mut places = Vec::new();
        for layer in layers.iter().rev().skip(1) {
            places.push(place);
            place = layer[place.from];
        }
        places.push(place);
        places.reverse();
        Some(Self { returning, places })
    }

    /// All primes.
    fn primes(&self) -> usize {
        self.returning.len() + self.places.last().map_or(0, |place| place.gone)
    }

    /// Active primes, summed over the levels; where these are equal, primes.
    fn work(&self) -> (usize, usize) {
        let absent = self.places.last().map_or(0, |place| place.absent);
        (self.places.len() * self.primes() - absent, self.primes())
    }

    fn chain(&self) -> NarrowChain {
        let small = self.returning.len();
        let mut leaving = Vec::new();
        for pair in self.places.windows(2) {
            let (count, bits) = ((pair[1].gone - pair[0].gone) as u32, pair[1].bits - pair[0].bits);
            leaving.extend((0..count).map(|i| (bits + i) / count));
        }
        let active = |place: &Place| {
            let returning = (0..small).filter(|i| place.away >> i & 1 == 0);
            returning.chain(small..self.primes() - place.gone).collect()
        };
        let levels = self.places.iter().rev().map(active).collect();
        let q_bits = self.returning.iter().copied().chain(leaving.into_iter().rev()).collect();
        NarrowChain { q_bits, levels }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_drops_its_bits_and_few_primes_are_more_than_the_fewest() {
        let boundary = |count: usize, bits: u32, last: u32| {
            let mut steps = vec![last];
            steps.extend(vec![bits; count]);
            steps
        };
        for steps in [boundary(10, 58, 76), boundary(12, 60, 80), boundary(21, 59, 58), boundary(8, 52, 70)] {
            let chain = NarrowChain::new(&steps, 49, 24).unwrap();
            assert!(chain.q_bits.iter().all(|bits| (24..=49).contains(bits)), "{:?}", chain.q_bits);
            let bits = |set: &[usize]| set.iter().map(|&i| chain.q_bits[i]).sum::<u32>();
            assert_eq!((chain.levels.len(), chain.levels[0].len()), (steps.len() + 1, 0));
            assert_eq!(chain.levels[steps.len()], (0..chain.q_bits.len()).collect::<Vec<_>>());
            for (level, step) in steps.iter().enumerate() {
                let [below, own] = [&chain.levels[level], &chain.levels[level + 1]];
                assert!(own.windows(2).all(|pair| pair[0] < pair[1]));
                assert_eq!(bits(own) - bits(below), *step, "level {level} of {steps:?}");
            }
            // As if a level could have parts of primes.
            let least: f64 = chain.levels.iter().map(|set| f64::from(bits(set)) / 49.0).sum();
            assert!((chain.work() as f64) < 1.2 * least, "{} for {least}", chain.work());
        }
    }

    #[test]
    fn what_cannot_be_is_none() {
        assert_eq!(NarrowChain::new(&[], 49, 24), None);
        // Two primes of 24 bits are more than the highest level drops.
        assert_eq!(NarrowChain::new(&[58, 58, 40], 49, 24), None);
    }
}
