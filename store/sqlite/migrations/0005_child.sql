-- A message of kind child, number 11, wakes what does not wait, as all others do.

UPDATE heads SET wakes = wakes | 2048 WHERE sid IN (SELECT sid FROM sessions WHERE status = 1);

-- How many tools a session called is among its totals.
UPDATE heads SET mark = rtrim(mark, ']') || iif(json_array_length(mark) = 18, ',0,0,0,0,0', '') || ',' || c.n || ',0]'
  FROM (SELECT sid, count(*) AS n FROM journal WHERE kind IN (11, 12) AND CAST(data AS TEXT) ->> '$.kind' = 'tool' GROUP BY sid) c
  WHERE c.sid = heads.sid;
