//! Conversion of points in time from the formats of date(1) to RFC 3339.

/// Zone abbreviations with one worldwide offset from UTC that has not changed since 2015. Others
/// (EST, IST, CST ...) are ambiguous.
const ZONES: &[(&str, &str)] = &[
    ("UTC", "Z"),
    ("GMT", "Z"),
    ("WET", "+00:00"),
    ("WEST", "+01:00"),
    ("CET", "+01:00"),
    ("CEST", "+02:00"),
    ("EET", "+02:00"),
    ("EEST", "+03:00"),
    ("MSK", "+03:00"),
    ("JST", "+09:00"),
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Returns `Wed Sep  9 03:32:02 CEST 2015` and `February 19, 2016 at 04:51:37 PM CET` as
/// `2015-09-09T03:32:02+02:00`. `None` for any other form, for a date that does not exist, and for
/// a zone that is not certain.
pub(super) fn rfc3339(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (month, day, year, clock, afternoon, zone) = match words[..] {
        [_, month, day, clock, zone, year] => (month, day, year, clock, None, zone),
        [month, day, year, "at", clock, half, zone] => {
            let afternoon = match half {
                "AM" => false,
                "PM" => true,
                _ => return None,
            };
            (month, day.strip_suffix(',')?, year, clock, Some(afternoon), zone)
        }
        _ => return None,
    };
    let short = |name: &&str| **name == *month || (month.len() == 3 && name.starts_with(month));
    let month = MONTHS.iter().position(short)? + 1;
    let (day, year) = (number(day, 1..=2)?, number(year, 4..=4)?);
    let (_, offset) = ZONES.iter().find(|(name, _)| *name == zone)?;
    let mut parts = clock.split(':').map(|part| number(part, 2..=2));
    let (mut hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let valid_hour = if afternoon.is_some() { (1..=12).contains(&hour) } else { hour < 24 };
    let valid = valid_hour && minute < 60 && second < 61 && parts.next().is_none();
    if !valid || day == 0 || day > days(year, month) || (zone == "MSK" && year < 2015) {
        return None;
    }
    if let Some(afternoon) = afternoon {
        hour = hour % 12 + if afternoon { 12 } else { 0 };
    }
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{offset}"))
}

/// Parses digits only, as many as `length` permits.
fn number(text: &str, length: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let digits = length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Returns the days of a month of the Gregorian calendar.
fn days(year: u32, month: usize) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_date_forms_are_converted() {
        for (text, expected) in [
            ("Wed Sep  9 03:32:02 CEST 2015", "2015-09-09T03:32:02+02:00"),
            ("Mon Dec  7 05:22:02 CET 2015", "2015-12-07T05:22:02+01:00"),
            ("February 19, 2016 at 04:51:37 PM CET", "2016-02-19T16:51:37+01:00"),
            ("May  6, 2016 at 12:44:40 AM CEST", "2016-05-06T00:44:40+02:00"),
            ("May  9, 2016 at 12:07:14 PM CEST", "2016-05-09T12:07:14+02:00"),
            ("Mon Feb 29 00:00:00 UTC 2016", "2016-02-29T00:00:00Z"),
            ("Mon Feb  1 00:00:00 MSK 2016", "2016-02-01T00:00:00+03:00"),
        ] {
            assert_eq!(rfc3339(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn uncertain_times_are_none() {
        for text in [
            "",
            "Wed Sep  9 03:32:02 EST 2015",
            "Sun Feb 29 00:00:00 UTC 2015",
            "Sun Feb  0 00:00:00 UTC 2015",
            "Sun Feb  1 24:00:00 UTC 2015",
            "Sun Feb  1 00:00 UTC 2015",
            "Sun Feb  1 00:00:00:00 UTC 2015",
            "Sun F  1 00:00:00 UTC 2015",
            "Wed Jun  1 00:00:00 MSK 2011",
            "May  6, 2016 at 13:44:40 AM CEST",
            "May  6, 2016 at 11:44:40 XM CEST",
            "Sun Feb  1 00:00:00 UTC 20150",
        ] {
            assert_eq!(rfc3339(text), None, "{text}");
        }
    }
}
