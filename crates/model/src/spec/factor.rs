//! Factors and their levels.

use super::elsewhere;
use super::keys::setting::Setting;
use super::keys::value::{Node, Reader, found, is_sysctl_name, plain_number, scalar_text};
use super::keys::{self, Key, Vary};
use super::kind::Kind;
use super::section::Section;
use super::{Spec, keys::setting};
use crate::candidates::is_template;
use crate::diagnostic::Diagnostic;
use std::ops::Range;
use toml::Spanned;
use toml::de::DeTable;

/// A factor in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorSpec {
    /// Its name.
    pub name: Spanned<String>,
    /// Its levels.
    pub levels: Vec<LevelSpec>,
    /// True if a level could not be read, so a label that is not found may still be valid.
    pub incomplete: bool,
}

/// A level in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelSpec {
    /// Its label.
    pub label: Spanned<String>,
    /// Value if it is a plain number.
    pub number: Option<f64>,
    /// Settings of the level.
    pub settings: Vec<Spanned<Setting>>,
    /// The revision that it is a build of.
    pub build_of: Option<Spanned<String>>,
    /// Its place in the file.
    pub span: Range<usize>,
}

/// Meaning of a level that is not a table.
enum LevelMeaning {
    /// A value of this setting.
    Setting(&'static Key),
    /// A value of the sysctl that the factor is named after.
    Sysctl,
    /// None: the factor has a custom name, its levels are bundles.
    Bundle,
}

impl Reader<'_> {
    pub(super) fn factors(&mut self, top: &Section, spec: &mut Spec) {
        let Some(factors) = self.tables(top, &keys::FACTOR) else {
            spec.factors_incomplete = true;
            return;
        };
        for section in factors {
            match section.and_then(|section| self.factor(&section)) {
                Some(factor) => spec.factors.push(factor),
                None => spec.factors_incomplete = true,
            }
        }
    }

    fn factor(&mut self, section: &Section) -> Option<FactorSpec> {
        let name = match section.get("name") {
            Some((key, node)) => self.factor_name(key, node),
            None => self.fault(
                Diagnostic::new(section.span(), "a factor without name")
                    .help("write name = \"queues\", or the name of another setting"),
            ),
        };
        let Some((levels_key, levels)) = section.get("levels") else {
            let fault = Diagnostic::new(section.span(), "a factor without levels")
                .help("write levels = [...], the values to be compared");
            return self.fault(fault);
        };
        let Some(list) = levels.get_ref().as_array() else {
            return self.wrong(levels_key, levels);
        };
        if list.is_empty() {
            return self.fault(
                Diagnostic::new(levels.span(), "a factor needs at least one level")
                    .label("this list is empty"),
            );
        }
        let name = name?;
        let mut factor = FactorSpec { name, levels: Vec::new(), incomplete: false };
        for node in list {
            match self.level(&factor.name, node) {
                Some(level) => factor.levels.push(level),
                None => factor.incomplete = true,
            }
        }
        Some(factor)
    }

    fn factor_name(&mut self, key: &Key, node: &Node) -> Option<Spanned<String>> {
        let name = self.text(key, node)?;
        let span = node.span();
        // `kind` is the device's, which may be varied; the testbed's may not.
        let fixed = keys::SECTIONS.iter().find(|section| {
            matches!(section.path, "testbed" | "vm" | "dut" | "traffic")
                && setting(&name).is_none()
                && section.key(&name).is_some_and(|key| key.vary == Vary::Never)
        });
        if let Some(section) = fixed {
            let message = format!("`{name}` {} can't be varied", section.place());
            return self.fault(
                Diagnostic::new(span, message)
                    .help("samples of different kinds are never compared: write two experiments"),
            );
        }
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)) {
            return self.fault(
                Diagnostic::new(span, format!("`{name}` can't be the name of a factor"))
                    .help("use letters, digits, `_`, `-` and `.`"),
            );
        }
        Some(Spanned::new(span, name))
    }

    fn level(&mut self, factor: &Spanned<String>, node: &Node) -> Option<LevelSpec> {
        let name = factor.get_ref().as_str();
        let meaning = match setting(name) {
            Some(key) => LevelMeaning::Setting(key),
            None if is_sysctl_name(name) => LevelMeaning::Sysctl,
            None => LevelMeaning::Bundle,
        };
        if let Some(table) = node.get_ref().as_table() {
            return match meaning {
                LevelMeaning::Setting(key) if is_flows(key, table) => self.setting_level(key, node),
                _ => self.bundle(factor, node, table),
            };
        }
        match meaning {
            LevelMeaning::Setting(key) => self.setting_level(key, node),
            LevelMeaning::Sysctl => {
                let value = self.sysctl_value(name, node)?;
                let label = Spanned::new(node.span(), value.clone());
                let setting = Setting::sysctl(name.to_owned(), value);
                let settings: Vec<_> =
                    setting.map(|setting| Spanned::new(node.span(), setting)).into_iter().collect();
                let (number, span) = (plain_number(node), node.span());
                Some(LevelSpec { label, number, settings, build_of: None, span })
            }
            // Once per factor is enough: the name is wrong, not each level.
            LevelMeaning::Bundle
                if self.faults.last().is_some_and(|f| f.points_to(&factor.span())) =>
            {
                None
            }
            LevelMeaning::Bundle => {
                let names: Vec<&str> = keys::settings().map(|key| key.name).collect();
                let fault = Diagnostic::new(
                    node.span(),
                    format!("`{name}` is no setting, so each of its levels must be a table"),
                )
                .label(format!("this is {}", found(node)))
                .context(factor.span(), "the factor");
                let near = crate::suggest::nearest(name, names);
                let near = near.map(|near| format!("did you mean the setting `{near}`?"));
                let help = elsewhere::help(name).map(str::to_owned).or(near);
                let labelled = || "write { label = \"...\", and what it sets }".to_owned();
                self.fault(fault.help(help.unwrap_or_else(labelled)))
            }
        }
    }

    /// Reads a level that is a value of the setting that the factor is named after.
    fn setting_level(&mut self, key: &'static Key, node: &Node) -> Option<LevelSpec> {
        let mut settings = Vec::new();
        let faults = self.faults.len();
        self.setting(key, node, &mut settings);
        if self.faults.len() > faults {
            return None;
        }
        let (label, number) = match settings.first().map(Spanned::get_ref) {
            // Their number, which comes first.
            Some(setting) if key.kind == Kind::Flows => {
                let count = setting.value().split(' ').next().unwrap_or_default().to_owned();
                let number = count.parse().ok();
                (count, number)
            }
            // The last directory of the path: its own name.
            Some(setting) if key.kind == Kind::Directory => {
                (setting.value().rsplit('/').next().unwrap_or_default().to_owned(), None)
            }
            Some(setting) if node.get_ref().is_array() => (setting.value(), None),
            _ => (scalar_text(node).unwrap_or_default(), plain_number(node)),
        };
        let label = if label.is_empty() { "off".to_owned() } else { label };
        let label = Spanned::new(node.span(), label);
        Some(LevelSpec { label, number, settings, build_of: None, span: node.span() })
    }

    /// Reads a level that bundles settings under a label.
    fn bundle(
        &mut self,
        factor: &Spanned<String>,
        node: &Node,
        table: &DeTable,
    ) -> Option<LevelSpec> {
        let faults = self.faults.len();
        let section = self.section(&keys::LEVEL, table, node.span());
        let label = match section.get("label") {
            Some((key, node)) => self.text(key, node).map(|label| Spanned::new(node.span(), label)),
            None => self.fault(
                Diagnostic::new(
                    node.span(),
                    format!("a level of `{}` without label", factor.get_ref()),
                )
                .help("write { label = \"...\", ... }: the label stands for it in reports"),
            ),
        };
        if let Some(label) = label.as_ref().filter(|label| is_template(label.get_ref())) {
            let fault = Diagnostic::new(label.span(), "this level stands for many candidates");
            return self.fault(fault.help(
                "`fwdlab bisect` makes a level of each: of the commits of --repo, or of the \
                     files of --candidates",
            ));
        }
        let build_of = section
            .get("build_of")
            .and_then(|(key, node)| Some(Spanned::new(node.span(), self.text(key, node)?)));
        let mut settings = Vec::new();
        for key in keys::settings() {
            if let Some(node) = table.get(key.name) {
                self.setting(key, node, &mut settings);
            }
        }
        if self.faults.len() > faults {
            return None;
        }
        Some(LevelSpec { label: label?, number: None, settings, build_of, span: node.span() })
    }

    /// Reads `frame_size = [64, 128]` of `[traffic]`, or `overlay` of `[dut]`: short forms of a
    /// factor.
    pub(super) fn sweep(&mut self, key: &'static Key, node: &Node) -> FactorSpec {
        let list = node.get_ref().as_array().into_iter().flatten();
        let mut levels = Vec::new();
        let mut incomplete = false;
        for node in list {
            match self.setting_level(key, node) {
                Some(level) => levels.push(level),
                None => incomplete = true,
            }
        }
        if levels.is_empty() && !incomplete {
            self.faults.push(
                Diagnostic::new(node.span(), format!("`{}` needs at least one value", key.name))
                    .label("this list is empty"),
            );
            incomplete = true;
        }
        FactorSpec { name: Spanned::new(node.span(), key.name.to_owned()), levels, incomplete }
    }
}

/// True for a table that is itself a value of `flows`.
fn is_flows(key: &Key, table: &DeTable) -> bool {
    key.name == "flows" && keys::FLOWS.keys.iter().any(|key| table.contains_key(key.name))
}
