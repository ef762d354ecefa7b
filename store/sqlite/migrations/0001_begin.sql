-- Times are microseconds since 1970. Words that repeat (kinds, actors, agents)
-- are numbers of the table names. 1 to 99 are fixed by the program.

PRAGMA application_id = 0x73746e74;

CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO meta(name, value) VALUES ('store.id', randomblob(16));

CREATE TABLE names(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
INSERT INTO names(id, text) VALUES
  (1, 'session.created'), (2, 'session.waiting'), (3, 'session.resumed'), (4, 'session.released'), (5, 'session.ended'),
  (6, 'line.started'), (7, 'loop.started'), (8, 'loop.completed'), (9, 'loop.failed'),
  (10, 'step.requested'), (11, 'step.completed'), (12, 'step.failed'), (13, 'step.resolved'),
  (14, 'message.taken'), (15, 'message.refused'), (16, 'limit.changed'), (17, 'output.written'),
  (18, 'approval.requested'), (19, 'approval.decided'),
  (50, 'engine'), (51, 'agent'), (52, 'policy');

CREATE TABLE families(
  fid  INTEGER PRIMARY KEY,
  id   TEXT NOT NULL UNIQUE,
  keys INTEGER, -- which keys file
  slot INTEGER  -- place of the key in it
);

-- What changes seldom: fold is JSON.
CREATE TABLE sessions(
  sid     INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  rev     TEXT NOT NULL UNIQUE, -- the id backwards, to look up suffixes
  short   TEXT NOT NULL,
  fid     INTEGER NOT NULL,
  name    TEXT NOT NULL,
  agent   TEXT NOT NULL,
  trigger TEXT NOT NULL,
  status  INTEGER NOT NULL,
  created INTEGER NOT NULL,
  fold    TEXT NOT NULL
);
CREATE INDEX sessions_open ON sessions(id) WHERE status <= 2;
CREATE INDEX sessions_status ON sessions(status, id);
CREATE INDEX sessions_name ON sessions(name, id);
CREATE INDEX sessions_agent ON sessions(agent, id);
CREATE INDEX sessions_family ON sessions(fid, id);
CREATE INDEX sessions_created ON sessions(created);

-- What changes with an append. The rows are narrow, so that the active sessions
-- share few pages.
CREATE TABLE heads(
  sid     INTEGER PRIMARY KEY,
  epoch   INTEGER NOT NULL, -- of the newest lease
  held    INTEGER NOT NULL, -- epoch of the lease that is not given back; 0: none
  past    INTEGER NOT NULL DEFAULT 0, -- of the newest lease that was given back: what epoch is while nobody holds it
  ready   INTEGER,          -- from when on it may be claimed; NULL: not by time
  agent   INTEGER NOT NULL,
  runtime INTEGER NOT NULL,
  wakes   INTEGER NOT NULL, -- one bit for each kind of message that wakes it
  line    INTEGER NOT NULL,
  loop    INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  step    INTEGER NOT NULL,
  flags   INTEGER NOT NULL, -- 1: the loop is open, 2: parked
  since   INTEGER NOT NULL,
  loopseq INTEGER NOT NULL,
  head    INTEGER NOT NULL,
  last    INTEGER NOT NULL, -- journal.id of entry head
  hash    BLOB NOT NULL,
  updated INTEGER NOT NULL,
  mark    TEXT NOT NULL,    -- newest checkpoint and totals, a JSON array
  sum     BLOB NOT NULL     -- SHA-256 of the newest state
);
CREATE INDEX heads_ready ON heads(ready, sid, runtime, agent, epoch) WHERE ready IS NOT NULL AND held = 0;

CREATE TABLE leases(
  sid     INTEGER PRIMARY KEY,
  holder  TEXT NOT NULL,
  epoch   INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  claimed INTEGER NOT NULL,
  prior   TEXT NOT NULL,
  now     TEXT NOT NULL,
  now_at  INTEGER NOT NULL
);
CREATE INDEX leases_holder ON leases(holder);
CREATE INDEX leases_expires ON leases(expires);

-- A rowid table: bodies of a KiB in an index b-tree overflow its pages and halve
-- the rate of appends. An index of all entries by session and seq would halve it
-- again, as each append then changes a page of its own: so each entry names the
-- one before it, and the index has only the ends of loops and every 64th entry.
CREATE TABLE journal(
  id      INTEGER PRIMARY KEY,
  prev    INTEGER NOT NULL, -- id of the entry before this one; 0: none
  sid     INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  kind    INTEGER NOT NULL,
  epoch   INTEGER NOT NULL,
  line    INTEGER NOT NULL,
  loop    INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  step    INTEGER NOT NULL,
  sub     INTEGER NOT NULL,
  ts      INTEGER NOT NULL,
  actor   INTEGER NOT NULL,
  cause   INTEGER NOT NULL,
  v       INTEGER NOT NULL,
  seal    BLOB NOT NULL, -- hash, then salt
  data    BLOB,
  body    BLOB,
  blob    BLOB,          -- sum, then size, of a body that lies in blobs
  erased  BLOB           -- the commitment to bytes that were erased
);
CREATE INDEX journal_anchor ON journal(sid, seq, kind) WHERE kind = 8 OR kind = 6 OR kind = 1 OR seq & 63 = 0;

CREATE TABLE blobs(
  id   INTEGER PRIMARY KEY,
  fid  INTEGER NOT NULL,
  sum  BLOB NOT NULL,
  size INTEGER NOT NULL, -- of the plain bytes
  enc  INTEGER NOT NULL, -- 0: as they are, 1: zstd
  data BLOB NOT NULL
);
CREATE UNIQUE INDEX blobs_sum ON blobs(fid, sum);

-- The files of agents that sessions are pinned to by copy: without them a session
-- could not go on from a backup.
CREATE TABLE copies(
  name TEXT NOT NULL,    -- of the set, made from what is in it
  path TEXT NOT NULL,    -- in the agent's folder, with slashes
  mode INTEGER NOT NULL, -- permissions
  sum  BLOB NOT NULL,    -- SHA-256 of all the others
  data BLOB NOT NULL,
  PRIMARY KEY(name, path)
);

CREATE TABLE inbox(
  id     INTEGER PRIMARY KEY,
  sid    INTEGER NOT NULL,
  msg    TEXT NOT NULL,
  kind   INTEGER NOT NULL,
  sender TEXT NOT NULL,
  at     INTEGER NOT NULL,
  digest BLOB NOT NULL,
  data   BLOB,
  body   BLOB,
  taken  INTEGER -- seq of the newest entry of the batch that took it
);
CREATE UNIQUE INDEX inbox_msg ON inbox(sid, msg);
CREATE INDEX inbox_unread ON inbox(sid, id, kind) WHERE taken IS NULL;

CREATE TABLE keys(
  scope   TEXT NOT NULL,
  name    TEXT NOT NULL,
  digest  BLOB NOT NULL,
  ref     TEXT NOT NULL,
  expires INTEGER NOT NULL, -- 0: never
  PRIMARY KEY(scope, name)
) WITHOUT ROWID;
CREATE INDEX keys_expires ON keys(expires) WHERE expires > 0;

CREATE TABLE meters(
  fid      INTEGER NOT NULL,
  metric   TEXT NOT NULL,
  spent    INTEGER NOT NULL,
  reserved INTEGER NOT NULL,
  PRIMARY KEY(fid, metric)
) WITHOUT ROWID;

-- For people and `stint sql`. Times are RFC 3339, money is in dollars.

CREATE VIEW v_sessions AS SELECT
  s.id, s.short, s.name, s.agent, s.fold ->> '$.runtime' AS runtime, s.trigger, s.fold ->> '$.trigger.ref' AS trigger_ref, f.id AS family,
  CASE s.status WHEN 1 THEN iif(l.expires > CAST(unixepoch('subsec') * 1000000 AS INTEGER), 'running', 'pending')
    WHEN 2 THEN 'waiting' WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' WHEN 5 THEN 'stopped' WHEN 6 THEN 'canceled' END AS status,
  CASE WHEN s.status > 1 THEN s.fold ->> '$.reason'
    WHEN l.expires > CAST(unixepoch('subsec') * 1000000 AS INTEGER) THEN NULL
    WHEN l.sid IS NOT NULL OR h.flags = 1 THEN 'interrupted' ELSE s.fold ->> '$.reason' END AS reason,
  s.fold ->> '$.waiting.for' AS waiting_for,
  -- The fold keeps as many digits as a time has: filled up to six, like the others.
  substr(s.fold ->> '$.waiting.until', 1, 19) || '.' || substr(iif(substr(s.fold ->> '$.waiting.until', 20, 1) = '.', rtrim(substr(s.fold ->> '$.waiting.until', 21), 'Z'), '') || '000000', 1, 6) || 'Z' AS waiting_until,
  s.fold ->> '$.waiting.what' AS waiting_what,
  s.fold ->> '$.waiting.approval' AS approval, s.fold ->> '$.error' AS error, s.fold -> '$.labels' AS labels,
  h.line, h.loop, h.attempt, h.step, h.epoch, h.head,
  h.mark ->> 6 AS loops, h.mark ->> 7 AS steps, h.mark ->> 8 AS errors, h.mark ->> 9 AS attempts, h.mark ->> 10 AS restarts,
  (h.mark ->> 11) / 1000000 AS running_ms,
  h.mark ->> 12 AS input_tokens, h.mark ->> 13 AS output_tokens, h.mark ->> 14 AS cache_read_tokens, h.mark ->> 15 AS cache_write_tokens,
  (h.mark ->> 16) / 1e9 AS cost,
  h.mark ->> 5 AS state_bytes,
  strftime('%Y-%m-%dT%H:%M:%S', s.created / 1000000, 'unixepoch') || printf('.%06dZ', s.created % 1000000) AS created,
  strftime('%Y-%m-%dT%H:%M:%S', h.updated / 1000000, 'unixepoch') || printf('.%06dZ', h.updated % 1000000) AS updated,
  substr(s.fold ->> '$.ended', 1, 19) || '.' || substr(iif(substr(s.fold ->> '$.ended', 20, 1) = '.', rtrim(substr(s.fold ->> '$.ended', 21), 'Z'), '') || '000000', 1, 6) || 'Z' AS ended,
  l.holder, l.now,
  (SELECT count(*) FROM inbox i WHERE i.sid = s.sid AND i.taken IS NULL) AS unread
  FROM sessions s JOIN heads h ON h.sid = s.sid JOIN families f ON f.fid = s.fid LEFT JOIN leases l ON l.sid = s.sid;

CREATE VIEW v_entries AS SELECT
  s.id AS session, s.short, j.seq, (SELECT text FROM names n WHERE n.id = j.kind) AS kind, j.epoch, j.line, j.loop, j.attempt, j.step, j.sub,
  strftime('%Y-%m-%dT%H:%M:%S', j.ts / 1000000, 'unixepoch') || printf('.%06dZ', j.ts % 1000000) AS at,
  (SELECT text FROM names n WHERE n.id = j.actor) AS actor, nullif(j.cause, 0) AS cause,
  CAST(j.data AS TEXT) AS data, CAST(j.body AS TEXT) AS body,
  lower(hex(substr(j.blob, 1, 32))) AS blob, lower(hex(substr(j.seal, 1, 32))) AS hash, j.erased IS NOT NULL AS erased
  FROM journal j JOIN sessions s ON s.sid = j.sid;

CREATE VIEW v_loops AS SELECT
  s.id AS session, s.short, s.name AS session_name, s.agent, j.line, j.loop, j.attempt, j.seq,
  strftime('%Y-%m-%dT%H:%M:%S', j.ts / 1000000, 'unixepoch') || printf('.%06dZ', j.ts % 1000000) AS at,
  CAST(j.data AS TEXT) ->> '$.ms' AS ms, coalesce(CAST(j.data AS TEXT) ->> '$.steps', 0) AS steps, coalesce(CAST(j.data AS TEXT) ->> '$.models', 0) AS models,
  coalesce(CAST(j.data AS TEXT) ->> '$.tools', 0) AS tools, coalesce(CAST(j.data AS TEXT) ->> '$.effects', 0) AS effects,
  coalesce(CAST(j.data AS TEXT) ->> '$.errors', 0) AS errors,
  coalesce(CAST(j.data AS TEXT) ->> '$.usage.input_tokens', 0) AS input_tokens, coalesce(CAST(j.data AS TEXT) ->> '$.usage.output_tokens', 0) AS output_tokens,
  CAST(coalesce(CAST(j.data AS TEXT) ->> '$.usage.cost', 0) AS REAL) AS cost, CAST(j.data AS TEXT) ->> '$.headline' AS headline
  FROM journal j JOIN sessions s ON s.sid = j.sid WHERE j.kind = 8;

CREATE VIEW v_steps AS SELECT
  s.id AS session, s.short, s.name AS session_name, s.agent, j.line, j.loop, j.attempt, j.step, j.sub, j.seq,
  CASE j.kind WHEN 10 THEN 'requested' WHEN 11 THEN 'completed' WHEN 12 THEN 'failed' ELSE 'resolved' END AS outcome,
  strftime('%Y-%m-%dT%H:%M:%S', j.ts / 1000000, 'unixepoch') || printf('.%06dZ', j.ts % 1000000) AS at,
  CAST(j.data AS TEXT) ->> '$.name' AS name, CAST(j.data AS TEXT) ->> '$.kind' AS kind, CAST(j.data AS TEXT) ->> '$.effect' AS effect,
  CAST(j.data AS TEXT) ->> '$.ms' AS ms, CAST(j.data AS TEXT) ->> '$.usage.input_tokens' AS input_tokens,
  CAST(j.data AS TEXT) ->> '$.usage.output_tokens' AS output_tokens, CAST(CAST(j.data AS TEXT) ->> '$.usage.cost' AS REAL) AS cost,
  CAST(j.data AS TEXT) ->> '$.error' AS error
  FROM journal j JOIN sessions s ON s.sid = j.sid WHERE j.kind BETWEEN 10 AND 13;
