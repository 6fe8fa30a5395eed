//! Order of versions and releases.

use std::cmp::Ordering;

/// Compares versions as Debian does (deb-version(7)): numbers by value, letters before other
/// characters, `~` before everything. Also orders releases and the names of packages.
pub fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (epoch(left), epoch(right));
    left.0.cmp(&right.0).then_with(|| runs(left.1, right.1))
}

fn epoch(version: &str) -> (u64, &str) {
    let divided = version.split_once(':');
    divided.and_then(|(epoch, rest)| Some((epoch.parse().ok()?, rest))).unwrap_or((0, version))
}

/// Compares runs of other characters and of digits alternately.
fn runs(mut left: &str, mut right: &str) -> Ordering {
    while !left.is_empty() || !right.is_empty() {
        let words = cut(&mut left, false).bytes().map(Some).chain([None]);
        let others = cut(&mut right, false).bytes().map(Some).chain([None]);
        let order = words.map(weight).cmp(others.map(weight));
        let number = |text: &str| text.parse::<u128>().unwrap_or(0);
        let order =
            order.then_with(|| number(cut(&mut left, true)).cmp(&number(cut(&mut right, true))));
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

/// Splits off a leading run of digits, or of other characters.
fn cut<'a>(text: &mut &'a str, digits: bool) -> &'a str {
    let end = text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len());
    let (run, rest) = text.split_at(end);
    *text = rest;
    run
}

/// Returns the rank of a character; `None` is the end.
fn weight(byte: Option<u8>) -> u16 {
    match byte {
        Some(b'~') => 0,
        None => 1,
        Some(letter) if letter.is_ascii_alphabetic() => 2 + u16::from(letter),
        Some(other) => 300 + u16::from(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_by_dpkg() {
        let ascending = [
            "5.10.0-46-cloud-amd64",
            "6.1.0-0.deb11.52-cloud-amd64",
            "6.1.0-9-cloud-amd64",
            "6.1.0-56-cloud-amd64",
            "6.12.9+deb13-cloud-amd64",
            "6.12.100+deb13-cloud-amd64",
        ];
        for pair in ascending.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
        for (left, right) in [
            ("6.12.117-1~deb12u1", "6.12.117-1"),
            ("7.3~rc7-1~exp1", "7.3-1"),
            ("1.0", "1:0.5"),
            ("1.0", "1.0+b1"),
            ("1.0-1", "1.0-1.1"),
            ("7.3.4-1~bpo13+1", "7.3.4-1"),
        ] {
            assert_eq!(compare(left, right), Ordering::Less, "{left} {right}");
            assert_eq!(compare(right, left), Ordering::Greater, "{left} {right}");
        }
        assert_eq!(compare("0:6.1-1", "6.1-1"), Ordering::Equal);
    }
}
