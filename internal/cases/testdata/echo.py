"""Speaks the protocol by itself and hands on bytes as they came: its input becomes
the state, and in the second loop the input and the result of two steps."""
import json
import sys


def say(line):
    print(line, flush=True)


line = sys.stdin.readline()
loop = json.loads(line, parse_float=str)
if loop["loop"] == 1:
    body = line[line.index('"body":') + 7 :]
    say('{"type":"state","replace":%s}' % body[: body.index("]") + 1])
    say('{"type":"end","outcome":"continue"}')
else:
    state = line[line.index('"state":') + 8 :]
    state = state[: state.index("]") + 1]
    for i, effect in (1, "read"), (2, "once"):
        say('{"type":"step","id":%d,"name":"echo","effect":"%s","input":%s}' % (i, effect, state))
        sys.stdin.readline()
        say('{"type":"result","id":%d,"result":%s}' % (i, state))
    say('{"type":"end","outcome":"complete","result":%s}' % state)
