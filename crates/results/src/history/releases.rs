//! FreeBSD releases by revision and build day of their kernels (`uname -v` of the release on amd64,
//! such as `FreeBSD 10.1-RELEASE #0 r274401: Tue Nov 11 21:02:49 UTC 2014`).
//!
//! Subversion numbers count commits of the whole repository, so a release can be ordered among
//! revisions of other branches. Commit counts (Git, since 13.0) are per branch: between branches
//! only days have an order.

use super::date::day;
use super::place::Place;

/// A release.
struct Release {
    /// Major and minor version.
    version: (u64, u64),
    /// Subversion revision, or the commit count on its branch from 13.0 on.
    revision: u64,
    /// Day of the build: year, month, day.
    built: (i64, i64, i64),
}

const fn release(version: (u64, u64), revision: u64, built: (i64, i64, i64)) -> Release {
    Release { version, revision, built }
}

/// Releases by build day.
#[rustfmt::skip]
const RELEASES: [Release; 26] = [
    release((9, 2), 255_898, (2013, 9, 27)),
    release((10, 0), 260_789, (2014, 1, 16)),
    release((9, 3), 268_512, (2014, 7, 10)),
    release((10, 1), 274_401, (2014, 11, 11)),
    release((10, 2), 286_666, (2015, 8, 12)),
    release((10, 3), 297_264, (2016, 3, 25)),
    release((11, 0), 306_420, (2016, 9, 29)),
    release((11, 1), 321_309, (2017, 7, 21)),
    release((10, 4), 324_094, (2017, 9, 29)),
    release((11, 2), 335_510, (2018, 6, 22)),
    release((12, 0), 341_666, (2018, 12, 7)),
    release((11, 3), 349_754, (2019, 7, 5)),
    release((12, 1), 354_233, (2019, 11, 1)),
    release((11, 4), 362_094, (2020, 6, 12)),
    release((12, 2), 366_954, (2020, 10, 23)),
    release((13, 0), 244_733, (2021, 4, 9)),
    release((12, 3), 371_126, (2021, 12, 2)),
    release((13, 1), 250_148, (2022, 5, 12)),
    release((12, 4), 372_781, (2022, 12, 5)),
    release((13, 2), 254_617, (2023, 4, 7)),
    release((14, 0), 265_380, (2023, 11, 10)),
    release((13, 3), 257_428, (2024, 3, 1)),
    release((14, 1), 267_679, (2024, 5, 31)),
    release((13, 4), 258_257, (2024, 9, 13)),
    release((14, 2), 269_506, (2024, 11, 29)),
    release((15, 0), 280_995, (2025, 11, 28)),
];
/// Day on which FreeBSD's repository moved to Git.
pub(super) const GIT_BEGINS: i64 = day(2020, 12, 23);
/// First major version that is numbered by commits.
const GIT: u64 = 13;

impl Release {
    fn day(&self) -> i64 {
        let (year, month, date) = self.built;
        day(year, month, date)
    }

    fn is_of_git(&self) -> bool {
        self.version.0 >= GIT
    }
}

/// Revision of the release that a text names: `fbsd10.1`, `FreeBSD 11.1-yandex`, `12.0-RELEASE-p3`.
pub(super) fn place_of(text: &str) -> Option<Place> {
    let lower = text.to_ascii_lowercase();
    let is_named = lower.starts_with("fbsd") || lower.starts_with("freebsd");
    if !is_named && !lower.contains("-release") {
        return None;
    }
    let from = &lower[lower.find(|c: char| c.is_ascii_digit())?..];
    let (major, rest) = from.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let version = (major.parse().ok()?, minor.parse().ok()?);
    let known = RELEASES.iter().find(|release| release.version == version)?;
    Some(match known.is_of_git() {
        true => Place::Commits(known.revision),
        false => Place::Subversion(known.revision),
    })
}

/// Approximate day of a Subversion revision, interpolated between the surrounding releases. `None`
/// for commit counts, which are per branch, unless they are a release; `None` before the first
/// release here.
pub(super) fn day_of(place: &Place) -> Option<i64> {
    let number = match place {
        Place::Subversion(number) => *number,
        // The count of a release itself is known.
        Place::Commits(number) => {
            let mut of_git = RELEASES.iter().filter(|release| release.is_of_git());
            return of_git.find(|release| release.revision == *number).map(Release::day);
        }
        _ => return None,
    };
    let known: Vec<&Release> = RELEASES.iter().filter(|release| !release.is_of_git()).collect();
    let after = known.iter().position(|release| release.revision >= number)?;
    let before = known[after.checked_sub(1)?];
    let after = known[after];
    let share = (number - before.revision) as f64 / (after.revision - before.revision) as f64;
    Some(before.day() + (share * (after.day() - before.day()) as f64) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_sorted_by_day() {
        for pair in RELEASES.windows(2) {
            assert!(pair[0].day() < pair[1].day());
        }
        let of = |git: bool| RELEASES.iter().filter(move |release| release.is_of_git() == git);
        let subversion: Vec<u64> = of(false).map(|release| release.revision).collect();
        assert!(subversion.is_sorted(), "numbers of Subversion rise with the days");
        assert!(of(true).all(|release| (200_000..300_000).contains(&release.revision)));
    }

    #[test]
    fn place_of_finds_releases_in_text() {
        for (text, expected) in [
            ("fbsd10.1", Some(Place::Subversion(274_401))),
            ("fbsd10.3.default10K", Some(Place::Subversion(297_264))),
            ("FreeBSD 11.1-yandex", Some(Place::Subversion(321_309))),
            ("12.0-RELEASE-p3", Some(Place::Subversion(341_666))),
            ("14.1-RELEASE", Some(Place::Commits(267_679))),
            ("fbsd99.9", None),
            ("fbsd11-routing", None),
            ("6.1", None),
            ("10.1", None),
        ] {
            assert_eq!(place_of(text), expected, "{text}");
        }
    }

    #[test]
    fn day_of_interpolates_between_releases() {
        let release = day(2015, 8, 12);
        assert_eq!(day_of(&Place::Subversion(286_666)), Some(release));
        let between = day_of(&Place::Subversion(287_478)).expect("a day");
        assert!((release..day(2015, 10, 1)).contains(&between), "{between}");
        assert_eq!(day_of(&Place::Commits(244_733)), Some(day(2021, 4, 9)));
        assert_eq!(day_of(&Place::Commits(245_000)), None);
        assert_eq!(day_of(&Place::Subversion(1000)), None);
    }
}
