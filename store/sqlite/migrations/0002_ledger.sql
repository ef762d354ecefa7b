-- The lines of ledgers: what came of an occurrence or a delivery. A line is written
-- with its key and goes with it; nothing changes it.

INSERT INTO names(id, text) VALUES (20, 'system.recorded');

CREATE TABLE ledger(
  id     INTEGER PRIMARY KEY,
  source TEXT NOT NULL,
  at     INTEGER NOT NULL,
  scope  TEXT NOT NULL,
  name   TEXT NOT NULL,
  note   TEXT,
  body   BLOB,
  sum    BLOB NOT NULL -- SHA-256 of the line and of its key
);
CREATE UNIQUE INDEX ledger_key ON ledger(scope, name);
CREATE INDEX ledger_source ON ledger(scope, source, at, name);

CREATE VIEW v_ledger AS SELECT
  l.scope, l.source, l.name,
  strftime('%Y-%m-%dT%H:%M:%S', l.at / 1000000, 'unixepoch') || printf('.%06dZ', l.at % 1000000) AS at,
  nullif(k.ref, '') AS session, l.note, CAST(l.body AS TEXT) AS body
  FROM ledger l JOIN keys k ON k.scope = l.scope AND k.name = l.name;
