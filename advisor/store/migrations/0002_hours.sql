-- What was measured hour by hour, so that a change is judged on the same hours of the week. Bodies are JSON.

CREATE TABLE hour (
    deployment TEXT NOT NULL,
    start      INTEGER NOT NULL,
    epoch      REAL NOT NULL,
    settings   TEXT NOT NULL,
    figures    TEXT NOT NULL,
    PRIMARY KEY (deployment, start)
) WITHOUT ROWID;
CREATE INDEX hour_by_time ON hour (start);
