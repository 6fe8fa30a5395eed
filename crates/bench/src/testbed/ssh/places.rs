//! Places of labgrid: hosts that a coordinator lends.
//!
//! Each place is reserved, acquired, and given back through `labgrid-client`, before the host
//! is connected to and after the connection is closed. labgrid lends for no limited time:
//! what a process has is noted in a file before it is asked for, and given back by the next
//! process here when it was killed, or this machine was switched off. A reservation that was never acquired ends by itself.
//! `reserve --wait` tells its token last where its output is no terminal; so the reservation is
//! made first and waited for by its token, which can be cancelled whatever happens.

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

/// Beginning of the names of the files that note what a process has: `labgrid-OWNER`, as leases
/// name owners.
const NOTES: &str = "labgrid-";
/// End of the name of one that is being written.
const PART: &str = ".part";
/// Time that a command of labgrid may take, beyond what it waits.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at whether a command has ended, or is to end.
const LOOK: Duration = Duration::from_millis(50);
/// What a command may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How env(1) says that there is no such program.
const MISSING: i32 = 127;

/// `labgrid-client` as one process calls it.
#[derive(Clone, Debug)]
struct Client {
    program: String,
    coordinator: String,
    /// The name in which places are acquired: two processes of one user are two.
    user: String,
}

/// The places that this process has.
pub(super) struct Places {
    client: Client,
    /// Raised when the user asks to stop: no place is waited for any longer.
    stop: Arc<AtomicBool>,
    /// Host, place and the token of its reservation.
    had: Vec<(String, String, String)>,
    note: PathBuf,
}

impl Client {
    fn argv(&self, words: &[&str]) -> Vec<String> {
        let user = format!("LG_USERNAME={}", self.user);
        // Whatever place or token the caller's environment names is not ours.
        let clean = ["-u", "LG_PLACE", "-u", "LG_TOKEN", "-u", "LG_ENV", "-u", "LG_STATE"];
        let mut argv = [&["env"], &clean[..], &[&user, &self.program]].concat();
        if !self.coordinator.is_empty() {
            argv.extend(["-x", &self.coordinator]);
        }
        argv.extend(words);
        argv.into_iter().map(str::to_owned).collect()
    }

    /// Runs it to its end, which must come within `patience`.
    fn run(&self, words: &[&str], patience: Duration) -> Result<String, BenchError> {
        self.run_unless(&AtomicBool::new(false), words, patience)
    }

    /// The same, ended as by Ctrl-C when the user asks to stop.
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
        let by_hand = "try it by hand; `coordinator` in [labgrid] says who is asked";
        let argv = self.argv(words);
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let mut program = LocalHost.spawn(&argv)?;
        let deadline = Instant::now() + patience;
        let is_to_stop = || stop.load(Ordering::Relaxed);
        while !program.has_ended() && Instant::now() < deadline && !is_to_stop() {
            std::thread::sleep(LOOK);
        }
        let is_over = program.has_ended();
        if !is_over {
            program.interrupt();
        }
        let Ended { well, code, status, errors } = program.wait(GRACE);
        if is_to_stop() {
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
            let said = errors.trim().replace('\n', "; ");
            return Err(failed(if said.is_empty() { &status } else { &said }, by_hand));
        }
        // Its output was read meanwhile, and has ended.
        let lines = std::iter::from_fn(|| program.hear(GRACE));
        Ok(lines.map(|line| line + "\n").collect())
    }

    /// Who has a place, or has reserved it.
    fn holder(&self, place: &str) -> Option<String> {
        let shown = self.run(&["-p", place, "show"], PATIENCE).ok()?;
        let said = |text: &str, key: &str| {
            let value = text.lines().find_map(|line| line.trim().strip_prefix(key));
            value.map(|value| value.trim().to_owned()).filter(|value| value != "None")
        };
        if let Some(holder) = said(&shown, "acquired:") {
            return Some(holder);
        }
        let all = self.run(&["reservations"], PATIENCE).ok()?;
        let has = |block: &&str| block.contains(&format!("main: {place}\n"));
        all.split("Reservation '").find(has).and_then(|block| said(block, "owner:"))
    }
}

impl Places {
    /// Gives back what processes that are gone have left, then reserves and acquires every
    /// place that the lab's file names, or none. `state` is a directory that outlives a reboot.
    ///
    /// # Errors
    /// When another has a place ([`BenchError::Held`]), or labgrid can't be asked.
    pub(super) fn take(
        lab: &Lab,
        state: &Path,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<Places>, BenchError> {
        let mut wanted: Vec<(&str, &str)> = lab
            .hosts
            .iter()
            .filter_map(|host| Some((host.place.as_deref()?, host.name.as_str())))
            .collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        fs::create_dir_all(state).map_err(|source| of_file(state, source))?;
        // Every controller asks for them in this order.
        wanted.sort_unstable();
        let user = std::env::var("USER").unwrap_or_else(|_| "root".into());
        let client = Client {
            program: lab.labgrid.client.clone(),
            coordinator: lab.labgrid.coordinator.clone().unwrap_or_default(),
            user: format!("{}-fwdlab-{}", user.replace('/', "_"), journal::identity()),
        };
        let note = state.join(format!("{NOTES}{}", Owner::this().text()));
        clean_up_after_the_dead(state, &client);
        let mut places = Places { client, stop: stop.clone(), had: Vec::new(), note };
        for (place, host) in wanted {
            // What it has so far is given back when it is dropped.
            places.acquire(host, place, Duration::from_nanos(lab.labgrid.wait_ns))?;
        }
        Ok(Some(places))
    }

    fn acquire(&mut self, host: &str, place: &str, wait: Duration) -> Result<(), BenchError> {
        let filter = format!("name={place}");
        let run = |words: &[&str], patience| self.client.run_unless(&self.stop, words, patience);
        let said = run(&["reserve", "--shell", &filter], PATIENCE)?;
        let token = said.trim().rsplit_once("LG_TOKEN=").map(|(_, token)| token.to_owned());
        let token = token.ok_or_else(|| {
            BenchError::environment(
                format!("labgrid reserved {place} without a token: `{}`", said.trim()),
                "see which version of labgrid this is",
            )
        })?;
        self.had.push((host.to_owned(), place.to_owned(), token.clone()));
        self.write().map_err(|source| of_file(&self.note, source))?;
        let run = |words: &[&str], patience| self.client.run_unless(&self.stop, words, patience);
        let acquire = || run(&["-p", place, "acquire"], PATIENCE);
        // Each call takes a second or two: mostly it is there at once.
        let acquired = acquire().or_else(|_| run(&["wait", &token], wait).and_then(|_| acquire()));
        let error = match acquired {
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

    /// `HOST/USER` of labgrid is this process.
    fn is_own(&self, holder: &str) -> bool {
        holder.rsplit('/').next() == Some(self.client.user.as_str())
    }

    /// The command that switches a host off and on, where it has a place.
    pub(super) fn power_cycle(&self, host: &str) -> Option<Vec<String>> {
        let (_, place, _) = self.had.iter().find(|(name, ..)| name == host)?;
        Some(self.client.argv(&["-p", place, "power", "cycle"]))
    }

    /// Writes down what there is to give back, so that it is on the disk before it is had.
    fn write(&self) -> std::io::Result<()> {
        let Client { program, coordinator, user } = &self.client;
        let mut text = format!("{program}\n{coordinator}\n{user}\n");
        for (_, place, token) in &self.had {
            text += &format!("{place} {token}\n");
        }
        // Owners have dots in their names: what follows the last one is no extension.
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
        let had = self.had.iter().map(|(_, place, token)| (place.as_str(), token.as_str()));
        if give_back(&self.client, had) {
            let _ = fs::remove_file(&self.note);
        }
    }
}

/// Gives places back; false when labgrid can't be asked. What another has by now stays his.
fn give_back<'a>(client: &Client, had: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
    let one = |place: &str, token: &str| {
        let released = client.run(&["-p", place, "release"], PATIENCE).is_ok();
        let cancelled = client.run(&["cancel-reservation", token], PATIENCE).is_ok();
        // Either fails where there was nothing to give back; asking tells that from silence.
        released || cancelled || client.run(&["-p", place, "show"], PATIENCE).is_ok()
    };
    std::thread::scope(|scope| {
        let all: Vec<_> =
            had.map(|(place, token)| scope.spawn(move || one(place, token))).collect();
        // No short cut: each is waited for.
        let done: Vec<bool> = all.into_iter().map(|one| one.join().unwrap_or(false)).collect();
        done.into_iter().all(|is_given_back| is_given_back)
    })
}

/// Gives back what processes of this machine have left that are gone, where it came from the
/// same coordinator: another may be gone as well, and is asked when it is needed.
fn clean_up_after_the_dead(state: &Path, asked: &Client) {
    for entry in fs::read_dir(state).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(owner) = name.strip_prefix(NOTES) else { continue };
        if !is_gone_from_here(owner.trim_end_matches(PART)) {
            continue;
        }
        // Two that clean up at once do it twice, which does no harm.
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let mut lines = text.lines().map(str::to_owned);
        let mut line = || lines.next().unwrap_or_default();
        let client = Client { program: line(), coordinator: line(), user: line() };
        if client.coordinator != asked.coordinator && !name.ends_with(PART) {
            continue;
        }
        let had = text.lines().skip(3).filter_map(|line| line.split_once(' '));
        if name.ends_with(PART) || give_back(&client, had) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn of_file(path: &Path, source: std::io::Error) -> BenchError {
    let (path, host) = (path.display().to_string(), "this machine".to_owned());
    BenchError::File { path, host, source }
}
