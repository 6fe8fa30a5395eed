//! One run: once, or once more.

use super::dut::Dut;
use super::traffic::{self, Armed, Wanted};
use super::{Ssh, held, reboot};
use crate::cpu;
use crate::dut::counters::Reading;
use crate::dut::linux::Findings;
use crate::dut::remote::Prepared;
use crate::error::BenchError;
use crate::host::Host;
use crate::lab::links::Links;
use crate::testbed::asked::{Asked, awaited};
use crate::testbed::doubts::{Pressure, doubts};
use crate::testbed::netns::{now_text, observed_ns};
use crate::testbed::rate;
use crate::testbed::stopwatch::Stopwatch;
use crate::trial::{self, Alternation, Moment, Observed, Order, SystemClock};
use crate::{Observer, Task};
use fwdlab_model::plan::Trial;
use fwdlab_model::record::{Counter, Counts, RunRecord, queues};
use fwdlab_model::settings::{Reboot, Settings};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Rate of the packets that find out whether a DUT forwards, packets per second.
const TRICKLE_PPS: f64 = 1000.0;
/// As many must come through.
const TRICKLE: u64 = 10;
/// Time that they are given: links come up, bridges learn.
const TRICKLE_PATIENCE: Duration = Duration::from_secs(20);
/// Boots that a variant may need: into a revision, with its files, and one to spare.
const BOOTS_MAX: u32 = 3;
/// Some drivers fetch their counters from the card every second or two.
const SETTLING: Duration = Duration::from_millis(2500);

impl Ssh {
    /// Carries a run out; once more when hosts were lost meanwhile or something failed.
    ///
    /// # Errors
    /// What the user must correct, and interruptions, at once; a second failure gives the
    /// variant up.
    pub(super) fn insist(
        &mut self,
        task: Task<'_>,
        observer: &mut dyn Observer,
    ) -> Result<RunRecord, BenchError> {
        let variant = task.run.variants[0];
        let mut repeated = None;
        loop {
            let before = match reboot::mark(self.rack.dut()?.host()) {
                Ok(mark) => mark,
                Err(_) => {
                    reboot::wait(&self.rack, None, observer)?;
                    reboot::mark(self.rack.dut()?.host())?
                }
            };
            let error = match self.execute(task, observer) {
                Ok(mut record) => {
                    record.facts.extend(repeated.map(|why| ("repeated after".into(), why)));
                    return Ok(record);
                }
                Err(error @ (BenchError::Refused(_) | BenchError::Interrupted)) => {
                    return Err(error);
                }
                Err(_) if observer.cancelled() => return Err(BenchError::Interrupted),
                Err(error) => error,
            };
            observer.step("finding the hosts again");
            let booted = reboot::recover(&self.rack, &before, observer)?;
            let dut = &self.rack.dut()?.described.name;
            let and = if booted { format!("; {dut} has booted meanwhile") } else { String::new() };
            let why = format!("{error}{and}").replace('\n', ";");
            if repeated.is_some() {
                self.given_up.insert(variant, why.clone());
                return Err(BenchError::GivenUp { variant, why });
            }
            repeated = Some(why);
        }
    }

    fn execute(
        &mut self,
        task: Task<'_>,
        observer: &mut dyn Observer,
    ) -> Result<RunRecord, BenchError> {
        let plan = task.plan;
        let first = task.run.variants[0];
        let settings = &plan.variants[first].settings;
        let run_id = plan.run_id(task.run.index);
        let started_at = now_text();
        let mut watch = Stopwatch::default();
        let mut findings = Findings::default();

        self.prepare(settings, &plan.trial, &mut watch, observer)?;
        observer.step("configuring the DUT");
        let (host, dut) = (self.rack.dut()?.host(), &mut self.dut);
        dut.remote().configure(host, settings, &mut findings)?;
        verify_levels(dut, host, task, &mut findings)?;
        watch.lap("configure");
        observer.step("trying whether it forwards");
        self.forwards(task, settings, observer)?;
        watch.lap("first packets");

        observer.step("arming");
        let rate_pps = rate::of(&task, settings)?;
        let wanted = Wanted { settings, run_id, rate_pps, trial: &plan.trial };
        let mut armed = traffic::arm(&self.rack, &self.links, &wanted)?;
        let facts = armed.facts();
        let senders = self.senders(settings);
        let (host, dut) = (self.rack.dut()?.host(), &mut self.dut);
        let mut before = dut.remote().read(host)?;
        before.extend(dut.queues(host, &self.links));
        let others = armed.as_traffic().snapshot().others();
        watch.lap("arm");

        observer.step("traffic");
        let mut in_force = first;
        let dut = RefCell::new(dut);
        let mut switch = |next: usize| {
            let (from, to) = (&plan.variants[in_force].settings, &plan.variants[next].settings);
            in_force = next;
            dut.borrow_mut().switch(host, from, to)
        };
        let mut account = Asked {
            drops: &|| {
                let mut dut = dut.borrow_mut();
                let now = dut.remote().read(host).ok()?;
                Some(dut.remote().drops(&before, &now, Counts::default(), 0, settings))
            },
            states: &|| dut.borrow_mut().states(host, &settings.dut.firewall),
        };
        let mut cpu_times = Vec::new();
        let mut read_cpus = |moment| {
            // Before the window opens: the answer takes a round trip.
            if !matches!(moment, Moment::Open(_)) {
                cpu_times.push(dut.borrow().cpu_times(host));
            }
        };
        let cycle = |number| task.plan.cycle(task.run, number);
        let order = Order {
            trial: &plan.trial,
            rate_pps,
            variant: first,
            alternation: plan.design.alternate_ns.map(|slice_ns| Alternation {
                slice_ns,
                settle_ns: plan.design.settle_ns,
                length: task.run.variants.len() as u32,
                cycle: &cycle,
                switch: &mut switch,
            }),
            at_window: &mut read_cpus,
            awaited: awaited(settings, senders),
            account: &mut account,
        };
        let observed = trial::run(armed.as_traffic(), &SystemClock, order, observer)?;
        watch.skip(observed_ns(&plan.trial, &observed));
        watch.lap("stop and drain");
        let (dut, ended) = (dut.into_inner(), armed.end()?);
        let others = observed.others().saturating_sub(others);
        let total = observed.at_the_dut(others);
        let (after, mut counters) = settled(dut, host, &self.links, &before, total)?;
        let cpus = match cpu_times.as_slice() {
            [open, close] => cpu::difference(open, close, &self.placement),
            _ => Vec::new(),
        };
        if observed.total.lost() > 0 {
            for place in dut.remote().drops(&before, &after, observed.total, 0, settings) {
                findings.facts.insert(format!("lost: {}", place.place), place.packets.to_string());
            }
        }
        watch.lap("read");

        counters.extend(ended.counters);
        let mut warnings = observed.warnings.clone();
        warnings.extend(findings.warnings);
        findings.facts.extend(ended.facts);
        for (number, remark) in (1..).zip(ended.remarks) {
            findings.facts.insert(format!("generator's remark {number}"), remark);
        }
        warnings.extend(doubts(
            &observed,
            settings,
            &self.placement,
            Pressure::Overloads,
            &task,
            &counters,
            &cpus,
        ));
        findings.facts.extend(facts);
        findings.facts.extend(self.facts(settings));
        Ok(RunRecord {
            run: task.run.index,
            block: task.run.block,
            variants: task.run.variants.clone(),
            run_id,
            started_at,
            trial: observed.into_record(counters, cpus),
            facts: findings.facts,
            warnings,
            overhead_ns: watch.laps,
        })
    }

    /// What holds from boot on is brought there, and booted where that is needed.
    pub(super) fn prepare(
        &mut self,
        settings: &Settings,
        trial: &Trial,
        watch: &mut Stopwatch,
        observer: &mut dyn Observer,
    ) -> Result<(), BenchError> {
        observer.step("preparing the DUT");
        let reached = self.rack.dut()?;
        self.rack.all().iter().try_for_each(|host| self.locks.hold(host, held(trial)))?;
        let mut boots = 0;
        loop {
            // A new connection after each boot.
            let host = reached.host();
            let prepared = self.dut.remote().prepare(host, settings)?;
            watch.lap("prepare");
            let reasons = match (prepared, settings.dut.remote.reboot) {
                (Prepared::Ready, Reboot::Always) if boots == 0 => {
                    vec!["before every run".to_owned()]
                }
                (Prepared::Ready, _) => return Ok(()),
                (Prepared::Reboot(reasons), Reboot::Never) => {
                    return Err(BenchError::Refused(format!(
                        "reboot = \"never\", but a variant needs one: {}",
                        reasons.join("; ")
                    )));
                }
                (Prepared::Reboot(reasons), _) => reasons,
            };
            let (name, reasons) = (&reached.described.name, reasons.join("; "));
            if boots == BOOTS_MAX {
                return Err(BenchError::environment(
                    format!("{name} has booted {boots} times and needs it again: {reasons}"),
                    "see that it boots from where its files were changed",
                ));
            }
            observer.step(&format!("rebooting {name}: {reasons}"));
            let before = reboot::mark(host)?;
            self.dut.remote().reboot(host)?;
            reboot::wait(&self.rack, Some(&before), observer)?;
            // The lock went with the boot.
            self.locks.hold(reached, held(trial))?;
            watch.lap("reboot");
            boots += 1;
        }
    }

    /// Sends a few packets until some come through: a DUT that answers does not forward
    /// yet.
    fn forwards(
        &mut self,
        task: Task<'_>,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<(), BenchError> {
        // An identity that no run has.
        let run_id = task.plan.run_id(task.run.index | 1 << 30);
        // testpmd keeps no rate.
        let rate_pps = settings.traffic.generator.keeps_rate().then_some(TRICKLE_PPS);
        let wanted = Wanted { settings, run_id, rate_pps, trial: &task.plan.trial };
        let mut armed = traffic::arm(&self.rack, &self.links, &wanted)?;
        let host = self.rack.dut()?.host();
        let before = self.dut.remote().read(host)?;
        let traffic = armed.as_traffic();
        traffic.start()?;
        let deadline = Instant::now() + TRICKLE_PATIENCE;
        loop {
            std::thread::sleep(Duration::from_millis(20));
            let seen = traffic.snapshot();
            let received: u64 = seen.received.iter().sum();
            if received >= TRICKLE {
                traffic.stop()?;
                // What is under way must not be counted by the trial.
                std::thread::sleep(Duration::from_millis(50));
                traffic.finish()?;
                return armed.end().map(drop);
            }
            if observer.cancelled() {
                return Err(BenchError::Interrupted);
            }
            if Instant::now() >= deadline {
                traffic.stop()?;
                let sent: u64 = traffic.snapshot().sent.iter().sum();
                let after = self.dut.remote().read(host)?;
                return Err(self.does_not_forward(sent, received, &before, &after));
            }
        }
    }

    /// What is known of packets that did not come through.
    fn does_not_forward(
        &self,
        sent: u64,
        received: u64,
        before: &Reading,
        after: &Reading,
    ) -> BenchError {
        let delta = |interface: &str, column: &str| {
            let name = format!("{interface} {column}");
            let value = |reading: &Reading| reading.get(&name).copied().unwrap_or(0);
            value(after).saturating_sub(value(before))
        };
        let [ingress, egress] = self.links.both().map(|link| link.interface.as_str());
        let (came, went) = (delta(ingress, "rx_packets"), delta(egress, "tx_packets"));
        let next = match (came, went) {
            (0, _) => format!(
                "nothing reaches {ingress}: follow the cable from the sender (`fwdlab lab show`)"
            ),
            (_, 0) => "it receives and does not send: see its routes and its firewall".to_owned(),
            _ => format!("it sends on {egress}: follow the cable to the receiver"),
        };
        BenchError::environment(
            format!(
                "the DUT does not forward: of {sent} packets {received} came through within {} s; \
                 {ingress} counted {came} in, {egress} {went} out",
                TRICKLE_PATIENCE.as_secs()
            ),
            next,
        )
    }

    /// Sending threads in all, each of which goes through all flows.
    pub(super) fn senders(&self, settings: &Settings) -> usize {
        self.links.ingress.peers.len() * usize::from(settings.testbed.senders.max(1))
    }

    /// What does not depend on a run.
    pub(super) fn facts(&self, settings: &Settings) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::from([
            ("laboratory".to_owned(), self.rack.lab.name.clone()),
            ("generator".to_owned(), settings.traffic.generator.name().to_owned()),
            ("dut CPUs".to_owned(), format!("{:?}", self.placement.dut)),
        ]);
        for reached in self.rack.all() {
            let (described, system) = (&reached.described, reached.system.uname());
            let text = format!("{system} {}", reached.release);
            facts.insert(format!("host {}", described.name), text);
        }
        facts
    }
}

/// Tries every level once before traffic flows, and ends at the first one.
fn verify_levels(
    dut: &mut Dut,
    host: &dyn Host,
    task: Task<'_>,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    if task.run.variants.len() < 2 {
        return Ok(());
    }
    let mut levels = task.run.variants.clone();
    levels.push(task.run.variants[0]);
    for pair in levels.windows(2).filter(|pair| pair[0] != pair[1]) {
        let [from, to] = [pair[0], pair[1]].map(|index| &task.plan.variants[index].settings);
        dut.switch(host, from, to)?;
        dut.verify_live(host, from, to, findings)?;
    }
    Ok(())
}

/// A plain trial at the highest rate.
pub(super) fn trial(
    armed: &mut Armed<'_>,
    trial: &Trial,
    observer: &mut dyn Observer,
) -> Result<Observed, BenchError> {
    trial::plain(armed.as_traffic(), trial, observer)
}

/// The DUT's counters after a trial, as soon as they agree with ours, or after some time.
pub(super) fn settled(
    dut: &mut Dut,
    host: &dyn Host,
    links: &Links,
    before: &Reading,
    total: Counts,
) -> Result<(Reading, Vec<Counter>), BenchError> {
    let deadline = Instant::now() + SETTLING;
    let queues = before.keys().any(|name| queues::parse_name(name).is_some());
    loop {
        let mut after = dut.remote().read(host)?;
        if queues {
            after.extend(dut.queues(host, links));
        }
        let counters = dut.remote().compare(before, &after, total);
        let agrees =
            |counter: &Counter| counter.expected.is_none_or(|expected| counter.delta() >= expected);
        if counters.iter().all(agrees) || Instant::now() >= deadline {
            return Ok((after, counters));
        }
        std::thread::sleep(Duration::from_millis(250));
    }
}
