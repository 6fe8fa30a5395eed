-- Version 3: profiles. Each is a run of its own, apart from the measured ones.

CREATE TABLE profile (
    id      INTEGER PRIMARY KEY,
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
