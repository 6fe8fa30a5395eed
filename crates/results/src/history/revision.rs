//! Revisions of points, and their order.
//!
//! Revisions are read from free text: `r287478`, `295802D5330`, `n311215`,
//! `fbsd12-head.r299288.D8526`, `6.18.1-rc2`, `2016-01-03`. Subversion numbers precede the commit
//! counts that FreeBSD uses since its move to Git: `n` and a number (`git rev-list --count
//! --first-parent`), and at first `c`, which also counts merged branches. A FreeBSD release named
//! alone has the revision of its kernel ([`super::releases`]). Out of scope: querying a repository
//! for the order of its commits.

use super::place::{Place, Suffix};

/// Number of hash digits shown.
const HASH: usize = 12;

/// A revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Revision {
    /// Name.
    pub(super) label: String,
    /// Position in the order of revisions.
    pub(super) place: Place,
    /// True for a revision with a patch, such as `D27401`.
    pub(super) patched: bool,
}

impl Revision {
    /// Parses the revision in `text`.
    pub(super) fn of(text: &str) -> Revision {
        let text = text.trim();
        parse_number(text)
            .or_else(|| parse_date(text))
            .or_else(|| parse_release(text))
            .unwrap_or_else(|| Revision::of_version(text))
    }

    /// Revision of a result set of the archive that is named `label`. If the label has no number,
    /// the number in `uname -v` determines the position.
    pub(super) fn of_archive(label: &str, uname: &str) -> Revision {
        let revision = Revision::of(label);
        let is_numbered = matches!(
            revision.place,
            Place::Subversion(_) | Place::AllCommits(_) | Place::Commits(_)
        );
        if is_numbered && parse_release(label).is_none() {
            return revision;
        }
        // `r296648M:` means locally modified, as every image of the archive is.
        let number = |word: &str| {
            let begin = word.starts_with(['r', 'n', 'c']).then_some(1)?;
            let digits = word[begin..].bytes().take_while(u8::is_ascii_digit).count();
            parse_number(&word[..begin + digits])
        };
        match uname.split_whitespace().find_map(number) {
            Some(Revision { place, .. }) => Revision { place, ..revision },
            None => revision,
        }
    }

    /// Parses the version in `text`, such as a kernel release, where a long number is not a
    /// revision. A text without a version is used unchanged.
    pub(super) fn of_version(text: &str) -> Revision {
        parse_version(text.trim()).unwrap_or_else(|| Revision {
            label: text.trim().to_owned(),
            place: Place::Text(Suffix(text.trim().to_owned())),
            patched: false,
        })
    }

    /// Revision given by a user. Commit hashes and other names without a number have no order, so
    /// they are ordered by the time of measurement.
    pub(super) fn of_name(text: &str, started_at: &str) -> Revision {
        let revision = Revision::of(text);
        match matches!(revision.place, Place::Text(_)) || is_hash(text) {
            true => Revision {
                label: short_revision(text).to_owned(),
                place: Place::Date(started_at.to_owned()),
                patched: false,
            },
            false => revision,
        }
    }

    /// A time (RFC 3339) in place of a revision.
    pub(super) fn of_time(time: &str) -> Revision {
        Revision { label: minute(time), place: Place::Date(time.to_owned()), patched: false }
    }
}

/// Returns true if `text` is a commit hash.
fn is_hash(text: &str) -> bool {
    text.len() >= 7 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A revision for display: hashes are cut to the length that distinguishes commits.
pub(crate) fn short_revision(text: &str) -> &str {
    match is_hash(text) {
        true => text.get(..HASH).unwrap_or(text),
        false => text,
    }
}

/// A time (RFC 3339) to the minute, for display.
pub(crate) fn minute(time: &str) -> String {
    time.get(..16).map_or(time.to_owned(), |minute| minute.replace('T', " "))
}

/// Parses a Subversion number or a commit count after a separator: five to seven digits, a length
/// that dates (eight) and versions do not have. The rest must be a patch, separated or in letters
/// (`317849VIMAGE`, `295802D5330`), because a hash can also begin with digits.
fn parse_number(text: &str) -> Option<Revision> {
    let bytes = text.as_bytes();
    let mut begin = 0;
    while begin < bytes.len() {
        let starts = begin == 0 || !bytes[begin - 1].is_ascii_alphanumeric();
        let letter = bytes[begin].to_ascii_lowercase();
        let digits_at = begin + usize::from(matches!(letter, b'r' | b'n' | b'c'));
        let digits = bytes[digits_at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if starts && (5..=7).contains(&digits) {
            let number: u64 = text[digits_at..digits_at + digits].parse().ok()?;
            let rest = &text[digits_at + digits..];
            let follows = rest.trim_start_matches(['.', '-', '_', '+', ' ']);
            let is_review = follows.strip_prefix('D').is_some_and(begins_with_digit);
            let is_word = rest.starts_with(|c: char| c.is_ascii_alphabetic())
                && rest.bytes().any(|byte| byte.is_ascii_alphabetic() && !byte.is_ascii_hexdigit());
            // `n245000-b9c5f1c3a0d2`: the same commit by its hash.
            let is_hash = follows.len() >= 7 && follows.bytes().all(|b| b.is_ascii_hexdigit());
            if follows.len() < rest.len() || rest.is_empty() || is_review || is_word {
                let place = match letter {
                    b'n' => Place::Commits(number),
                    b'c' => Place::AllCommits(number),
                    _ => Place::Subversion(number),
                };
                let label = text[begin..].to_owned();
                let patched = !follows.is_empty() && (is_review || !is_hash);
                return Some(Revision { label, place, patched });
            }
        }
        begin += 1;
    }
    None
}

/// A FreeBSD release, possibly with a patch.
fn parse_release(text: &str) -> Option<Revision> {
    let place = super::releases::place_of(text)?;
    let patched = parse_version(text).is_some_and(|version| version.patched);
    Some(Revision { label: text.to_owned(), place, patched })
}

/// A date of eight digits, or with hyphens, at the start of the text.
fn parse_date(text: &str) -> Option<Revision> {
    let digits: String = text.chars().filter(|c| *c != '-').take(8).collect();
    let compact =
        text.len() == 8 || text.get(..10).is_some_and(|day| day.matches('-').count() == 2);
    let is_date = digits.len() == 8
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits.starts_with("19") || digits.starts_with("20"))
        && compact;
    is_date.then(|| {
        let rest: String = text.chars().filter(|c| *c != '-').skip(8).collect();
        let place = Place::Date(digits + &rest);
        Revision { label: text.to_owned(), place, patched: false }
    })
}

/// Numbers separated by dots: `6.18.1-rc2`, `v5.4`, `fbsd10.2`.
fn parse_version(text: &str) -> Option<Revision> {
    let begin = text.find(|c: char| c.is_ascii_digit())?;
    let from = &text[begin..];
    let end = from.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(from.len());
    let (numbers, rest) = from.split_at(end);
    let trimmed = numbers.trim_end_matches('.');
    let parsed: Option<Vec<u64>> = trimmed.split('.').map(|part| part.parse().ok()).collect();
    let parsed =
        parsed.filter(|parts| parts.len() > 1 || !rest.is_empty() && trimmed != numbers)?;
    let suffix = format!("{}{rest}", &numbers[trimmed.len()..]);
    let review = suffix.trim_start_matches(['.', '-', '_', '+']);
    let patched = review.strip_prefix('D').is_some_and(begins_with_digit);
    let place = Place::Version(parsed, Suffix(suffix));
    Some(Revision { label: text.to_owned(), place, patched })
}

fn begins_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        Revision::of(text).place
    }

    #[test]
    fn revision_finds_numbers_in_free_text() {
        for (text, label, expected, patched) in [
            ("r303643", "r303643", Place::Subversion(303_643), false),
            ("303643", "303643", Place::Subversion(303_643), false),
            ("n311215", "n311215", Place::Commits(311_215), false),
            ("fbsd13-c255632", "c255632", Place::AllCommits(255_632), false),
            ("317849VIMAGE", "317849VIMAGE", Place::Subversion(317_849), true),
            ("r332393ALTQ", "r332393ALTQ", Place::Subversion(332_393), true),
            ("295150mbuf", "295150mbuf", Place::Subversion(295_150), true),
            ("13-r354862-polling", "r354862-polling", Place::Subversion(354_862), true),
            ("r368606D27401v4", "r368606D27401v4", Place::Subversion(368_606), true),
            ("295802D5330", "295802D5330", Place::Subversion(295_802), true),
            ("fbsd11-head.r287478", "r287478", Place::Subversion(287_478), false),
            ("fbsd12-head.r299288.D8526", "r299288.D8526", Place::Subversion(299_288), true),
            ("fbsd10-stable.r295802.D5330", "r295802.D5330", Place::Subversion(295_802), true),
        ] {
            let revision = Revision::of(text);
            assert_eq!(revision, Revision { label: label.into(), place: expected, patched });
        }
    }

    #[test]
    fn revision_without_number_is_version_date_or_text() {
        assert!(matches!(place("fbsd99.2"), Place::Version(numbers, _) if numbers == [99, 2]));
        assert_eq!(place("fbsd10.2"), Place::Subversion(286_666));
        assert!(
            matches!(place("6.1.0-13-amd64"), Place::Version(numbers, _) if numbers == [6, 1, 0])
        );
        assert!(Revision::of("fbsd13.D27401").patched);
        assert!(matches!(place("2016-01-03"), Place::Date(_)));
        assert!(matches!(place("20160103"), Place::Date(_)));
        for text in ["73212c1", "295150abc", "main", "", "my-branch"] {
            assert!(matches!(place(text), Place::Text(_)), "{text}: {:?}", place(text));
        }
    }

    #[test]
    fn archive_revision_falls_back_to_uname() {
        let uname = "FreeBSD 10.2-RELEASE-p8 FreeBSD 10.2-RELEASE-p8 #0 r296648M: Wed Mar  9";
        let of = |label, uname| Revision::of_archive(label, uname);
        let release = of("fbsd10.2", uname);
        assert_eq!((release.label.as_str(), release.patched), ("fbsd10.2", false));
        assert_eq!(release.place, Place::Subversion(296_648));
        assert_eq!(of("fbsd11.r287478", uname).place, Place::Subversion(287_478));
        assert_eq!(of("main", "#1 n245000-b9c5f1c3a0d2: x").place, Place::Commits(245_000));
        assert!(matches!(of("main", "no number").place, Place::Text(_)));
        let hashed = Revision::of("main-n245000-b9c5f1c3a0d2");
        assert_eq!((hashed.place, hashed.patched), (Place::Commits(245_000), false));
    }

    #[test]
    fn places_sort_across_numberings() {
        let ordered = [
            "r99999",
            "287478",
            "r303643",
            "n240000",
            "n311215",
            "5.4",
            "6.2.9",
            "6.18.1-rc2",
            "6.18.1-rc10",
            "6.18.1",
            "6.18.1-2",
            "6.18.1-10",
            "2016-01-03",
            "20160104",
            "build9",
            "build10",
            "main",
        ];
        for (i, a) in ordered.iter().enumerate() {
            for b in &ordered[i + 1..] {
                assert!(place(a) < place(b), "{a} {b}: {:?} {:?}", place(a), place(b));
            }
        }
        assert!(place("r2875").is_comparable(&place("main")), "four digits are text");
        assert!(place("r287500").is_comparable(&place("n287500")));
        assert!(!place("r287500").is_comparable(&place("6.1")));
    }

    #[test]
    fn hashes_sort_by_time_of_measurement() {
        let of = |text, time| Revision::of_name(text, time);
        let first = of("f3b1c0de9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d", "2026-11-01T03:00:00Z");
        let next = of("0123456789abcdef0123456789abcdef01234567", "2026-11-02T03:00:00Z");
        assert_eq!((first.label.as_str(), next.label.as_str()), ("f3b1c0de9a8b", "0123456789ab"));
        assert!(first.place < next.place && !next.patched);
        assert_eq!(of("v6.18", "").place, place("v6.18"));
        assert_eq!(of("nightly", "2026-11-01T03:00:00Z").label, "nightly");
    }

    #[test]
    fn time_label_is_cut_to_minutes() {
        let revision = Revision::of_time("2024-03-05T10:00:00Z");
        assert_eq!(revision.label, "2024-03-05 10:00");
        assert!(revision.place < Revision::of_time("2024-03-05T10:00:01Z").place);
        assert_eq!(Revision::of_time("").label, "");
    }
}
