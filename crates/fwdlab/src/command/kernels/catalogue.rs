//! Kernels that a mirror offers, and selection among them.

use super::parse::Package;
use fwdlab_vm::kernel::{deb::Dependency, version};
use serde::Serialize;

/// Prefix of the names of a kernel's main packages.
pub(super) const IMAGE: &str = "linux-image-";

/// A kernel that a mirror offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Offer {
    /// Release, as `uname -r` prints it.
    pub(super) release: String,
    /// Series, such as 6.12.
    pub(super) series: String,
    /// Version of its packages.
    pub(super) version: String,
    /// Suites that have it.
    pub(super) suites: Vec<String>,
    /// Packages with their versions, in apt's syntax; the main package is last.
    pub(super) packages: Vec<String>,
    /// Size of all packages in bytes.
    pub(super) bytes: u64,
    /// Packages that no suite contains any more; the kernel does not boot without them.
    pub(super) missing: Vec<String>,
}

impl Offer {
    /// Returns the size of all packages in megabytes, with the unit.
    pub(super) fn size(&self) -> String {
        format!("{:.1} MB", self.bytes as f64 / 1e6)
    }
}

/// Selection of kernels from one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Selection {
    /// The newest one
    Newest,
    /// The oldest one
    Oldest,
    /// The oldest and the newest one
    Ends,
    /// All of them
    All,
}

/// Lists the kernels of a flavour, the oldest first.
pub(super) fn offers(packages: &[Package], flavour: &str) -> Vec<Offer> {
    let kernels = packages.iter().filter(|package| !package.control.is_meta());
    let mut offers: Vec<Offer> =
        kernels.filter_map(|package| offer(package, packages, flavour)).collect();
    offers.sort_by(|left, right| {
        version::compare(&left.series, &right.series)
            .then_with(|| version::compare(&left.version, &right.version))
            .then_with(|| version::compare(&left.release, &right.release))
    });
    offers
}

fn offer(package: &Package, packages: &[Package], flavour: &str) -> Option<Offer> {
    let control = &package.control;
    let release = release(&control.name, flavour)?;
    let mut offer = Offer {
        release: release.to_owned(),
        series: series(release),
        version: control.version.clone(),
        suites: package.suites.clone(),
        packages: Vec::new(),
        bytes: package.size,
        missing: Vec::new(),
    };
    for needed in &control.needed {
        let is_it = |one: &&Package| {
            let version = needed.version.as_ref();
            one.control.name == needed.name && version.is_none_or(|v| *v == one.control.version)
        };
        match packages.iter().find(is_it) {
            Some(part) => {
                offer.packages.push(format!("{}={}", needed.name, part.control.version));
                offer.bytes += part.size;
            }
            None => offer.missing.push(needed.for_apt()),
        }
    }
    let image = Dependency { name: control.name.clone(), version: Some(control.version.clone()) };
    offer.packages.push(image.for_apt());
    Some(offer)
}

/// Returns the series of the kernel that `linux-image-FLAVOUR` depends on, the newest one.
pub(super) fn series_of_meta(packages: &[Package], flavour: &str) -> Option<String> {
    let meta = packages.iter().filter(|one| one.control.name == format!("{IMAGE}{flavour}"));
    let newest =
        meta.max_by(|left, right| version::compare(&left.control.version, &right.control.version))?;
    let release = newest.control.needed.iter().find_map(|one| one.name.strip_prefix(IMAGE))?;
    Some(series(release))
}

/// Returns the release of a package of this flavour; `None` for packages of others.
pub(super) fn release<'a>(package: &'a str, flavour: &str) -> Option<&'a str> {
    let release = package.strip_prefix(IMAGE)?;
    let number = release.strip_suffix(flavour)?.strip_suffix('-')?;
    let begins_with_digit = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    // `6.1.0-56-cloud-amd64` is not of the flavour `amd64`.
    number.split('-').all(begins_with_digit).then_some(release)
}

/// Returns the series of a release: its first two numbers.
pub(super) fn series(release: &str) -> String {
    let end = |c: char| !c.is_ascii_digit() && c != '.';
    let number = release.split(end).next().unwrap_or_default();
    number.split('.').take(2).collect::<Vec<_>>().join(".")
}

/// Selects kernels of the requested series (all if there is no request) that match a pattern (if
/// there is one), and of each series those that `take` selects among the complete ones.
///
/// If a series has no complete kernel, `take` selects among the incomplete ones.
pub(super) fn choose<'a>(
    offers: &'a [Offer],
    requested: &[String],
    patterns: &[String],
    take: Selection,
) -> Vec<&'a Offer> {
    let of_series = |offer: &&Offer| requested.is_empty() || requested.contains(&offer.series);
    let matching = |offer: &&Offer| {
        patterns.is_empty() || patterns.iter().any(|pattern| matches(&offer.release, pattern))
    };
    let chosen: Vec<&Offer> = offers.iter().filter(of_series).filter(matching).collect();
    let groups = chosen.chunk_by(|left, right| left.series == right.series);
    groups.flat_map(|group| select(group, take)).collect()
}

fn select<'a>(group: &[&'a Offer], take: Selection) -> Vec<&'a Offer> {
    let whole: Vec<&Offer> =
        group.iter().copied().filter(|offer| offer.missing.is_empty()).collect();
    let from: &[&Offer] = if whole.is_empty() { group } else { &whole };
    let (first, last) = (from.first().copied(), from.last().copied());
    match take {
        Selection::All => group.to_vec(),
        Selection::Newest => last.into_iter().collect(),
        Selection::Oldest => first.into_iter().collect(),
        Selection::Ends if from.len() == 1 => first.into_iter().collect(),
        Selection::Ends => first.into_iter().chain(last).collect(),
    }
}

/// True if a release matches a pattern: `*` matches any text, and a pattern without it matches the
/// release itself or its beginning up to the end of a number.
fn matches(release: &str, pattern: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else {
        let rest = release.strip_prefix(pattern);
        return rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
    };
    let Some(release) = release.strip_prefix(begin) else { return false };
    let mut ends = release.char_indices().map(|(at, _)| at).chain([release.len()]);
    rest.is_empty() || ends.any(|at| matches_end(&release[at..], rest))
}

/// Matches the text after a `*`: the pattern has to match to the end.
fn matches_end(release: &str, pattern: &str) -> bool {
    match pattern.contains('*') {
        true => matches(release, pattern),
        false => release == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const FLAVOUR: &str = "cloud-amd64";

    fn of_fixtures() -> Vec<Offer> {
        let [show, madison] = [include_str!("fixtures/show"), include_str!("fixtures/madison")];
        offers(&parse::packages(show, madison), FLAVOUR)
    }

    /// Kernels that consist of one package, with their versions.
    fn of_versions(versions: &[(&str, &str)]) -> Vec<Offer> {
        let paragraphs = versions.iter().map(|(release, version)| {
            format!("Package: linux-image-{release}-{FLAVOUR}\nVersion: {version}\nSize: 7\n")
        });
        let show = paragraphs.collect::<Vec<_>>().join("\n");
        offers(&parse::packages(&show, ""), FLAVOUR)
    }

    fn releases(offers: &[&Offer]) -> Vec<String> {
        offers.iter().map(|offer| offer.release.replace("-cloud-amd64", "")).collect()
    }

    #[test]
    fn offer_lists_packages_that_are_gone() {
        let offers = of_fixtures();
        let gone = offers.iter().find(|offer| offer.series == "6.19").unwrap();
        assert_eq!(gone.missing, ["linux-modules-6.19.14+deb13-cloud-amd64=6.19.14-1~bpo13+1"]);
        let rc = offers.iter().find(|offer| offer.release == "7.3-cloud-amd64").unwrap();
        assert_eq!((rc.series.as_str(), rc.missing.len()), ("7.3", 2));
        let old = offers.iter().find(|offer| offer.series == "6.12").unwrap();
        assert_eq!((old.bytes, old.missing.len(), old.packages.len()), (33_649_136, 0, 1));
    }

    #[test]
    fn releases_of_other_flavours_and_meta_packages_are_left_out() {
        let of = |name| release(name, "amd64");
        assert_eq!(of("linux-image-6.1.0-56-amd64"), Some("6.1.0-56-amd64"));
        assert_eq!(of("linux-image-6.1.0-0.deb11.52-amd64"), Some("6.1.0-0.deb11.52-amd64"));
        assert_eq!(of("linux-image-6.1.0-56-cloud-amd64"), None);
        assert_eq!(of("linux-image-6.1.0-56-amd64-unsigned"), None);
        assert_eq!(of("linux-image-amd64"), None);
        let show = "Package: linux-image-6.12-cloud-amd64\nVersion: 6.12.117-1\n\
                    Depends: linux-image-6.12.117-cloud-amd64 (= 6.12.117-1)\n";
        assert_eq!(offers(&parse::packages(show, ""), FLAVOUR), []);
        assert_eq!(
            (series("6.12.43+deb12-cloud-amd64"), series("7.3-cloud-amd64")),
            ("6.12".into(), "7.3".into())
        );
    }

    #[test]
    fn series_of_meta_follows_the_newest_meta_package() {
        let show = "Package: linux-image-cloud-amd64\nVersion: 6.1.192-2\n\
                    Depends: linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)\n\n\
                    Package: linux-image-cloud-amd64\nVersion: 6.1.170-3\n\
                    Depends: linux-image-6.0.0-47-cloud-amd64 (= 6.1.170-3)\n";
        let packages = parse::packages(show, "");
        assert_eq!(series_of_meta(&packages, FLAVOUR).as_deref(), Some("6.1"));
        assert_eq!(series_of_meta(&packages, "rt-amd64"), None);
    }

    #[test]
    fn choose_orders_each_series_by_version() {
        let offers = of_versions(&[
            ("6.12.100+deb12", "6.12.100-1~deb12u1"),
            ("6.12.9+deb13", "6.12.9-1"),
            ("6.12.100+deb13", "6.12.100-1"),
            ("6.1.0-9", "6.1.27-1"),
        ]);
        let chosen = |take| releases(&choose(&offers, &[], &[], take));
        assert_eq!(chosen(Selection::Newest), ["6.1.0-9", "6.12.100+deb13"]);
        assert_eq!(chosen(Selection::Ends), ["6.1.0-9", "6.12.9+deb13", "6.12.100+deb13"]);
        assert_eq!(chosen(Selection::Oldest), ["6.1.0-9", "6.12.9+deb13"]);
        assert_eq!(chosen(Selection::All).len(), 4);
        let of_61 = choose(&offers, &["6.1".to_owned()], &[], Selection::All);
        assert_eq!(releases(&of_61), ["6.1.0-9"]);
    }

    #[test]
    fn choose_prefers_complete_kernels() {
        let offers = of_fixtures();
        let chosen = choose(&offers, &["6.19".to_owned()], &[], Selection::Newest);
        assert_eq!(releases(&chosen), ["6.19.14+deb13"]);
        let mut whole = of_versions(&[("6.19.6", "6.19.6-1")]);
        whole.extend(offers.iter().filter(|offer| offer.series == "6.19").cloned());
        assert_eq!(releases(&choose(&whole, &[], &[], Selection::Newest)), ["6.19.6"]);
    }

    #[test]
    fn patterns_match_releases() {
        for (pattern, is_match) in [
            ("6.12.43", true),
            ("6.12.4", false),
            ("6.12.43+deb12-cloud-amd64", true),
            ("6.12.*", true),
            ("*deb12*", true),
            ("*-amd64", true),
            ("6.*-arm64", false),
            ("7*", false),
        ] {
            assert_eq!(matches("6.12.43+deb12-cloud-amd64", pattern), is_match, "{pattern}");
        }
    }
}
