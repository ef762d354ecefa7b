-- What lists are filtered by. An expression that only creation sets costs nothing later:
-- the index is in the order of lists, so that a search reads it and no row that it does
-- not return, and ends once it has enough.

CREATE INDEX sessions_text ON sessions(id, lower(name || char(10) || agent));
CREATE INDEX sessions_trigger ON sessions(trigger, id);

CREATE TABLE labels(
  key   TEXT NOT NULL,
  value TEXT NOT NULL,
  id    TEXT NOT NULL, -- of the session
  PRIMARY KEY(key, value, id)
) WITHOUT ROWID;
INSERT INTO labels(key, value, id) SELECT e.key, e.value, s.id FROM sessions s, json_each(s.fold, '$.labels') e;
