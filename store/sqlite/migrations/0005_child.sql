-- A message of kind child, number 11, wakes what does not wait, as all others do.

UPDATE heads SET wakes = wakes | 2048 WHERE sid IN (SELECT sid FROM sessions WHERE status = 1);
