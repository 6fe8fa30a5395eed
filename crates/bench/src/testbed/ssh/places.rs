//! Labgrid places: hosts that a coordinator lends.
//!
//! Each place is reserved, acquired and released through `labgrid-client`: before the host is
//! connected, and after the connection is closed. labgrid lends without a time limit, so a process
//! notes its places in a file before it requests them. If it was killed, or this machine was
//! switched off, the next process here releases them. A reservation that was never acquired expires
//! by itself. `reserve --wait` prints its token last if its output is no terminal; so the
//! reservation is made first and awaited by its token, which can be cancelled in any case.

use crate::error::BenchError;
use crate::host::{Ended, Host, LocalHost};
use crate::journal;
use crate::lease::{Owner, is_gone_from_here};
use fwdlab_model::Lab;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Prefix of the files that note the places of a process: `labgrid-OWNER`, with owners named as in
/// leases.
const NOTES: &str = "labgrid-";
/// Suffix of such a file while it is being written.
const PART: &str = ".part";
/// Time limit for a labgrid command, in addition to its own waiting time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval for checking whether a command has ended, or must end.
const LOOK: Duration = Duration::from_millis(50);
/// Time limit for a command to end after an interrupt.
const GRACE: Duration = Duration::from_secs(2);
/// Exit status of env(1) if the program does not exist.
const MISSING: i32 = 127;

/// `labgrid-client` as one process calls it.
#[derive(Clone, Debug)]
struct Client {
    program: String,
    coordinator: String,
    /// Name under which places are acquired: it differs between two processes of one user.
    user: String,
}

/// Places that this process holds.
pub(super) struct Places {
    client: Client,
    /// Set when the user asks to stop: no place is awaited any longer.
    stop: Arc<AtomicBool>,
    /// Host, place and reservation token of each place.
    acquired: Vec<(String, String, String)>,
    note: PathBuf,
}

impl Client {
    fn argv(&self, words: &[&str]) -> Vec<String> {
        let user = format!("LG_USERNAME={}", self.user);
        // The caller's environment may name another place or token.
        let clean = ["-u", "LG_PLACE", "-u", "LG_TOKEN", "-u", "LG_ENV", "-u", "LG_STATE"];
        let mut argv = [&["env"], &clean[..], &[&user, &self.program]].concat();
        if !self.coordinator.is_empty() {
            argv.extend(["-x", &self.coordinator]);
        }
        argv.extend(words);
        argv.into_iter().map(str::to_owned).collect()
    }

    /// Runs the client to its end, which must come within `patience`.
    fn run(&self, words: &[&str], patience: Duration) -> Result<String, BenchError> {
        self.run_unless(&AtomicBool::new(false), words, patience)
    }

    /// Runs the client like [`Client::run`]; interrupts it when the user asks to stop.
    fn run_unless(
        &self,
        stop: &AtomicBool,
        words: &[&str],
        patience: Duration,
    ) -> Result<String, BenchError> {
        let failed = |why: &str, next: &str| {
            let what = format!("{} {} failed: {why}", self.program, words.join(" "));
            BenchError::environment(what, next)
        };
        let by_hand = "run it by hand; check `coordinator` in [labgrid]";
        let argv = self.argv(words);
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let mut program = LocalHost.spawn(&argv)?;
        let deadline = Instant::now() + patience;
        let is_stopped = || stop.load(Ordering::Relaxed);
        while !program.has_ended() && Instant::now() < deadline && !is_stopped() {
            std::thread::sleep(LOOK);
        }
        let is_over = program.has_ended();
        if !is_over {
            program.interrupt();
        }
        let Ended { well, code, status, errors } = program.wait(GRACE);
        if is_stopped() {
            return Err(BenchError::Interrupted);
        }
        if !is_over {
            return Err(failed("it took too long", by_hand));
        }
        if code == Some(MISSING) {
            let next = "install labgrid, or name the program as `client` in [labgrid]";
            return Err(failed("there is no such program", next));
        }
        if !well {
            let message = errors.trim().replace('\n', "; ");
            return Err(failed(if message.is_empty() { &status } else { &message }, by_hand));
        }
        // The output was read during the run, and has ended.
        let lines = std::iter::from_fn(|| program.hear(GRACE));
        Ok(lines.map(|line| line + "\n").collect())
    }

    /// Returns the holder of a place, or the owner of its reservation.
    fn holder(&self, place: &str) -> Option<String> {
        let output = self.run(&["-p", place, "show"], PATIENCE).ok()?;
        let value_of = |text: &str, key: &str| {
            let value = text.lines().find_map(|line| line.trim().strip_prefix(key));
            value.map(|value| value.trim().to_owned()).filter(|value| value != "None")
        };
        if let Some(holder) = value_of(&output, "acquired:") {
            return Some(holder);
        }
        let all = self.run(&["reservations"], PATIENCE).ok()?;
        let has = |block: &&str| block.contains(&format!("main: {place}\n"));
        all.split("Reservation '").find(has).and_then(|block| value_of(block, "owner:"))
    }
}

impl Places {
    /// Releases places that ended processes have left, then reserves and acquires every place in
    /// the lab file; `None` if it names no place. `state` is a directory that outlives a reboot.
    ///
    /// # Errors
    /// Returns an error if another user holds a place ([`BenchError::Held`]), or labgrid cannot be
    /// queried.
    pub(super) fn take(
        lab: &Lab,
        state: &Path,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<Places>, BenchError> {
        let mut requests: Vec<(&str, &str)> = lab
            .hosts
            .iter()
            .filter_map(|host| Some((host.place.as_deref()?, host.name.as_str())))
            .collect();
        if requests.is_empty() {
            return Ok(None);
        }
        fs::create_dir_all(state).map_err(|source| of_file(state, source))?;
        // Every controller requests places in this order, which prevents deadlocks.
        requests.sort_unstable();
        let user = std::env::var("USER").unwrap_or_else(|_| "root".into());
        let client = Client {
            program: lab.labgrid.client.clone(),
            coordinator: lab.labgrid.coordinator.clone().unwrap_or_default(),
            user: format!("{}-fwdlab-{}", user.replace('/', "_"), journal::identity()),
        };
        let note = state.join(format!("{NOTES}{}", Owner::this().text()));
        clean_up_after_ended_processes(state, &client);
        let mut places = Places { client, stop: stop.clone(), acquired: Vec::new(), note };
        for (place, host) in requests {
            // Dropping `places` releases the places acquired so far.
            places.acquire(host, place, Duration::from_nanos(lab.labgrid.wait_ns))?;
        }
        Ok(Some(places))
    }

    fn acquire(&mut self, host: &str, place: &str, wait: Duration) -> Result<(), BenchError> {
        let filter = format!("name={place}");
        let run = |words: &[&str], patience| self.client.run_unless(&self.stop, words, patience);
        let output = run(&["reserve", "--shell", &filter], PATIENCE)?;
        let token = output.trim().rsplit_once("LG_TOKEN=").map(|(_, token)| token.to_owned());
        let token = token.ok_or_else(|| {
            BenchError::environment(
                format!("labgrid reserved {place} without a token: `{}`", output.trim()),
                "see which version of labgrid this is",
            )
        })?;
        self.acquired.push((host.to_owned(), place.to_owned(), token.clone()));
        self.write().map_err(|source| of_file(&self.note, source))?;
        let run = |words: &[&str], patience| self.client.run_unless(&self.stop, words, patience);
        let acquire = || run(&["-p", place, "acquire"], PATIENCE);
        // Each call takes a second or two: usually the place is available immediately.
        let result = acquire().or_else(|_| run(&["wait", &token], wait).and_then(|_| acquire()));
        let error = match result {
            Err(BenchError::Interrupted) => return Err(BenchError::Interrupted),
            Err(error) => error,
            Ok(_) => return Ok(()),
        };
        match self.client.holder(place).filter(|holder| !self.is_own(holder)) {
            Some(holder) => Err(BenchError::Held {
                what: format!(
                    "the place {place} of labgrid, for {host}, is {holder}'s, and was so for {} s",
                    wait.as_secs()
                ),
                left: None,
            }),
            None => Err(error),
        }
    }

    /// Returns true if labgrid's `HOST/USER` is this process.
    fn is_own(&self, holder: &str) -> bool {
        holder.rsplit('/').next() == Some(self.client.user.as_str())
    }

    /// Returns the command that power-cycles a host; `None` if it has no place.
    pub(super) fn power_cycle(&self, host: &str) -> Option<Vec<String>> {
        let (_, place, _) = self.acquired.iter().find(|(name, ..)| name == host)?;
        Some(self.client.argv(&["-p", place, "power", "cycle"]))
    }

    /// Writes the places to release to disk, before they are acquired.
    fn write(&self) -> std::io::Result<()> {
        let Client { program, coordinator, user } = &self.client;
        let mut text = format!("{program}\n{coordinator}\n{user}\n");
        for (_, place, token) in &self.acquired {
            text += &format!("{place} {token}\n");
        }
        // Owners contain dots: the part after the last one is no extension.
        let mut part = self.note.clone().into_os_string();
        part.push(PART);
        let mut file = File::create(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        fs::rename(&part, &self.note)?;
        self.note.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let acquired =
            self.acquired.iter().map(|(_, place, token)| (place.as_str(), token.as_str()));
        if give_back(&self.client, acquired) {
            let _ = fs::remove_file(&self.note);
        }
    }
}

/// Releases places; returns false if labgrid cannot be queried. Places that another user has
/// acquired since remain theirs.
fn give_back<'a>(client: &Client, places: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
    let one = |place: &str, token: &str| {
        let released = client.run(&["-p", place, "release"], PATIENCE).is_ok();
        let cancelled = client.run(&["cancel-reservation", token], PATIENCE).is_ok();
        // Either fails if there was nothing to release; a query distinguishes that from no
        // response.
        released || cancelled || client.run(&["-p", place, "show"], PATIENCE).is_ok()
    };
    std::thread::scope(|scope| {
        let all: Vec<_> =
            places.map(|(place, token)| scope.spawn(move || one(place, token))).collect();
        // No short circuit: every thread must be joined.
        let results: Vec<bool> = all.into_iter().map(|one| one.join().unwrap_or(false)).collect();
        results.into_iter().all(|is_released| is_released)
    })
}

/// Releases places of ended processes of this machine, if they came from the same coordinator:
/// another coordinator may be unreachable, and is queried when it is needed.
fn clean_up_after_ended_processes(state: &Path, current: &Client) {
    for entry in fs::read_dir(state).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(owner) = name.strip_prefix(NOTES) else { continue };
        if !is_gone_from_here(owner.trim_end_matches(PART)) {
            continue;
        }
        // Two processes that clean up simultaneously release twice, which does no harm.
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let mut lines = text.lines().map(str::to_owned);
        let mut line = || lines.next().unwrap_or_default();
        let client = Client { program: line(), coordinator: line(), user: line() };
        if client.coordinator != current.coordinator && !name.ends_with(PART) {
            continue;
        }
        let places = text.lines().skip(3).filter_map(|line| line.split_once(' '));
        if name.ends_with(PART) || give_back(&client, places) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn of_file(path: &Path, source: std::io::Error) -> BenchError {
    let (path, host) = (path.display().to_string(), "this machine".to_owned());
    BenchError::File { path, host, source }
}
