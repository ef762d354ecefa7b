from talk import say, hear

hear()
say('{"type":"state","patch":{"counters":{"shared":0,"a":1}},"by":"branch a"}')
say('{"type":"state","patch":{"counters":{"shared":0,"b":2}},"by":"branch b"}')
hear()
