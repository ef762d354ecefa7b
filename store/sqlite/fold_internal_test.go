package sqlite

import (
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// fill sets every field below v to a value that is neither zero nor another
// field's.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMicro(1_700_000_000_000_000 + int64(*n)).UTC()))
		return
	case stint.Status:
		v.SetString(string(stint.Waiting))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(*n + i))
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k": fmt.Sprint(*n), "": "", `"]'`: "ü"}))
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(int64(*n))
	}
}

// change makes one leaf below v different and returns its name; i counts the
// leaves down.
func change(v reflect.Value, name string, i *int) string {
	switch v.Kind() {
	case reflect.Struct:
		if _, leaf := v.Interface().(time.Time); !leaf {
			for f := range v.NumField() {
				if found := change(v.Field(f), name+"."+v.Type().Field(f).Name, i); found != "" {
					return found
				}
			}
			return ""
		}
	case reflect.Pointer: // what it points to is never changed in place
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(v.Elem())
		found := change(c.Elem(), name, i)
		if found != "" {
			v.Set(c)
		}
		return found
	default:
	}
	if *i--; *i >= 0 {
		return ""
	}
	switch v.Kind() {
	case reflect.Struct:
		v.Set(reflect.ValueOf(v.Interface().(time.Time).Add(time.Microsecond)))
	case reflect.Slice:
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		n := 7
		fill(c.Index(1), &n)
		v.Set(c)
	case reflect.Array:
		v.Index(3).SetUint(250)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k": "other", "": "", `"]'`: "ü"}))
	case reflect.String:
		if name == ".Status" {
			v.SetString(string(stint.Failed))
		} else {
			v.SetString(v.String() + "'")
		}
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		v.SetInt(v.Int() + 1)
	}
	return name
}

// Whatever member of a session an append changes, alone, the store shows it: the
// writer skips what it believes to be unchanged.
func TestEveryMember(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var fold stint.Session
	n := 0
	fill(reflect.ValueOf(&fold).Elem(), &n)
	fold.Head = 1
	entry := func() []stint.Entry {
		return []stint.Entry{{Version: 1, Session: fold.ID, Seq: fold.Head, Kind: stint.OutputWritten}}
	}
	l, err := s.Create(t.Context(), stint.Batch{Session: fold, Entries: entry()}, stint.Claim{Holder: "me", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	shown := func(what string) {
		t.Helper()
		row, err := s.Session(t.Context(), fold.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(row.Session, fold) {
			t.Errorf("after a change of %s the store shows\n%+v\nwant\n%+v", what, row.Session, fold)
		}
	}
	shown("nothing")
	changed := 0
	for i := 0; ; i++ {
		left, head := i, fold.Head
		what := change(reflect.ValueOf(&fold).Elem(), "", &left)
		if what == "" {
			break
		}
		if what == ".ID" || what == ".Head" || what == ".Family" {
			n = 0 // these never change
			var again stint.Session
			fill(reflect.ValueOf(&again).Elem(), &n)
			fold.ID, fold.Family, fold.Head = again.ID, again.Family, head
			continue
		}
		fold.Head++
		done := make(chan error, 1)
		s.Append(t.Context(), l, stint.Batch{Session: fold, Entries: entry()}, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		shown(what)
		changed++
	}
	if changed < 60 {
		t.Errorf("only %d members were changed", changed)
	}
}

// The names that the program knows by heart are those of the migration.
func TestFixedNames(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := map[int64]string{}
	if err := s.read(t.Context(), "test", func(c *sqlite.Conn) error {
		return each(c, "SELECT id, text FROM names WHERE id < 100", func(st *sqlite.Stmt) error {
			got[st.ColumnInt64(0)] = st.ColumnText(1)
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, fixedNames()) {
		t.Errorf("the file has %v, the program %v", got, fixedNames())
	}
}
