package mcpserver

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
)

// outputSchema is the JSON Schema of T's JSON. Members may be added to an answer without
// a new schema number, so it forbids none.
func outputSchema[T any]() (json.RawMessage, error) {
	text := func() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }
	moment := &jsonschema.Schema{Type: "string", Format: "date-time"}
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[stint.ID]():        text(),
		reflect.TypeFor[stint.Hash]():      text(),
		reflect.TypeFor[stint.Money]():     text(),
		reflect.TypeFor[view.Big]():        text(),
		reflect.TypeFor[time.Time]():       moment,
		reflect.TypeFor[json.RawMessage](): {},
	}})
	if err != nil {
		return nil, err
	}
	open(s)
	return json.Marshal(s)
}

// open lets objects with known members have others too.
func open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Properties) > 0 {
		s.AdditionalProperties = nil
	}
	for _, p := range s.Properties {
		open(p)
	}
	open(s.Items)
	open(s.AdditionalProperties)
}
