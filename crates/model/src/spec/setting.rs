//! One setting of a variant, as `[testbed]`, `[dut]`, `[traffic]` or a level
//! writes it, and how it is laid over [`Settings`].

use super::keys::{self, Vary};
use crate::settings::*;
use crate::units::FrameSize;
use crate::words;

/// One setting with its value.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// `arrangement`.
    Arrangement(Arrangement),
    /// `senders`.
    Senders(u16),
    /// `engine`.
    Engine(Engine),
    /// `kind` of `[dut]`.
    Kind(DutKind),
    /// `routes`.
    Routes(u32),
    /// `firewall`.
    Firewall(Firewall),
    /// `icmp_redirect`.
    IcmpRedirect(bool),
    /// `offloads`.
    Offloads(bool),
    /// `queues`.
    Queues(u16),
    /// `bind_queues`.
    BindQueues(bool),
    /// `napi`.
    Napi(Napi),
    /// `rps`.
    Rps(String),
    /// One entry of `sysctl`.
    Sysctl {
        /// Dotted name.
        name: String,
        /// Value.
        value: String,
    },
    /// `fib`.
    Fib(FibAlgorithm),
    /// `locking`.
    Locking(Locking),
    /// `path`.
    Path(ForwardingPath),
    /// `state`.
    State(StateTable),
    /// `state_limit`.
    StateLimit(u32),
    /// `entropy_harvest`.
    EntropyHarvest(bool),
    /// `port`.
    Port(RouterPort),
    /// `routes_file`.
    RoutesFile(RoutesFile),
    /// `firewall_program`.
    FirewallProgram(FirewallProgram),
    /// One entry of `loader`.
    Loader {
        /// Name in loader.conf.
        name: String,
        /// Value.
        value: String,
    },
    /// One entry of `rc`.
    Rc {
        /// Name in rc.conf.
        name: String,
        /// Value.
        value: String,
    },
    /// `harvest_mask`.
    HarvestMask(u32),
    /// `bind_interrupts`.
    BindInterrupts(bool),
    /// `overlay`.
    Overlay(Overlay),
    /// `reboot`.
    Reboot(Reboot),
    /// `install`.
    Install(Vec<String>),
    /// `image`.
    Image(String),
    /// `upgrade`.
    Upgrade(String),
    /// `verify`.
    Verify(String),
    /// `expect`.
    Expect(String),
    /// `start`.
    Start(Vec<String>),
    /// `ready`.
    Ready(Vec<String>),
    /// `stop` of `[dut]`.
    Stop(Vec<String>),
    /// `statistics`.
    Statistics(Vec<String>),
    /// One entry of `counters`.
    Counter {
        /// Name.
        name: String,
        /// Regular expression or JSON pointer.
        value: String,
    },
    /// `rewrites`.
    Rewrites(Rewrites),
    /// `family`.
    Family(Family),
    /// `frame_size`.
    FrameSize(FrameSize),
    /// `flows`.
    Flows(Flows),
    /// `rate`.
    Rate(Rate),
    /// `timestamps`.
    Timestamps(bool),
    /// `generator`.
    Generator(GeneratorKind),
    /// `generator_server`.
    GeneratorServer(String),
    /// `generator_options`.
    GeneratorOptions(Vec<String>),
}

impl Setting {
    /// The key that writes it.
    pub fn key(&self) -> &'static str {
        match self {
            Setting::Arrangement(_) => "arrangement",
            Setting::Senders(_) => "senders",
            Setting::Engine(_) => "engine",
            Setting::Kind(_) => "kind",
            Setting::Routes(_) => "routes",
            Setting::Firewall(_) => "firewall",
            Setting::IcmpRedirect(_) => "icmp_redirect",
            Setting::Offloads(_) => "offloads",
            Setting::Queues(_) => "queues",
            Setting::BindQueues(_) => "bind_queues",
            Setting::Napi(_) => "napi",
            Setting::Rps(_) => "rps",
            Setting::Sysctl { .. } => "sysctl",
            Setting::Fib(_) => "fib",
            Setting::Locking(_) => "locking",
            Setting::Path(_) => "path",
            Setting::State(_) => "state",
            Setting::StateLimit(_) => "state_limit",
            Setting::EntropyHarvest(_) => "entropy_harvest",
            Setting::Port(_) => "port",
            Setting::RoutesFile(_) => "routes_file",
            Setting::FirewallProgram(_) => "firewall_program",
            Setting::Loader { .. } => "loader",
            Setting::Rc { .. } => "rc",
            Setting::HarvestMask(_) => "harvest_mask",
            Setting::BindInterrupts(_) => "bind_interrupts",
            Setting::Overlay(_) => "overlay",
            Setting::Reboot(_) => "reboot",
            Setting::Install(_) => "install",
            Setting::Image(_) => "image",
            Setting::Upgrade(_) => "upgrade",
            Setting::Verify(_) => "verify",
            Setting::Expect(_) => "expect",
            Setting::Start(_) => "start",
            Setting::Ready(_) => "ready",
            Setting::Stop(_) => "stop",
            Setting::Statistics(_) => "statistics",
            Setting::Counter { .. } => "counters",
            Setting::Rewrites(_) => "rewrites",
            Setting::Family(_) => "family",
            Setting::FrameSize(_) => "frame_size",
            Setting::Flows(_) => "flows",
            Setting::Rate(_) => "rate",
            Setting::Timestamps(_) => "timestamps",
            Setting::Generator(_) => "generator",
            Setting::GeneratorServer(_) => "generator_server",
            Setting::GeneratorOptions(_) => "generator_options",
        }
    }

    /// Its name: the key, and for an entry of a table its own name too, since two of
    /// them are two settings.
    pub fn name(&self) -> String {
        match self {
            Setting::Sysctl { name, .. }
            | Setting::Counter { name, .. }
            | Setting::Loader { name, .. }
            | Setting::Rc { name, .. } => format!("{} {name}", self.key()),
            _ => self.key().to_owned(),
        }
    }

    /// Its value as text.
    pub fn value(&self) -> String {
        match self {
            Setting::Arrangement(v) => v.name().to_owned(),
            Setting::Senders(v) | Setting::Queues(v) => v.to_string(),
            Setting::Engine(v) => v.name().to_owned(),
            Setting::Kind(v) => v.name().to_owned(),
            Setting::Routes(v) | Setting::StateLimit(v) => v.to_string(),
            Setting::Firewall(v) => v.to_string(),
            Setting::IcmpRedirect(v)
            | Setting::Offloads(v)
            | Setting::BindQueues(v)
            | Setting::EntropyHarvest(v)
            | Setting::Timestamps(v) => v.to_string(),
            Setting::Napi(v) => v.name().to_owned(),
            Setting::Rps(v) => v.clone(),
            Setting::Sysctl { value, .. }
            | Setting::Counter { value, .. }
            | Setting::Loader { value, .. }
            | Setting::Rc { value, .. } => value.clone(),
            Setting::Fib(v) => v.name().to_owned(),
            Setting::Locking(v) => v.name().to_owned(),
            Setting::Path(v) => v.name().to_owned(),
            Setting::State(v) => v.name().to_owned(),
            Setting::Port(v) => v.name().to_owned(),
            Setting::RoutesFile(v) => v.file.clone(),
            Setting::FirewallProgram(v) => v.name().to_owned(),
            Setting::HarvestMask(v) => v.to_string(),
            Setting::BindInterrupts(v) => v.to_string(),
            Setting::Overlay(v) => v.directory.clone(),
            Setting::Reboot(v) => v.name().to_owned(),
            Setting::Install(v) => v.join("; "),
            Setting::Image(v)
            | Setting::Upgrade(v)
            | Setting::Verify(v)
            | Setting::Expect(v)
            | Setting::GeneratorServer(v) => v.clone(),
            Setting::Generator(v) => v.name().to_owned(),
            Setting::GeneratorOptions(v) => words::join(v),
            // A shell's text may have several lines.
            Setting::Start(v) | Setting::Ready(v) | Setting::Stop(v) | Setting::Statistics(v) => {
                words::join(v).split_whitespace().collect::<Vec<_>>().join(" ")
            }
            Setting::Rewrites(v) => v.name().to_owned(),
            Setting::Family(v) => v.name().to_owned(),
            Setting::FrameSize(v) => v.0.to_string(),
            Setting::Flows(v) => v.to_string(),
            Setting::Rate(v) => v.to_string(),
        }
    }

    /// True when it can be switched while traffic flows.
    pub fn is_live(&self) -> bool {
        keys::setting(self.key()).is_some_and(|key| key.vary == Vary::Live)
    }

    /// Lays it over `settings`.
    pub fn apply(&self, settings: &mut Settings) {
        let Settings { testbed, dut, traffic } = settings;
        match self {
            Setting::Arrangement(v) => testbed.arrangement = *v,
            Setting::Senders(v) => testbed.senders = *v,
            Setting::Engine(v) => testbed.engine = *v,
            Setting::Kind(v) => dut.kind = *v,
            Setting::Routes(v) => dut.routes = *v,
            Setting::Firewall(v) => dut.firewall = v.clone(),
            Setting::IcmpRedirect(v) => dut.icmp_redirect = *v,
            Setting::Offloads(v) => dut.offloads = *v,
            Setting::Queues(v) => dut.queues = *v,
            Setting::BindQueues(v) => dut.bind_queues = *v,
            Setting::Napi(v) => dut.napi = *v,
            Setting::Rps(v) => dut.rps = v.clone(),
            Setting::Sysctl { name, value } => {
                dut.sysctl.insert(name.clone(), value.clone());
            }
            Setting::Fib(v) => dut.router.fib = *v,
            Setting::Locking(v) => dut.router.locking = *v,
            Setting::Path(v) => dut.router.path = *v,
            Setting::State(v) => dut.router.state = *v,
            Setting::StateLimit(v) => dut.router.state_limit = *v,
            Setting::EntropyHarvest(v) => dut.router.entropy_harvest = *v,
            Setting::Port(v) => dut.router.port = *v,
            Setting::RoutesFile(v) => dut.router.routes_file = Some(v.clone()),
            Setting::FirewallProgram(v) => dut.remote.firewall_program = *v,
            Setting::Loader { name, value } => {
                dut.remote.loader.insert(name.clone(), value.clone());
            }
            Setting::Rc { name, value } => {
                dut.remote.rc.insert(name.clone(), value.clone());
            }
            Setting::HarvestMask(v) => dut.remote.harvest_mask = Some(*v),
            Setting::BindInterrupts(v) => dut.remote.bind_interrupts = *v,
            Setting::Overlay(v) => dut.remote.overlay = Some(v.clone()),
            Setting::Reboot(v) => dut.remote.reboot = *v,
            Setting::Install(v) => revise(dut, |revision| revision.install = v.clone()),
            Setting::Image(v) => revise(dut, |revision| revision.image = Some(v.clone())),
            Setting::Upgrade(v) => revise(dut, |revision| revision.upgrade = v.clone()),
            Setting::Verify(v) => revise(dut, |revision| revision.verify = v.clone()),
            Setting::Expect(v) => revise(dut, |revision| revision.expect = v.clone()),
            Setting::Start(v) => dut.command.start = v.clone(),
            Setting::Ready(v) => dut.command.ready = v.clone(),
            Setting::Stop(v) => dut.command.stop = v.clone(),
            Setting::Statistics(v) => dut.command.statistics = v.clone(),
            Setting::Counter { name, value } => {
                dut.command.counters.insert(name.clone(), value.clone());
            }
            Setting::Rewrites(v) => dut.command.rewrites = *v,
            Setting::Family(v) => traffic.family = *v,
            Setting::FrameSize(v) => traffic.frame_size = *v,
            Setting::Flows(v) => traffic.flows = *v,
            Setting::Rate(v) => traffic.rate = *v,
            Setting::Timestamps(v) => traffic.timestamps = *v,
            Setting::Generator(v) => traffic.generator = *v,
            Setting::GeneratorServer(v) => traffic.generator_server = v.clone(),
            Setting::GeneratorOptions(v) => traffic.generator_options = v.clone(),
        }
    }
}

/// Changes the revision; one that says nothing is none.
fn revise(dut: &mut DutSettings, change: impl FnOnce(&mut Revision)) {
    let mut revision = dut.remote.revision.take().unwrap_or_default();
    change(&mut revision);
    dut.remote.revision = (revision != Revision::default()).then_some(revision);
}

impl Settings {
    /// Every setting with its value, in the order of the documentation. What a
    /// laboratory's DUT has is left out where nothing is said of it.
    pub fn all(&self) -> Vec<Setting> {
        let Settings { testbed, dut, traffic } = self;
        let mut all = vec![
            Setting::Arrangement(testbed.arrangement),
            Setting::Senders(testbed.senders),
            Setting::Engine(testbed.engine),
            Setting::Kind(dut.kind),
            Setting::Routes(dut.routes),
            Setting::Firewall(dut.firewall.clone()),
            Setting::IcmpRedirect(dut.icmp_redirect),
            Setting::Offloads(dut.offloads),
            Setting::Queues(dut.queues),
            Setting::BindQueues(dut.bind_queues),
            Setting::Napi(dut.napi),
            Setting::Rps(dut.rps.clone()),
        ];
        all.extend(
            dut.sysctl
                .iter()
                .map(|(name, value)| Setting::Sysctl { name: name.clone(), value: value.clone() }),
        );
        let RouterSettings { fib, locking, path, state, .. } = dut.router;
        all.extend([
            Setting::Fib(fib),
            Setting::Locking(locking),
            Setting::Path(path),
            Setting::State(state),
            Setting::StateLimit(dut.router.state_limit),
            Setting::EntropyHarvest(dut.router.entropy_harvest),
            Setting::Port(dut.router.port),
        ]);
        all.extend(dut.router.routes_file.iter().cloned().map(Setting::RoutesFile));
        all.extend(of_remote(&dut.remote));
        all.extend(of_command(&dut.command));
        all.extend([
            Setting::Family(traffic.family),
            Setting::FrameSize(traffic.frame_size),
            Setting::Flows(traffic.flows),
            Setting::Rate(traffic.rate),
            Setting::Timestamps(traffic.timestamps),
            Setting::Generator(traffic.generator),
        ]);
        let (server, options) = (&traffic.generator_server, &traffic.generator_options);
        all.extend((!server.is_empty()).then(|| Setting::GeneratorServer(server.clone())));
        all.extend((!options.is_empty()).then(|| Setting::GeneratorOptions(options.clone())));
        all
    }
}

/// Nothing where no command is written.
fn of_command(command: &CommandSettings) -> Vec<Setting> {
    let CommandSettings { start, ready, stop, statistics, counters, rewrites } = command;
    let words = |words: &Vec<String>, setting: fn(Vec<String>) -> Setting| {
        (!words.is_empty()).then(|| setting(words.clone()))
    };
    let commands = [
        words(start, Setting::Start),
        words(ready, Setting::Ready),
        words(stop, Setting::Stop),
        words(statistics, Setting::Statistics),
    ];
    let mut all: Vec<Setting> = commands.into_iter().flatten().collect();
    let counters = counters.iter().map(|(name, value)| (name.clone(), value.clone()));
    all.extend(counters.map(|(name, value)| Setting::Counter { name, value }));
    all.extend((!start.is_empty()).then_some(Setting::Rewrites(*rewrites)));
    all
}

fn of_remote(remote: &RemoteSettings) -> Vec<Setting> {
    let entry = |(name, value): (&String, &String)| (name.clone(), value.clone());
    let mut all = vec![Setting::FirewallProgram(remote.firewall_program)];
    let loader = remote.loader.iter().map(entry);
    all.extend(loader.map(|(name, value)| Setting::Loader { name, value }));
    let rc = remote.rc.iter().map(entry);
    all.extend(rc.map(|(name, value)| Setting::Rc { name, value }));
    all.extend(remote.harvest_mask.map(Setting::HarvestMask));
    all.push(Setting::BindInterrupts(remote.bind_interrupts));
    all.extend(remote.overlay.clone().map(Setting::Overlay));
    all.push(Setting::Reboot(remote.reboot));
    let Some(revision) = &remote.revision else { return all };
    let Revision { install, image, upgrade, verify, expect } = revision;
    all.extend((!install.is_empty()).then(|| Setting::Install(install.clone())));
    all.extend(image.clone().map(Setting::Image));
    let written = |text: &String| (!text.is_empty()).then(|| text.clone());
    all.extend(written(upgrade).map(Setting::Upgrade));
    all.extend(written(verify).map(Setting::Verify));
    all.extend(written(expect).map(Setting::Expect));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn routes_file() -> RoutesFile {
        RoutesFile { file: "routes.txt".to_owned(), digest: "0123".to_owned() }
    }

    fn remote() -> RemoteSettings {
        RemoteSettings {
            firewall_program: FirewallProgram::Ipfw,
            loader: BTreeMap::from([("a.b".to_owned(), "1".to_owned())]),
            rc: BTreeMap::from([("c".to_owned(), "YES".to_owned())]),
            harvest_mask: Some(351),
            bind_interrupts: true,
            overlay: Some(Overlay { directory: "configs/1".to_owned(), files: BTreeMap::new() }),
            revision: Some(Revision {
                install: vec!["make install".to_owned()],
                image: Some("image.xz".to_owned()),
                upgrade: "upgrade".to_owned(),
                verify: "uname -v".to_owned(),
                expect: "r287478".to_owned(),
            }),
            reboot: Reboot::Always,
        }
    }

    fn command() -> CommandSettings {
        let words = |text: &str| vec![text.to_owned(), "a b".to_owned()];
        CommandSettings {
            start: words("start"),
            ready: words("ready"),
            stop: words("stop"),
            statistics: words("statistics"),
            counters: [("lost".to_owned(), "/lost".to_owned())].into(),
            rewrites: Rewrites::Mac,
        }
    }

    #[test]
    fn every_setting_of_the_tables_exists_and_the_other_way_round() {
        let mut settings = Settings::default();
        settings.dut.sysctl.insert("net.ipv4.ip_early_demux".to_owned(), "0".to_owned());
        settings.dut.router.routes_file = Some(routes_file());
        settings.dut.remote = remote();
        settings.dut.command = command();
        settings.traffic.generator_server = "localhost".to_owned();
        settings.traffic.generator_options = vec!["-p".to_owned()];
        let written: Vec<&str> = keys::settings().map(|key| key.name).collect();
        let existing: Vec<&str> = settings.all().iter().map(Setting::key).collect();
        assert_eq!(written, existing);
    }

    #[test]
    fn laying_all_settings_over_the_default_reproduces_them() {
        let mut settings = Settings::default();
        settings.dut.queues = 4;
        settings.dut.rps = "3".to_owned();
        settings.dut.sysctl.insert("net.core.dev_weight".to_owned(), "128".to_owned());
        settings.dut.kind = DutKind::Router;
        settings.dut.router = RouterSettings {
            fib: FibAlgorithm::Poptrie,
            locking: Locking::Rwlock,
            path: ForwardingPath::Full,
            state: StateTable::PerWorker,
            state_limit: 3,
            entropy_harvest: true,
            port: RouterPort::Packet,
            routes_file: Some(routes_file()),
        };
        settings.dut.remote = remote();
        settings.dut.command = command();
        settings.traffic.generator = GeneratorKind::Trex;
        settings.traffic.generator_server = "localhost".to_owned();
        settings.traffic.generator_options = vec!["-p".to_owned(), "a b".to_owned()];
        settings.traffic.family = Family::Inet6;
        settings.testbed.arrangement = Arrangement::Closed;
        let mut copy = Settings::default();
        for setting in settings.all() {
            setting.apply(&mut copy);
        }
        assert_eq!(copy, settings);
    }
}
