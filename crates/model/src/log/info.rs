//! The `.info` file that netbenches stores next to the logs of a configuration.

use super::fault::LogError;
use super::lines::{NumberedLine, keep, lines, shown, text};
use super::moment::rfc3339;

/// Contents of an `.info` file. Parts that are empty or `none` are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The tested image: its path, or since 2016 its short name.
    pub image: Option<String>,
    /// The configuration: the last part of its path.
    pub configuration: Option<String>,
    /// The configuration's path, unchanged.
    pub configuration_path: Option<String>,
    /// The set of traffic (`PKTGEN`), like `inet6`.
    pub traffic: Option<String>,
    /// The system under test: `uname -a`.
    pub uname: Option<String>,
    /// Start of the first run, unchanged.
    pub started: Option<String>,
    /// End of the last run, unchanged.
    pub ended: Option<String>,
    /// Form of the file.
    pub form: InfoForm,
    /// The first lines of unknown kinds.
    pub unknown: Vec<NumberedLine>,
    /// Number of these lines.
    pub unknown_count: usize,
}

/// The forms of an `.info` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InfoForm {
    /// Assignments of the shell, `CFG="forwarding"`: since 2016.
    Shell,
    /// `CFG: configs//forwarding`, with start and end.
    Text,
    /// As [`InfoForm::Text`] without the end: the runs were aborted.
    TruncatedText,
}

/// Prefixes of lines of known kinds, in the shell's form and in the other.
const NAMES: [&str; 8] =
    ["IMAGE=", "CFG=", "PKTGEN=", "UNAME=", "Image:", "CFG:", "Start time:", "End time:"];

impl Info {
    /// Reads a file.
    ///
    /// # Errors
    /// [`LogError`] for empty input, for binary data, and for text without any line of such a file.
    pub fn parse(bytes: &[u8]) -> Result<Self, LogError> {
        LogError::unless_text(bytes)?;
        let mut info = Self {
            image: None,
            configuration: None,
            configuration_path: None,
            traffic: None,
            uname: None,
            started: None,
            ended: None,
            form: InfoForm::TruncatedText,
            unknown: Vec::new(),
            unknown_count: 0,
        };
        let (mut first, mut known, mut count) = (None, 0, 0);
        for line in lines(bytes) {
            count = line.number;
            if line.bytes.is_empty() {
                continue;
            }
            first = first.or(Some(line.bytes));
            if !line.is_too_long() && info.read(&text(line.bytes), known > 0).is_some() {
                known += 1;
            } else {
                keep(&mut info.unknown, &mut info.unknown_count, line.number, line.bytes);
            }
        }
        if known == 0 {
            let first = first.map(shown).unwrap_or_default();
            return Err(LogError::Foreign { wanted: ".info", lines: count, first });
        }
        if info.form != InfoForm::Shell && info.ended.is_some() {
            info.form = InfoForm::Text;
        }
        Ok(info)
    }

    /// Returns `None` for a line of unknown kind.
    fn read(&mut self, line: &str, after_others: bool) -> Option<()> {
        for name in NAMES {
            let Some(value) = line.strip_prefix(name) else { continue };
            let is_shell = name.ends_with('=');
            let value = if is_shell { unquoted(value)? } else { value.trim() };
            let present = !value.is_empty() && value != "none";
            let value = present.then(|| value.to_owned());
            match name {
                "IMAGE=" | "Image:" => self.image = value,
                "PKTGEN=" => self.traffic = value,
                "UNAME=" => self.uname = value,
                "Start time:" => self.started = value,
                "End time:" => self.ended = value,
                _ => {
                    self.configuration = value.as_deref().and_then(base_name).map(str::to_owned);
                    self.configuration_path = value;
                }
            }
            if is_shell {
                self.form = InfoForm::Shell;
            }
            return Some(());
        }
        // The text form contains the output of uname(1) without a name before it.
        let is_uname = after_others && self.form != InfoForm::Shell && self.uname.is_none();
        let looks_so = line.split_ascii_whitespace().count() > 3;
        (is_uname && looks_so).then(|| self.uname = Some(line.to_owned()))
    }

    /// Returns the revision of the image: the second dash-separated part of its file name
    /// (`BSDRP-295802-upgrade-amd64-vga.img.xz`), or the whole short name.
    pub fn revision(&self) -> Option<&str> {
        let name = base_name(self.image.as_deref()?)?;
        if self.form == InfoForm::Shell {
            return Some(name);
        }
        name.split('-').nth(1).filter(|part| !part.is_empty())
    }

    /// Returns [`Info::started`] in RFC 3339 format; `None` if its zone is not certain.
    pub fn started_at(&self) -> Option<String> {
        rfc3339(self.started.as_deref()?)
    }

    /// Returns [`Info::ended`] in RFC 3339 format; `None` if its zone is not certain.
    pub fn ended_at(&self) -> Option<String> {
        rfc3339(self.ended.as_deref()?)
    }
}

/// Returns the value of a shell assignment, with or without quotes.
fn unquoted(value: &str) -> Option<&str> {
    match value.strip_prefix('"') {
        Some(value) => value.strip_suffix('"'),
        None => Some(value.trim()),
    }
}

/// Returns the last non-empty part of a path.
fn base_name(path: &str) -> Option<&str> {
    path.rsplit('/').find(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(text: &str) -> Info {
        Info::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn shell_form_is_parsed() {
        let text =
            "IMAGE=\"13-n1\"\nCFG=\"a/forwarding\"\nPKTGEN=\"inet6\"\nUNAME=\"FreeBSD r 13\"";
        let info = info(text);
        assert_eq!(info.form, InfoForm::Shell);
        assert_eq!((info.image.as_deref(), info.revision()), (Some("13-n1"), Some("13-n1")));
        assert_eq!(info.configuration.as_deref(), Some("forwarding"));
        assert_eq!(info.configuration_path.as_deref(), Some("a/forwarding"));
        assert_eq!(info.traffic.as_deref(), Some("inet6"));
        assert_eq!((info.uname.as_deref(), info.started_at()), (Some("FreeBSD r 13"), None));
        assert_eq!(info.unknown_count, 0);
    }

    #[test]
    fn empty_values_are_none() {
        let info = info("IMAGE=\"\"\nCFG=9\nPKTGEN=\"\"\nUNAME=\"open\n");
        assert_eq!((&info.image, &info.traffic, info.revision()), (&None, &None, None));
        assert_eq!(info.configuration.as_deref(), Some("9"));
        assert_eq!((info.uname, info.unknown_count), (None, 1));
    }

    #[test]
    fn text_form_is_parsed_with_and_without_its_end() {
        let start = "Image: /srv//BSDRP-295802-upgrade.img\nCFG: configs//pf-statefull\n\
                     FreeBSD hp 10.3 FreeBSD #0 r295802: Fri\nStart time: Wed Sep  9 03:32:02 CEST 2015\n";
        let cut = info(start);
        assert_eq!((cut.form, cut.revision()), (InfoForm::TruncatedText, Some("295802")));
        assert_eq!(cut.configuration.as_deref(), Some("pf-statefull"));
        assert_eq!(cut.uname.as_deref(), Some("FreeBSD hp 10.3 FreeBSD #0 r295802: Fri"));
        assert_eq!(cut.started_at().as_deref(), Some("2015-09-09T03:32:02+02:00"));
        let whole = info(&format!("{start}End time: May  9, 2016 at 12:07:14 PM EST\nodd\n"));
        assert_eq!(whole.form, InfoForm::Text);
        assert_eq!(whole.ended.as_deref(), Some("May  9, 2016 at 12:07:14 PM EST"));
        assert_eq!((whole.ended_at(), whole.unknown_count), (None, 1));
        assert_eq!(info("Image: none\nCFG: configs//\n").image, None);
    }

    #[test]
    fn other_text_is_refused() {
        assert_eq!(Info::parse(b""), Err(LogError::Empty));
        assert!(matches!(Info::parse(b"CMD: pkt-gen\n"), Err(LogError::Foreign { .. })));
        assert!(matches!(Info::parse(b"CFG=\0"), Err(LogError::Binary { line: 1, offset: 4 })));
    }
}
