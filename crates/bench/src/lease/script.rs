//! Protocol of a lease, executed on the host itself as lines of sh(1); nothing is installed.
//!
//! A directory on the host's disk contains numbered files. The file with the highest number is the
//! current record: end (by the host's clock), length, boot, start, owner. Files are never modified,
//! and numbers never reused: to take, renew or release, a process creates the file with the next
//! number as a hard link to a complete file, which only one process can do. So there is no gap
//! between checking and taking: a process whose number is no longer the highest fails and checks
//! again.
//!
//! The clock is the host's time since its boot, in hundredths of a second, which cannot be set. A
//! record of an earlier boot counts from the start of the present boot: it ends later than it would
//! have, never sooner, so a holder may reboot the host. A host that loses its disk (a `/var` in
//! memory, a power failure) forgets the lease; its holder detects that at the next renewal.

use crate::error::BenchError;
use crate::host::Host;
use fwdlab_model::lab::System;
use std::time::Duration;

/// Script that sets `now`, `boot`, and `grain`: the possible error of `now`. FreeBSD's wall clock
/// alone is not enough: setting it moves `kern.boottime` by the same amount. Without `kern.boot_id`
/// (before 13) a file that `/var/run` loses with each boot identifies the boot.
pub(super) const CLOCK: &str = r#"clock() {
if read -r now rest 2>/dev/null </proc/uptime &&
read -r boot 2>/dev/null </proc/sys/kernel/random/boot_id; then
now=$((${now%.*} * 100 + 1${now#*.} - 100)) grain=2; return; fi
boot=$(sysctl -nx kern.boot_id 2>/dev/null | tr -dc A-Za-z0-9) token=/var/run/fwdlab-boot
[ -n "$boot" ] || { [ -s "$token" ] || { echo "$$-$(date +%s)" | cat >"$token.$$" || exit 1
ln "$token.$$" "$token" 2>/dev/null; rm -f "$token.$$"; }; read -r boot <"$token" || exit 1; }
started() { sysctl -n kern.boottime | sed 's/^[^0-9]*\([0-9]*\).*/\1/'; }
began=$(started)
while now=$(date +%s) again=$(started); [ "$began" != "$again" ]; do began=$again; done
now=$(((now - began) * 100)) grain=200; }
"#;

/// Functions: `highest` sets `at` to the highest number, or 0 without a record; `load` reads its
/// record, and sets `left`, the remaining time; `next` creates the next file with the record `$1`,
/// and fails if another process was faster. It uses cat, which reports why writing fails; shells
/// don't.
const FUNCTIONS: &str = r#"highest() { at=0; for file in "$lock"/[0-9]*; do number=${file##*/}
case $number in *[!0-9]*) continue;; esac
[ "$number" -le "$at" ] || at=$number; done; }
load() { ends='' length='' theirboot='' taken='' theirs=''
read -r ends length theirboot taken theirs 2>/dev/null <"$lock/$at" || :
for number in "$ends" "$length" "$taken"; do case $number in ''|*[!0-9]*) theirs='';; esac; done
[ -n "$theirs" ] || ends=0 length=0 theirboot=- taken=0 theirs=nobody
if [ "$theirboot" = "$boot" ]; then left=$((ends - now)); else left=$((length + grain - now)); fi
[ "$left" -le $((length + grain)) ] || left=$((length + grain - now))
[ "$theirs" != nobody ] && [ "$left" -gt 0 ] || left=0; }
next() { mine=$lock/new-$$ made=$((at + 1))
printf '%s\n' "$1" | cat >"$mine" || exit 1
said=$(ln "$mine" "$lock/$made" 2>&1) || { tries=$((tries + 1))
[ -e "$lock/$made" ] || [ "$tries" -lt 20 ] || { echo "$said" >&2; exit 1; }
rm -f "$mine"; return 1; }
rm -f "$mine"; highest
[ "$at" -eq "$made" ] || { rm -f "$lock/$made"; return 1; }
for file in "$lock"/[0-9]*; do number=${file##*/}
[ "$number" -gt $((at - 8)) ] || rm -f "$file"; done
for file in "$lock"/new-*; do kill -0 "${file##*-}" 2>/dev/null || rm -f "$file"; done; }
lock=$1 owner=$2 tries=0
"#;

/// Script that takes the lease `$1` for the owner `$2` for `$3` hundredths of a second, or prints
/// the current owner. `$4` is an owner that is known to have ended. With `renew` as `$5` it only
/// extends a lease that no one else has had since.
const TAKE: &str = r#"mkdir -p "$lock" || exit 1
while highest; do clock; load
if [ "$theirs" = "$owner" ]; then since=$taken
elif [ "$5" = renew ]; then [ "$at" -gt 0 ] || theirs=-; echo "lost $theirs"; exit 0
elif [ "$left" -gt 0 ] && [ "$theirs" != "$4" ]; then
echo "held $left $length $taken $theirs"; exit 0
else since=$(date +%s); fi
if next "$((now + $3 + grain)) $3 $boot $since $owner"; then echo yours; exit 0; fi
done"#;

/// Script that releases the lease `$1` if `$2` holds it.
const RELEASE: &str = r#"while highest; do clock; load
[ "$theirs" = "$owner" ] || exit 0
if next "0 0 - 0 nobody"; then exit 0; fi
done"#;

/// Script that ends the lease `$1` if its record still has the number `$3`.
const FREE: &str = r#"highest
if [ "$at" = "$3" ] && next "0 0 - 0 nobody"; then echo freed; else echo changed; fi"#;

/// Script that prints the record of the lease `$1`, and the marks of the host's health; it does not
/// use echo, which interprets `
/// `.
const SHOW: &str = r#"clock; highest; load
echo "lease $at $left $length $taken $(date +%s) $theirs"
for file in "$lock"/sick*; do
[ ! -s "$file" ] || printf '%s %s\n' "${file##*/}" "$(cat "$file")"; done"#;

/// Script that writes the mark `$3` of health with the text `$4`; without a text it removes the
/// mark.
const MARK: &str = r#"[ -n "$4" ] || { rm -f "$lock/$3"; exit; }
mkdir -p "$lock" && printf '%s\n' "$(date +%s) $2 $4" | cat >"$lock/mark-$$" &&
mv "$lock/mark-$$" "$lock/$3""#;

/// Holder of a host's lease.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Holder {
    /// The controller's process, see [`Owner`](super::Owner).
    pub owner: String,
    /// Remaining time of the lease, seconds; 0 if it has expired and no one else has taken it.
    pub left_s: f64,
    /// Length of the last request, seconds.
    pub length_s: f64,
    /// Start of the lease, seconds since 1970 by the host's clock.
    pub since_s: i64,
}

/// Result of taking a lease.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// The caller holds it.
    Yours,
    /// Another controller holds it.
    Held(Holder),
    /// A renewal failed because another controller has had it since: `nobody` if it was ended by
    /// hand, `-` if the host has forgotten it.
    Lost(String),
}

/// A user's mark about a host's health.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Mark {
    /// `sick` for the host that stores it, or `sick-LABORATORY.HOST` for a host that was
    /// unreachable.
    pub name: String,
    /// Time of the mark, seconds since 1970 by the clock of the host that stores it.
    pub at_s: i64,
    /// Author of the mark.
    pub by: String,
    /// Reason for the mark.
    pub why: String,
}

/// A host's record of its lease.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LeaseRecord {
    /// Number of the record.
    pub(super) number: String,
    /// Current holder, or the last one if it did not release the lease.
    pub(super) holder: Option<Holder>,
    /// The host's wall clock, seconds since 1970.
    pub(super) now_s: i64,
    /// Marks of this host and of others.
    pub(super) marks: Vec<Mark>,
}

/// Access to the lease of a host: its directory, and the script for its clock.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    path: String,
    clock: String,
}

impl Ledger {
    /// The lease of a host with this system.
    pub(super) fn of(system: System) -> Ledger {
        let path = match system {
            System::Linux => "/var/lib/fwdlab-lease",
            System::FreeBsd => "/var/db/fwdlab-lease",
        };
        Ledger::at(path, CLOCK)
    }

    /// A lease in a directory, with another script for the function `clock`.
    pub(super) fn at(path: &str, clock: &str) -> Ledger {
        Ledger { path: path.into(), clock: clock.into() }
    }

    /// Takes or, with `renew`, extends the lease. `gone` is an owner that has ended.
    ///
    /// # Errors
    /// Fails if the host cannot be queried, or cannot store the file.
    pub(super) fn take(
        &self,
        host: &dyn Host,
        owner: &str,
        length: Duration,
        gone: &str,
        renew: bool,
    ) -> Result<Answer, BenchError> {
        let hundredths = (length.as_millis() / 10).to_string();
        let mode = if renew { "renew" } else { "take" };
        let output = self.run(host, TAKE, &[owner, &hundredths, gone, mode])?;
        let (word, rest) = output.split_once(' ').unwrap_or((output.as_str(), ""));
        match (word, parse_holder(rest)) {
            ("yours", _) => Ok(Answer::Yours),
            ("lost", _) => Ok(Answer::Lost(rest.to_owned())),
            ("held", Some(holder)) => Ok(Answer::Held(holder)),
            _ => Err(self.unreadable(host, &output)),
        }
    }

    /// Releases the lease.
    ///
    /// # Errors
    /// The errors of [`Ledger::take`].
    pub(super) fn release(&self, host: &dyn Host, owner: &str) -> Result<(), BenchError> {
        self.run(host, RELEASE, &[owner]).map(drop)
    }

    /// Ends the lease if its record still has this number; false if it has changed.
    ///
    /// # Errors
    /// The errors of [`Ledger::take`].
    pub(super) fn free(&self, host: &dyn Host, number: &str) -> Result<bool, BenchError> {
        Ok(self.run(host, FREE, &["", number])? == "freed")
    }

    /// Reads the record of the lease.
    ///
    /// # Errors
    /// The errors of [`Ledger::take`].
    pub(super) fn show(&self, host: &dyn Host) -> Result<LeaseRecord, BenchError> {
        let output = self.run(host, SHOW, &[""])?;
        parse_record(&output).ok_or_else(|| self.unreadable(host, &output))
    }

    /// Writes a mark of health, or removes it.
    ///
    /// # Errors
    /// The errors of [`Ledger::take`].
    pub(super) fn mark(
        &self,
        host: &dyn Host,
        name: &str,
        by: &str,
        why: Option<&str>,
    ) -> Result<(), BenchError> {
        let why = why.map_or(String::new(), |why| why.replace(['\n', '\r'], "; "));
        self.run(host, MARK, &[by, name, &why]).map(drop)
    }

    fn run(&self, host: &dyn Host, script: &str, words: &[&str]) -> Result<String, BenchError> {
        let text = [self.clock.as_str(), FUNCTIONS, script].concat();
        let argv = [&["/bin/sh", "-c", &text, "lease", &self.path], words].concat();
        host.run(&argv, "").map(|output| output.trim().to_owned())
    }

    fn unreadable(&self, host: &dyn Host, output: &str) -> BenchError {
        BenchError::environment(
            format!("the lease of {} can't be understood: `{output}`", host.name()),
            format!("look into {} there", self.path),
        )
    }
}

/// Parses `LEFT LENGTH TAKEN OWNER`.
fn parse_holder(text: &str) -> Option<Holder> {
    let mut words = text.split(' ');
    let mut number = || words.next()?.parse::<i64>().ok();
    let (left, length, since_s) = (number()?, number()?, number()?);
    let owner = words.next()?.to_owned();
    let seconds = |hundredths: i64| hundredths as f64 / 100.0;
    Some(Holder { owner, left_s: seconds(left), length_s: seconds(length), since_s })
}

/// Parses the output of [`SHOW`].
fn parse_record(text: &str) -> Option<LeaseRecord> {
    let mut lines = text.lines();
    let words: Vec<&str> = lines.next()?.split(' ').collect();
    let ["lease", number, left, length, taken, now, owner] = words[..] else { return None };
    let held = parse_holder(&[left, length, taken, owner].join(" "))?;
    let marks = lines.filter_map(|line| {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().map(str::to_owned);
        let (name, at) = (word()?, word()?);
        Some(Mark { name, at_s: at.parse().ok()?, by: word()?, why: word()? })
    });
    Some(LeaseRecord {
        number: number.to_owned(),
        holder: (owner != "nobody").then_some(held),
        now_s: now.parse().ok()?,
        marks: marks.collect(),
    })
}
