//! Tables and columns, with meanings and units. `docs/QUERIES.md` shows them.

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Name of the table and of its folder.
    pub name: &'static str,
    /// Meaning of a row.
    pub meaning: &'static str,
    /// Its columns. `bed` and `period` are additional columns encoded in folder names.
    pub columns: &'static [Column],
}

/// A column.
#[derive(Debug)]
pub struct Column {
    /// Its name, with the unit at the end.
    pub name: &'static str,
    /// Type of its values.
    pub kind: Kind,
    /// Meaning of its values.
    pub meaning: &'static str,
}

/// Type of a column. Every value may be missing (null).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An integer, 64 bits, signed.
    Integer,
    /// A floating-point number, 64 bits.
    Number,
    /// True or false.
    Truth,
    /// UTF-8.
    Text,
}

const fn integer(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Integer, meaning }
}

const fn number(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Number, meaning }
}

const fn truth(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Truth, meaning }
}

const fn text(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Text, meaning }
}

const STORE: Column = text("store", "the store's directory below the one that was exported");
const DAY: Column = text(
    "day",
    "when the experiment began (UTC), else the day of what it measured; null when unknown",
);
const RUN: Column = integer("run", "index of the run in its plan");
const VARIANT: Column = integer("variant", "index of the variant in its plan");

/// All tables.
pub const TABLES: [Table; 8] = [
    Table {
        name: "experiments",
        meaning: "a store",
        columns: &[
            STORE,
            DAY,
            integer("version", "version of these tables"),
            text("title", "title of the experiment"),
            text("plan", "hash of the plan: stores of one plan may be put together"),
            text("machine", "machine under test; null when unknown"),
            text("interface", "its interface; null when unknown"),
            text("topic", "the bench of an imported set, else the experiment's name"),
            text("testbed", "testbed, in words"),
            truth("real", "packets were really sent; false: simulated"),
            truth("imported", "read from other programs' files"),
            text("started_at", "when it began, RFC 3339; null when unknown"),
            text("metric", "what is compared, e.g. `median`"),
            integer("runs_planned", "runs in the plan"),
            integer("runs_recorded", "runs that are there"),
            integer("runs_in_doubt", "runs with a warning"),
        ],
    },
    Table {
        name: "runs",
        meaning: "a run; in an alternation one variant's part of it",
        columns: &[
            STORE,
            DAY,
            RUN,
            integer("block", "block; in an alternation the stream"),
            VARIANT,
            text("label", "label of the variant"),
            text("started_at", "when it began, RFC 3339, UTC"),
            number("value_pps", "the compared figure, packets per second; null without one"),
            number("instructions", "the compared figure, instructions per packet; null of rates"),
            number("mean_pps", "mean rate forwarded"),
            number("offered_pps", "mean rate offered"),
            number("intended_pps", "intended load; null at the maximum rate"),
            integer("offered", "packets offered in the window"),
            integer("forwarded", "packets forwarded of them"),
            number("taken", "share of the window that was provably taken from the device, 0 to 1"),
            integer("warnings", "warnings"),
            text("left_out", "why it enters no verdict; null where it does"),
            truth("disturbed", "other work took the device's CPUs"),
            truth("generator_limited", "the sender was the limit"),
        ],
    },
    Table {
        name: "samples",
        meaning: "a raw sample of a run's window",
        columns: &[
            STORE,
            DAY,
            RUN,
            integer("position", "which sample, from 0"),
            integer("at_ns", "start after the opening of the window"),
            integer("duration_ns", "length as measured"),
            integer("offered", "packets that left the sender"),
            integer("forwarded", "packets that arrived"),
            integer("stolen_ns", "time stolen by the hypervisor from the device's CPUs"),
            VARIANT,
            truth("valid", "counted: false while a switch settles"),
        ],
    },
    Table {
        name: "trials",
        meaning: "a trial of a search, a curve or another method",
        columns: &[
            STORE,
            DAY,
            RUN,
            integer("part", "the test of a suite, from 0; null where there is none"),
            integer("position", "which trial, from 0"),
            integer("load_pps", "intended load"),
            integer("duration_ns", "how long was to be sent"),
            integer("at_ns", "when it began, after the first one"),
            integer("offered", "packets that left the sender in the window"),
            integer("forwarded", "those of them that arrived intact, each once"),
            number("loss_ratio", "packets lost over packets offered; null when unknown"),
            integer("burst", "frames of a burst; null of trials at a load"),
            integer("taken_ns", "time provably taken from the device in the window"),
            text("invalid", "why it says nothing of the device; null where it does"),
        ],
    },
    Table {
        name: "counters",
        meaning: "a counter of the device over a run's trial",
        columns: &[
            STORE,
            DAY,
            RUN,
            text("name", "name, e.g. `d0 rx_packets`"),
            integer("delta", "increase over the trial"),
            integer("expected", "increase by our own counts; null when nothing follows"),
        ],
    },
    Table {
        name: "settings",
        meaning: "a setting of a variant",
        columns: &[
            STORE,
            DAY,
            VARIANT,
            text("label", "label of the variant"),
            text("name", "path of the setting; `factor.NAME` for the level of a factor"),
            text("value", "its value, as in JSON without quotation marks"),
        ],
    },
    Table {
        name: "verdicts",
        meaning: "a variant against its baseline",
        columns: &[
            STORE,
            DAY,
            VARIANT,
            text("label", "label of the variant"),
            integer("baseline", "index of the baseline"),
            text("baseline_label", "its label"),
            text("goal", "goal of a search, where it is not the first"),
            text("verdict", "better, worse, equivalent, inconclusive; of counts fewer, more"),
            number("ratio", "candidate over baseline"),
            number("low", "lower end of the ratio's interval"),
            number("high", "upper end"),
            number("p_adjusted", "p-value, adjusted for the family; null of counts"),
            number("mde", "smallest detectable effect, as a ratio; null of counts"),
            integer("runs_baseline", "runs of the baseline that count"),
            integer("runs_candidate", "runs of the candidate that count"),
            text("reason", "why there is no answer; null where there is one"),
        ],
    },
    Table {
        name: "warnings",
        meaning: "a doubt about a run",
        columns: &[
            STORE,
            DAY,
            RUN,
            text("kind", "kind of doubt, e.g. `generator-limited`"),
            text("sentence", "the doubt with its evidence"),
        ],
    },
];
