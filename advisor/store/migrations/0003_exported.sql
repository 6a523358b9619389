-- What the host agent counted since it began, by model as it is labelled. Bodies are packed arrays (see packing.py).

CREATE TABLE exported (
    model TEXT PRIMARY KEY,
    body  BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE counting (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    since REAL NOT NULL
);
