package tool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

func TestTemplate(t *testing.T) {
	args, err := tool.ReadArgs(json.RawMessage(`{"a":"{b}","n":9007199254740993,"l":[1, 2],"z":null,"e":"\u00e9"}`))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"": "", "plain": "plain", "{a}": "{b}", "x{n}y{e}": "x9007199254740993yé", "{l}": "[1, 2]", "{z}{none}": "",
		"{{a}}": "{a}", "{{{n}}}": "{9007199254740993}",
	} {
		tpl, err := tool.ParseTemplate(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		got, err := tpl.Expand(func(n string) (string, error) { return args.Text(n), nil })
		if got != want || err != nil {
			t.Errorf("%s gave %q, want %q", in, got, want)
		}
	}
	for _, bad := range []string{"{", "}", "{}", "{a", "a}", "{a b}", "{1a}", "{-a}", "{a.b}", "{a}}", "{{a}"} {
		if _, err := tool.ParseTemplate(bad); !errors.Is(err, stint.Invalid) {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "{a}", "{{a}}", "x{a}{b}y", "{", "}}{", "{{{a}}}"} {
		f.Add(s, "{a}}{")
	}
	f.Fuzz(func(t *testing.T, s, value string) {
		tpl, err := tool.ParseTemplate(s)
		if err != nil {
			return
		}
		count := 0
		got, err := tpl.Expand(func(string) (string, error) {
			count++
			return value, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		// Undone by hand: what is left without its places is the text of the template.
		plain := strings.NewReplacer("{{", "{", "}}", "}").Replace(s)
		if count == 0 && got != plain {
			t.Errorf("%q gave %q, want %q", s, got, plain)
		}
		if names := tpl.Names(); len(names) > count {
			t.Errorf("%q has the names %q, and %d were asked for", s, names, count)
		}
		if text, ok := tpl.Text(); ok != (count == 0) || ok && text != got {
			t.Errorf("%q: text %q, %v", s, text, ok)
		}
	})
}

func TestRedact(t *testing.T) {
	secrets := map[string]string{"A": `p"ss\word`, "B": `p"ss\word-and-more`, "SHORT": "abc", "EMPTY": ""}
	in := fmt.Sprintf(`%s %s %q abc`, secrets["A"], secrets["B"], secrets["A"])
	if got, want := tool.Redact(in, secrets), `{{secret:A}} {{secret:B}} "{{secret:A}}" abc`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
