//! Sender, DUT and receiver as network namespaces of this machine's kernel.

mod ceiling;
mod device;
mod profile;
mod receiver;
mod spread;

use super::account::Account;
use super::asked::{Asked, awaited};
use super::doubts::{Pressure, doubts};
use super::evidence::Witness;
use super::stopwatch::Stopwatch;
use super::traffic::{NetnsTraffic, open_receiver, open_sender};
use super::wiring::Wiring;
use super::{Choice, Paths, Testbed, rate};
use crate::arrivals;
use crate::cpu::{self, Placement};
use crate::dut::findings::not_put_back;
use crate::dut::linux::{Findings, mac};
use crate::dut::{linux, nft};
use crate::error::BenchError;
use crate::host::{Host, LocalHost, NamespaceHost};
use crate::journal::Journal;
use crate::lab::links::Links;
use crate::probe::{self, Privilege, Receiving};
use crate::profiler::RawProfile;
use crate::trial::{self, Alternation, Clock, Moment, Observed, Order, SystemClock};
use crate::{Observer, Task, calibrate};
use device::{Device, together};
use fwdlab_model::plan::{Plan, Trial};
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::{
    Calibration, Counts, ProfileRecord, ReceiverPlace, RunRecord, TrialRecord,
};
use fwdlab_model::settings::{DutKind, Engine, Family, Firewall, Settings};
use fwdlab_model::warning::Warning;
use fwdlab_packet::Template;
use fwdlab_packet::arrivals::Expected;
use fwdlab_port::{SenderConfig, Watch, affinity, sender};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Frames handed over at once at the maximum rate. By trial of 8 to 256: smaller
/// batches pay more for flushing, larger ones gain nothing measurable.
const BATCH: u32 = 64;

/// The testbed.
#[derive(Debug)]
pub struct Netns {
    journal: Journal,
    paths: Paths,
    engine: Engine,
    receiving: Receiving,
    /// The plan has variants of several queues, which all are sent to.
    spreads: bool,
    cpus: Vec<u16>,
    choice: Choice,
}

impl Netns {
    /// Cleans up after predecessors, then finds out by trying how this machine
    /// can send and receive.
    ///
    /// # Errors
    /// [`BenchError::Environment`] when namespaces can't be had here.
    pub fn open(privilege: &Privilege, paths: &Paths, engine: Engine) -> Result<Netns, BenchError> {
        if let Privilege::None { why } = privilege {
            return Err(BenchError::environment(
                format!("network namespaces need root or a user namespace: {why}"),
                "run as root, or allow user namespaces (sysctl user.max_user_namespaces)",
            ));
        }
        probe::need_program("ip", "iproute2")?;
        probe::need_program("ethtool", "ethtool")?;
        let journal = Journal::open(&paths.state)?;
        let (engine, receiving, mut reasons) = probe::find_engines(&journal, engine)?;
        reasons.extend(journal.left().iter().map(|left| format!("not put back: {left}")));
        if *privilege == Privilege::UserNamespace {
            reasons.push(
                "no root: everything lies in a user namespace of this process; BPF and the \
                 placement of kernel threads are not allowed there, which costs about two \
                 thirds of the sender's rate"
                    .into(),
            );
        }
        let choice = Choice { kind: "netns", simulated: false, reasons };
        let paths = paths.clone();
        let (cpus, spreads) = (affinity::allowed_cpus()?, false);
        Ok(Netns { journal, paths, engine, receiving, spreads, cpus, choice })
    }

    /// Tries what the plan's variants need beyond sending: each firewall is loaded
    /// once, IPv6 must be there for inet6, and all queues must be reached.
    ///
    /// # Errors
    /// [`BenchError::Environment`] that names what this machine lacks, and
    /// [`BenchError::Refused`] for variants that would not be what they are called.
    pub fn check(&mut self, plan: &Plan) -> Result<(), BenchError> {
        self.spread(plan)?;
        // The router needs nothing of the kernel's.
        let settings = || {
            let all = plan.variants.iter().map(|variant| &variant.settings);
            all.filter(|settings| settings.dut.kind != DutKind::Router)
        };
        if settings().any(|s| s.traffic.family == Family::Inet6) {
            linux::need_inet6(&LocalHost)?;
        }
        let mut firewalls: Vec<&Firewall> = Vec::new();
        for firewall in settings().map(|s| &s.dut.firewall).filter(|f| **f != Firewall::None) {
            if !firewalls.contains(&firewall) {
                firewalls.push(firewall);
            }
        }
        if firewalls.is_empty() {
            return Ok(());
        }
        probe::need_program("nft", "nftables")?;
        let wiring = Wiring::up(&self.journal, 1, false)?;
        let namespace = wiring.receiver.name().to_owned();
        for firewall in firewalls {
            let argv = ["ip", "netns", "exec", &namespace, "nft", "-f", "-"];
            LocalHost.run(&argv, &nft::ruleset(firewall).text).map_err(|error| match firewall {
                // A user's own file: nothing to fall back from.
                Firewall::Ruleset { file, .. } => BenchError::Refused(format!(
                    "ruleset {file} can't be loaded: {error}\n  next step: `nft -c -f {file}`"
                )),
                _ => BenchError::environment(
                    format!("firewall {firewall} can't be loaded: {error}"),
                    "the kernel needs CONFIG_NF_TABLES and CONFIG_NF_CONNTRACK",
                ),
            })?;
        }
        wiring.down()
    }

    /// The sending mechanism for a variant: the one that it names, else the best
    /// one found by probing.
    fn engine(&self, settings: &Settings) -> Engine {
        match settings.testbed.engine {
            Engine::Auto => self.engine,
            named => named,
        }
    }

    /// Name of the sending mechanism for a variant.
    pub fn sender(&self, settings: &Settings) -> &'static str {
        probe::engine_name(self.engine(settings))
    }

    /// Name of the receiving mechanism in use.
    pub fn receiver(&self) -> &'static str {
        self.receiving.name()
    }

    fn place(&self, settings: &Settings) -> Placement {
        let (testbed, queues) = (&settings.testbed, settings.dut.queues);
        // Only a program in the driver makes r0 be polled at all.
        let place = match self.receiving {
            Receiving::Xdp => cpu::place_all,
            Receiving::XdpGeneric | Receiving::Packet => cpu::place,
        };
        // A queue is one CPU's: there are never more senders than queues.
        let most = if self.is_spread(settings) { queues.max(1) } else { u16::MAX };
        place(&self.cpus, testbed.arrangement, testbed.senders.min(most), queues)
    }

    fn arm(
        &self,
        wiring: &Wiring,
        settings: &Settings,
        placement: &Placement,
        run_id: u32,
        rate_pps: Option<f64>,
        threads: &[u32],
    ) -> Result<NetnsTraffic, BenchError> {
        let traffic = &settings.traffic;
        let flows = traffic.flows;
        let family = traffic.family;
        let next_hop = if wiring.dut.is_some() { mac::INGRESS } else { mac::RECEIVER };
        let template =
            Template::new(family, traffic.frame_size.0, flows, run_id, mac::SENDER, next_hop);
        let watch = Watch::Packets(Box::new(Expected {
            template: template.clone(),
            destination_mac: Some(mac::RECEIVER),
            source_mac: Some(if wiring.dut.is_some() { mac::EGRESS } else { mac::SENDER }),
            hops: u8::from(wiring.dut.is_some()),
            senders: placement.senders.len() as u8,
            timestamps: traffic.timestamps,
            same_clock: true,
        }));
        let receiver =
            open_receiver(self.receiving, &wiring.receiver, "r0", &watch, &placement.dut)?;
        let mut turns = match self.is_spread(settings) {
            true => spread::turns(&template, settings.dut.queues, placement.senders.len()),
            false => Vec::new(),
        }
        .into_iter();
        let senders = placement
            .senders
            .iter()
            .enumerate()
            .map(|(number, &cpu)| {
                open_sender(
                    self.engine(settings),
                    &SenderConfig {
                        namespace: wiring.sender.clone(),
                        interface: "g0".into(),
                        cpu,
                        number: number as u8,
                        template: template.clone(),
                        rate_pps: sender::share_of_rate(rate_pps, placement.senders.len()),
                        burst: sender::burst(placement.senders.len()),
                        timestamps: traffic.timestamps,
                        spread: turns.next(),
                        batch: BATCH,
                    },
                )
            })
            .collect::<Result<Vec<_>, _>>()?;
        let checked = arrivals::checked(&watch);
        let sending: Vec<u32> = senders.iter().filter_map(|sender| sender.task()).collect();
        let witness = Witness::new(placement, threads, &sending);
        Ok(NetnsTraffic { senders, sent: [0; 4], receiver, checked, witness })
    }

    fn execute(
        &self,
        task: Task<'_>,
        placement: &Placement,
        observer: &mut dyn Observer,
    ) -> Result<RunRecord, BenchError> {
        let plan = task.plan;
        let first = task.run.variants[0];
        let settings = &plan.variants[first].settings;
        let run_id = plan.run_id(task.run.index);
        let started_at = now_text();
        let mut watch = Stopwatch::default();
        let mut findings = Findings::default();

        observer.step("namespaces");
        let wiring = Wiring::up(&self.journal, settings.dut.queues, true)?;
        watch.lap("namespaces");
        let namespace = wiring
            .dut
            .clone()
            .ok_or_else(|| BenchError::Refused("the testbed was wired without a DUT".into()))?;
        let host = NamespaceHost::new(&namespace, &placement.control)?;
        observer.step("configuring the DUT");
        let (journal, paths, links) = (&self.journal, &self.paths, Links::of_namespaces());
        let dut = Device::up(&host, journal, &links, paths, settings, placement, &mut findings)?;
        let mut dut = dut.fed_by(&wiring, &placement.control)?;
        if task.run.variants.len() > 1 {
            self.verify_levels(&dut, task, &mut findings)?;
        }
        watch.lap("configure");

        observer.step("arming");
        let rate_pps = rate::of(&task, settings)?;
        let mut traffic =
            self.arm(&wiring, settings, placement, run_id, rate_pps, &dut.threads())?;
        let polling = receiver::poll_or_say(&wiring, placement, &mut findings);
        let place = receiver::place(&polling, placement);
        if place == ReceiverPlace::Sender {
            traffic.witness.receiver_beside_senders(&polling);
        }
        let polled_on = if polling.is_empty() { &[] } else { &placement.receiver[..] };
        let mut times = Account::open(&dut.threads(), &polling, place, polled_on);
        let (before, others) = together(&mut traffic, &mut dut, &wiring)?;
        watch.lap("arm");

        observer.step("traffic");
        let mut in_force = first;
        let dut = RefCell::new(dut);
        let mut switch = |next: usize| {
            let (from, to) = (&plan.variants[in_force].settings, &plan.variants[next].settings);
            in_force = next;
            dut.borrow().switch(from, to)
        };
        let mut account = Asked {
            drops: &|| {
                let now = dut.borrow_mut().read().ok()?;
                let firewall = &settings.dut.firewall;
                Some(now.drops_since(&before, Counts::default(), 0, firewall))
            },
            states: &|| dut.borrow_mut().states(&settings.dut.firewall),
        };
        let mut cpu_times = Vec::new();
        let mut read_cpus = |moment| {
            if moment != Moment::Opening {
                times.read();
                let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
                cpu_times.push(cpu::times(&text));
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
            awaited: awaited(settings, self.rounds(settings, placement)),
            account: &mut account,
        };
        let observed = trial::run(&mut traffic, &SystemClock, order, observer)?;
        watch.skip(observed_ns(&plan.trial, &observed));
        watch.lap("stop and drain");
        let mut dut = dut.into_inner();
        let (after, others_after) = together(&mut traffic, &mut dut, &wiring)?;
        let others = others_after.saturating_sub(others);
        let counters = after.since(&before, observed.total, observed.at_the_dut(others));
        let cpus = match cpu_times.as_slice() {
            [open, close] => cpu::difference(open, close, placement),
            _ => Vec::new(),
        };
        watch.lap("read");

        observer.step("taking down");
        drop(traffic);
        dut.down()?;
        drop(host);
        wiring.down()?;
        let undone = self.journal.undo();
        watch.lap("take down");

        let mut warnings = observed.warnings.clone();
        // The run is over and counts; the next ones may meet another machine.
        warnings.extend(undone.err().map(not_put_back));
        warnings.extend(findings.warnings);
        let device = times.since_first();
        warnings.extend(receiver::doubt(&device, placement));
        let forwarded = observed.total.forwarded;
        warnings.extend(receiver::refused(&counters, forwarded, settings.traffic.rate, &device));
        if let Some(why) = &placement.fallback {
            let used = format!("{:?} arrangement", placement.arrangement).to_lowercase();
            warnings.push(Warning::Fallback { used, why: why.clone() });
        }
        warnings.extend(doubts(
            &observed,
            settings,
            placement,
            Pressure::Overloads,
            &task,
            &counters,
            &cpus,
        ));
        let mut facts = findings.facts;
        facts.extend(self.facts(settings, placement));
        let trial = TrialRecord { device, ..observed.into_record(counters, cpus) };
        Ok(RunRecord {
            run: task.run.index,
            block: task.run.block,
            variants: task.run.variants.clone(),
            run_id,
            started_at,
            trial,
            facts,
            warnings,
            overhead_ns: watch.laps,
        })
    }

    /// Tries every level once before traffic flows, and ends at the first one.
    fn verify_levels(
        &self,
        dut: &Device<'_>,
        task: Task<'_>,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        let mut levels = task.run.variants.clone();
        levels.push(task.run.variants[0]);
        for pair in levels.windows(2).filter(|pair| pair[0] != pair[1]) {
            let settings = |index: usize| &task.plan.variants[index].settings;
            dut.switch(settings(pair[0]), settings(pair[1]))?;
            dut.verify_live(settings(pair[0]), settings(pair[1]), findings)?;
        }
        Ok(())
    }

    fn facts(&self, settings: &Settings, placement: &Placement) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("sender".into(), self.sender(settings).to_owned()),
            ("receiver".into(), self.receiving.name().to_owned()),
            ("receive queues".into(), self.filled_by(settings).to_owned()),
            ("sender CPUs".into(), format!("{:?}", placement.senders)),
            ("dut CPUs".into(), format!("{:?}", placement.dut)),
            ("control CPUs".into(), format!("{:?}", placement.control)),
            ("arrangement".into(), format!("{:?}", placement.arrangement).to_lowercase()),
        ])
    }
}

impl Testbed for Netns {
    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn run(
        &mut self,
        task: Task<'_>,
        observer: &mut dyn Observer,
    ) -> Result<RunRecord, BenchError> {
        let placement = self.place(&task.plan.variants[task.run.variants[0]].settings);
        affinity::pin_thread(&placement.control)?;
        let result = self.execute(task, &placement, observer);
        affinity::pin_thread(&self.cpus)?;
        result
    }

    fn profile(
        &mut self,
        task: Task<'_>,
        plan: &ProfilePlan,
        observer: &mut dyn Observer,
    ) -> Result<(ProfileRecord, RawProfile), BenchError> {
        let placement = self.place(&task.plan.variants[task.run.variants[0]].settings);
        affinity::pin_thread(&placement.control)?;
        let result = self.execute_profile(task, plan, &placement, observer);
        affinity::pin_thread(&self.cpus)?;
        result
    }

    fn calibrate(
        &mut self,
        plan: &Plan,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Calibration, BenchError> {
        let placement = self.place(settings);
        affinity::pin_thread(&placement.control)?;
        let key = self.calibration_key(settings);
        let ceiling = calibrate::measure(plan, settings, key, &mut |trial, run_id| {
            self.without_dut(settings, &placement, trial, run_id, observer)
        });
        affinity::pin_thread(&self.cpus)?;
        ceiling
    }

    fn calibration_key(&self, settings: &Settings) -> String {
        // A receiver that shares the sender's CPU lowers what both reach.
        let placement = self.place(settings);
        let shares = placement.receiver.iter().any(|cpu| placement.senders.contains(cpu));
        let place = if shares { " on the sender's CPU" } else { "" };
        let receiver = format!("{}{place}", self.receiver());
        calibrate::key("netns", self.sender(settings), &receiver, settings)
    }
}

/// Time of a trial that is traffic, not overhead.
pub(super) fn observed_ns(trial: &Trial, observed: &Observed) -> u64 {
    trial.warmup_ns + observed.window_ns
}

pub(crate) fn now_text() -> String {
    jiff::Timestamp::from_nanosecond(SystemClock.wall_ns().into())
        .map(|time| time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string())
        .unwrap_or_default()
}
