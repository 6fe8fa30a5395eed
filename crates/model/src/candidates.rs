//! Generated levels of a bisection: one level of the file is the template of all, and each
//! candidate (a commit, a kernel, a program) fills its placeholders.
//!
//! The file's text is changed as in [`crate::assign`], so the file stored with the results is the
//! one that was used.

use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Values for the placeholders of a level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// `{name}`: name in reports.
    pub name: String,
    /// `{build}`: its file, or its build directory.
    pub build: String,
    /// `{commit}`: its full name in git; empty if it is not a commit.
    pub commit: String,
}

impl Candidate {
    fn values(&self) -> [(&str, &str); 3] {
        [("{name}", &self.name), ("{build}", &self.build), ("{commit}", &self.commit)]
    }
}

/// True for text with a placeholder.
pub fn is_template(text: &str) -> bool {
    Candidate::default().values().iter().any(|(placeholder, _)| text.contains(placeholder))
}

/// Reason why a file has no place for candidates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// No factor has a template.
    #[error(
        "no level of the experiment stands for the candidates\n  next step: write one that says \
         what a candidate sets, e.g.\n  [[factor]]\n  name = \"commit\"\n  levels = [{{ label = \
         \"{{name}}\", kind = \"command\", start = [\"{{build}}/router\", \"{{ingress}}\", \
         \"{{egress}}\"] }}]"
    )]
    NoTemplate,
    /// Several factors have a template.
    #[error(
        "the factors {0} both have levels with placeholders: candidates are levels of one factor"
    )]
    Several(String),
    /// The factor has other levels in addition to the template.
    #[error(
        "the factor {0} has levels beside the one with placeholders: the candidates are all \
         levels that it can have"
    )]
    Others(String),
    /// Its notation cannot be repeated.
    #[error(
        "the level of {0} can't be repeated as it is written\n  next step: write it between \
         brackets, levels = [{{ label = \"{{name}}\", ... }}]"
    )]
    NotInline(String),
    /// A name that quotes would not preserve.
    #[error("`{0}` has a quote, a backslash or a control character in it: rename it")]
    Name(String),
    /// No placeholder distinguishes the candidates, or no setting uses them.
    #[error("the level of {0} has no {1}: candidates would all be the same")]
    Lacks(String, &'static str),
}

/// Returns `text` with a level for each candidate, in their order, and the name of their factor.
/// Text that is not TOML is returned unchanged: its reader will report the fault.
///
/// # Errors
/// See [`ExpandError`].
pub fn expand(text: &str, candidates: &[Candidate]) -> Result<(String, String), ExpandError> {
    let Ok(root) = DeTable::parse(text) else { return Ok((text.to_owned(), String::new())) };
    let Template { factor, level, list } = template(root.get_ref(), text)?;
    let written = &text[level];
    if !written.contains("{name}") && written.starts_with('{') {
        return Err(ExpandError::Lacks(factor, "{name} in its label"));
    }
    if !written.contains("{build}") && !written.contains("{commit}") {
        return Err(ExpandError::Lacks(factor, "{build} and no {commit}"));
    }
    let mut levels = String::new();
    for candidate in candidates {
        let mut level = written.to_owned();
        for (placeholder, value) in candidate.values() {
            if value.contains(|c: char| matches!(c, '"' | '\'' | '\\') || c.is_control()) {
                return Err(ExpandError::Name(value.to_owned()));
            }
            level = level.replace(placeholder, value);
        }
        levels += &format!("  {level},\n");
    }
    let expanded = [&text[..list.start], "[\n", &levels, "]", &text[list.end..]].concat();
    Ok((expanded, factor))
}

struct Template {
    factor: String,
    level: Range<usize>,
    /// The list that contains the level.
    list: Range<usize>,
}

fn template(root: &DeTable, text: &str) -> Result<Template, ExpandError> {
    let factors = root.get("factor").and_then(|factors| factors.get_ref().as_array());
    let mut found: Vec<Template> = Vec::new();
    for factor in factors.into_iter().flatten().filter_map(|factor| factor.get_ref().as_table()) {
        let name = factor.get("name").and_then(|name| name.get_ref().as_str());
        let name = name.unwrap_or("without name").to_owned();
        let Some(list) = factor.get("levels") else { continue };
        let levels = list.get_ref().as_array().into_iter().flatten();
        let levels: Vec<_> = levels.collect();
        let Some(level) = levels.iter().find(|level| holds_placeholder(level.get_ref())) else {
            continue;
        };
        if levels.len() > 1 {
            return Err(ExpandError::Others(name));
        }
        if !text[list.span()].starts_with('[') || text[list.span()].starts_with("[[") {
            return Err(ExpandError::NotInline(name));
        }
        found.push(Template { factor: name, level: level.span(), list: list.span() });
    }
    match found.len() {
        0 => Err(ExpandError::NoTemplate),
        1 => Ok(found.remove(0)),
        _ => Err(ExpandError::Several(format!("{} and {}", found[0].factor, found[1].factor))),
    }
}

fn holds_placeholder(value: &DeValue) -> bool {
    match value {
        DeValue::String(text) => is_template(text),
        DeValue::Array(list) => list.iter().any(|item| holds_placeholder(item.get_ref())),
        DeValue::Table(table) => table.values().any(|value| holds_placeholder(value.get_ref())),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "version = 1\n[testbed]\nkind = \"sim\"\n[[factor]]\nname = \"commit\"\n\
                        levels = [{ label = \"{name}\", setup = [\"use {build}/a {commit}\"] }] # all\n\
                        [design]\nblocks = 2\n";

    fn candidates(names: &[&str]) -> Vec<Candidate> {
        let of = |name: &&str| Candidate {
            name: (*name).to_owned(),
            build: format!("/b/{name}"),
            commit: format!("{name}{name}"),
        };
        names.iter().map(of).collect()
    }

    fn refused(text: &str) -> String {
        expand(text, &candidates(&["a"])).unwrap_err().to_string()
    }

    #[test]
    fn template_level_expands_to_one_level_per_candidate() {
        let (text, factor) = expand(FILE, &candidates(&["a", "b"])).unwrap();
        assert_eq!(factor, "commit");
        let plan = crate::load("x.toml", &text, &|_| Err(String::new()));
        let plan = plan.unwrap_or_else(|faults| panic!("{text}\n{faults}"));
        let labels: Vec<&str> = plan.variants.iter().map(|v| v.label.as_str()).collect();
        assert_eq!(labels, ["a", "b"]);
        assert_eq!(plan.variants[1].settings.dut.hooks.setup, ["use /b/b/a bb"]);
        assert!(text.ends_with("] # all\n[design]\nblocks = 2\n"), "{text}");
        // A level that is the value of a setting.
        let kernels = "[[factor]]\nname = \"kernel\"\nlevels = ['{build}']\n";
        let (text, _) = expand(kernels, &candidates(&["a"])).unwrap();
        assert!(text.contains("[\n  '/b/a',\n]"), "{text}");
    }

    #[test]
    fn files_without_a_place_are_refused_by_name() {
        assert!(refused("version = 1\n").contains("levels = [{ label = \"{name}\""));
        assert!(refused(&FILE.replace("}]", "}, { label = \"b\" }]")).contains("beside"));
        assert!(refused(&FILE.replace("\"{name}\"", "\"x\"")).contains("{name} in its label"));
        let bare = FILE.replace(", setup = [\"use {build}/a {commit}\"]", "");
        assert!(refused(&bare).contains("no {build}"));
        let lines = "[[factor]]\nname = \"c\"\n[[factor.levels]]\nlabel = \"{name}\"\n";
        assert!(refused(lines).contains("between brackets"));
        let both = format!("{FILE}[[factor]]\nname = \"d\"\nlevels = [\"{{build}}\"]\n");
        assert!(refused(&both).contains("commit and d"));
        let odd = Candidate { build: "/a\"b".into(), ..Candidate::default() };
        assert!(expand(FILE, &[odd]).unwrap_err().to_string().contains("quote"));
        assert_eq!(expand("no TOML", &[]).unwrap().0, "no TOML");
    }

    #[test]
    fn unexpanded_template_is_refused() {
        let faults = crate::load("x.toml", FILE, &|_| Err(String::new())).unwrap_err().to_string();
        assert!(faults.contains("stands for many") && faults.contains("fwdlab bisect"), "{faults}");
    }
}
