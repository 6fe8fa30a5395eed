//! The protocol of a lease, as it runs on the host itself: lines of sh(1), nothing installed.
//!
//! A directory on the host's disk holds numbered files. The highest number is the current
//! record: until when (by the host's clock), for how long, in which boot, since when, by whom.
//! Files are never modified, and numbers never used again: who takes, renews or gives back
//! makes the file with the next number by a hard link to a complete file, which one process
//! alone can do. So nothing lies between looking and taking: a process whose number is no
//! longer the highest fails, and looks again.
//!
//! The clock is the host's time since its boot, in hundredths of a second, which nobody can
//! set. A record of an earlier boot counts from the present boot on: later than it would have
//! ended, never sooner, so that a holder may reboot the host. A host that loses its disk
//! (a `/var` in memory, a power failure) forgets the lease; its holder learns that with the
//! next renewal.

use crate::error::BenchError;
use crate::host::Host;
use fwdlab_model::lab::System;
use std::time::Duration;

/// Sets `now`, `boot`, and `grain`: by how much `now` may be wrong. Not FreeBSD's wall clock
/// alone: who sets it moves `kern.boottime` by as much. Without `kern.boot_id` (before 13) a
/// file that `/var/run` loses with each boot names the boot.
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

/// `highest` sets `at` to the highest number, 0 where there is none; `load` reads its record,
/// and sets `left`, what is left of it; `next` makes the file after it with the record `$1`,
/// and fails when another was quicker. By cat, which says why it can't be written; shells
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

/// Takes the lease `$1` for the owner `$2` for `$3` hundredths of a second, or prints whose it
/// is. `$4` is an owner that is known to have ended. With `renew` as `$5` it is extended
/// where nobody else had it since, and nothing else.
const TAKE: &str = r#"mkdir -p "$lock" || exit 1
while highest; do clock; load
if [ "$theirs" = "$owner" ]; then since=$taken
elif [ "$5" = renew ]; then [ "$at" -gt 0 ] || theirs=-; echo "lost $theirs"; exit 0
elif [ "$left" -gt 0 ] && [ "$theirs" != "$4" ]; then
echo "held $left $length $taken $theirs"; exit 0
else since=$(date +%s); fi
if next "$((now + $3 + grain)) $3 $boot $since $owner"; then echo yours; exit 0; fi
done"#;

/// Gives the lease `$1` back if `$2` has it.
const RELEASE: &str = r#"while highest; do clock; load
[ "$theirs" = "$owner" ] || exit 0
if next "0 0 - 0 nobody"; then exit 0; fi
done"#;

/// Ends the lease `$1` if its record is still the number `$3`.
const FREE: &str = r#"highest
if [ "$at" = "$3" ] && next "0 0 - 0 nobody"; then echo freed; else echo changed; fi"#;

/// Prints the record of the lease `$1`, and what is said of the host's health: not by echo, which
/// makes something else of `\n`.
const SHOW: &str = r#"clock; highest; load
echo "lease $at $left $length $taken $(date +%s) $theirs"
for file in "$lock"/sick*; do
[ ! -s "$file" ] || printf '%s %s\n' "${file##*/}" "$(cat "$file")"; done"#;

/// Writes the mark `$3` of health: `$4` is its text, without which the mark is removed.
const MARK: &str = r#"[ -n "$4" ] || { rm -f "$lock/$3"; exit; }
mkdir -p "$lock" && printf '%s\n' "$(date +%s) $2 $4" | cat >"$lock/mark-$$" &&
mv "$lock/mark-$$" "$lock/$3""#;

/// Who has a host.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Holder {
    /// The controller's process, see [`Owner`](super::Owner).
    pub owner: String,
    /// Time that is left of the lease, seconds; 0: it is over, and nobody else has taken it.
    pub left_s: f64,
    /// Time for which it was taken last, seconds.
    pub length_s: f64,
    /// When it was taken, seconds since 1970 by the host's clock.
    pub since_s: i64,
}

/// What taking a lease came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// It is the caller's.
    Yours,
    /// Another has it.
    Held(Holder),
    /// It was to be renewed, and another has had it since: `nobody` where it was ended by hand,
    /// `-` where the host has forgotten it.
    Lost(String),
}

/// What somebody said of a host's health.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Mark {
    /// `sick` for the host that keeps it, or `sick-LABORATORY.HOST` for one that could not be
    /// reached.
    pub name: String,
    /// When, seconds since 1970 by the clock of the host that keeps it.
    pub at_s: i64,
    /// Who said so.
    pub by: String,
    /// Why.
    pub why: String,
}

/// What a host says of its lease.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    /// Number of the record.
    pub(super) number: String,
    /// Who has it, or had it last without giving it back.
    pub(super) holder: Option<Holder>,
    /// The host's wall clock, seconds since 1970.
    pub(super) now_s: i64,
    /// Marks of its own and of others.
    pub(super) marks: Vec<Mark>,
}

/// The lease of a host: where it is kept, and the lines that run there.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    path: String,
    clock: String,
}

impl Ledger {
    /// That of a host.
    pub(super) fn of(system: System) -> Ledger {
        let path = match system {
            System::Linux => "/var/lib/fwdlab-lease",
            System::FreeBsd => "/var/db/fwdlab-lease",
        };
        Ledger::at(path, CLOCK)
    }

    /// In a directory, with other lines for the function `clock`.
    pub(super) fn at(path: &str, clock: &str) -> Ledger {
        Ledger { path: path.into(), clock: clock.into() }
    }

    /// Takes or, with `renew`, extends the lease. `gone` is an owner that has ended.
    ///
    /// # Errors
    /// When the host can't be asked, or keeps no file.
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
        let said = self.run(host, TAKE, &[owner, &hundredths, gone, mode])?;
        let (word, rest) = said.split_once(' ').unwrap_or((said.as_str(), ""));
        match (word, holder(rest)) {
            ("yours", _) => Ok(Answer::Yours),
            ("lost", _) => Ok(Answer::Lost(rest.to_owned())),
            ("held", Some(holder)) => Ok(Answer::Held(holder)),
            _ => Err(self.unreadable(host, &said)),
        }
    }

    /// Gives it back.
    ///
    /// # Errors
    /// As [`Ledger::take`].
    pub(super) fn release(&self, host: &dyn Host, owner: &str) -> Result<(), BenchError> {
        self.run(host, RELEASE, &[owner]).map(drop)
    }

    /// Ends it where its record is still the one of this number; false where it is another.
    ///
    /// # Errors
    /// As [`Ledger::take`].
    pub(super) fn free(&self, host: &dyn Host, number: &str) -> Result<bool, BenchError> {
        Ok(self.run(host, FREE, &["", number])? == "freed")
    }

    /// What the host says of it.
    ///
    /// # Errors
    /// As [`Ledger::take`].
    pub(super) fn show(&self, host: &dyn Host) -> Result<Seen, BenchError> {
        let said = self.run(host, SHOW, &[""])?;
        seen(&said).ok_or_else(|| self.unreadable(host, &said))
    }

    /// Writes a mark of health, or removes it.
    ///
    /// # Errors
    /// As [`Ledger::take`].
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

    fn run(&self, host: &dyn Host, what: &str, words: &[&str]) -> Result<String, BenchError> {
        let text = [self.clock.as_str(), FUNCTIONS, what].concat();
        let argv = [&["/bin/sh", "-c", &text, "lease", &self.path], words].concat();
        host.run(&argv, "").map(|said| said.trim().to_owned())
    }

    fn unreadable(&self, host: &dyn Host, said: &str) -> BenchError {
        BenchError::environment(
            format!("the lease of {} can't be understood: `{said}`", host.name()),
            format!("look into {} there", self.path),
        )
    }
}

/// `LEFT LENGTH TAKEN OWNER`.
fn holder(text: &str) -> Option<Holder> {
    let mut words = text.split(' ');
    let mut number = || words.next()?.parse::<i64>().ok();
    let (left, length, since_s) = (number()?, number()?, number()?);
    let owner = words.next()?.to_owned();
    let seconds = |hundredths: i64| hundredths as f64 / 100.0;
    Some(Holder { owner, left_s: seconds(left), length_s: seconds(length), since_s })
}

/// What [`SHOW`] prints.
fn seen(text: &str) -> Option<Seen> {
    let mut lines = text.lines();
    let words: Vec<&str> = lines.next()?.split(' ').collect();
    let ["lease", number, left, length, taken, now, owner] = words[..] else { return None };
    let held = holder(&[left, length, taken, owner].join(" "))?;
    let marks = lines.filter_map(|line| {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().map(str::to_owned);
        let (name, at) = (word()?, word()?);
        Some(Mark { name, at_s: at.parse().ok()?, by: word()?, why: word()? })
    });
    Some(Seen {
        number: number.to_owned(),
        holder: (owner != "nobody").then_some(held),
        now_s: now.parse().ok()?,
        marks: marks.collect(),
    })
}
