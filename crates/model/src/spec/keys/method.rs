//! How it is tested, in the order of the documentation: the trial, the design,
//! the comparison, the profile.

use super::{Kind, Section, duration, integer, key, words};
use crate::design::Stop;

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
            "Instead of a fixed number of blocks: end early, under a rule that keeps the confidence. `planned`: at most five looks (O'Brien-Fleming); `open`: a look after every block (e-process). Both also end when every comparison is decided: different, or equivalent within `margin`.",
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
            "What stands for a run: `auto`, the mean rate of the window over the time that was not provably taken from the device, and at a paced rate the share of the load that was forwarded; `mean`, the plain mean of the window; `p90`, the capacity: ninetieth percentile of its slices, at full load only; `instructions`, those that an emulated device (`kind = \"vm\"`) executes to forward a packet, which is what `auto` compares there.",
        )
        .example("\"mean\""),
        key(
            "adjust",
            words(&["holm", "benjamini-hochberg"]),
            "\"holm\"",
            "How several comparisons are adjusted for their number. `holm`: one false difference among all of them is as rare as `confidence` says; `benjamini-hochberg`: the expected share of false ones among the differences found is kept, which finds more and promises less.",
        )
        .example("\"benjamini-hochberg\""),
    ],
    ..Section::TABLE
};

/// `[profile]`.
pub const PROFILE: Section = Section {
    path: "profile",
    doc: "Where the CPU's time goes: one extra run for each variant (or `starts` of them), after all others and never one of them. Nothing here changes a measured number, so a profile can be asked for later; `fwdlab run --profile` and `--no-profile` decide instead.",
    keys: &[
        key(
            "cpu",
            Kind::Boolean,
            "true",
            "Profile the DUT's CPUs; without this table they are not.",
        )
        .example("false"),
        key("duration", duration(1_000_000_000), "\"5s\"", "The sampled window; at least 1 s.")
            .unit("time")
            .example("\"10s\""),
        key(
            "windows",
            integer(1, 100),
            "5",
            "Equal parts of the window: how much they differ says how certain a share is.",
        )
        .unit("parts")
        .example("10"),
        key(
            "starts",
            integer(1, 50),
            "1",
            "Profile runs of each variant. With two or more the differences between variants have intervals over starts of the device; with one they hold for that start only.",
        )
        .unit("runs")
        .example("3"),
        key("frequency", integer(1, 20_000), "1999", "Samples of each CPU in a second.")
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
