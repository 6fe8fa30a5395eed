//! Settings of a tree of FreeBSD configuration files.
//!
//! For each variant, a benchmark of the archive keeps the files that were laid over the router's
//! own: tunables, sysctls, rc.conf, firewall rules. This module reads them as settings by place and
//! name ([`Configuration`]). [`changes`] compares two variants, [`one_line`] formats the changes in
//! one line, [`varied`] finds the factor that a family of configurations varies, and [`facts`]
//! extracts facts about the set-up.
//!
//! Comments, blank lines and the order of settings are ignored. Defaults of the operating system
//! are unknown: only settings in the files count.

mod change;
mod factor;
mod facts;
mod rules;

pub use change::{SettingChange, changes, one_line};
pub use factor::varied;
pub use facts::facts;

use fwdlab_model::shell;
use serde::Serialize;
use std::fmt;

/// The settings of one configuration tree, in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Configuration {
    settings: Vec<Setting>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// File or kind of file that sets it.
    pub place: Place,
    /// Its name; empty for a whole file ([`Place::Rules`], [`Place::File`]).
    pub name: String,
    /// Its value, without quotes. For rules, the non-comment lines; for other files, their length
    /// and a hash of the content.
    pub value: String,
}

/// The file or kind of file that contains a setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Place {
    /// A loader tunable: loader.conf(5).
    Tunable,
    /// A sysctl: sysctl.conf(5).
    Sysctl,
    /// A variable of rc.conf(5), from any of its files.
    RcConf,
    /// Firewall rules: path of the file within the tree.
    Rules(String),
    /// A whole file of another kind: its path within the tree.
    File(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Place::Tunable => "loader.conf",
            Place::Sysctl => "sysctl.conf",
            Place::RcConf => "rc.conf",
            Place::Rules(path) | Place::File(path) => path,
        })
    }
}

impl Configuration {
    /// Reads the settings of `files`: path within the tree (`etc/sysctl.conf`) and content. Later
    /// files override earlier ones, in the order in which FreeBSD reads them: `loader.conf` before
    /// `loader.conf.local`, `rc.conf` before `rc.conf.misc` and `rc.conf.local`.
    pub fn read(files: &[(String, &[u8])]) -> Configuration {
        let mut files: Vec<(Place, &str, &[u8])> = files
            .iter()
            .map(|(path, content)| {
                let path = path.trim_start_matches("./").trim_start_matches('/');
                (place(path), path, *content)
            })
            .collect();
        files.sort_by_key(|(place, path, _)| (place.clone(), precedence(path), *path));
        let mut configuration = Configuration::default();
        for (place, _, content) in files {
            configuration.add(place, content);
        }
        configuration
    }

    /// Returns the value of a setting; the name of a whole file is empty.
    pub fn get(&self, place: &Place, name: &str) -> Option<&str> {
        let setting = self.iter().find(|s| s.place == *place && s.name == name)?;
        Some(&setting.value)
    }

    /// Returns the settings in order.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter()
    }

    /// Returns true if no setting exists.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    fn add(&mut self, place: Place, content: &[u8]) {
        let text = String::from_utf8_lossy(content);
        match place {
            Place::Sysctl => {
                for (name, value) in text.lines().filter_map(sysctl) {
                    self.set(Place::Sysctl, name.to_owned(), value.to_owned());
                }
            }
            Place::Tunable => {
                for (name, value) in text.lines().filter_map(tunable) {
                    self.set(Place::Tunable, name.to_owned(), value.to_owned());
                }
            }
            Place::RcConf => {
                let (assignments, _) = shell::assignments(&text);
                for assignment in assignments {
                    let value = words(&assignment.as_written());
                    self.set(Place::RcConf, assignment.name, value);
                }
            }
            Place::Rules(_) => self.set(place, String::new(), rules::lines(&text).join("\n")),
            Place::File(_) => self.set(place, String::new(), digest(content)),
        }
    }

    /// Sets a value; an overridden setting keeps its position.
    fn set(&mut self, place: Place, name: String, value: String) {
        match self.settings.iter_mut().find(|s| s.place == place && s.name == name) {
            Some(setting) => setting.value = value,
            None => self.settings.push(Setting { place, name, value }),
        }
    }
}

/// Returns the kind of the file at `path`.
fn place(path: &str) -> Place {
    let name = file_name(path);
    let is = |base: &str| {
        name == base || name.strip_prefix(base).is_some_and(|rest| rest.starts_with('.'))
    };
    if is("sysctl.conf") {
        Place::Sysctl
    } else if is("loader.conf") || path.contains("loader.conf.d/") {
        Place::Tunable
    } else if is("rc.conf") || path.contains("rc.conf.d/") {
        Place::RcConf
    } else if name.ends_with(".rules") || ["pf.conf", "ipfw.conf", "ipf.conf"].contains(&name) {
        Place::Rules(path.to_owned())
    } else {
        Place::File(path.to_owned())
    }
}

/// Order among files of one kind: later ones override.
fn precedence(path: &str) -> u8 {
    let name = file_name(path);
    if name.ends_with(".local") {
        2
    } else if name.ends_with(".conf") {
        0
    } else {
        1
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Parses `name=value # comment` of sysctl.conf(5).
fn sysctl(line: &str) -> Option<(&str, &str)> {
    let (name, value) = rules::without_comment(line).split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let plain = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
    (!name.is_empty()).then_some((name, plain))
}

/// Parses `name="value"` of loader.conf(5); dots are part of the name.
fn tunable(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let value = match value.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').map_or(quoted, |(value, _)| value),
        None => rules::without_comment(value).split_whitespace().next().unwrap_or(""),
    };
    (!name.is_empty() && !name.starts_with('#')).then_some((name, value))
}

/// Normalises whitespace, which is insignificant in rc.conf.
fn words(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the length and a hash (64-bit FNV-1a) of the content. The hash distinguishes versions of
/// a file; it does not protect against forgery.
fn digest(content: &[u8]) -> String {
    let hash = content.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{} bytes, {hash:016x}", content.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn tree(files: &[(&str, &str)]) -> Configuration {
        let files: Vec<_> =
            files.iter().map(|(path, text)| (path.to_string(), text.as_bytes())).collect();
        Configuration::read(&files)
    }

    #[test]
    fn read_finds_settings_by_place_and_name() {
        let tree = tree(&[
            ("etc/rc.conf", "a=\"x\"\nifconfig_cxl0=\"inet 198.18.0.10/24  -lro\" # lab\n"),
            ("boot/loader.conf.local", "hw.usb.no_pf=\"1\"\t# Disable = nothing\n#x=\"2\"\nb=YES"),
            ("etc/sysctl.conf", "net.inet.ip.redirect = 0 # none\n\n# a=b\nkern.x=\"1\"\n"),
            ("etc/rc.conf.misc", "a=y\n"),
        ]);
        assert_eq!(tree.get(&Place::Tunable, "hw.usb.no_pf"), Some("1"));
        assert_eq!(tree.get(&Place::Tunable, "b"), Some("YES"));
        assert_eq!(tree.get(&Place::Sysctl, "net.inet.ip.redirect"), Some("0"));
        assert_eq!(tree.get(&Place::Sysctl, "kern.x"), Some("1"));
        assert_eq!(tree.get(&Place::RcConf, "a"), Some("y"), "rc.conf.misc comes after rc.conf");
        let ifconfig = tree.get(&Place::RcConf, "ifconfig_cxl0");
        assert_eq!(ifconfig, Some("inet 198.18.0.10/24 -lro"));
        assert_eq!(tree.iter().count(), 6);
    }

    #[test]
    fn place_follows_the_file_name() {
        for (path, expected) in [
            ("boot/loader.conf", Place::Tunable),
            ("boot/loader.conf.d/nic.conf", Place::Tunable),
            ("etc/rc.conf.local", Place::RcConf),
            ("etc/ipf.rules", Place::Rules("etc/ipf.rules".into())),
            ("usr/local/etc/ipsec.conf", Place::File("usr/local/etc/ipsec.conf".into())),
            ("etc/sysctl.config", Place::File("etc/sysctl.config".into())),
        ] {
            assert_eq!(place(path), expected, "{path}");
        }
    }

    #[test]
    fn other_files_differ_by_content() {
        // FNV-1a of "foobar" by its authors' table of test vectors.
        assert_eq!(digest(b"foobar"), "6 bytes, 85944171f73967e8");
        let (one, other) = (tree(&[("a/b", "1")]), tree(&[("./a/b", "2")]));
        assert_ne!(one, other);
        assert_eq!(one, tree(&[("/a/b", "1")]));
    }
}
