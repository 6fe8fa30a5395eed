//! Natural order of names: numbers within names by value, so `r9` comes before `r10`.

use std::cmp::Ordering;

/// Compares two names.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.as_bytes(), b.as_bytes());
    while let (Some(x), Some(y)) = (left.first(), right.first()) {
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let (m, n) = (digits(left), digits(right));
            let (p, q) = (trimmed(&left[..m]), trimmed(&right[..n]));
            let order = p.len().cmp(&q.len()).then_with(|| p.cmp(q));
            if order.is_ne() {
                return order;
            }
            (left, right) = (&left[m..], &right[n..]);
        } else {
            if x != y {
                return x.cmp(y);
            }
            (left, right) = (&left[1..], &right[1..]);
        }
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

fn trimmed(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|b| **b == b'0').count();
    &digits[zeros.min(digits.len().saturating_sub(1))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_value_and_the_rest_as_text() {
        assert_eq!(natural("r9", "r10"), Ordering::Less);
        assert_eq!(natural("r10D2", "r10"), Ordering::Greater);
        assert_eq!(natural("007", "7"), Ordering::Less);
        assert_eq!(natural("a", "a"), Ordering::Equal);
    }
}
