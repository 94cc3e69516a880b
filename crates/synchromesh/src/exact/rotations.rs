//! The automorphism that rotates the rows of slots.

/// 3^k mod 2N: X -> X^(3^k) rotates both rows of slots left by k.
pub(crate) fn row_element(k: i64, n: usize) -> usize {
    let two_n = 2 * n;
    let mut exponent = k.rem_euclid((n / 2) as i64).unsigned_abs();
    let (mut power, mut element) = (3 % two_n, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            element = element * power % two_n;
        }
        power = power * power % two_n;
        exponent >>= 1;
    }
    element
}

#[cfg(test)]
mod tests {
    use super::row_element;

    #[test]
    fn elements_are_powers_of_three_of_order_half_n() {
        let n = 16;
        assert_eq!([0, 1, 2, 3].map(|k| row_element(k, n)), [1, 3, 9, 27]);
        assert_eq!(row_element(-1, n) * 3 % 32, 1);
        assert_eq!(row_element(i64::MIN, n), row_element(0, n));
        assert_eq!(row_element(9, n), row_element(1, n));
    }
}
