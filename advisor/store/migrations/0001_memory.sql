-- Times are UNIX seconds. Bodies are JSON (TEXT) or packed arrays (BLOB, see packing.py).

CREATE TABLE run (
    id       INTEGER PRIMARY KEY,
    kind     TEXT NOT NULL,
    began_at REAL NOT NULL,
    ended_at REAL,
    outcome  TEXT
);
CREATE INDEX run_by_kind ON run (kind, outcome, ended_at);

CREATE TABLE step (
    run     INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    place   INTEGER NOT NULL,
    name    TEXT NOT NULL,
    seconds REAL NOT NULL,
    detail  TEXT NOT NULL,
    PRIMARY KEY (run, place)
) WITHOUT ROWID;

CREATE TABLE report (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    at       REAL NOT NULL,
    document BLOB NOT NULL
);

CREATE TABLE fact (
    deployment TEXT NOT NULL,
    at         REAL NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (deployment, at)
) WITHOUT ROWID;
CREATE INDEX fact_by_time ON fact (at);

CREATE TABLE advice (
    deployment TEXT NOT NULL,
    id         TEXT NOT NULL,
    first_seen REAL NOT NULL,
    last_seen  REAL NOT NULL,
    state      TEXT NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (deployment, id, first_seen)
) WITHOUT ROWID;

CREATE TABLE delivery (
    key            TEXT PRIMARY KEY,
    state          TEXT NOT NULL CHECK (state IN ('sending', 'sent', 'failed')),
    attempts       INTEGER NOT NULL,
    first_begun_at REAL NOT NULL,
    begun_at       REAL NOT NULL,
    changed_at     REAL NOT NULL,
    reference      TEXT NOT NULL DEFAULT '',
    why            TEXT NOT NULL DEFAULT '',
    permanent      INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE cursor (
    place INTEGER PRIMARY KEY,
    body  TEXT NOT NULL
);

CREATE TABLE unsettled (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    body BLOB NOT NULL
);

CREATE TABLE slice (
    deployment TEXT NOT NULL,
    start      INTEGER NOT NULL,
    seconds    INTEGER NOT NULL CHECK (seconds IN (3600, 86400)),
    lengths    BLOB NOT NULL,
    latency    BLOB,
    UNIQUE (deployment, start, seconds)
);
CREATE INDEX slice_by_time ON slice (start);
