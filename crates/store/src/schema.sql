-- schema.md explains the columns. Entries of which a run has several are a list in its row, at a
-- fraction of the cost of rows; views show them as tables.

CREATE TABLE plan (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    hash       TEXT NOT NULL,
    title      TEXT NOT NULL,
    json       TEXT NOT NULL,
    experiment TEXT NOT NULL
) STRICT;

CREATE TABLE invocation (
    id             INTEGER PRIMARY KEY,
    started_at     TEXT NOT NULL,
    fwdlab_version TEXT NOT NULL,
    testbed        TEXT NOT NULL,
    testbed_reason TEXT NOT NULL,
    simulated      INTEGER NOT NULL CHECK (simulated IN (0, 1)),
    environment    TEXT NOT NULL,
    bed            TEXT
) STRICT;

CREATE TABLE run (
    run              INTEGER PRIMARY KEY,
    invocation       INTEGER NOT NULL REFERENCES invocation (id),
    block            INTEGER NOT NULL,
    variants         TEXT NOT NULL,
    run_id           INTEGER NOT NULL,
    started_at       TEXT NOT NULL,
    window_ns        INTEGER NOT NULL,
    intended         INTEGER,
    window_offered   INTEGER NOT NULL,
    window_forwarded INTEGER NOT NULL,
    total_offered    INTEGER NOT NULL,
    total_forwarded  INTEGER NOT NULL,
    foreign_packets  INTEGER NOT NULL,
    unstamped        INTEGER NOT NULL,
    flows_seen       INTEGER,
    drain_ns         INTEGER NOT NULL,
    facts            TEXT NOT NULL,
    arrivals         TEXT,
    device           TEXT,
    opening          TEXT,
    executed         TEXT,
    method           TEXT,
    samples          TEXT NOT NULL DEFAULT '[]',
    counters         TEXT NOT NULL DEFAULT '[]',
    cpus             TEXT NOT NULL DEFAULT '[]',
    overhead         TEXT NOT NULL DEFAULT '[]'
) STRICT;

CREATE VIEW sample AS
    SELECT run, key AS position, value ->> 0 AS at_ns, value ->> 1 AS duration_ns,
        value ->> 2 AS offered, value ->> 3 AS forwarded, value ->> 4 AS stolen_ns,
        value ->> 5 AS ran_ns, value ->> 6 AS waited_ns, value ->> 7 AS sender_waited_ns,
        value ->> 8 AS variant, value ->> 9 AS slice, value ->> 10 AS valid
    FROM run, json_each(run.samples);

CREATE VIEW counter AS
    SELECT run, key AS position, value ->> 0 AS name, value ->> 1 AS before,
        value ->> 2 AS after, value ->> 3 AS expected
    FROM run, json_each(run.counters);

CREATE VIEW cpu AS
    SELECT run, key AS position, value ->> 0 AS cpu, value ->> 1 AS role,
        value ->> 2 AS user_ns, value ->> 3 AS system_ns, value ->> 4 AS softirq_ns,
        value ->> 5 AS idle_ns, value ->> 6 AS stolen_ns
    FROM run, json_each(run.cpus);

CREATE VIEW overhead AS
    SELECT run, key AS position, value ->> 0 AS step, value ->> 1 AS duration_ns
    FROM run, json_each(run.overhead);

CREATE TABLE warning (
    run      INTEGER NOT NULL REFERENCES run (run),
    position INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    json     TEXT NOT NULL,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE calibration (
    id          INTEGER PRIMARY KEY,
    testbed     TEXT NOT NULL,
    family      TEXT NOT NULL,
    frame_size  INTEGER NOT NULL,
    measured_at TEXT NOT NULL,
    mix         TEXT
) STRICT;

CREATE TABLE calibration_trial (
    calibration INTEGER NOT NULL REFERENCES calibration (id),
    position    INTEGER NOT NULL,
    rate_pps    REAL NOT NULL,
    PRIMARY KEY (calibration, position)
) STRICT, WITHOUT ROWID;

-- Checkpoints of runs that are not finished.
CREATE TABLE checkpoint (
    run      INTEGER NOT NULL,
    position INTEGER NOT NULL,
    json     TEXT NOT NULL,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

-- The files that an import read, and what was published with them.
CREATE TABLE import (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    origin TEXT NOT NULL,
    json   TEXT NOT NULL
) STRICT;

CREATE TABLE source (
    path        TEXT PRIMARY KEY,
    size        INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('read', 'ignored', 'refused')),
    message     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE document (
    path    TEXT PRIMARY KEY,
    kind    TEXT NOT NULL,
    variant INTEGER,
    content BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Profiles: extra runs, apart from the measured ones, and samples of measured runs.
CREATE TABLE profile (
    id         INTEGER PRIMARY KEY,
    variant    INTEGER NOT NULL,
    unit       TEXT NOT NULL,
    per_sample REAL NOT NULL,
    record     TEXT NOT NULL
) STRICT;

CREATE TABLE profile_stacks (
    profile  INTEGER NOT NULL REFERENCES profile (id),
    position INTEGER NOT NULL,
    folded   TEXT NOT NULL,
    PRIMARY KEY (profile, position)
) STRICT, WITHOUT ROWID;
