//! Short names: the parts in which paths, packages or labels differ.

use std::collections::BTreeSet;

/// Characters that separate words of a name. Versions contain full stops, so these do not separate
/// words.
const SEPARATORS: [char; 6] = ['/', '-', '_', ' ', ',', ':'];

/// Returns for each name the shortest part that distinguishes it from the others: without the words
/// with which all begin and end, and for paths only the one folder in which they differ, if there
/// is one. Equal names have equal parts, different names different ones; a single name is
/// unchanged.
pub fn short_names<T: AsRef<str>>(names: &[T]) -> Vec<String> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    let distinct: Vec<&str> = distinct.into_iter().collect();
    if distinct.len() < 2 {
        return names.into_iter().map(str::to_owned).collect();
    }
    let begin = common_begin(&distinct);
    let end = common_end(&distinct, begin);
    let parts: Vec<&str> = distinct.iter().map(|name| &name[begin..name.len() - end]).collect();
    let folder = |pick: fn(&str) -> Option<&str>| -> Option<Vec<&str>> {
        let folders: Vec<&str> = parts.iter().map(|part| pick(part)).collect::<Option<_>>()?;
        // A number alone is not a name.
        let are_names = folders.iter().all(|folder| folder.contains(char::is_alphabetic));
        let are_distinct = folders.iter().collect::<BTreeSet<_>>().len() == folders.len();
        (are_names && are_distinct).then_some(folders)
    };
    let shorter =
        [folder(|part| part.split('/').next_back()), folder(|part| part.split('/').next())];
    let length = |parts: &Vec<&str>| parts.iter().map(|part| part.len()).sum::<usize>();
    let parts = shorter.into_iter().flatten().min_by_key(length).unwrap_or(parts);
    let short = |name: &str| distinct.binary_search(&name).map_or(name, |at| parts[at]).to_owned();
    names.into_iter().map(short).collect()
}

/// Number of bytes in the words with which all names begin, at least one word less than the
/// shortest name. A number alone, such as a build number, keeps the word before it.
fn common_begin(names: &[&str]) -> usize {
    let begins = |at: &usize| names.iter().all(|name| name.get(..*at) == names[0].get(..*at));
    let ends: Vec<usize> =
        names[0].match_indices(SEPARATORS).map(|(at, separator)| at + separator.len()).collect();
    let is_part = |at: &usize| names.iter().all(|name| is_word(name.get(*at..).unwrap_or("")));
    let common = ends.iter().copied().take_while(begins).filter(is_part);
    let common: Vec<usize> = common.collect();
    let Some((last, before)) = common.split_last() else { return 0 };
    let is_number = |name: &&str| {
        let word = name[*last..].split(SEPARATORS).next().unwrap_or("");
        word.bytes().all(|byte| byte.is_ascii_digit())
    };
    match names.iter().any(is_number) && !names[0][..*last].ends_with('/') {
        true => before.last().copied().unwrap_or(0),
        false => *last,
    }
}

/// Number of bytes in the words with which all names end, except for the first `begin` bytes and
/// one word.
fn common_end(names: &[&str], begin: usize) -> usize {
    let first = names[0];
    let ends = |from: &usize| {
        let end = &first[*from..];
        let is_left = |name: &&str| {
            let rest = name.len().checked_sub(end.len()).filter(|rest| *rest > begin);
            rest.is_some_and(|rest| is_word(&name[begin..rest]))
        };
        names.iter().all(|name| name.ends_with(end)) && names.iter().all(is_left)
    };
    let from = first[begin..].match_indices(SEPARATORS).map(|(at, _)| begin + at).find(ends);
    from.map_or(0, |from| first.len() - from)
}

/// Returns true for a text that is usable as a name.
fn is_word(text: &str) -> bool {
    text.starts_with(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_names_keep_the_differing_words() {
        for (names, short) in [
            (
                [
                    "results/a/fbsd16-n311215/run.sqlite",
                    "results/a/fbsd16-n311215.D58513/run.sqlite",
                ],
                ["n311215", "n311215.D58513"],
            ),
            (
                ["linux-image-6.1.0-cloud-amd64", "linux-image-6.12.43-cloud-amd64"],
                ["6.1.0", "6.12.43"],
            ),
            (
                ["linux-image-6.1.0-56-amd64", "linux-image-6.1.0-57-amd64"],
                ["6.1.0-56", "6.1.0-57"],
            ),
            (["results/1", "results/2"], ["1", "2"]),
            (["old/results/demo", "new/results/demo"], ["old", "new"]),
            (["results/demo", "old/results/demo"], ["results", "old"]),
            (["a", "a-b"], ["a", "a-b"]),
            (["before.pps", "after.pps"], ["before.pps", "after.pps"]),
            (["x/stateless, inet", "x/stateful, inet"], ["stateless", "stateful"]),
        ] {
            assert_eq!(short_names(&names), short, "{names:?}");
        }
    }

    #[test]
    fn short_names_use_one_folder_if_sufficient() {
        let names = ["r/a/x/run.sqlite", "r/b/x/run.sqlite", "r/c/y/run.sqlite"];
        assert_eq!(short_names(&names), ["a", "b", "c"]);
        let names = ["r/a/x/run.sqlite", "r/a/y/run.sqlite", "r/b/x/run.sqlite"];
        assert_eq!(short_names(&names), ["a/x", "a/y", "b/x"]);
        assert_eq!(short_names(&["demo", "night/1", "night/2"]), ["demo", "night/1", "night/2"]);
    }

    #[test]
    fn short_names_keep_single_and_equal_names() {
        assert_eq!(short_names(&["a/b/c"]), ["a/b/c"]);
        assert_eq!(short_names(&["a/b", "a/b"]), ["a/b", "a/b"]);
        assert_eq!(short_names::<&str>(&[]), [] as [&str; 0]);
    }

    fn names() -> impl Strategy<Value = Vec<String>> {
        let word = "[a-c0-2.é]{1,3}";
        let name = prop::collection::vec((word, "[/_, :-]{1,2}"), 1..5).prop_map(|words| {
            let parts: Vec<String> = words.into_iter().map(|(word, end)| word + &end).collect();
            parts.concat().trim_end_matches(SEPARATORS).to_owned()
        });
        prop::collection::vec(name, 0..7)
    }

    proptest! {
        #[test]
        fn short_names_are_distinct_like_names(names in names()) {
            let short = short_names(&names);
            prop_assert_eq!(short.len(), names.len());
            for (name, part) in names.iter().zip(&short) {
                prop_assert!(!part.is_empty() && name.contains(part.as_str()), "{part} of {name}");
                for (other, of_other) in names.iter().zip(&short) {
                    prop_assert_eq!(name == other, part == of_other, "{} {}", name, other);
                }
            }
        }

        #[test]
        fn short_names_are_independent_of_order(mut names in names()) {
            let short = short_names(&names);
            names.reverse();
            let reversed: Vec<String> = short.into_iter().rev().collect();
            prop_assert_eq!(short_names(&names), reversed);
        }
    }
}
