-- Version 1. Columns are explained in schema.md.

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
    environment    TEXT NOT NULL
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
    facts            TEXT NOT NULL
) STRICT;

CREATE TABLE sample (
    run         INTEGER NOT NULL REFERENCES run (run),
    position    INTEGER NOT NULL,
    at_ns       INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    offered     INTEGER NOT NULL,
    forwarded   INTEGER NOT NULL,
    stolen_ns   INTEGER NOT NULL,
    variant     INTEGER NOT NULL,
    slice       INTEGER NOT NULL,
    valid       INTEGER NOT NULL CHECK (valid IN (0, 1)),
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE counter (
    run      INTEGER NOT NULL REFERENCES run (run),
    position INTEGER NOT NULL,
    name     TEXT NOT NULL,
    before   INTEGER NOT NULL,
    after    INTEGER NOT NULL,
    expected INTEGER,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE cpu (
    run        INTEGER NOT NULL REFERENCES run (run),
    position   INTEGER NOT NULL,
    cpu        INTEGER NOT NULL,
    role       TEXT NOT NULL,
    user_ns    INTEGER NOT NULL,
    system_ns  INTEGER NOT NULL,
    softirq_ns INTEGER NOT NULL,
    idle_ns    INTEGER NOT NULL,
    stolen_ns  INTEGER NOT NULL,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE overhead (
    run         INTEGER NOT NULL REFERENCES run (run),
    position    INTEGER NOT NULL,
    step        TEXT NOT NULL,
    duration_ns INTEGER NOT NULL,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

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
    measured_at TEXT NOT NULL
) STRICT;

CREATE TABLE calibration_trial (
    calibration INTEGER NOT NULL REFERENCES calibration (id),
    position    INTEGER NOT NULL,
    rate_pps    REAL NOT NULL,
    PRIMARY KEY (calibration, position)
) STRICT, WITHOUT ROWID;
