package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/stint-dev/stint/tool"
)

// Names in the _meta of what a server sends. The SDK reads schemas and structured results
// into values of Go, where numbers are float64; so their bytes are kept beside them.
const (
	metaSchema     = "stint.dev/schema"
	metaStructured = "stint.dev/structured"
	metaReplaced   = "stint.dev/replaced"
)

// maxMessage bounds one message of a server, in bytes.
const maxMessage = 16 << 20

// mend makes a message of a server fit for the SDK and for what comes after it: what no
// store keeps is replaced and counted, and the bytes of what has numbers in it are kept.
func mend(msg []byte) []byte {
	clean, replaced := tool.CleanJSON(msg)
	if replaced == 0 && !bytes.Contains(clean, []byte(`"structuredContent"`)) && !bytes.Contains(clean, []byte(`"inputSchema"`)) {
		return clean
	}
	var m, result map[string]json.RawMessage
	if json.Unmarshal(clean, &m) != nil || json.Unmarshal(m["result"], &result) != nil || result == nil {
		return clean
	}
	note := map[string]string{}
	if raw, ok := result["structuredContent"]; ok {
		note[metaStructured] = string(raw)
	}
	if replaced > 0 {
		note[metaReplaced] = strconv.Itoa(replaced)
	}
	withMeta(result, note)
	var tools []map[string]json.RawMessage
	if json.Unmarshal(result["tools"], &tools) == nil && tools != nil {
		for _, t := range tools {
			if raw, ok := t["inputSchema"]; ok {
				withMeta(t, map[string]string{metaSchema: string(raw)})
			}
		}
		result["tools"] = encoded(tools)
	}
	m["result"] = encoded(result)
	return encoded(m)
}

// withMeta adds to the _meta of a value, over whatever the server has there by the name.
func withMeta(v map[string]json.RawMessage, note map[string]string) {
	if v == nil {
		return
	}
	meta := map[string]json.RawMessage{}
	if json.Unmarshal(v["_meta"], &meta) != nil || meta == nil {
		meta = map[string]json.RawMessage{}
	}
	for name, text := range note {
		meta[name] = encoded(text)
	}
	v["_meta"] = encoded(meta)
}

// encoded is v as JSON; v was read from JSON, so there is no error.
func encoded(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// lastID finds the id of a message of which only the end was kept, where it is the last
// member or only followed by the version, as in what most servers write.
func lastID(end []byte) (json.RawMessage, bool) {
	end = bytes.TrimRight(end, " \t\r\n")
	end, ok := bytes.CutSuffix(end, []byte("}"))
	if !ok {
		return nil, false
	}
	end = bytes.TrimSuffix(bytes.TrimRight(end, " "), []byte(`,"jsonrpc":"2.0"`))
	i := bytes.LastIndex(end, []byte(`"id":`))
	if i < 0 {
		return nil, false
	}
	return plainID(end[i+len(`"id":`):])
}

// firstID finds the id of a message of which only the beginning was kept, where it stands
// before the result.
func firstID(begin []byte) (json.RawMessage, bool) {
	d := json.NewDecoder(bytes.NewReader(begin))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		switch name {
		case "jsonrpc":
			if _, err := d.Token(); err != nil {
				return nil, false
			}
		case "id":
			var raw json.RawMessage
			if d.Decode(&raw) != nil {
				return nil, false
			}
			return plainID(raw)
		default:
			return nil, false
		}
	}
}

// plainID takes a number or a short text, as the SDK makes ids.
func plainID(raw []byte) (json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	var n json.Number
	if len(raw) == 0 || len(raw) > 100 || json.Unmarshal(raw, &n) != nil {
		return nil, false
	}
	return raw, true
}
