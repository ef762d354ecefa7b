package wire_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/internal/wire"
)

// fill sets every member that v has, and all that is in them, to something that is drawn:
// one that is new is filled as well, so that no codec forgets it.
func fill(t *rapid.T, v reflect.Value, name string) {
	switch v.Interface().(type) {
	case time.Time: // of what stores keep: UTC, in microseconds
		us := rapid.Int64Range(0, 253402300799_999999).Draw(t, name)
		v.Set(reflect.ValueOf(time.UnixMicro(us).UTC()))
		return
	case json.RawMessage:
		raw := rapid.SampledFrom([]string{`{ "a" : 1.0e2, "b":"<\u2028>", "a": 2 }`, `null`, `"\ud800"`, `1`}).Draw(t, name)
		v.Set(reflect.ValueOf(json.RawMessage(raw)))
		return
	case stint.Money: // -2^63 is no amount of dollars
		v.SetInt(rapid.Int64Min(-1<<63+1).Draw(t, name))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		if v.Set(reflect.Zero(v.Type())); rapid.Bool().Draw(t, name) {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), name)
		}
	case reflect.Slice:
		v.Set(reflect.Zero(v.Type()))
		for range rapid.IntRange(0, 3).Draw(t, name) {
			one := reflect.New(v.Type().Elem()).Elem()
			fill(t, one, name)
			v.Set(reflect.Append(v, one))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), name)
		}
	case reflect.Map:
		v.Set(reflect.Zero(v.Type()))
		for key, value := range rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, name) {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			v.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf(value))
		}
	case reflect.String:
		v.SetString(rapid.String().Draw(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, name))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Uint8().Draw(t, name)))
	default:
		t.Fatalf("%s is of a kind that this test does not fill: %s", name, v.Type())
	}
}

// keeps checks that a T is the same after it was written, and read again.
func keeps[T, W any](t *testing.T, to func(T) W, from func(W) T, less func(*T)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		var in T
		if rapid.IntRange(0, 9).Draw(t, "all of it") > 0 { // else the zero value
			fill(t, reflect.ValueOf(&in).Elem(), reflect.TypeFor[T]().Name())
		}
		less(&in)
		var b bytes.Buffer
		if err := view.WriteJSON(&b, to(in)); err != nil {
			t.Fatal(err)
		}
		var w W
		if err := json.Unmarshal(b.Bytes(), &w); err != nil {
			t.Fatalf("%v\n%s", err, b.Bytes())
		}
		if out := from(w); !reflect.DeepEqual(in, out) {
			t.Fatalf("it went as\n%+v\nand came as\n%+v\nby\n%s", in, out, b.Bytes())
		}
	})
}

func nothing[T any](*T) {}

// What goes over the network is what a store answers, to the last byte.
func TestNothingIsLost(t *testing.T) {
	t.Run("Row", func(t *testing.T) {
		same := func(r stint.Row) stint.Row { return r }
		keeps(t, same, same, nothing)
	})
	t.Run("Entry", func(t *testing.T) {
		keeps(t, func(e stint.Entry) wire.Entry { return wire.Entry(e) }, func(e wire.Entry) stint.Entry { return stint.Entry(e) }, nothing)
	})
	t.Run("Message", func(t *testing.T) {
		keeps(t, func(m stint.Message) wire.Message { return wire.FromMessage(&m) }, func(m wire.Message) stint.Message { return m.Message() },
			func(m *stint.Message) { m.To, m.Keys = stint.ID{}, nil }) // they stay where they are
	})
	t.Run("Key", func(t *testing.T) {
		keeps(t, func(k stint.Key) wire.Key { return wire.FromKey(&k) }, func(k wire.Key) stint.Key { return k.Key() }, nothing)
	})
	t.Run("Filter", func(t *testing.T) {
		keeps(t, func(f stint.Filter) wire.Filter { return wire.Filter(f) }, func(f wire.Filter) stint.Filter { return stint.Filter(f) }, nothing)
	})
	t.Run("Range", func(t *testing.T) {
		keeps(t, func(r stint.Range) wire.Range { return wire.Range(r) }, func(r wire.Range) stint.Range { return stint.Range(r) }, nothing)
	})
}

// What encoding/json makes of these members by itself is the reason for the codecs.
func TestRawJSONWouldBeWrittenAnew(t *testing.T) {
	raw := json.RawMessage(`{ "a" : "<" }`)
	b, err := json.Marshal(raw)
	if err != nil || string(b) == string(raw) {
		t.Errorf("it stays %s, %v: send it as it is", b, err)
	}
}
