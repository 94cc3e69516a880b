//! How many bytes hold each of some signed integers: what a device with memory of its own is sent of them.

/// Bytes of a signed integer. They follow from a bound that is public, never from the integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SignedWidth {
    /// Integers from -2^7 on, below 2^7.
    One = 1,
    /// From -2^15 on, below 2^15.
    Two = 2,
    /// From -2^31 on, below 2^31.
    Four = 4,
    /// Any word.
    Eight = 8,
}

impl SignedWidth {
    /// All widths, the narrowest first.
    pub const ALL: [Self; 4] = [Self::One, Self::Two, Self::Four, Self::Eight];

    /// The least for integers of magnitude at most `bound`.
    #[must_use]
    pub const fn of(bound: u64) -> Self {
        match bound {
            0..=0x7f => Self::One,
            0x80..=0x7fff => Self::Two,
            0x8000..=0x7fff_ffff => Self::Four,
            _ => Self::Eight,
        }
    }

    /// How many bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self as usize
    }

    /// Whether it holds all of them; in time that depends on their number alone.
    #[must_use]
    pub fn holds(self, values: &[i64]) -> bool {
        let above = 64 - 8 * self.bytes() as u32;
        // What is lost when the upper bits are taken for copies of the sign.
        values.iter().fold(0, |lost, &x| lost | (((x << above) >> above) ^ x)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_holds_what_it_is_for_and_no_more() {
        for (narrow, wide) in SignedWidth::ALL.into_iter().zip(&SignedWidth::ALL[1..]) {
            let most = (1i64 << (8 * narrow.bytes() - 1)) - 1;
            assert_eq!(SignedWidth::of(most as u64), narrow);
            assert_eq!(SignedWidth::of(most as u64 + 1), *wide);
            assert!(narrow.holds(&[0, most, -most - 1]));
            assert!(!narrow.holds(&[0, most + 1]) && !narrow.holds(&[-most - 2, 0]));
            assert!(wide.holds(&[most + 1, -most - 2]));
        }
        assert_eq!(SignedWidth::of(0), SignedWidth::One);
        assert!(SignedWidth::Eight.holds(&[i64::MIN, i64::MAX]));
    }
}
