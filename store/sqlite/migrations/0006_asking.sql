-- The sessions with a question to a person on their row. What a name or a label holds is
-- quoted in the JSON, and is not taken for the member.

CREATE INDEX sessions_asking ON sessions(id) WHERE instr(fold, '"approvals":[') > 0;

-- A message of kind branch, number 12, is control: it wakes in any status.

UPDATE heads SET wakes = wakes | 4096;
