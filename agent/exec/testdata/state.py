from talk import say, hear

hear()
say('{"type":"state","patch":{"counters":{"a":1}},"by":"branch a"}')
say('{"type":"state","patch":{"counters":{"b":2.50},"k":null},"by":"branch b"}')
say('{"type":"state","patch":{"counters":{"a":3}},"by":"branch a"}')
say('{"type":"end","outcome":"wait","wait":{"for":"time","until":"2026-03-02T10:00:00+02:00","what":"the bank opens"}}')
hear()
