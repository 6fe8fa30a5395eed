//! Dates of imported sets in RFC 3339 form.

/// Time zone names in logs, with their offsets.
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

/// Converts a date as date(1) prints it (`Sat May 30 11:04:16 CEST 2015`) to RFC 3339. A date in
/// any other form or in an unknown zone is returned unchanged.
pub(crate) fn rfc3339(text: &str) -> String {
    parse_date(text).unwrap_or_else(|| text.to_owned())
}

fn parse_date(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    // `Sat May 30 11:04:16 CEST 2015`, and `May 30, 2015 at 11:04:16 AM CEST`.
    let (month, day, year, time, zone) = match words[..] {
        [_, month, day, time, zone, year] => (month, day, year, time.to_owned(), zone),
        [month, day, year, "at", time, half, zone] => {
            (month, day.strip_suffix(',')?, year, to_24_hours(time, half)?, zone)
        }
        _ => return None,
    };
    let month = MONTHS.iter().position(|name| month.starts_with(name))? + 1;
    let (day, year): (u8, u16) = (day.parse().ok()?, year.parse().ok()?);
    let is_time = time.len() == 8 && time.bytes().all(|b| b.is_ascii_digit() || b == b':');
    let (_, offset) = ZONES.iter().find(|(name, _)| *name == zone)?;
    (is_time && (1..=31).contains(&day))
        .then(|| format!("{year:04}-{month:02}-{day:02}T{time}{offset}"))
}

/// Converts a 12-hour time to a 24-hour time.
fn to_24_hours(time: &str, half: &str) -> Option<String> {
    let (hour, rest) = time.split_once(':')?;
    let hour: u8 = hour.parse().ok().filter(|hour| (1..=12).contains(hour))?;
    let hour = match half {
        "AM" => hour % 12,
        "PM" => hour % 12 + 12,
        _ => return None,
    };
    Some(format!("{hour:02}:{rest}"))
}

/// Converts days since 1970-01-01 to an RFC 3339 date (the inverse of [`day`]).
pub(super) fn iso(days: i64) -> String {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{date:02}")
}

/// Days from 1970-01-01 to a day of the Gregorian calendar (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
pub(super) const fn day(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Day at the start of a text (RFC 3339, or a date alone), in days since 1970-01-01.
pub(super) fn day_of(text: &str) -> Option<i64> {
    let mut parts = text.get(..10)?.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, date) = (parts.next()??, parts.next()??, parts.next()??);
    ((1970..3000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&date))
        .then(|| day(year, month, date))
}

/// Build day of a kernel from its `uname -v`: `... #0 r296648M: Wed Mar  9 09:12:04 CET 2016 ...`.
pub(super) fn day_of_build(uname: &str) -> Option<i64> {
    let words: Vec<&str> = uname.split_whitespace().collect();
    words.windows(5).find_map(|words| {
        let [month, date, time, zone, year] = words else { return None };
        let month = MONTHS.iter().position(|name| name == month)? as i64 + 1;
        let is_clock = time.len() == 8 && time.matches(':').count() == 2;
        let is_zone = zone.len() <= 5 && zone.bytes().all(|byte| byte.is_ascii_uppercase());
        let (date, year) = (date.parse::<i64>().ok()?, year.parse::<i64>().ok()?);
        (is_clock && is_zone && (1..=31).contains(&date) && (1990..3000).contains(&year))
            .then(|| day(year, month, date))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3339_converts_output_of_date() {
        for (text, expected) in [
            ("Sat May 30 11:04:16 CEST 2015", "2015-05-30T11:04:16+02:00"),
            ("Wed Feb  3 10:00:01 UTC 2016", "2016-02-03T10:00:01Z"),
            ("February  3, 2016 at 10:07:07 PM CET", "2016-02-03T22:07:07+01:00"),
            ("May 31, 2016 at 12:52:24 AM CEST", "2016-05-31T00:52:24+02:00"),
            ("May 31, 2016 at 13:52:24 AM CEST", "May 31, 2016 at 13:52:24 AM CEST"),
            ("2026-11-22T10:00:00.000Z", "2026-11-22T10:00:00.000Z"),
            ("Wed Feb 3 10:00:01 XYZ 2016", "Wed Feb 3 10:00:01 XYZ 2016"),
            ("", ""),
        ] {
            assert_eq!(rfc3339(text), expected);
        }
    }

    #[test]
    fn day_and_iso_count_from_1970() {
        for (of, expected) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((2000, 3, 1), 11_017),
            ((2026, 11, 25), 20_782),
        ] {
            assert_eq!(day(of.0, of.1, of.2), expected, "{of:?}");
            assert_eq!(iso(expected), format!("{:04}-{:02}-{:02}", of.0, of.1, of.2));
        }
        assert_eq!(day_of("2026-11-25T10:00:00Z"), Some(20_782));
        assert_eq!(day_of("2026-11-25"), Some(20_782));
        for text in ["", "2026", "25-11-2026", "2026-13-01", "Wed Feb  3 10:00:01"] {
            assert_eq!(day_of(text), None, "{text}");
        }
    }

    #[test]
    fn day_of_build_reads_uname() {
        let uname = "FreeBSD 10.2-RELEASE-p8 #0 r296648M: Wed Mar  9 09:12:04 CET 2016 root@x";
        assert_eq!(day_of_build(uname), Some(day(2016, 3, 9)));
        assert_eq!(day_of_build("FreeBSD 14.0-RELEASE #0 releng/14.0-n265380-f9716eee8ab4"), None);
        assert_eq!(day_of_build("Mar 99 09:12:04 CET 2016"), None);
    }
}
