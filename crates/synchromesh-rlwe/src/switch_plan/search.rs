//! Numbers of digits for double decomposition, by exhaustive search over counts of transforms.

/// Numbers of digits and primes of a double decomposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DoubleChoice {
    /// Digits of the ciphertext.
    pub omega: usize,
    /// Digits of the key.
    pub omega2: usize,
    /// Primes of E.
    pub aux_primes: usize,
    /// Special primes.
    pub special_primes: usize,
    /// Transforms of one switch, coefficients to coefficients: (omega + 2 omega2) aux_primes.
    pub transforms: usize,
}

/// What a search is about: l ciphertext primes of `width` bits at N = 2^log_n, and primes of E of `aux_width` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoubleSearch {
    /// log2 of the degree.
    pub log_n: u32,
    /// Ciphertext primes.
    pub l: usize,
    /// Bits of each prime of QP.
    pub width: u32,
    /// Bits of each prime of E.
    pub aux_width: u32,
    /// Special primes; none: as many as a digit has.
    pub special_primes: Option<usize>,
    /// Whether digits of the ciphertext and of the key are taken centred, which saves two bits of E.
    pub centred: bool,
}

impl DoubleSearch {
    /// Primes of E for these numbers of digits, where P is not smaller than a digit: ceil of log2(2 omega N D K) / aux_width, D and K the largest digits of
    /// ciphertext and key.
    ///
    /// ePrint 2023/1642, section 4.2, with whole primes in each digit, the number of digits and the sign.
    #[must_use]
    pub fn choice(&self, omega: usize, omega2: usize) -> Option<DoubleChoice> {
        let digit = self.l.checked_div(omega).map(|_| self.l.div_ceil(omega)).filter(|&d| d > 0)?;
        let special_primes = self.special_primes.unwrap_or(digit);
        // P must not be smaller than a digit.
        if special_primes < digit {
            return None;
        }
        let keyed = self.l + special_primes;
        let key_digit = keyed.checked_div(omega2).map(|_| keyed.div_ceil(omega2)).filter(|&d| d > 0)?;
        if self.l.div_ceil(digit) != omega || keyed.div_ceil(key_digit) != omega2 || self.aux_width == 0 {
            return None;
        }
        let sign = if self.centred { -1.0 } else { 1.0 };
        let bits = (digit + key_digit) as f64 * f64::from(self.width) + f64::from(self.log_n) + sign;
        let aux_primes = ((bits + (omega as f64).log2()) / f64::from(self.aux_width)).ceil() as usize;
        let transforms = (omega + 2 * omega2) * aux_primes;
        Some(DoubleChoice { omega, omega2, aux_primes, special_primes, transforms })
    }

    /// The choice with the fewest transforms; among equals the one with the fewest digits of the ciphertext.
    #[must_use]
    pub fn fewest_transforms(&self) -> Option<DoubleChoice> {
        let pairs = (1..=self.l).flat_map(|omega| {
            let keyed = self.l + self.special_primes.unwrap_or_else(|| self.l.div_ceil(omega));
            (1..=keyed).map(move |omega2| (omega, omega2))
        });
        pairs.filter_map(|(omega, omega2)| self.choice(omega, omega2)).min_by_key(|c| (c.transforms, c.omega))
    }
}
