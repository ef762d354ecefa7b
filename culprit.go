package stint

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of what an error says of a value.
const (
	maxMarshalDepth = 1000 // steps of the search; encoding/json looks for cycles from there on
	maxPathEnd      = 200  // bytes kept of either end of a path
	maxWhat         = 300  // bytes of what is wrong
)

// culprit finds the first value that encoding/json refuses, or changes in silence.
type culprit struct {
	steps []string // of the path to it
	what  string   // what is wrong; empty: nothing was found
}

// parents are the pointers, maps and slices that a value lies in.
type parents []visit

type visit struct {
	t reflect.Type
	p uintptr
	n int // length of a slice: one that lies in itself has the same
}

// path is where the culprit is, the middle of a long path left out.
func (c *culprit) path() string {
	p := "$" + strings.Join(c.steps, "")
	if len(p) <= 2*maxPathEnd {
		return p
	}
	head, tail := maxPathEnd, len(p)-maxPathEnd
	for !utf8.RuneStart(p[head]) {
		head--
	}
	for !utf8.RuneStart(p[tail]) {
		tail++
	}
	return p[:head] + "…" + p[tail:]
}

// blame ends the search.
func (c *culprit) blame(format string, args ...any) bool {
	c.what = fmt.Sprintf(format, args...)
	if len(c.what) > maxWhat {
		c.what = strings.ToValidUTF8(c.what[:maxWhat], "") + "…"
	}
	return true
}

// under searches v as a member of what is being searched.
func (c *culprit) under(step string, v reflect.Value, in parents) bool {
	c.steps = append(c.steps, step)
	if c.find(v, in) {
		return true
	}
	c.steps = c.steps[:len(c.steps)-1]
	return false
}

// find reports whether v, or something in it, is to blame.
func (c *culprit) find(v reflect.Value, in parents) bool {
	if !v.IsValid() {
		return false
	}
	if len(c.steps) > maxMarshalDepth {
		return c.blame("nested more than %d deep", maxMarshalDepth)
	}
	if found, writes := c.custom(v); writes {
		return found
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if v.IsNil() {
			return v.Kind() == reflect.Map && c.badKeys(v.Type())
		}
		at := visit{t: v.Type(), p: v.Pointer()}
		if v.Kind() == reflect.Slice {
			at.n = v.Len()
		}
		if slices.Contains(in, at) && (v.Kind() != reflect.Slice || at.n > 0) {
			return c.blame("the value contains itself")
		}
		in = append(in[:len(in):len(in)], at)
	}
	return c.inside(v, in)
}

// inside is find for a value that encoding/json takes apart itself.
func (c *culprit) inside(v reflect.Value, in parents) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return c.find(v.Elem(), in)
	case reflect.Map:
		return c.inMap(v, in)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && plainBytes(v.Type().Elem()) {
			return false // base64
		}
		for i := range v.Len() {
			if c.under("["+strconv.Itoa(i)+"]", v.Index(i), in) {
				return true
			}
		}
	case reflect.Struct:
		for _, m := range members(v) {
			if c.under(nameStep(m.name), m.v, in) {
				return true
			}
		}
	case reflect.String:
		return c.inString(v)
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return c.blame("JSON cannot hold %v", f)
		}
	case reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return c.blame("JSON cannot hold a %s", v.Type())
	}
	return false
}

// plainBytes reports whether a slice of t is written as base64.
func plainBytes(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() == reflect.Uint8 && !p.Implements(reflect.TypeFor[json.Marshaler]()) && !p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

func (c *culprit) inString(v reflect.Value) bool {
	s := v.String()
	if v.Type() == reflect.TypeFor[json.Number]() {
		if _, err := json.Marshal(json.Number(s)); err != nil {
			return c.blame("%q is not a number", s)
		}
		return false
	}
	return c.notUTF8(s)
}

func (c *culprit) notUTF8(s string) bool {
	if utf8.ValidString(s) {
		return false
	}
	i := 0
	for r, n := utf8.DecodeRuneInString(s); r != utf8.RuneError || n != 1; r, n = utf8.DecodeRuneInString(s[i:]) {
		i += n
	}
	return c.blame("the string is not UTF-8: byte %d of it is %#x", i, s[i])
}

// custom judges a value that writes itself. writes is false for one that does not.
func (c *culprit) custom(v reflect.Value) (found, writes bool) {
	if v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer && v.IsNil() {
		return false, v.Kind() == reflect.Pointer // nil is null
	}
	if v.CanAddr() && v.Kind() != reflect.Pointer {
		v = v.Addr() // methods of the pointer count where encoding/json can reach it
	}
	if !v.CanInterface() {
		return false, false
	}
	switch m := v.Interface().(type) {
	case json.Marshaler:
		b, err := json.Marshal(m)
		switch {
		case err != nil:
			return c.blame("%v", innermost(err)), true
		case !utf8.Valid(b):
			return c.blame("what %s.MarshalJSON writes is not UTF-8", v.Type()), true
		}
		return false, true
	case encoding.TextMarshaler:
		b, err := m.MarshalText()
		if err != nil {
			return c.blame("%v", err), true
		}
		return c.notUTF8(string(b)), true
	}
	return false, false
}

// innermost is what a MarshalJSON said, without what encoding/json puts before it.
func innermost(err error) error {
	for m := (*json.MarshalerError)(nil); errors.As(err, &m); {
		err = m.Err
	}
	return err
}

func (c *culprit) badKeys(t reflect.Type) bool {
	switch k := t.Key(); k.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return false
	default:
		return !k.Implements(reflect.TypeFor[encoding.TextMarshaler]()) && c.blame("JSON cannot hold a map with keys of type %s", k)
	}
}

func (c *culprit) inMap(v reflect.Value, in parents) bool {
	if c.badKeys(v.Type()) {
		return true
	}
	type member struct {
		name string
		v    reflect.Value
	}
	var all []member
	for _, k := range v.MapKeys() {
		name := fmt.Sprint(k)
		if k.Kind() != reflect.String {
			if m, ok := k.Interface().(encoding.TextMarshaler); ok && (k.Kind() != reflect.Pointer || !k.IsNil()) {
				b, err := m.MarshalText()
				if err != nil {
					return c.blame("a key cannot be written: %v", err)
				}
				name = string(b)
			}
		}
		all = append(all, member{name, v.MapIndex(k)})
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	for _, m := range all {
		if !utf8.ValidString(m.name) {
			return c.blame("a key is not UTF-8: %q", m.name)
		}
		if c.under(nameStep(m.name), m.v, in) {
			return true
		}
	}
	return false
}

// nameStep is a member's step in a path: .name where that is readable, else ["the name"].
func nameStep(name string) string {
	const most = 60
	plain := name != "" && len(name) <= most
	for i := range len(name) {
		b := name[i]
		plain = plain && (b == '_' || b == '-' || '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z')
	}
	switch {
	case plain:
		return "." + name
	case len(name) > most:
		return "[" + strconv.Quote(strings.ToValidUTF8(name[:most], "")) + "…]"
	}
	return "[" + strconv.Quote(name) + "]"
}

// field is a member of a struct as encoding/json writes it.
type field struct {
	name   string
	v      reflect.Value
	depth  int // of embedding
	tagged bool
}

// members are the fields of v that encoding/json writes, in their order: of those
// with one name the one that is embedded least, and of several such the tagged one.
func members(v reflect.Value) []field {
	all := fields(v, 0)
	var out []field
	for i, f := range all {
		wins := !slices.ContainsFunc(all, func(g field) bool {
			return g.name == f.name && (g.depth < f.depth || g.depth == f.depth && g.tagged && !f.tagged)
		})
		for j, g := range all {
			wins = wins && (i == j || g.name != f.name || g.depth != f.depth || g.tagged != f.tagged)
		}
		if wins {
			out = append(out, f)
		}
	}
	return out
}

func fields(v reflect.Value, depth int) (out []field) {
	if depth > 20 {
		return nil // a type that embeds pointers to itself
	}
	for i := range v.NumField() {
		t, fv := v.Type().Field(i), v.Field(i)
		tag := t.Tag.Get("json")
		name, opts, _ := strings.Cut(tag, ",")
		inner := t.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-", !t.IsExported() && !(t.Anonymous && inner.Kind() == reflect.Struct):
			continue
		case t.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			if fv.Kind() == reflect.Pointer {
				fv = fv.Elem()
			}
			if fv.IsValid() {
				out = append(out, fields(fv, depth+1)...)
			}
			continue
		}
		if omitted(fv, opts) {
			fv = reflect.Value{} // it hides others of its name all the same
		}
		out = append(out, field{name: cmp.Or(name, t.Name), v: fv, depth: depth, tagged: name != ""})
	}
	return out
}

// omitted reports whether a field's options leave its value out.
func omitted(v reflect.Value, opts string) bool {
	for opt := range strings.SplitSeq(opts, ",") {
		switch opt {
		case "omitzero":
			if !v.CanInterface() {
				continue
			}
			if z, ok := v.Interface().(interface{ IsZero() bool }); ok && (v.Kind() != reflect.Pointer || !v.IsNil()) {
				return z.IsZero()
			}
			if v.IsZero() {
				return true
			}
		case "omitempty":
			switch v.Kind() {
			case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
				return v.Len() == 0
			case reflect.Interface, reflect.Pointer, reflect.Bool, reflect.Float32, reflect.Float64,
				reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
				reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
				return v.IsZero()
			}
		}
	}
	return false
}
