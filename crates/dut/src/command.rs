//! Any program that forwards between two interfaces: commands start, query and stop it.
//!
//! The commands come from the experiment; the testbed fills in interfaces and addresses.
//! Counters are parsed from the output of one of them. The program runs on the DUT's CPUs.
//!
//! Not supported: reconfiguring a running program, and therefore alternation.

use super::counters::{self, ProgramCounter};
use super::{Dut, DutContext, Loss, Reading, Totals, program, queues};
use crate::cpu::{Placement, list};
use crate::findings::Findings;
use crate::links::{Peer, mac};
use fwdlab_host::error::BenchError;
use fwdlab_host::{Host, Running, quote};
use fwdlab_model::record::{Counter, DropPlace};
use fwdlab_model::settings::{CommandSettings, Settings};
use fwdlab_packet::forwarding::Class;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Time limit for a program to become ready.
const START: Duration = Duration::from_secs(60);
/// Interval of readiness checks.
const PAUSE: Duration = Duration::from_millis(50);
/// Time limit for a program to exit.
const END: Duration = Duration::from_secs(10);

/// The DUT.
pub(super) struct CommandDut<'a> {
    context: DutContext<'a>,
    /// Commands of the current variant, placeholders filled in.
    commands: CommandSettings,
    /// The program, if it stays in the foreground.
    running: Option<Box<dyn Running>>,
    is_started: bool,
}

impl<'a> CommandDut<'a> {
    pub(super) fn new(context: DutContext<'a>) -> CommandDut<'a> {
        let commands = CommandSettings::default();
        CommandDut { context, commands, running: None, is_started: false }
    }

    /// Waits until the program reports ready or its start command exits with status 0.
    fn wait_until_ready(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        let deadline = Instant::now() + START;
        loop {
            self.check_running(host)?;
            let ready = match self.commands.ready.as_slice() {
                [] => Ok(()),
                ready => run(host, ready).map(drop),
            };
            match ready {
                Ok(()) => return self.check_running(host),
                Err(error) if Instant::now() >= deadline => {
                    return Err(BenchError::environment(
                        format!("not ready within {} s: {error}", START.as_secs()),
                        "try `start` and `ready` by hand, and see what the program says",
                    ));
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Fails if the program has exited with a non-zero status. Status 0 is accepted: the program
    /// may continue in the background.
    fn check_running(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        let Some(program) = &mut self.running else { return Ok(()) };
        if !program.has_ended() {
            return Ok(());
        }
        let ended = program.wait(Duration::ZERO);
        self.running = None;
        if ended.well {
            return Ok(());
        }
        let mut last_lines: Vec<&str> = ended.errors.trim().lines().rev().take(8).collect();
        last_lines.reverse();
        let why = match last_lines.is_empty() {
            true => ended.status,
            false => format!("{}: {}", ended.status, last_lines.join("; ")),
        };
        let command = self.commands.start.join(" ");
        Err(BenchError::Program { command, host: host.name().to_owned(), why })
    }

    /// Records the stop command: if this process is killed, the next one stops the program.
    fn note_stop(&self, host: &dyn Host) -> Result<(), BenchError> {
        if self.commands.stop.is_empty() {
            return Ok(());
        }
        let stop: Vec<&str> = self.commands.stop.iter().map(String::as_str).collect();
        let line = quote(&stop).map_err(|why| BenchError::Refused(format!("stop: {why}")))?;
        // The program may have been stopped by then: its failure is no setting left behind.
        self.context.keeper.note(host, &[format!("({line}) >/dev/null 2>&1 || :")])
    }

    /// Stops the program, with its own stop command if there is one. Idempotent.
    fn end(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        let stopped = match self.commands.stop.as_slice() {
            [] => Ok(()),
            stop => run(host, stop).map(drop),
        };
        if let Some(mut program) = self.running.take() {
            if self.commands.stop.is_empty() {
                program.interrupt();
            }
            program.wait(END);
        }
        self.is_started = false;
        stopped
    }
}

impl Dut for CommandDut<'_> {
    fn configure(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
        placement: &Placement,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        self.commands =
            fill_placeholders(&settings.dut.command, &self.context, settings, placement);
        // A killed earlier process may have left the program running.
        let _ = self.end(host);
        findings.accept_not_put_back(self.undo(host))?;
        program::configure(host, &self.context, settings, placement, findings)?;
        let cpus = list(&placement.dut);
        let pinned = ["taskset", "-c", &cpus].map(str::to_owned);
        let start = pinned.into_iter().filter(|_| !cpus.is_empty());
        let start: Vec<String> = start.chain(self.commands.start.iter().cloned()).collect();
        let argv: Vec<&str> = start.iter().map(String::as_str).collect();
        self.note_stop(host)?;
        self.running = Some(host.spawn(&argv)?);
        self.is_started = true;
        self.wait_until_ready(host)?;
        findings.facts.insert("command".into(), fwdlab_model::words::join(&self.commands.start));
        Ok(())
    }

    fn tells_when_ready(&self) -> bool {
        false
    }

    fn reset(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
        placement: &Placement,
        findings: &mut Findings,
    ) -> Result<Option<String>, BenchError> {
        self.stop(host)?;
        self.configure(host, settings, placement, findings)?;
        Ok(Some("the program ended and started again".into()))
    }

    fn is_program(&self) -> bool {
        true
    }

    fn read(&mut self, host: &dyn Host) -> Result<Reading, BenchError> {
        self.check_running(host)?;
        let machine = counters::read(host, self.context.links)?;
        let own = match self.commands.statistics.as_slice() {
            [] => Vec::new(),
            statistics => parse_counters(&run(host, statistics)?, &self.commands)?,
        };
        Ok(Reading { machine, own })
    }

    fn queues(&self, host: &dyn Host) -> counters::Reading {
        queues::of_both(host, self.context.links)
    }

    fn compare(&self, before: &Reading, after: &Reading, totals: Totals) -> Vec<Counter> {
        counters::compare(before, after, totals, self.context.links)
    }

    fn drops(&self, loss: &Loss<'_>) -> Vec<DropPlace> {
        let program_name = self.commands.start.first().map_or("", String::as_str);
        let program_name = program_name.rsplit('/').next().unwrap_or(program_name);
        program::drops(program_name, loss, self.context.links)
    }

    fn stop(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        // Also a program that has failed may have left something to stop.
        let checked = self.check_running(host);
        let ended = if self.is_started { self.end(host) } else { Ok(()) };
        checked.and(ended)
    }

    fn undo(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        if self.is_started {
            let _ = self.end(host);
        }
        self.context.keeper.undo(host)
    }
}

fn run(host: &dyn Host, argv: &[String]) -> Result<String, BenchError> {
    host.run(&argv.iter().map(String::as_str).collect::<Vec<_>>(), "")
}

/// Returns the commands with all [`PLACEHOLDERS`](fwdlab_model::settings::PLACEHOLDERS) filled in.
fn fill_placeholders(
    commands: &CommandSettings,
    context: &DutContext<'_>,
    settings: &Settings,
    placement: &Placement,
) -> CommandSettings {
    let links = context.links;
    let [ingress, egress] = links.both();
    let peer = |peers: &[Peer]| peers.first().map(|peer| mac::text(peer.mac));
    let values = [
        ("{ingress}", ingress.interface.clone()),
        ("{egress}", egress.interface.clone()),
        ("{ingress_mac}", mac::text(ingress.mac)),
        ("{egress_mac}", mac::text(egress.mac)),
        ("{sender_mac}", peer(&ingress.peers).unwrap_or_default()),
        ("{receiver_mac}", peer(&egress.peers).unwrap_or_default()),
        ("{cpus}", list(&placement.dut)),
        ("{queues}", settings.dut.queues.to_string()),
        ("{run}", format!("fwdlab-{}", std::process::id())),
    ];
    let word = |word: &String| {
        values.iter().fold(word.clone(), |text, (name, value)| text.replace(name, value))
    };
    let words = |words: &Vec<String>| words.iter().map(word).collect();
    CommandSettings {
        start: words(&commands.start),
        ready: words(&commands.ready),
        stop: words(&commands.stop),
        statistics: words(&commands.statistics),
        counters: commands.counters.iter().map(|(k, v)| (k.clone(), word(v))).collect(),
        rewrites: commands.rewrites,
    }
}

/// Parses the counters in the output of the program's counter command.
fn parse_counters(
    text: &str,
    commands: &CommandSettings,
) -> Result<Vec<ProgramCounter>, BenchError> {
    let json: Option<Value> = serde_json::from_str(text).ok();
    let counters = commands.counters.iter().map(|(name, pattern)| {
        let class = match name.as_str() {
            "received" => Class::Received,
            "forwarded" => Class::Forwarded,
            name if name.starts_with("dropped") => Class::Dropped,
            _ => Class::Extra,
        };
        let found = match pattern.starts_with('/') {
            true => json.as_ref().and_then(|json| at(json, pattern)),
            false => matched(text, pattern),
        };
        found.map(|packets| ProgramCounter::new(name, class, packets)).ok_or_else(|| {
            let beginning: String = text.chars().take(300).collect();
            BenchError::Refused(format!(
                "counter `{name}`: `{pattern}` finds no number in what `{}` prints\n  it begins: \
                 {}\n  next step: run it by hand while the program runs, and correct `counters`",
                commands.statistics.join(" "),
                beginning.trim().replace('\n', " | ")
            ))
        })
    });
    counters.collect()
}

/// The number at a JSON pointer; it may be a string.
fn at(json: &Value, pointer: &str) -> Option<u64> {
    match json.pointer(pointer)? {
        Value::String(text) => text.trim().parse().ok(),
        number => number.as_u64(),
    }
}

/// Sum of all matches of a pattern's capture group.
fn matched(text: &str, pattern: &str) -> Option<u64> {
    let pattern = regex_lite::Regex::new(pattern).ok()?;
    let numbers = pattern.captures_iter(text).map(|found| found.get(1)?.as_str().parse().ok());
    let numbers: Option<Vec<u64>> = numbers.collect();
    let numbers = numbers.filter(|numbers| !numbers.is_empty())?;
    Some(numbers.into_iter().fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::place;
    use crate::links::Links;
    use crate::router::Wires;
    use crate::undo::Undo;
    use fwdlab_host::{FakeHost, FakeProgram};
    use fwdlab_model::settings::Arrangement;
    use std::path::Path;
    use std::sync::Mutex;

    fn commands(counters: &[(&str, &str)]) -> CommandSettings {
        let pairs = counters.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        CommandSettings { counters: pairs.collect(), ..CommandSettings::default() }
    }

    #[test]
    fn placeholders_are_filled_in() {
        let (links, wires) = (Links::of_namespaces(), Wires::Sockets);
        let placement = place(&[0, 1], Arrangement::Open, 1, 1);
        let here = Path::new("");
        let context = DutContext {
            links: &links,
            experiment: here,
            program: here,
            keeper: &Undo,
            wires: &wires,
        };
        let mut settings = Settings::default();
        settings.dut.queues = 2;
        let names = fwdlab_model::settings::PLACEHOLDERS.map(|(name, _)| name).join(" ");
        settings.dut.command.start = vec!["x".into(), names];
        let found = fill_placeholders(&settings.dut.command, &context, &settings, &placement);
        assert!(
            found.start[1].starts_with(
                "d0 d1 02:19:80:00:00:02 02:19:80:00:00:03 02:19:80:00:00:01 02:19:80:00:00:04 1 2 \
                 fwdlab-"
            ),
            "{:?}",
            found.start
        );
        assert!(!found.start[1].contains('{'));
    }

    #[test]
    fn counters_are_parsed_from_text_or_json() {
        let text = "port 0: rx:10 drop:1\nport 1: rx:20 drop:2\n";
        let found = parse_counters(
            text,
            &commands(&[("forwarded", r"rx:(\d+)"), ("dropped", r"drop:(\d+)")]),
        );
        let found = found.expect("both");
        assert_eq!((found[0].class, found[0].packets), (Class::Dropped, 3));
        assert_eq!((found[1].class, found[1].packets), (Class::Forwarded, 30));
        let json = r#"{"/ethdev/stats,0": {"ipackets": 7, "text": "8"}}"#;
        let of = |pointer| parse_counters(json, &commands(&[("received", pointer)]));
        let packets = |pointer| of(pointer).expect("found")[0].packets;
        assert_eq!(packets("/~1ethdev~1stats,0/ipackets"), 7);
        assert_eq!(packets("/~1ethdev~1stats,0/text"), 8);
        let error = of("/nothing").expect_err("not there").to_string();
        assert!(error.contains("`/nothing` finds no number"), "{error}");
        let error =
            parse_counters(text, &commands(&[("x", r"tx:(\d+)")])).expect_err("none").to_string();
        assert!(error.contains("counter `x`") && error.contains("port 0: rx:10"), "{error}");
    }

    #[test]
    fn stop_is_recorded_before_start_and_runs_after_a_failure() {
        let (links, wires, here) = (Links::of_namespaces(), Wires::Sockets, Path::new(""));
        let context = DutContext {
            links: &links,
            experiment: here,
            program: here,
            keeper: &Undo,
            wires: &wires,
        };
        let mut settings = Settings::default();
        settings.dut.command.start = vec!["forward".into()];
        settings.dut.command.stop = ["halt", "it's\n{ingress}"].map(str::to_owned).into();
        let mut host = FakeHost::default();
        let flags = |name: &str| (format!("/sys/class/net/{name}/flags"), "0x1003".to_owned());
        host.files = Mutex::new(["d0", "d1"].map(flags).into());
        // Ends with an error.
        host.programs.insert("taskset -c".into(), FakeProgram::default());
        let placement = place(&[0, 1], Arrangement::Open, 1, 1);
        let mut dut = CommandDut::new(context);
        dut.configure(&host, &settings, &placement, &mut Findings::default()).expect_err("ended");
        dut.stop(&host).expect("stopped");
        let commands = host.commands.lock().expect("commands");
        let at = |word: &str| commands.iter().position(|(argv, _)| argv[0] == word);
        let last_stop = commands.iter().rposition(|(argv, _)| argv[0] == "halt");
        let (start, stop) = (at("taskset").expect("started"), last_stop.expect("stopped"));
        assert!(start < stop);
        assert_eq!(commands[stop].0[1], "it's\nd0");
        let note = commands[..start].iter().flat_map(|(argv, _)| argv).find(|word| {
            word.starts_with("run (") && word.ends_with("|| :") && word.contains("halt")
        });
        assert!(!note.expect("a note").contains('\n'));
    }
}
