package api

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// registry makes the schemas of the documents. The framework's own leaves out members of
// embedded structs that are not exported, cannot say that an object may be null, and says
// so of every array.
type registry struct {
	schemas map[string]*huma.Schema
	types   map[string]reflect.Type
}

const schemaPrefix = "#/components/schemas/"

func newRegistry() *registry {
	return &registry{schemas: map[string]*huma.Schema{}, types: map[string]reflect.Type{}}
}

// Schema implements huma.Registry.
func (r *registry) Schema(t reflect.Type, allowRef bool, hint string) *huma.Schema {
	base := t
	for base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	if !isObject(base) {
		s := huma.SchemaFromType(r, t)
		if t.Kind() == reflect.Slice {
			s.Nullable = false
		}
		return s
	}
	name := nameOf(base, hint)
	if known, ok := r.types[name]; ok && known != base {
		panic(fmt.Sprintf("two types of the API have the name %s: %s and %s", name, known, base)) // seen by every test
	}
	if _, ok := r.schemas[name]; !ok {
		r.types[name], r.schemas[name] = base, &huma.Schema{}
		*r.schemas[name] = *huma.SchemaFromType(r, flat(base))
	}
	switch {
	case !allowRef:
		return r.schemas[name]
	case t.Kind() == reflect.Pointer:
		return &huma.Schema{AnyOf: []*huma.Schema{{Ref: schemaPrefix + name}, {Type: "null"}}}
	}
	return &huma.Schema{Ref: schemaPrefix + name}
}

// isObject reports whether t is written as a JSON object with members of its own.
func isObject(t reflect.Type) bool {
	text := reflect.TypeFor[encoding.TextUnmarshaler]()
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() && !t.Implements(text) && !reflect.PointerTo(t).Implements(text)
}

// nameOf is the name of a type, with those of its parameters: limit[int64] is LimitInt64.
func nameOf(t reflect.Type, hint string) string {
	name := t.Name()
	if name == "" {
		name = hint
	}
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(name, func(c rune) bool { return c == '[' || c == ']' || c == ',' || c == '*' }) {
		part = part[strings.LastIndexByte(part, '.')+1:]
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// flat returns t with the members of what it embeds as its own, as JSON writes it.
func flat(t reflect.Type) reflect.Type {
	var fields []reflect.StructField
	hidden := false
	for _, f := range reflect.VisibleFields(t) {
		switch {
		case f.Anonymous && f.Tag.Get("json") == "":
			hidden = hidden || !f.IsExported()
		case f.IsExported():
			f.Anonymous, f.Index, f.Offset = false, nil, 0
			fields = append(fields, f)
		}
	}
	if !hidden {
		return t
	}
	return reflect.StructOf(fields)
}

// SchemaFromRef implements huma.Registry.
func (r *registry) SchemaFromRef(ref string) *huma.Schema {
	return r.schemas[strings.TrimPrefix(ref, schemaPrefix)]
}

// TypeFromRef implements huma.Registry.
func (r *registry) TypeFromRef(ref string) reflect.Type {
	return r.types[strings.TrimPrefix(ref, schemaPrefix)]
}

// Map implements huma.Registry.
func (r *registry) Map() map[string]*huma.Schema { return r.schemas }

// MarshalJSON writes the schemas by name.
func (r *registry) MarshalJSON() ([]byte, error) { return json.Marshal(r.schemas) }

// RegisterTypeAlias implements huma.Registry. Nothing here has an alias.
func (r *registry) RegisterTypeAlias(reflect.Type, reflect.Type) {}
