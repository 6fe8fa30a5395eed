//! Sender, DUT and receiver as network namespaces of this machine's kernel.

mod ceiling;
pub(in crate::testbed) mod ends;
pub(crate) mod receiver;
mod spread;

use super::{Choice, Parts, Paths, Rig, RigLocation, Testbed};
use crate::cpu::{self, Placement};
use crate::dut::findings::not_put_back;
use crate::dut::linux::firewall::Loaded;
use crate::dut::router::Wires;
use crate::dut::{self, Dut, DutContext, linux};
use crate::engines::{ReceiverKind, engine_name};
use crate::error::BenchError;
use crate::host::{LocalHost, NamespaceHost};
use crate::journal::Journal;
use crate::links::Links;
use crate::probe::{self, Cable, Privilege};
use crate::testbed::LoadModel;
use crate::trial::{Observed, SystemClock};
use crate::wiring::{Taps, Wiring};
use crate::{Observer, Task, calibrate};
use ends::NetnsEnds;
use fwdlab_model::plan::{Plan, Trial};
use fwdlab_model::record::Latency;
use fwdlab_model::settings::{
    Directions, DutKind, Engine, Family, Firewall, Settings, TestbedKind,
};
use fwdlab_model::warning::Warning;
use fwdlab_netio::affinity;
use std::path::PathBuf;

/// The testbed.
#[derive(Debug)]
pub struct Netns {
    journal: Journal,
    paths: Paths,
    engine: Engine,
    receiving: ReceiverKind,
    /// The plan has variants with several queues, so flows are spread over all queues.
    spreads: bool,
    cpus: Vec<u16>,
    links: Links,
    choice: Choice,
    /// Cable on which the mechanisms were tested.
    cable: Cable,
}

impl Netns {
    /// Cleans up after killed processes, then probes the sending and receiving mechanisms that this
    /// machine supports on `cable`.
    ///
    /// # Errors
    /// Returns [`BenchError::Environment`] if network namespaces are not available here.
    pub fn open(
        privilege: &Privilege,
        paths: &Paths,
        engine: Engine,
        cable: Cable,
    ) -> Result<Netns, BenchError> {
        if let Privilege::None { why } = privilege {
            return Err(BenchError::environment(
                format!("network namespaces need root or a user namespace: {why}"),
                "run as root, or allow user namespaces (sysctl user.max_user_namespaces)",
            ));
        }
        probe::need_program("ip", "iproute2")?;
        probe::need_program("ethtool", "ethtool")?;
        let journal = Journal::open(&paths.state)?;
        let (engine, receiving, mut reasons) = probe::find_engines(&journal, engine, cable)?;
        reasons.extend(journal.left().iter().map(|left| format!("not put back: {left}")));
        if *privilege == Privilege::UserNamespace {
            reasons.push(
                "no root: everything is in a user namespace of this process; BPF and the \
                 placement of kernel threads are not allowed there, which costs about two thirds \
                 of the sender's rate"
                    .into(),
            );
        }
        let choice = Choice { kind: TestbedKind::Netns, simulated: false, reasons };
        let paths = paths.clone();
        let (cpus, links) = (affinity::allowed_cpus()?, Links::of_namespaces());
        Ok(Netns { journal, paths, engine, receiving, spreads: false, cpus, links, choice, cable })
    }

    /// Checks the plan's requirements: loads each firewall once, and verifies that IPv6 is
    /// available if used and that all queues can be reached.
    ///
    /// # Errors
    /// Returns [`BenchError::Environment`] with the missing feature of this machine, and
    /// [`BenchError::Refused`] for variants that cannot be set up as described.
    pub fn check(&mut self, plan: &Plan) -> Result<(), BenchError> {
        self.spread(plan)?;
        // Programs need no features of the kernel.
        let settings = || {
            let all = plan.variants.iter().map(|variant| &variant.settings);
            all.filter(|settings| settings.dut.kind == DutKind::Linux)
        };
        if settings().any(|s| s.traffic.family == Family::Inet6) {
            linux::need_inet6(&LocalHost)?;
        }
        let mut rulesets: Vec<&Settings> = Vec::new();
        let rules = |s: &Settings| (s.dut.firewall.clone(), s.dut.remote.firewall_program);
        for settings in settings().filter(|s| s.dut.firewall != Firewall::None) {
            if !rulesets.iter().any(|other| rules(other) == rules(settings)) {
                rulesets.push(settings);
            }
        }
        if rulesets.is_empty() {
            return Ok(());
        }
        let wiring = Wiring::up(&self.journal, 1, false)?;
        let host = NamespaceHost::new(&wiring.receiver, &[])?;
        for settings in rulesets {
            let firewall = &settings.dut.firewall;
            let loaded = Loaded::default().load(&host, &self.journal, settings);
            loaded.map_err(|error| match firewall {
                _ if matches!(error, BenchError::Environment { .. }) => error,
                // A user's own ruleset has no fallback.
                Firewall::Ruleset { file, .. } => BenchError::Refused(format!(
                    "ruleset {file} can't be loaded: {error}\n  next step: `nft -c -f {file}`"
                )),
                _ => BenchError::environment(
                    format!("firewall {firewall} can't be loaded: {error}"),
                    "the kernel needs CONFIG_NF_TABLES and CONFIG_NF_CONNTRACK",
                ),
            })?;
        }
        drop(host);
        wiring.down()
    }

    /// Sets up namespaces with taps for guest `number` of this process, see [`Wiring::taps`].
    pub(in crate::testbed) fn taps(
        &self,
        number: u32,
        queues: u16,
    ) -> Result<(Wiring, Taps), BenchError> {
        Wiring::taps(&self.journal, number, queues)
    }

    /// Sending mechanism for a variant: the configured one, otherwise the best one found by
    /// probing.
    fn engine(&self, settings: &Settings) -> Engine {
        match settings.testbed.engine {
            Engine::Auto => self.engine,
            configured => configured,
        }
    }

    /// Name of the sending mechanism for a variant.
    pub fn sender(&self, settings: &Settings) -> &'static str {
        engine_name(self.engine(settings))
    }

    /// Name of the receiving mechanism in use.
    pub fn receiver(&self) -> &'static str {
        self.receiving.name()
    }
}

impl Testbed for Netns {
    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn place(&self, settings: &Settings) -> Placement {
        let (testbed, queues) = (&settings.testbed, settings.dut.queues);
        // A guest has its own CPUs.
        let wide = if self.cable == Cable::Taps { queues.max(testbed.vm.cpus) } else { queues };
        // r0 is polled (NAPI) only with an XDP program in driver mode.
        let place = match (self.cable, self.receiving) {
            (Cable::Veth, ReceiverKind::Xdp) => cpu::place_all,
            // A writer to a tap also runs its receive path.
            _ => cpu::place,
        };
        // Each queue belongs to one CPU: never more senders than queues.
        let max_senders = if self.is_spread(settings) { queues.max(1) } else { u16::MAX };
        place(&self.cpus, testbed.arrangement, testbed.senders.min(max_senders), wide)
    }

    fn stand<'a>(
        &'a mut self,
        task: Task<'a>,
        observer: &mut dyn Observer,
    ) -> Result<Box<dyn Rig + 'a>, BenchError> {
        let settings = &task.plan.variants[task.run.variants[0]].settings;
        observer.step("namespaces");
        let placement = self.place(settings);
        let wiring = Wiring::up(&self.journal, settings.dut.queues, true)?;
        let namespace = wiring
            .dut
            .clone()
            .ok_or_else(|| BenchError::Refused("the testbed was wired without a DUT".into()))?;
        let host = NamespaceHost::new(&namespace, &placement.control)?;
        let sender = NamespaceHost::new(&wiring.sender, &placement.control)?;
        let receiver = NamespaceHost::new(&wiring.receiver, &placement.control)?;
        let is_both = settings.traffic.directions == Directions::Both;
        let kind = settings.dut.kind;
        let context = DutContext {
            links: &self.links,
            experiment: &self.paths.experiment,
            program: &self.paths.program,
            keeper: &self.journal,
            wires: &Wires::Sockets,
        };
        Ok(Box::new(NetnsRig {
            dut: dut::open(kind, context),
            host,
            perf_file: self.journal.temporary("perf"),
            ends: NetnsEnds { testbed: self, wiring, placement, sender, receiver, is_both },
            _restored: RestoreGuard(&self.journal),
        }))
    }

    fn without_dut(
        &self,
        settings: &Settings,
        trial: &Trial,
        run_id: u32,
        observer: &mut dyn Observer,
    ) -> Result<Observed, BenchError> {
        self.ceiling(settings, &self.place(settings), trial, run_id, observer)
    }

    fn floor(
        &self,
        trial: (&Settings, &Trial, u32),
        rate_pps: f64,
        observer: &mut dyn Observer,
    ) -> Result<Option<Latency>, BenchError> {
        Ok(self.straight(trial, &self.place(trial.0), Some(rate_pps), observer)?.1)
    }

    fn calibration_key(&self, settings: &Settings) -> String {
        // A receiver that shares the sender's CPU lowers the rate of both.
        let placement = self.place(settings);
        let shares = placement.receiver.iter().any(|cpu| placement.senders.contains(cpu));
        let place = if shares { " on the sender's CPU" } else { "" };
        let receiver = format!("{}{place}", self.receiver());
        calibrate::key("netns", self.sender(settings), &receiver, settings)
    }
}

/// Namespaces, links and the DUT of one run.
struct NetnsRig<'a> {
    // Programs must end before their namespace is removed: fields are dropped in this order.
    dut: Box<dyn Dut + 'a>,
    host: NamespaceHost,
    perf_file: PathBuf,
    ends: NetnsEnds<'a>,
    _restored: RestoreGuard<'a>,
}

/// Restores machine-wide settings when a run ends, also by an error.
struct RestoreGuard<'a>(&'a Journal);

impl Drop for RestoreGuard<'_> {
    fn drop(&mut self) {
        // The next run reports a setting that cannot be restored.
        let _ = self.0.undo();
    }
}

impl Rig for NetnsRig<'_> {
    fn parts(&mut self) -> Result<Parts<'_>, BenchError> {
        Ok(Parts {
            host: &self.host,
            machine: &LocalHost,
            dut: self.dut.as_mut(),
            links: &self.ends.testbed.links,
            placement: &self.ends.placement,
            ends: &self.ends,
            clock: &SystemClock,
            pressure: LoadModel::OpenLoop,
            reach: RigLocation::Here { simulated: false },
            perf_file: &self.perf_file,
        })
    }

    fn down(self: Box<Self>) -> Result<Vec<Warning>, BenchError> {
        let NetnsRig { dut, host, ends, .. } = *self;
        let NetnsEnds { testbed, wiring, sender, receiver, .. } = ends;
        drop(dut);
        drop((host, sender, receiver));
        wiring.down()?;
        Ok(testbed.journal.undo().err().map(not_put_back).into_iter().collect())
    }
}
