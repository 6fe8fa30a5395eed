//! Short names that distinguish the kernels of one table.

use super::state::State;
use std::collections::BTreeSet;

/// Separators at which names are cut.
const SEPARATORS: [char; 3] = ['-', '+', '~'];

/// A name for each kernel in each state: the version (`6.12.117`), else the release without the
/// ending that all have in common, else the file. After a change, the name also contains the
/// program that the change runs (`6.12.117 nft`), or the number of the change if several run the
/// same program.
pub(super) fn labels<'a>(states: &'a [State]) -> Vec<String> {
    let kernels: BTreeSet<(&str, &str)> = states.iter().map(kernel).collect();
    let kernels: Vec<(&str, &str)> = kernels.into_iter().collect();
    let names = short_names(&kernels);
    let programs = programs(states);
    let short = |one: &'a State| {
        let at = kernels.iter().position(|other| *other == kernel(one)).unwrap_or(0);
        names[at]
    };
    let mut used = BTreeSet::new();
    let mut name = |one: &'a State| {
        let alike =
            states.iter().filter(|other| other.change.is_none() && short(other) == short(one));
        // The name of its file, marked if that is the same.
        let name = if alike.count() > 1 { one.file.clone() } else { short(one).to_owned() };
        let again = (2..).map(|number| match number {
            2 => format!("{name} again"),
            _ => format!("{name} again {}", number - 1),
        });
        let names = std::iter::once(name.clone()).chain(again);
        let free = names.into_iter().find(|name| !used.contains(name)).unwrap_or_default();
        used.insert(free.clone());
        free
    };
    let (mut unchanged, mut changes) = (String::new(), 0);
    let mut label = |one: &'a State| {
        if one.change.is_none() {
            (unchanged, changes) = (name(one), 0);
            return unchanged.clone();
        }
        changes += 1;
        format!("{unchanged} {}", programs[changes - 1])
    };
    states.iter().map(&mut label).collect()
}

/// A name for each release with its build: the version, else the release without the ending that all
/// have in common, else the release.
pub(in crate::command) fn short_names<'a>(kernels: &[(&'a str, &'a str)]) -> Vec<&'a str> {
    let releases: Vec<&str> = kernels.iter().map(|(release, _)| *release).collect();
    let version = |(release, build): &(&'a str, &'a str)| version(build).unwrap_or(release);
    let versions: Vec<&str> = kernels.iter().map(version).collect();
    let short = versions.iter().map(|version| upstream(version)).collect();
    let are_distinct =
        |names: &Vec<&str>| names.iter().collect::<BTreeSet<_>>().len() == kernels.len();
    let names = [short, without_common_end(&versions)].into_iter().find(are_distinct);
    names.unwrap_or(releases)
}

/// A short name for each change: its first word, or its number if first words are alike.
fn programs(states: &[State]) -> Vec<String> {
    let of_first = states.iter().skip(1).map_while(|state| state.change.as_deref());
    let words: Vec<&str> =
        of_first.map(|change| change.split_whitespace().next().unwrap_or("change")).collect();
    let are_distinct = words.iter().collect::<BTreeSet<_>>().len() == words.len();
    let word = |(at, word): (usize, &&str)| match are_distinct {
        true => (*word).to_owned(),
        false => format!("change {}", at + 1),
    };
    words.iter().enumerate().map(word).collect()
}

/// Release and build of a kernel.
fn kernel(state: &State) -> (&str, &str) {
    (&state.release, &state.build)
}

/// The version of a distribution's package in `uname -v`: `6.12.117-1` of `#1 SMP
/// PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-09-30)`. `None` if it contains none.
fn version(build: &str) -> Option<&str> {
    let words = build.split_ascii_whitespace();
    let begins = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    words.skip_while(|word| !word.starts_with(char::is_alphabetic)).find(begins)
}

/// A version without its packaging: `6.12.117` of `6.12.117-1~bpo12+1`.
fn upstream(version: &str) -> &str {
    version.split(SEPARATORS).next().unwrap_or(version)
}

/// Names without the ending that all have in common, cut at a separator.
fn without_common_end<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let Some((first, others)) = names.split_first().filter(|(_, others)| !others.is_empty()) else {
        return names.to_vec();
    };
    let ends = first.match_indices(SEPARATORS).map(|(at, _)| &first[at..]);
    let common = ends.into_iter().find(|end| others.iter().all(|name| name.ends_with(end)));
    let common = common.map_or(0, str::len);
    names.iter().map(|name| &name[..name.len() - common]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::state;
    use super::*;

    fn of(kernels: &[(&str, &str)]) -> Vec<String> {
        let kernels = kernels.iter().map(|(release, build)| State {
            build: (*build).to_owned(),
            ..state(release, 1000.0, false)
        });
        labels(&kernels.collect::<Vec<_>>())
    }

    #[test]
    fn labels_are_versions_if_builds_name_them() {
        let debian = [
            ("6.1.0-56-cloud-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-09-01)"),
            (
                "7.3.4+deb13-cloud-amd64",
                "#1 SMP PREEMPT_DYNAMIC Debian 7.3.4-1~bpo13+1 (2026-11-01)",
            ),
        ];
        assert_eq!(of(&debian), ["6.1.192", "7.3.4"]);
    }

    #[test]
    fn labels_of_one_version_keep_what_differs() {
        let two = [
            ("6.1.0-1-amd64", "#1 SMP Debian 6.1.4-1 (2026)"),
            ("6.1.0-2-amd64", "#1 SMP Debian 6.1.4-2 (2026)"),
        ];
        assert_eq!(of(&two), ["6.1.4-1", "6.1.4-2"]);
        let self_built =
            [("6.1.0-old-amd64", "#1 SMP Mon Jan 1"), ("6.1.0-new-amd64", "#2 SMP Mon Jan 1")];
        assert_eq!(of(&self_built), ["6.1.0-old", "6.1.0-new"]);
    }

    #[test]
    fn labels_name_changes_by_their_programs() {
        let plain = || state("6.1", 1000.0, false);
        let changed = |change: &str| State { change: Some(change.into()), ..plain() };
        let states = [plain(), changed("nft -f x"), changed("sysctl -w a=1")];
        assert_eq!(labels(&states), ["6.1", "6.1 nft", "6.1 sysctl"]);
        let states = [plain(), changed("sysctl -w b=1"), changed("sysctl -w a=1")];
        assert_eq!(labels(&states), ["6.1", "6.1 change 1", "6.1 change 2"]);
    }

    #[test]
    fn labels_of_one_kernel_given_twice_differ() {
        let twice = ["a.deb", "b.deb"]
            .map(|file| State { file: file.into(), ..state("6.1", 1000.0, false) });
        assert_eq!(labels(&twice), ["a.deb", "b.deb"]);
        let same = [state("6.1", 1000.0, false), state("6.1", 1000.0, false)];
        assert_eq!(labels(&same), ["k", "k again"]);
        let changed = || State { change: Some("nft -f x".into()), ..state("6.1", 1000.0, false) };
        let plain = || state("6.1", 1000.0, false);
        let thrice = [plain(), changed(), plain(), changed(), plain(), changed()];
        assert_eq!(
            labels(&thrice),
            ["k", "k nft", "k again", "k again nft", "k again 2", "k again 2 nft"]
        );
    }

    #[test]
    fn labels_of_builds_with_one_release_are_their_files() {
        let built = |file: &str, build: &str| State {
            file: file.into(),
            build: build.into(),
            ..state("6.12.0", 1000.0, false)
        };
        let two =
            [built("linux-before", "#1 SMP Mon Jan 1"), built("linux-after", "#2 SMP Tue Jan 2")];
        assert_eq!(labels(&two), ["linux-before", "linux-after"]);
    }
}
