//! The 83 parameter sets behind the tables and Figure 1 of ePrint 2023/1642, with the milliseconds their authors measured
//! on an i9-7900X, the mean of the four pairs of domains.

/// The second decomposition of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Second {
    /// Digits of the key.
    pub omega2: usize,
    /// Primes of the extended ring, as published.
    pub aux_primes: usize,
    /// Their width.
    pub aux_bits: u32,
}

/// One parameter set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Set {
    /// Its number in the authors' code.
    pub number: usize,
    /// log2 of the degree.
    pub log_n: u32,
    /// Ciphertext primes: how many of which width, those that stay longest first.
    pub q: &'static [(usize, u32)],
    /// Special primes: how many of which width.
    pub p: (usize, u32),
    /// Digits.
    pub omega: usize,
    /// The second decomposition, if any.
    pub second: Option<Second>,
    /// Milliseconds with constants at run time, with constants folded, folded with prime switching, and with the double
    /// decomposition.
    pub paper_ms: [Option<f64>; 4],
}

impl Set {
    /// Widths of the ciphertext primes.
    #[must_use]
    pub fn q_bits(&self) -> Vec<u32> {
        self.q.iter().flat_map(|&(count, bits)| vec![bits; count]).collect()
    }

    /// Widths of the special primes.
    #[must_use]
    pub fn p_bits(&self) -> Vec<u32> {
        vec![self.p.1; self.p.0]
    }

    /// Bits of the ciphertext modulus.
    #[must_use]
    pub fn log_q(&self) -> u32 {
        self.q_bits().iter().sum()
    }
}

const fn set(
    number: usize,
    log_n: u32,
    q: &'static [(usize, u32)],
    p: (usize, u32),
    omega: usize,
    second: Option<Second>,
    paper_ms: [Option<f64>; 4],
) -> Set {
    Set { number, log_n, q, p, omega, second, paper_ms }
}

/// All sets in order.
#[rustfmt::skip]
pub const SETS: [Set; 83] = [
    set(0, 14, &[(4, 54)], (4, 54), 1, None, [Some(3.9), Some(3.5), None, None]),
    set(1, 14, &[(4, 54)], (2, 54), 2, None, [Some(3.8), Some(3.6), None, None]),
    set(2, 14, &[(5, 56)], (3, 47), 2, None, [Some(5.3), Some(4.9), None, None]),
    set(3, 14, &[(6, 54)], (2, 54), 3, None, [Some(6.8), Some(6.4), None, None]),
    set(4, 14, &[(6, 57)], (2, 35), 5, None, [Some(9.3), Some(9.0), None, None]),
    set(5, 14, &[(7, 52)], (2, 31), 6, None, [Some(12.5), Some(12.0), None, None]),
    set(6, 15, &[(8, 54)], (8, 54), 1, None, [Some(20.9), Some(19.2), None, None]),
    set(7, 15, &[(8, 54)], (4, 54), 2, None, [Some(20.0), Some(19.1), None, None]),
    set(8, 15, &[(10, 56)], (5, 56), 2, None, [Some(26.6), Some(24.8), None, None]),
    set(9, 15, &[(11, 59)], (4, 55), 3, None, [Some(33.0), Some(31.5), None, None]),
    set(10, 15, &[(12, 57)], (3, 46), 5, None, [Some(45.2), Some(43.1), None, None]),
    set(11, 15, &[(13, 56)], (3, 41), 6, None, [Some(54.5), Some(53.2), None, None]),
    set(12, 15, &[(13, 60)], (2, 39), 10, None, [Some(100.4), Some(98.6), None, None]),
    set(13, 16, &[(13, 60)], (7, 56), 2, None, [Some(84.9), Some(80.7), None, None]),
    set(14, 16, &[(15, 57)], (15, 57), 1, None, [Some(125.5), Some(118.0), None, None]),
    set(15, 16, &[(15, 57)], (8, 54), 2, None, [Some(117.6), Some(113.3), None, None]),
    set(16, 16, &[(19, 59)], (10, 57), 2, None, [Some(159.2), Some(152.3), None, None]),
    set(17, 16, &[(22, 59)], (8, 55), 3, None, [Some(227.0), Some(220.1), None, None]),
    set(18, 16, &[(23, 60)], (5, 56), 5, None, [Some(275.6), Some(269.0), None, None]),
    set(19, 16, &[(25, 59)], (5, 50), 6, None, [Some(335.6), Some(330.1), None, None]),
    set(20, 16, &[(26, 60)], (3, 52), 10, None, [Some(465.6), Some(457.9), None, None]),
    set(21, 17, &[(26, 60)], (13, 60), 2, None, [Some(584.6), Some(564.6), None, None]),
    set(22, 16, &[(28, 58)], (2, 43), 19, None, [Some(793.0), Some(785.3), None, None]),
    set(23, 17, &[(28, 58)], (14, 58), 2, None, [Some(650.3), Some(626.5), None, None]),
    set(24, 17, &[(29, 59)], (29, 59), 1, None, [Some(801.5), Some(762.1), None, None]),
    set(25, 17, &[(29, 59)], (15, 58), 2, None, [Some(690.5), Some(671.0), None, None]),
    set(26, 17, &[(38, 59)], (19, 59), 2, None, [Some(996.4), Some(970.5), None, None]),
    set(27, 17, &[(43, 60)], (15, 58), 3, None, [Some(1207.5), Some(1176.4), None, None]),
    set(28, 17, &[(46, 60)], (10, 56), 5, None, [Some(1444.6), Some(1411.2), None, None]),
    set(29, 17, &[(49, 60)], (9, 55), 6, None, [Some(1665.0), Some(1647.7), None, None]),
    set(30, 17, &[(52, 60)], (6, 58), 9, None, [Some(2099.9), Some(2072.6), None, None]),
    set(31, 18, &[(52, 60)], (26, 60), 2, None, [Some(3299.0), Some(3172.6), None, None]),
    set(32, 17, &[(55, 60)], (3, 58), 19, None, [Some(3566.8), Some(3532.2), None, None]),
    set(33, 18, &[(55, 60)], (28, 59), 2, None, [Some(3592.8), Some(3462.4), None, None]),
    set(34, 14, &[(4, 54)], (1, 54), 4, Some(Second { omega2: 3, aux_primes: 3, aux_bits: 53 }), [None, None, None, Some(12.5)]),
    set(35, 14, &[(5, 56)], (1, 56), 5, Some(Second { omega2: 4, aux_primes: 3, aux_bits: 51 }), [None, None, None, Some(16.9)]),
    set(36, 14, &[(6, 54)], (1, 54), 6, Some(Second { omega2: 5, aux_primes: 3, aux_bits: 48 }), [None, None, None, Some(19.6)]),
    set(37, 14, &[(6, 57)], (1, 57), 6, Some(Second { omega2: 5, aux_primes: 3, aux_bits: 50 }), [None, None, None, Some(19.6)]),
    set(38, 14, &[(7, 52)], (1, 52), 7, Some(Second { omega2: 5, aux_primes: 3, aux_bits: 50 }), [None, None, None, Some(21.5)]),
    set(39, 15, &[(8, 54)], (1, 54), 8, Some(Second { omega2: 6, aux_primes: 3, aux_bits: 50 }), [None, None, None, Some(54.1)]),
    set(40, 15, &[(10, 56)], (1, 56), 10, Some(Second { omega2: 7, aux_primes: 3, aux_bits: 53 }), [None, None, None, Some(71.6)]),
    set(41, 15, &[(11, 59)], (1, 59), 11, Some(Second { omega2: 8, aux_primes: 3, aux_bits: 54 }), [None, None, None, Some(85.4)]),
    set(42, 15, &[(12, 57)], (1, 57), 12, Some(Second { omega2: 9, aux_primes: 3, aux_bits: 52 }), [None, None, None, Some(93.1)]),
    set(43, 15, &[(13, 56)], (1, 56), 13, Some(Second { omega2: 10, aux_primes: 3, aux_bits: 50 }), [None, None, None, Some(92.7)]),
    set(44, 15, &[(13, 60)], (1, 60), 13, Some(Second { omega2: 10, aux_primes: 3, aux_bits: 53 }), [None, None, None, Some(104.8)]),
    set(45, 16, &[(15, 57)], (1, 57), 15, Some(Second { omega2: 11, aux_primes: 3, aux_bits: 52 }), [None, None, None, Some(285.2)]),
    set(46, 16, &[(19, 59)], (1, 59), 19, Some(Second { omega2: 14, aux_primes: 3, aux_bits: 53 }), [None, None, None, Some(410.2)]),
    set(47, 16, &[(22, 59)], (1, 59), 22, Some(Second { omega2: 16, aux_primes: 3, aux_bits: 53 }), [None, None, None, Some(535.3)]),
    set(48, 16, &[(23, 60)], (1, 60), 23, Some(Second { omega2: 17, aux_primes: 3, aux_bits: 54 }), [None, None, None, Some(564.9)]),
    set(49, 16, &[(25, 59)], (1, 59), 25, Some(Second { omega2: 18, aux_primes: 3, aux_bits: 54 }), [None, None, None, Some(622.8)]),
    set(50, 16, &[(26, 60)], (1, 60), 26, Some(Second { omega2: 19, aux_primes: 3, aux_bits: 54 }), [None, None, None, Some(663.5)]),
    set(51, 16, &[(28, 58)], (1, 58), 28, Some(Second { omega2: 20, aux_primes: 3, aux_bits: 53 }), [None, None, None, Some(734.5)]),
    set(52, 17, &[(29, 59)], (1, 59), 29, Some(Second { omega2: 21, aux_primes: 3, aux_bits: 54 }), [None, None, None, Some(1768.6)]),
    set(53, 17, &[(38, 59)], (1, 59), 38, Some(Second { omega2: 27, aux_primes: 3, aux_bits: 54 }), [None, None, None, Some(2745.9)]),
    set(54, 17, &[(43, 60)], (1, 60), 43, Some(Second { omega2: 31, aux_primes: 3, aux_bits: 54 }), [None, None, None, Some(3649.8)]),
    set(55, 17, &[(46, 60)], (1, 60), 46, Some(Second { omega2: 33, aux_primes: 3, aux_bits: 54 }), [None, None, None, Some(3933.2)]),
    set(56, 17, &[(49, 60)], (1, 60), 49, Some(Second { omega2: 35, aux_primes: 3, aux_bits: 54 }), [None, None, None, Some(4220.1)]),
    set(57, 17, &[(52, 60)], (1, 60), 52, Some(Second { omega2: 37, aux_primes: 3, aux_bits: 54 }), [None, None, None, Some(4658.4)]),
    set(58, 17, &[(55, 60)], (1, 60), 55, Some(Second { omega2: 39, aux_primes: 3, aux_bits: 55 }), [None, None, None, Some(5140.2)]),
    set(59, 14, &[(5, 36)], (3, 60), 1, None, [None, Some(2.6), Some(3.3), None]),
    set(60, 14, &[(5, 36)], (3, 60), 1, None, [None, Some(2.6), Some(3.2), None]),
    set(61, 14, &[(7, 36)], (3, 42), 2, None, [None, Some(4.7), Some(5.5), None]),
    set(62, 14, &[(2, 54), (4, 36)], (3, 42), 2, None, [None, Some(4.0), Some(4.7), None]),
    set(63, 14, &[(8, 36)], (2, 48), 3, None, [None, Some(5.9), Some(6.8), None]),
    set(64, 14, &[(2, 54), (5, 36)], (2, 48), 3, None, [None, Some(5.0), Some(5.7), None]),
    set(65, 15, &[(11, 36)], (7, 57), 1, None, [None, Some(18.8), Some(21.3), None]),
    set(66, 15, &[(4, 54), (5, 36)], (7, 57), 1, None, [None, Some(15.9), Some(18.1), None]),
    set(67, 15, &[(15, 36)], (5, 54), 2, None, [None, Some(29.3), Some(32.2), None]),
    set(68, 15, &[(8, 54), (3, 36)], (5, 54), 2, None, [None, Some(21.9), Some(24.3), None]),
    set(69, 15, &[(17, 36)], (4, 51), 3, None, [None, Some(38.3), Some(41.4), None]),
    set(70, 15, &[(8, 54), (5, 36)], (4, 51), 3, None, [None, Some(29.4), Some(32.1), None]),
    set(71, 16, &[(23, 36)], (14, 60), 1, None, [None, Some(156.4), Some(164.7), None]),
    set(72, 16, &[(12, 54), (5, 36)], (14, 60), 1, None, [None, Some(95.7), Some(104.9), None]),
    set(73, 16, &[(31, 36)], (10, 56), 2, None, [None, Some(241.1), Some(249.8), None]),
    set(74, 16, &[(18, 54), (4, 36)], (10, 56), 2, None, [None, Some(170.1), Some(178.2), None]),
    set(75, 16, &[(35, 36)], (7, 60), 3, None, [None, Some(301.9), Some(310.9), None]),
    set(76, 16, &[(20, 54), (5, 36)], (7, 60), 3, None, [None, Some(209.8), Some(216.5), None]),
    set(77, 17, &[(47, 36)], (29, 59), 1, None, [None, Some(1065.6), Some(1100.7), None]),
    set(78, 17, &[(28, 54), (5, 36)], (29, 59), 1, None, [None, Some(783.0), Some(818.0), None]),
    set(79, 17, &[(63, 36)], (19, 60), 2, None, [None, Some(1529.5), Some(1573.3), None]),
    set(80, 17, &[(40, 54), (3, 36)], (19, 60), 2, None, [None, Some(1013.1), Some(1046.0), None]),
    set(81, 17, &[(71, 36)], (15, 57), 3, None, [None, Some(1917.1), Some(1963.1), None]),
    set(82, 17, &[(44, 54), (5, 36)], (15, 57), 3, None, [None, Some(1262.1), Some(1302.6), None]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_numbered_and_whole() {
        for (i, set) in SETS.iter().enumerate() {
            assert_eq!(set.number, i);
            assert!(set.omega >= 1 && set.omega <= set.q_bits().len(), "{i}");
            assert!(set.paper_ms.iter().any(Option::is_some), "{i}");
            // The double technique takes one prime a digit and one special prime.
            assert!(set.second.is_none() || (set.omega == set.q_bits().len() && set.p.0 == 1), "{i}");
        }
        assert_eq!(SETS.iter().filter(|s| s.second.is_some()).count(), 25);
    }
}
