package config_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/policy"
)

// sweep changes every member of an agent, one after the other, and puts it back.
type sweep struct {
	t     *testing.T
	was   config.Agent
	is    *config.Agent
	count int
	seen  map[string]bool // fields by type
}

// check tells whether the change that was just made is told, and told as name alone.
// A prefix stands for all that begins with it.
func (s *sweep) check(name string, prefix bool) {
	s.t.Helper()
	s.count++
	before, hash := s.was.Definition()
	after, other := s.is.Definition()
	if hash == other {
		s.t.Errorf("%s: a change does not change the definition", name)
	}
	diff := config.Diff(s.was, *s.is)
	if len(diff) == 0 || len(diff) > 1 && !prefix {
		s.t.Errorf("%s: a change is told as %v\n%s\n%s", name, diff, before, after)
	}
	for _, c := range diff {
		if c.Member != name && !(prefix && strings.HasPrefix(c.Member, name)) {
			s.t.Errorf("%s: a change is told as %s", name, c)
		}
	}
	back, err := config.FromDefinition(after)
	if err != nil {
		return // kinds and what they need cannot be changed alone
	}
	if again, _ := back.Definition(); string(again) != string(after) {
		s.t.Errorf("%s: %s\nbecame\n%s", name, after, again)
	}
}

// joined is the name of a key below a member.
func joined(name, key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r)
	}) {
		return fmt.Sprintf("%s[%q]", name, key)
	}
	if name == "" {
		return key
	}
	return name + "." + key
}

// with sets v, checks and sets it back.
func (s *sweep) with(v reflect.Value, to any, store func(), name string, prefix bool) {
	s.t.Helper()
	old := reflect.ValueOf(v.Interface())
	if !old.IsValid() {
		old = reflect.Zero(v.Type())
	}
	v.Set(reflect.ValueOf(to).Convert(v.Type()))
	store()
	s.check(name, prefix)
	v.Set(old)
	store()
}

// value changes v, which is called name; store puts it where it belongs.
func (s *sweep) value(v reflect.Value, name string, store func()) {
	s.t.Helper()
	switch x := v.Interface().(type) {
	case stint.ID:
		s.with(v, stint.ID{1}, store, name, false)
		return
	case time.Time:
		s.with(v, x.Add(time.Hour).UTC(), store, name, false)
		return
	case json.RawMessage:
		s.with(v, json.RawMessage(`{"type":"null"}`), store, name, false)
		return
	case config.InDoubt:
		s.with(v, config.InDoubt{Do: config.Verify, Verify: []string{"other"}}, store, name, false)
		return
	case config.Rule:
		for _, r := range []config.Rule{{Off: !x.Off, Warn: x.Warn, Pause: x.Pause}, {Off: x.Off, Warn: x.Warn + 1, Pause: x.Pause}, {Off: x.Off, Warn: x.Warn, Pause: x.Pause + 1}} {
			s.with(v, r, store, name, false)
		}
		for i := range v.NumField() {
			s.seen["config.Rule."+v.Type().Field(i).Name] = true
		}
		return
	case []policy.Rule:
		s.with(v, slices.Concat(x, []policy.Rule{{Name: "new", Do: policy.Deny}}), store, name, true)
		if len(x) > 0 {
			s.with(v, slices.Clone(x[1:]), store, name, true)
			more := slices.Clone(x)
			more[0].Quorum++
			s.with(v, more, store, joined(name, x[0].Name), false)
		}
		return
	case []config.ToolSpec:
		s.with(v, slices.Concat(x, []config.ToolSpec{{Exec: &config.ExecTool{ToolInfo: config.ToolInfo{Name: "new"}}}}), store, name, true)
		if len(x) > 0 {
			s.with(v, slices.Clone(x[1:]), store, name, true)
		}
		for i := range x {
			s.tool(&x[i], name)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		s.members(v, name, store)
	case reflect.Pointer:
		if v.IsNil() {
			s.with(v, reflect.New(v.Type().Elem()).Interface(), store, name, v.Type().Elem().Kind() == reflect.Struct)
			return
		}
		s.value(v.Elem(), name, store)
	case reflect.Map:
		for _, k := range v.MapKeys() {
			item := reflect.New(v.Type().Elem()).Elem()
			item.Set(v.MapIndex(k))
			was := v.MapIndex(k)
			s.value(item, joined(name, k.String()), func() { store(); v.SetMapIndex(k, item) })
			v.SetMapIndex(k, reflect.Value{})
			s.check(joined(name, k.String()), true)
			v.SetMapIndex(k, was)
		}
	case reflect.Slice:
		s.with(v, append(slices.Clone(v.Interface().([]string)), "more"), store, name, false)
	case reflect.String:
		s.with(v, v.String()+"x", store, name, false)
	case reflect.Bool:
		s.with(v, !v.Bool(), store, name, false)
	case reflect.Int, reflect.Int64:
		s.with(v, v.Int()+1, store, name, false)
	case reflect.Float64:
		s.with(v, v.Float()+0.01, store, name, false)
	default:
		s.t.Fatalf("%s is a %v", name, v.Type())
	}
}

// tool changes each member of one tool. Its name is where its others stand.
func (s *sweep) tool(t *config.ToolSpec, name string) {
	v := reflect.ValueOf(t).Elem()
	label := string(t.Builtin)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		s.seen["config.ToolSpec."+f.Name] = true
		switch {
		case v.Field(i).IsZero():
			continue
		case f.Name == "Files":
			s.members(v.Field(i).Elem(), joined(name, "files"), func() {})
			continue
		case f.Name == "Exec":
			label = t.Exec.Name
		case f.Name == "HTTP":
			label = t.HTTP.Name
		case f.Name == "MCP":
			label = t.MCP.File
		case f.Name == "Spawn":
			label = "spawn"
		case f.Name == "Builtin":
			s.with(v.Field(i), "other", func() {}, name, true)
			continue
		}
		s.members(v.Field(i).Elem(), joined(joined(name, label), tag(f)), func() {})
	}
}

func tag(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.TrimSuffix(key, "_ns")
}

func (s *sweep) members(v reflect.Value, name string, store func()) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		s.seen[fmt.Sprint(v.Type(), ".", f.Name)] = true
		full := joined(name, tag(f))
		switch {
		case f.Anonymous:
			s.members(v.Field(i), name, store)
			continue
		case v.Type() == reflect.TypeFor[config.Kinds]():
			if !v.Field(i).IsNil() {
				s.members(v.Field(i).Elem(), "", store)
			}
			continue
		case v.Type() == reflect.TypeFor[config.Agent]() && f.Name == "Bounds":
			s.bounds(v.Field(i))
			continue
		case strings.HasPrefix(name, "tools") && (f.Name == "Name" || f.Name == "File"): // by which it is listed
			s.with(v.Field(i), v.Field(i).String()+"x", store, "tools", true)
			continue
		}
		s.value(v.Field(i), full, store)
	}
}

// bounds are written otherwise than they are called.
func (s *sweep) bounds(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		s.seen["config.Bounds."+f.Name] = true
		name := map[string]string{"Stop": "on_limit", "CostDefault": "limits.cost", "DeadlineIn": "limits.deadline", "DeadlineAt": "limits.deadline"}[f.Name]
		if name == "" {
			name = "limits." + tag(f)
		}
		s.value(v.Field(i), name, func() {})
	}
}

// fields are those of a type and of all that it is made of.
func fields(t reflect.Type, into map[string]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || !strings.HasPrefix(t.String(), "config.") || t == reflect.TypeFor[config.InDoubt]() {
		return
	}
	for i := range t.NumField() {
		into[fmt.Sprint(t, ".", t.Field(i).Name)] = true
		fields(t.Field(i).Type, into)
	}
}

// Whatever changes of an agent changes its definition, is told under its own name and
// nothing else is, and the definition is read back as the agent that it was made of.
func TestEveryMemberIsTold(t *testing.T) {
	seen := map[string]bool{}
	for file, names := range map[string][]string{"full": {"triage"}, "llm": nil, "http": nil, "cli": nil, "workspace": {"other"}} {
		parse := func() map[string]config.Agent {
			f, err := config.ParseWith("stint.yaml", files(t, "good")[file], content)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range f.Agents {
				if a.LLM != nil { // which no file has
					a.LLM.Record = &config.Record{Session: stint.ID{2}, Line: 1, Behind: 2, Until: 3}
				}
			}
			return f.Agents
		}
		was, is := parse(), parse()
		for name, a := range is {
			if names != nil && !slices.Contains(names, name) {
				continue
			}
			t.Run(file+"/"+name, func(t *testing.T) {
				s := &sweep{t: t, was: was[name], is: &a, seen: seen}
				s.members(reflect.ValueOf(&a).Elem(), "", func() {})
				if d := config.Diff(was[name], a); len(d) > 0 || s.count < 20 {
					t.Errorf("after %d changes it differs in %v", s.count, d)
				}
			})
		}
	}
	all := map[string]bool{}
	fields(reflect.TypeFor[config.Agent](), all)
	for f := range all {
		if !seen[f] {
			t.Errorf("%s was not changed", f)
		}
	}
}

// Definitions of programs are older than the other kinds: sessions are pinned to these bytes.
func TestDefinitionsOfProgramsAreAsTheyWere(t *testing.T) {
	a := config.Agent{Name: "echo", Kind: config.KindExec, Command: []string{"echo", "a b"}, Protocol: config.None, Dir: "/x", Pass: []string{"HOME"},
		Keep: config.KeepLoop, Effect: stint.Once, Output: 1 << 20, Pin: config.PinWarn, Retry: config.Retry{Attempts: 1}}
	def, hash := a.Definition()
	const want = `{"v":1,"name":"echo","kind":"exec","command":["echo","a b"],"protocol":"none","dir":"/x","pass":["HOME"],"keep":"loop","effect":"once",` +
		`"output":1048576,"limits":{},"grace_ns":0,"retry":{"attempts":1,"initial_ns":0,"factor":0,"max_ns":0,"jitter":0},"pin":"warn"}`
	if string(def) != want || hash.String() != "5ab1d4bd3950ae1638108796e29587c6970b95b946f1bcef9d3d80a744aec1f1" {
		t.Errorf("got %s, %s", def, hash)
	}
	var members []string
	for _, m := range a.Members() {
		members = append(members, m.Name+"="+m.Value)
	}
	const all = `name=echo kind=exec command=[echo, "a b"] protocol=none dir=/x pass=[HOME] keep=loop effect=once output=1MiB limits.wall=none limits.idle=none ` +
		`limits.deadline=none limits.loops=none limits.steps=none limits.cost=none limits.tokens=none on_limit=wait grace=0s retry.attempts=1 retry.initial=0s ` +
		`retry.factor=0 retry.max=0s retry.jitter=0 concurrency=none done=none pin=warn description=none`
	if got := strings.Join(members, " "); got != all {
		t.Errorf("got  %s\nwant %s", got, all)
	}
}
