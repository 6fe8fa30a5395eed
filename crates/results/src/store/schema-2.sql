-- Version 2: what an import read, and what was published with it.

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
