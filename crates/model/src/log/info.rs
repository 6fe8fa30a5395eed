//! The `.info` file that netbenches keeps beside the logs of a configuration.

use super::fault::LogError;
use super::lines::{NumberedLine, keep, lines, shown, text};
use super::moment::rfc3339;

/// What one `.info` file says. Parts that it leaves empty, or calls `none`, are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The image that was tested: its path, or since 2016 its short name.
    pub image: Option<String>,
    /// The configuration: the last part of its path.
    pub configuration: Option<String>,
    /// The configuration's path, as written.
    pub configuration_path: Option<String>,
    /// The set of traffic (`PKTGEN`), like `inet6`.
    pub traffic: Option<String>,
    /// The system under test: `uname -a`.
    pub uname: Option<String>,
    /// When the first run began, as written.
    pub started: Option<String>,
    /// When the last run ended, as written.
    pub ended: Option<String>,
    /// Which of the known forms the file has.
    pub form: InfoForm,
    /// The first lines of no known kind.
    pub unknown: Vec<NumberedLine>,
    /// How many such lines there are.
    pub unknown_count: usize,
}

/// The forms of an `.info` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InfoForm {
    /// Assignments of the shell, `CFG="forwarding"`: since 2016.
    Shell,
    /// `CFG: configs//forwarding`, with beginning and end.
    Text,
    /// As [`InfoForm::Text`] without the end: the runs were broken off.
    TruncatedText,
}

/// What a line of a known kind begins with, in the shell's form and in the other.
const NAMES: [&str; 8] =
    ["IMAGE=", "CFG=", "PKTGEN=", "UNAME=", "Image:", "CFG:", "Start time:", "End time:"];

impl Info {
    /// Reads a file.
    ///
    /// # Errors
    /// [`LogError`] for nothing at all, for binary data, and for text without
    /// one line that such a file has.
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

    /// None for a line of no known kind.
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
        // The text form has what uname(1) says without a name before it.
        let is_uname = after_others && self.form != InfoForm::Shell && self.uname.is_none();
        let looks_so = line.split_ascii_whitespace().count() > 3;
        (is_uname && looks_so).then(|| self.uname = Some(line.to_owned()))
    }

    /// The revision of the image: the second part between dashes of its file's
    /// name (`BSDRP-295802-upgrade-amd64-vga.img.xz`), or all of a short name.
    pub fn revision(&self) -> Option<&str> {
        let name = base_name(self.image.as_deref()?)?;
        if self.form == InfoForm::Shell {
            return Some(name);
        }
        name.split('-').nth(1).filter(|part| !part.is_empty())
    }

    /// [`Info::started`] in the form of RFC 3339; none where its zone is not certain.
    pub fn started_at(&self) -> Option<String> {
        rfc3339(self.started.as_deref()?)
    }

    /// [`Info::ended`] in the form of RFC 3339; none where its zone is not certain.
    pub fn ended_at(&self) -> Option<String> {
        rfc3339(self.ended.as_deref()?)
    }
}

/// The value of a shell assignment, with or without quotes.
fn unquoted(value: &str) -> Option<&str> {
    match value.strip_prefix('"') {
        Some(value) => value.strip_suffix('"'),
        None => Some(value.trim()),
    }
}

/// The last part of a path that is not empty.
fn base_name(path: &str) -> Option<&str> {
    path.rsplit('/').find(|part| !part.is_empty())
}
