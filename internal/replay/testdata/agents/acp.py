"""An agent that speaks the Agent Client Protocol, for one golden journal."""
import json
import sys


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(session, **what):
    say({"method": "session/update", "params": {"sessionId": session, "update": what}})


turns = 0
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, "authMethods": []}
    elif asked["method"] == "session/new":
        result = {"sessionId": "s-1"}
    elif asked["method"] == "session/prompt":
        s = asked["params"]["sessionId"]
        update(s, sessionUpdate="agent_message_chunk", content={"type": "text", "text": "I look. "})
        update(s, sessionUpdate="tool_call", toolCallId="c-1", title="list the letters", kind="read", status="pending", rawInput={"box": 7})
        update(s, sessionUpdate="tool_call_update", toolCallId="c-1", status="completed",
               content=[{"type": "content", "content": {"type": "text", "text": "2 letters"}}])
        update(s, sessionUpdate="agent_message_chunk", content={"type": "text", "text": "There are two."})
        result = {"stopReason": "end_turn"}
    say({"id": asked["id"], "result": result})
