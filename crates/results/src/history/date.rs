//! Dates of imported sets as RFC 3339 has them.

/// Zones that logs name by letters, with their offsets.
const ZONES: [(&str, &str); 6] = [
    ("UTC", "Z"),
    ("GMT", "Z"),
    ("CET", "+01:00"),
    ("CEST", "+02:00"),
    ("EST", "-05:00"),
    ("EDT", "-04:00"),
];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A date as date(1) prints it (`Sat May 30 11:04:16 CEST 2015`) in RFC 3339; one that is
/// written otherwise, or in a zone that is not known, as it is.
pub(super) fn rfc3339(text: &str) -> String {
    of_date(text).unwrap_or_else(|| text.to_owned())
}

fn of_date(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, month, day, time, zone, year] = words[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let (day, year): (u8, u16) = (day.parse().ok()?, year.parse().ok()?);
    let is_time = time.len() == 8 && time.bytes().all(|b| b.is_ascii_digit() || b == b':');
    let (_, offset) = ZONES.iter().find(|(name, _)| *name == zone)?;
    (is_time && (1..=31).contains(&day))
        .then(|| format!("{year:04}-{month:02}-{day:02}T{time}{offset}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_date_prints_becomes_a_date() {
        for (text, expected) in [
            ("Sat May 30 11:04:16 CEST 2015", "2015-05-30T11:04:16+02:00"),
            ("Wed Feb  3 10:00:01 UTC 2016", "2016-02-03T10:00:01Z"),
            ("2026-11-22T10:00:00.000Z", "2026-11-22T10:00:00.000Z"),
            ("Wed Feb 3 10:00:01 XYZ 2016", "Wed Feb 3 10:00:01 XYZ 2016"),
            ("", ""),
        ] {
            assert_eq!(rfc3339(text), expected);
        }
    }
}
