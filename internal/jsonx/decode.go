package jsonx

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Decode checks b with the zero Limits and stores it in the value that v points to. A
// struct takes only members whose name is exactly that of a field, case included; another
// name is a *SyntaxError. Numbers keep their digits in json.RawMessage, json.Number and
// any (there as json.Number). Decode begins with a zero value: what v held before is
// replaced, not filled up, and is untouched if an error is returned. A type with its own
// UnmarshalJSON or UnmarshalText sees its part as it is. Maps should have string keys: as
// integers "1" and "+1" would be one key, and the last would win. Errors of types that do
// not fit are those of encoding/json, wrapped.
func Decode(b []byte, v any) error {
	if err := Check(b, Limits{}); err != nil {
		return err
	}
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("jsonx: Decode stores through a non-nil pointer, it was given %T; pass the address of a variable", v)
	}
	fresh := reflect.New(target.Type().Elem())
	m := matcher{cursor: cursor{b: b}, seen: map[reflect.Type]map[string]reflect.Type{}}
	m.space()
	if !m.value(fresh.Type().Elem()) {
		return m.fault.error(b)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(fresh.Interface()); err != nil {
		return fmt.Errorf("the JSON does not fit what is expected here: %w", err)
	}
	target.Elem().Set(fresh.Elem())
	return nil
}

// matcher compares the names in a document with the fields of the type it is meant for.
type matcher struct {
	cursor
	seen  map[reflect.Type]map[string]reflect.Type
	fault failure
}

// value passes one value; false once fault is set.
func (m *matcher) value(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer && !opaque(t) {
		t = t.Elem()
	}
	kind := t.Kind()
	if opaque(t) {
		kind = reflect.Invalid
	}
	switch open := m.b[m.i]; {
	case open == '{' && (kind == reflect.Struct || kind == reflect.Map):
		return m.object(t)
	case open == '[' && (kind == reflect.Slice || kind == reflect.Array):
		m.i++
		for n := 0; m.more(); n++ {
			if !m.value(t.Elem()) {
				m.fault.steps = append(m.fault.steps, indexStep(n))
				return false
			}
		}
	default: // a scalar, or a type that takes anything, or a misfit for encoding/json to tell
		m.skip()
	}
	return true
}

func (m *matcher) object(t reflect.Type) bool {
	m.i++
	for m.more() {
		at := m.i
		quoted := m.name()
		name := unescape(quoted[1 : len(quoted)-1])
		var elem reflect.Type
		if t.Kind() == reflect.Map {
			elem = t.Elem()
		} else if elem = m.fields(t)[string(name)]; elem == nil {
			msg := "the name " + quote(name) + " is not known here; remove it"
			for known, typ := range m.fields(t) {
				if typ != nil && strings.EqualFold(known, string(name)) {
					msg = "the name " + quote(name) + " is not known here; write " + quote([]byte(known))
				}
			}
			m.fault = failure{at: at, msg: msg, steps: []string{nameStep(name)}}
			return false
		}
		if !m.value(elem) {
			m.fault.steps = append(m.fault.steps, nameStep(name))
			return false
		}
	}
	return true
}

// opaque reports that a type reads its JSON itself.
func opaque(t reflect.Type) bool {
	for _, i := range []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()} {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

// fields gives the types of a struct's members by their exact names, by the rules of
// encoding/json for embedded structs: the shallowest wins, among those a tagged one, and
// of several equals none; such a name has a nil type.
func (m *matcher) fields(t reflect.Type) map[string]reflect.Type {
	if known, ok := m.seen[t]; ok {
		return known
	}
	type found struct {
		typ    reflect.Type
		tagged bool
	}
	all, done := map[string]reflect.Type{}, map[reflect.Type]bool{}
	for level := []reflect.Type{t}; len(level) > 0; {
		var deeper []reflect.Type
		here := map[string]found{}
		for _, s := range level {
			for i := range s.NumField() {
				f := s.Field(i)
				tag := f.Tag.Get("json")
				name, _, _ := strings.Cut(tag, ",")
				inner := f.Type
				if inner.Kind() == reflect.Pointer && inner.Name() == "" {
					inner = inner.Elem()
				}
				isStruct := f.Anonymous && inner.Kind() == reflect.Struct
				if tag == "-" || !f.IsExported() && !isStruct {
					continue
				}
				if isStruct && name == "" {
					deeper = append(deeper, inner)
					continue
				}
				one := found{f.Type, name != ""}
				if !one.tagged {
					name = f.Name
				}
				if old, ok := here[name]; ok && old.tagged == one.tagged {
					one.typ = nil
				} else if ok && old.tagged {
					one = old
				}
				here[name] = one
			}
		}
		for _, s := range level {
			done[s] = true
		}
		for name, f := range here {
			if _, hidden := all[name]; !hidden {
				all[name] = f.typ
			}
		}
		level = level[:0]
		for _, s := range deeper {
			if !done[s] {
				level = append(level, s)
			}
		}
	}
	m.seen[t] = all
	return all
}
