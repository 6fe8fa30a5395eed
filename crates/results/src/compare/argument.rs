//! An argument of the command: a file, or `FILE:LABEL` for one of its variants.

use super::error::CompareError;
use std::path::PathBuf;

/// Name of the store within an experiment's directory.
const STORE: &str = "run.sqlite";

/// A parsed argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument {
    /// The file as the user named it; for a directory, its store.
    pub(super) path: PathBuf,
    /// Label of the selected variant. `None` for all variants.
    pub(super) label: Option<String>,
}

impl Argument {
    /// Parses an argument. An existing name is a file name, even if it contains colons; otherwise
    /// the label begins after the first colon that follows an existing name. `-` is standard input.
    pub(super) fn of(text: &str) -> Result<Argument, CompareError> {
        let stdin;
        let text = match text.strip_prefix('-') {
            Some(label) if label.is_empty() || label.starts_with(':') => {
                stdin = format!("/dev/stdin{label}");
                &stdin
            }
            _ => text,
        };
        let heads = text.match_indices(':').map(|(at, _)| (&text[..at], Some(&text[at + 1..])));
        let candidates: Vec<(&str, Option<&str>)> =
            [(text, None)].into_iter().chain(heads).collect();
        for &(path, label) in &candidates {
            if path.is_empty() || !PathBuf::from(path).exists() {
                continue;
            }
            let path = file_of(PathBuf::from(path))?;
            if label.is_some_and(|label| label.trim().is_empty()) {
                let next = "write the label behind the colon, or leave the colon out";
                return Err(CompareError::question(format!("`{text}` names no variant"), next));
            }
            return Ok(Argument { path, label: label.map(str::to_owned) });
        }
        let tried: Vec<String> = candidates
            .iter()
            .filter(|(path, _)| !path.is_empty())
            .map(|(path, _)| format!("`{path}`"))
            .collect();
        let what = match tried.as_slice() {
            [] | [_] => format!("there is no file `{text}`"),
            [all @ .., last] => {
                format!(
                    "there is no file for `{text}`: neither {} nor {last} exists",
                    all.join(", ")
                )
            }
        };
        Err(CompareError::question(
            what,
            "name a file with figures, or a store as FILE or FILE:LABEL",
        ))
    }
}

/// Returns the file itself, or the store in a directory.
fn file_of(path: PathBuf) -> Result<PathBuf, CompareError> {
    if !path.is_dir() {
        return Ok(path);
    }
    let store = path.join(STORE);
    if store.exists() {
        return Ok(store);
    }
    let what = format!("this directory holds no store ({STORE})");
    let next = "name the directory of an experiment, or the files with figures one by one";
    Err(CompareError::input(&path, None, what, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_label_follows_the_first_existing_name() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        std::fs::write(at("a"), "").unwrap();
        std::fs::write(at("a:b"), "").unwrap();
        std::fs::create_dir(at("d")).unwrap();
        std::fs::write(at("d/run.sqlite"), "").unwrap();
        for (text, path, label) in [
            ("a", "a", None),
            ("a:b", "a:b", None),
            ("a:rules:100, inet", "a", Some("rules:100, inet")),
            ("d", "d/run.sqlite", None),
            ("d:1", "d/run.sqlite", Some("1")),
        ] {
            let expected = Argument { path: at(path).into(), label: label.map(str::to_owned) };
            assert_eq!(Argument::of(&at(text)).unwrap(), expected, "{text}");
        }
        let error = |text: &str| Argument::of(&at(text)).unwrap_err().to_string();
        assert!(error("x:y:z").contains("/x` nor `"), "{}", error("x:y:z"));
        assert!(error("x").contains("there is no file"), "{}", error("x"));
        assert!(error("a:").contains("names no variant"), "{}", error("a:"));
        std::fs::create_dir(at("e")).unwrap();
        assert!(error("e").contains("holds no store (run.sqlite)"), "{}", error("e"));
    }
}
