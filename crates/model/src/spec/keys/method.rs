//! How it is tested, in the order of the documentation: the trial, the design,
//! the comparison, the profile.

use super::{Form, Kind, Section, duration, integer, key, number, words};
use crate::design::method::TRIALS_MAX;
use crate::design::{MethodKind, Stop, SuiteTest};
use fwdlab_search::PRESETS;

/// `[trial]`.
pub const TRIAL: Section = Section {
    path: "trial",
    doc: "One transmission: warm up, measure, drain.",
    keys: &[
        key("warmup", duration(0), "\"300ms\"", "Traffic before the measured window; it goes on, for 20 s at most, until every flow was received and has its state in the DUT.")
            .unit("time")
            .example("\"2s\""),
        key(
            "duration",
            duration(1_000_000),
            "\"1s\"",
            "The measured window; at least three slices and one interval.",
        )
        .unit("time")
        .example("\"10s\""),
        key("drain", duration(0), "\"200ms\"", "Longest wait after the end, until every packet was received or dropped by the DUT's own count.")
            .unit("time")
            .example("\"1s\""),
        key(
            "interval",
            duration(1_000_000),
            "\"100ms\"",
            "Interval of the reported samples; a multiple of `slice`.",
        )
        .unit("time")
        .example("\"200ms\""),
        key(
            "slice",
            duration(5_000_000),
            "\"20ms\"",
            "Interval of the raw samples; at least 5 ms.",
        )
        .unit("time")
        .example("\"10ms\""),
    ],
    ..Section::TABLE
};

/// `[method]`.
pub const METHOD: Section = Section {
    path: "method",
    doc: "What is asked of the device in each run, beside how fast it forwards: a run's own trial comes first, the trials of the method follow on the same start of the device.",
    keys: &[
        key(
            "kind",
            words(MethodKind::NAMES),
            "",
            "`blast`: the forwarding rate at the maximum offered load (RFC 2285, 3.6.2), and `fixed`: the load of `[traffic] rate`; either is what happens without this table. `mlrsearch`: the rates at which no more is lost than goals tolerate (RFC 9971). `loss-curve`: loss at falling loads, until two trials in a row lose nothing (RFC 2544, 26.3). `soak`: trials at the load of `[traffic] rate`, one after the other. `flood`: what is lost of that load while new flows come beside it, none at first and `max_load` at last. `back-to-back`: the longest burst that loses nothing (RFC 9004). `system-recovery`: how long packets are lost after an overload (RFC 2544, 26.5). `reset`: how long nothing is forwarded around a reset (RFC 6201). `latency`: how long packets take at `shares` of the rate that a search has found (RFC 2544, 26.2; RFC 8219). `rfc2544`: those `tests`, one after the other. `establishment-rate`: connections a second that a stateful firewall sets up, one with each packet (RFC 9693, 4.5); `tear-down-rate`: that it removes (4.7); `table-capacity`: connections that it holds (4.8); `rfc9693`: those `tests`, one after the other. They open as many connections as `[traffic] flows` has.",
        )
        .example("\"mlrsearch\""),
        key(
            "goals",
            Kind::List(&words(&PRESETS)),
            "[\"ndr\", \"pdr\"]",
            "`mlrsearch`, the throughput of `rfc2544`, which has `rfc2544` unless others are named, the rate of which `latency` takes its shares, which is that of `pdr`, and `establishment-rate`, which has `ndr`: well-known goals. `ndr`: no loss, `pdr`: at most 0.5 %, both in trials of a second, 21 s of them at a load that is in doubt, half of which may exceed; `rfc2544`: no loss in a trial of 60 s; `tst009`: binary search with loss verification, 2 x 60 s (ETSI GS NFV-TST 009). The first one's conditional throughput stands for a run.",
        )
        .example("[\"ndr\"]"),
        key(
            "min_load",
            Kind::PacketRate,
            "",
            "`mlrsearch`, `latency`, `rfc2544`, `establishment-rate`, `rfc9693`: the least load; without it, a hundredth of the greatest.",
        )
        .unit("pps")
        .example("\"10kpps\""),
        key(
            "max_load",
            Kind::PacketRate,
            "",
            "`flood`: the greatest number of new flows a second, one with each packet; must be written. `mlrsearch`, `loss-curve`, `latency`, `rfc2544`, `establishment-rate`, `rfc9693`: the greatest load; without it, twice what the run's own trial forwarded, at most nine tenths of what it offered.",
        )
        .unit("pps")
        .example("\"2Mpps\""),
        key(
            "max_trials",
            integer(1, TRIALS_MAX as i64),
            "",
            "`mlrsearch`, `latency`, `rfc2544`, `establishment-rate`, `rfc9693`: trials of a search at most, invalid ones not counted, 1000 without it; `soak`: trials of a run, 60 without it.",
        )
        .unit("trials")
        .example("200"),
        key(
            "max_time",
            duration(1_000_000),
            "\"60min\"",
            "`mlrsearch`, `latency`, `rfc2544`, `establishment-rate`, `rfc9693`: traffic of all trials of a search at most.",
        )
        .unit("time")
        .example("\"10min\""),
        key(
            "step",
            Kind::Percent,
            "\"10%\"",
            "`loss-curve`, `rfc2544`, `flood`: from load to load of a curve, in shares of the greatest one.",
        )
        .unit("%")
        .example("\"5%\""),
        key(
            "tests",
            Kind::List(&words(SuiteTest::NAMES)),
            "",
            "`rfc2544`, `rfc9693`: which of its tests, in its order; all of them without it.",
        )
        .example("[\"throughput\", \"back-to-back\"]"),
        key(
            "repeats",
            integer(1, TRIALS_MAX as i64),
            "",
            "`back-to-back`: searches for the longest burst, 50 without it; `system-recovery` and `reset`: how often, 5 without it; `latency`: trials at each share, whose packets count together, 5 without it; `rfc2544`: of each of these, and 20 trials of latency without it; `tear-down-rate`: how often, 5 without it; `table-capacity`: searches, 1 without it; `rfc9693`: of each of these.",
        )
        .unit("times")
        .example("10"),
        key(
            "shares",
            Kind::List(&Kind::Percent),
            "[\"10%\", \"50%\", \"90%\"]",
            "`latency`: loads at which packets are timed, over the rate that was found for the first goal; `rfc2544` times them at that rate itself.",
        )
        .unit("%")
        .example("[\"10%\", \"80%\"]"),
        key(
            "max_frames",
            integer(1, u32::MAX as i64),
            "",
            "`back-to-back`, `rfc2544`: the longest burst; without it, what the sender sends in two seconds.",
        )
        .unit("frames")
        .example("100000"),
        key(
            "overload",
            duration(1_000_000),
            "\"60s\"",
            "`system-recovery`, `rfc2544`: how long the device is overloaded.",
        )
        .unit("time")
        .example("\"5s\""),
    ],
    ..Section::TABLE
};

/// `[[method.goal]]`.
pub const GOAL: Section = Section {
    path: "method.goal",
    form: Form::List,
    doc: "A goal of `mlrsearch` with values of its own (RFC 9971, Goal Terms), after those of `goals`; without `goals`, instead of them.",
    keys: &[
        key("name", Kind::Name, "", "What reports call it.").example("\"one-percent\"").required(),
        key(
            "loss_ratio",
            number(0.0, 0.99),
            "0.0",
            "A trial that loses more is a high-loss trial.",
        )
        .unit("ratio")
        .example("0.01"),
        key(
            "exceed_ratio",
            number(0.0, 0.99),
            "0.5",
            "Share of the duration sum that high-loss trials may have at a lower bound.",
        )
        .unit("ratio")
        .example("0.2"),
        key("initial_trial", duration(1_000_000), "\"1s\"", "Shortest trial.")
            .unit("time")
            .example("\"500ms\""),
        key("final_trial", duration(1_000_000), "\"1s\"", "Full-length trial.")
            .unit("time")
            .example("\"2s\""),
        key(
            "duration_sum",
            duration(1_000_000),
            "\"21s\"",
            "As much full-length traffic decides on a load that is in doubt.",
        )
        .unit("time")
        .example("\"11s\""),
        key("width", Kind::Percent, "\"0.5%\"", "Greatest distance of the bounds.")
            .unit("%")
            .example("\"1%\""),
    ],
    ..Section::TABLE
};

/// `[design]`.
pub const DESIGN: Section = Section {
    path: "design",
    doc: "How often, and in which order.",
    keys: &[
        key(
            "blocks",
            integer(1, 10_000),
            "5",
            "Blocks: in each every variant runs once, in random order. In an alternation: streams.",
        )
        .unit("blocks")
        .example("10"),
        key(
            "stop",
            words(&["planned", "open"]),
            "",
            "Instead of a fixed number of blocks: end early, under a rule that keeps the confidence. `planned`: at most five looks (O'Brien-Fleming); `open`: a look after every block (e-process); `max_blocks` may be raised later, after any look, and the same command goes on (elsewhere blocks added after a look find differences that aren't there). Both also end when every comparison is decided: different, or equivalent within `margin`.",
        )
        .example("\"planned\""),
        key(
            "max_blocks",
            integer(Stop::BLOCKS_MIN as i64, 10_000),
            "",
            "With `stop`: the most blocks that are run. Without it: 20 for `planned`, 100 for `open`.",
        )
        .unit("blocks")
        .example("40"),
        key("seed", integer(0, i64::MAX), "1", "Seed of the random order.").example("7"),
        key(
            "alternate",
            duration(10_000_000),
            "",
            "Instead of separate runs: one stream of traffic, the variants switched live A B B A, each for this long. Only for settings that can be switched live.",
        )
        .unit("time")
        .example("\"170ms\""),
        key(
            "settle",
            duration(0),
            "\"40ms\"",
            "Part of an alternation's slice that is not counted after each switch.",
        )
        .unit("time")
        .example("\"60ms\""),
    ],
    ..Section::TABLE
};

/// `[compare]`.
pub const COMPARE: Section = Section {
    path: "compare",
    doc: "What is compared with what, and how strictly.",
    keys: &[
        key(
            "baseline",
            Kind::Baseline,
            "",
            "Factors and the level that the others are compared with; each level of a factor not named has a baseline of its own. Without it: the first level of the only factor, or of the first one that is neither `family` nor `frame_size`.",
        )
        .example("{ queues = 1 }"),
        key(
            "confidence",
            Kind::Confidence,
            "95",
            "Confidence of the intervals: 80, 90, 95, 98, 99 or 99.5.",
        )
        .unit("%")
        .example("99"),
        key("margin", Kind::Percent, "\"2%\"", "Differences smaller than this count as none.")
            .unit("%")
            .example("\"5%\""),
        key(
            "figure",
            words(&["auto", "mean", "p90", "instructions"]),
            "\"auto\"",
            "What stands for a run: `auto`, the mean rate of the window over the time that was not provably taken from the device, and at a paced rate the share of the load that was forwarded; `mean`, the plain mean of the window; `p90`, the capacity: ninetieth percentile of its slices, at full load only; `instructions`, those that an emulated device (`kind = \"vm\"`) executes to forward a packet, which is what `auto` compares there. `mean` and `p90` measure the rate of a virtual machine, whose packets come over taps then (as root); so does a `[method]` with trials of its own.",
        )
        .example("\"mean\""),
        key(
            "adjust",
            words(&["holm", "benjamini-hochberg"]),
            "\"holm\"",
            "How several comparisons are adjusted for their number. `holm` keeps the chance of any false difference among all of them at 5 % (for a confidence of 95); `benjamini-hochberg` keeps the expected share of false ones among the differences found, which finds more and promises less.",
        )
        .example("\"benjamini-hochberg\""),
    ],
    ..Section::TABLE
};

/// `[profile]`.
pub const PROFILE: Section = Section {
    path: "profile",
    doc: "Where the CPU's time goes. The windows of the measured runs are sampled at `sampling` Hz, which costs less than a run can show; `starts` adds profile runs at a high `frequency`, which are no measurements. Nothing here is part of the plan's hash; `fwdlab run --profile` and `--no-profile` decide instead of the table.",
    keys: &[
        key(
            "cpu",
            Kind::Boolean,
            "true",
            "Profile the DUT's CPUs; without this table they are not.",
        )
        .example("false"),
        key(
            "sampling",
            integer(0, 2000),
            "199",
            "Samples per CPU and second in the windows of the measured runs, the same for all variants; 0: measured runs are not sampled.",
        )
        .unit("Hz")
        .example("97"),
        key(
            "duration",
            duration(1_000_000_000),
            "\"5s\"",
            "Window of a profile run; at least 1 s.",
        )
            .unit("time")
            .example("\"10s\""),
        key(
            "windows",
            integer(1, 100),
            "5",
            "Equal parts of a profile run's window: the scatter between them shows how well a share is known.",
        )
        .unit("parts")
        .example("10"),
        key(
            "starts",
            integer(0, 50),
            "0",
            "Profile runs of each variant, in random order within blocks. 0 takes one only of a variant whose measured runs were not sampled; with a `rate` the default is 1. With two or more, differences between variants have intervals over starts of the device.",
        )
        .unit("runs")
        .example("3"),
        key(
            "rate",
            Kind::Rate,
            "",
            "Intended load of profile runs, as `rate` in `[traffic]`; that one where it is left out. At a load that the device carries, costs are those of forwarding, not of being overloaded, and a machine of one CPU has time for its sampler. Profiles of different loads are not compared.",
        )
        .unit("pps, %, bit/s")
        .example("\"500kpps\""),
        key("frequency", integer(1, 20_000), "1999", "Samples per CPU and second in profile runs.")
            .unit("Hz")
            .example("997"),
        key(
            "event",
            words(&["auto", "cycles", "cpu-clock", "instructions", "cache-misses", "branch-misses"]),
            "\"auto\"",
            "What triggers a sample, as `perf list` calls it; `auto`: cycles where the machine counts them, else `cpu-clock`, which is blind while interrupts are off.",
        )
        .example("\"cpu-clock\""),
        key(
            "call_graph",
            words(&["auto", "fp", "dwarf"]),
            "\"auto\"",
            "How callers are found: `fp`, frame pointers (the kernel has its own unwinder); `dwarf`, copies of the stack, for programs without frame pointers, at some megabytes a second; `auto`: `fp`.",
        )
        .example("\"dwarf\""),
        key("icicle", Kind::Boolean, "false", "Draw flame graphs upside down.").example("true"),
        key(
            "subsystems",
            Kind::File,
            "",
            "Table that says which function belongs to which subsystem, instead of the built-in one.",
        )
        .example("\"subsystems.txt\""),
    ],
    ..Section::TABLE
};
