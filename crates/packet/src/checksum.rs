//! The Internet checksum (RFC 1071).
//!
//! Sums are kept unfolded, over 16-bit words read in *native* byte order: the
//! one's complement sum does not care (RFC 1071 section 2 (B)), so nothing is
//! swapped until the result is stored as it is.

/// Adds the 16-bit words of `bytes` to `sum`; an odd last byte is padded with 0.
pub fn add(sum: u32, bytes: &[u8]) -> u32 {
    let mut words = bytes.chunks_exact(2);
    let mut sum = u64::from(sum);
    for word in words.by_ref() {
        sum += u64::from(u16::from_ne_bytes([word[0], word[1]]));
    }
    if let [last] = words.remainder() {
        sum += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    while sum > 0xffff_ffff {
        sum = (sum & 0xffff_ffff) + (sum >> 32);
    }
    sum as u32
}

/// Folds a sum to 16 bits and complements it: the checksum field's bytes.
#[inline]
pub fn finish(sum: u32) -> [u8; 2] {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_ne_bytes()
}

/// The checksum field after one of the words that it covers has changed, without
/// a look at the others (RFC 1624 equation 3).
#[inline]
pub fn update(check: [u8; 2], before: [u8; 2], after: [u8; 2]) -> [u8; 2] {
    let [check, before, after] = [check, before, after].map(u16::from_ne_bytes);
    finish(u32::from(!check) + u32::from(!before) + u32::from(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_of_rfc_1071_section_3() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        // The sum is ddf2, its complement 220d.
        assert_eq!(finish(add(0, &bytes)), [0x22, 0x0d]);
    }

    #[test]
    fn a_sum_over_data_with_its_checksum_is_zero() {
        let data = [0x45, 0x00, 0x00, 0x2e, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11];
        let check = finish(add(0, &data));
        assert_eq!(finish(add(add(0, &data), &check)), [0, 0]);
    }

    #[test]
    fn example_of_rfc_1624_section_4() {
        let [check, before, after] = [[0xdd, 0x2f], [0x55, 0x55], [0x32, 0x85]];
        assert_eq!(update(check, before, after), [0x00, 0x00]);
    }

    #[test]
    fn every_step_of_a_ttl_leaves_the_sum_right() {
        for protocol in 0..=255 {
            for ttl in 1..=255 {
                let check = finish(add(0, &[ttl, protocol, 0x12, 0x34]));
                let updated = update(check, [ttl, protocol], [ttl - 1, protocol]);
                let sum = add(add(0, &[ttl - 1, protocol, 0x12, 0x34]), &updated);
                assert_eq!(finish(sum), [0, 0]);
            }
        }
    }
}
