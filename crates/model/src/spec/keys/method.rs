//! Keys of the measurement, in the order of the documentation: trial, method, design, comparison,
//! profile.

use super::{Form, Kind, Section, duration, integer, key, number, words};
use crate::design::method::TRIALS_MAX;
use crate::design::{MethodKind, Stop, SuiteTest};
use fwdlab_search::PRESETS;

/// `[trial]`.
pub const TRIAL: Section = Section {
    path: "trial",
    doc: "One trial: warm-up, measured window, drain.",
    keys: &[
        key("warmup", duration(0), "\"300ms\"", "Traffic before the measured window. It continues, for at most 20 s, until every flow was received and has its state in the DUT.")
            .unit("time")
            .example("\"2s\""),
        key(
            "duration",
            duration(1_000_000),
            "\"1s\"",
            "Measured window; at least three slices and one interval.",
        )
        .unit("time")
        .example("\"10s\""),
        key("drain", duration(0), "\"200ms\"", "Maximum wait after the traffic ends, until every packet was received or counted as dropped by the DUT.")
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
    doc: "Measurements in addition to the forwarding rate. They follow the run's own trial, on the same start of the device.",
    keys: &[
        key(
            "kind",
            words(MethodKind::NAMES),
            "",
            "`blast`: forwarding rate at the maximum offered load (RFC 2285, 3.6.2); `fixed`: forwarding rate at the load of `[traffic] rate`. Without this table, a run measures one of these two. `mlrsearch`: highest rates within the loss that the goals tolerate (RFC 9971). `loss-curve`: loss at falling loads, until two consecutive trials lose nothing (RFC 2544, 26.3). `soak`: consecutive trials at the load of `[traffic] rate`. `flood`: loss at that load during a flood of new flows, from none up to `max_load`. `back-to-back`: longest burst without loss (RFC 9004). `system-recovery`: duration of loss after an overload (RFC 2544, 26.5). `reset`: interruption of forwarding around a reset (RFC 6201). `latency`: latency at `shares` of the rate found by a search (RFC 2544, 26.2; RFC 8219). `rfc2544`: its `tests`, in sequence. `establishment-rate`: connections per second that a stateful firewall sets up, one per packet (RFC 9693, 4.5); `tear-down-rate`: connections per second that it removes (4.7); `table-capacity`: connections that it holds (4.8); `rfc9693`: its `tests`, in sequence. The tests of RFC 9693 open one connection per flow of `[traffic] flows`.",
        )
        .example("\"mlrsearch\""),
        key(
            "goals",
            Kind::List(&words(&PRESETS)),
            "[\"ndr\", \"pdr\"]",
            "Preset goals of `mlrsearch`, of the throughput of `rfc2544` (default `rfc2544`), of the rate from which `latency` takes its shares (default `pdr`) and of `establishment-rate` (default `ndr`). `ndr`: no loss; `pdr`: at most 0.5 % loss; both in trials of 1 s, of which 21 s decide a load in doubt, and half of these may exceed the loss. `rfc2544`: no loss in a trial of 60 s. `tst009`: binary search with loss verification, 2 x 60 s (ETSI GS NFV-TST 009). Each run is summarised by the conditional throughput of the first goal.",
        )
        .example("[\"ndr\"]"),
        key(
            "min_load",
            Kind::PacketRate,
            "",
            "`mlrsearch`, `latency`, `rfc2544`, `establishment-rate`, `rfc9693`: minimum load of a search. Default: 1/100 of the maximum load.",
        )
        .unit("pps")
        .example("\"10kpps\""),
        key(
            "max_load",
            Kind::PacketRate,
            "",
            "`flood`: maximum rate of new flows, one per packet; required. `mlrsearch`, `loss-curve`, `latency`, `rfc2544`, `establishment-rate`, `rfc9693`: maximum load. Default: twice the rate forwarded in the run's own trial, at most 90 % of the rate offered in it.",
        )
        .unit("pps")
        .example("\"2Mpps\""),
        key(
            "max_trials",
            integer(1, TRIALS_MAX as i64),
            "",
            "`mlrsearch`, `latency`, `rfc2544`, `establishment-rate`, `rfc9693`: maximum number of valid trials of a search. Default: 1000. `soak`: trials per run. Default: 60.",
        )
        .unit("trials")
        .example("200"),
        key(
            "max_time",
            duration(1_000_000),
            "\"60min\"",
            "`mlrsearch`, `latency`, `rfc2544`, `establishment-rate`, `rfc9693`: maximum total traffic time of all trials of a search.",
        )
        .unit("time")
        .example("\"10min\""),
        key(
            "step",
            Kind::Percent,
            "\"10%\"",
            "`loss-curve`, `rfc2544`, `flood`: step between the loads of a curve, as a share of the maximum load.",
        )
        .unit("%")
        .example("\"5%\""),
        key(
            "tests",
            Kind::List(&words(SuiteTest::NAMES)),
            "",
            "`rfc2544`, `rfc9693`: tests of the suite to run, in the suite's order. Default: all.",
        )
        .example("[\"throughput\", \"back-to-back\"]"),
        key(
            "repeats",
            integer(1, TRIALS_MAX as i64),
            "",
            "`back-to-back`: searches for the longest burst (default 50); `system-recovery`, `reset`: repetitions (default 5); `latency`: trials at each share, pooled (default 5); `rfc2544`: repetitions of each of these tests (default for latency: 20 trials); `tear-down-rate`: repetitions (default 5); `table-capacity`: searches (default 1); `rfc9693`: repetitions of each of these tests.",
        )
        .unit("times")
        .example("10"),
        key(
            "shares",
            Kind::List(&Kind::Percent),
            "[\"10%\", \"50%\", \"90%\"]",
            "`latency`: loads at which latency is measured, as shares of the rate found for the first goal; `rfc2544` measures at that rate itself.",
        )
        .unit("%")
        .example("[\"10%\", \"80%\"]"),
        key(
            "max_frames",
            integer(1, u32::MAX as i64),
            "",
            "`back-to-back`, `rfc2544`: maximum burst. Default: the number of frames that the sender sends in two seconds.",
        )
        .unit("frames")
        .example("100000"),
        key(
            "overload",
            duration(1_000_000),
            "\"60s\"",
            "`system-recovery`, `rfc2544`: duration of the overload.",
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
    doc: "A custom goal of `mlrsearch` (RFC 9971, Goal Terms), added to `goals`, or used alone if `goals` is absent.",
    keys: &[
        key("name", Kind::Name, "", "Name of the goal in reports.")
            .example("\"one-percent\"")
            .required(),
        key(
            "loss_ratio",
            number(0.0, 0.99),
            "0.0",
            "A trial with a higher loss ratio is a high-loss trial.",
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
        key("initial_trial", duration(1_000_000), "\"1s\"", "Duration of the shortest trials.")
            .unit("time")
            .example("\"500ms\""),
        key("final_trial", duration(1_000_000), "\"1s\"", "Duration of a full-length trial.")
            .unit("time")
            .example("\"2s\""),
        key(
            "duration_sum",
            duration(1_000_000),
            "\"21s\"",
            "Total duration of full-length trials that decides a load in doubt.",
        )
        .unit("time")
        .example("\"11s\""),
        key("width", Kind::Percent, "\"0.5%\"", "Maximum distance between the bounds.")
            .unit("%")
            .example("\"1%\""),
    ],
    ..Section::TABLE
};

/// `[design]`.
pub const DESIGN: Section = Section {
    path: "design",
    doc: "Number and order of the runs.",
    keys: &[
        key(
            "blocks",
            integer(1, 10_000),
            "5",
            "Number of blocks; in each, every variant runs once, in random order. In an alternation: number of streams.",
        )
        .unit("blocks")
        .example("10"),
        key(
            "stop",
            words(&["planned", "open"]),
            "",
            "Stop early, under a rule that keeps the confidence, instead of after a fixed number of blocks. `planned`: at most five looks (O'Brien-Fleming). `open`: a look after every block (e-process); `max_blocks` may be raised after any look, and the same command continues. (With any other design, blocks added after a look cause false differences.) Both also stop when every comparison is decided: different, or equivalent within `margin`.",
        )
        .example("\"planned\""),
        key(
            "max_blocks",
            integer(Stop::BLOCKS_MIN as i64, 10_000),
            "",
            "With `stop`: maximum number of blocks. Default: 20 for `planned`, 100 for `open`.",
        )
        .unit("blocks")
        .example("40"),
        key("seed", integer(0, i64::MAX), "1", "Seed of the random order.").example("7"),
        key(
            "alternate",
            duration(10_000_000),
            "",
            "One stream of traffic instead of separate runs: the variants are switched live in the order A B B A, each for this long. Only for settings that can be switched live.",
        )
        .unit("time")
        .example("\"170ms\""),
        key(
            "settle",
            duration(0),
            "\"40ms\"",
            "Time after each switch of an alternation that is not counted.",
        )
        .unit("time")
        .example("\"60ms\""),
    ],
    ..Section::TABLE
};

/// `[compare]`.
pub const COMPARE: Section = Section {
    path: "compare",
    doc: "Baseline, confidence and margin of the comparisons.",
    keys: &[
        key(
            "baseline",
            Kind::Baseline,
            "",
            "The baseline level of each factor. A factor not named is not compared across: each of its levels has its own baseline. Default: the first level of the only factor, or of the first one other than `family` and `frame_size`.",
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
        key("margin", Kind::Percent, "\"2%\"", "Smaller differences count as no difference.")
            .unit("%")
            .example("\"5%\""),
        key(
            "figure",
            words(&["auto", "mean", "p90", "instructions"]),
            "\"auto\"",
            "Value that summarises a run. `auto`: mean rate of the window, excluding time that was provably taken from the device; at a paced rate, the share of the load that was forwarded; with `kind = \"vm\"`, `instructions`. `mean`: plain mean of the window. `p90`: capacity, the 90th percentile of its slices, at full load only. `instructions`: instructions that an emulated device (`kind = \"vm\"`) executes to forward a packet. `mean` and `p90` measure the rate of a virtual machine, which then gets its packets over taps (as root); so does a `[method]` with its own trials.",
        )
        .example("\"mean\""),
        key(
            "adjust",
            words(&["holm", "benjamini-hochberg"]),
            "\"holm\"",
            "Adjustment for several comparisons. `holm` controls the chance of any false difference among all of them, at 5 % for a confidence of 95; `benjamini-hochberg` controls the expected share of false differences among those found: more powerful, with a weaker guarantee.",
        )
        .example("\"benjamini-hochberg\""),
    ],
    ..Section::TABLE
};

/// `[profile]`.
pub const PROFILE: Section = Section {
    path: "profile",
    doc: "CPU profiling. The windows of measured runs are sampled at `sampling` Hz, at a cost too small to show in a run; `starts` adds unmeasured profile runs at a high `frequency`. Not part of the plan's hash; `fwdlab run --profile` and `--no-profile` override this table.",
    keys: &[
        key(
            "cpu",
            Kind::Boolean,
            "true",
            "Profile the CPUs of the DUT. Without this table they are not profiled.",
        )
        .example("false"),
        key(
            "sampling",
            integer(0, 2000),
            "199",
            "Samples per CPU and second in the windows of measured runs, the same for all variants. 0: measured runs are not sampled.",
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
            "Equal parts of a profile run's window; the scatter between them shows the precision of a share.",
        )
        .unit("parts")
        .example("10"),
        key(
            "starts",
            integer(0, 50),
            "0",
            "Profile runs per variant, in random order within blocks. 0: one run, only for a variant whose measured runs were not sampled. Default with `rate`: 1. With two or more, differences between variants have intervals over starts of the device.",
        )
        .unit("runs")
        .example("3"),
        key(
            "rate",
            Kind::Rate,
            "",
            "Intended load of profile runs, written as `rate` in `[traffic]`. Default: the value of `rate` there. At a load that the device can carry, costs are the costs of forwarding, not of overload, and a machine with one CPU has time for its sampler. Profiles of different loads are not compared.",
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
            "Event that triggers a sample, as named by `perf list`. `auto`: cycles if the machine counts them, else `cpu-clock`, which is blind while interrupts are off.",
        )
        .example("\"cpu-clock\""),
        key(
            "call_graph",
            words(&["auto", "fp", "dwarf"]),
            "\"auto\"",
            "Method of finding callers. `fp`: frame pointers (the kernel has its own unwinder); `dwarf`: copies of the stack, for programs without frame pointers, at some megabytes per second; `auto`: `fp`.",
        )
        .example("\"dwarf\""),
        key("icicle", Kind::Boolean, "false", "Draw flame graphs upside down.").example("true"),
        key(
            "subsystems",
            Kind::File,
            "",
            "File that maps functions to subsystems; replaces the built-in table.",
        )
        .example("\"subsystems.txt\""),
    ],
    ..Section::TABLE
};
