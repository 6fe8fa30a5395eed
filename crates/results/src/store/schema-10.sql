-- Version 10: checkpoints of runs that are not finished.

CREATE TABLE checkpoint (
    run      INTEGER NOT NULL,
    position INTEGER NOT NULL,
    json     TEXT NOT NULL,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;
