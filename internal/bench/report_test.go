package bench_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/bench"
)

func TestReport(t *testing.T) {
	records, err := os.ReadFile(filepath.Join("testdata", "records.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	update := flag.Lookup("update").Value.String() == "true"
	for golden, asJSON := range map[string]bool{"report.txt": false, "report.jsonl": true} {
		var out bytes.Buffer
		if err := bench.Report(bytes.NewReader(records), &out, asJSON); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", golden)
		if update {
			if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s is\n%s\nwant\n%s", golden, out.Bytes(), want)
		}
		// What a report wrote may stand among what the next one reads.
		var again bytes.Buffer
		if asJSON {
			if err := bench.Report(bytes.NewReader(append(records, out.Bytes()...)), &again, true); err != nil || again.String() != out.String() {
				t.Errorf("%v\n%s", err, again.Bytes())
			}
		}
	}
}

func TestReportOfLittle(t *testing.T) {
	for in, want := range map[string]string{
		"":   "",
		"\n": "",
		`{"who":"stint","round":1,"concurrency":64,"steps_per_s":4}`: "", // nothing to compare it with
		`{"who":"cold","ready_p50_ms":50}`:                           `"pass":true`,
		`{"who":"cold","ready_p50_ms":50.1}`:                         `"pass":false`,
	} {
		var out bytes.Buffer
		if err := bench.Report(strings.NewReader(in), &out, true); err != nil || !strings.Contains(out.String(), want) || want == "" && out.Len() > 0 {
			t.Errorf("%s: %v\n%s", in, err, out.Bytes())
		}
	}
	for _, in := range []string{"x", `{"who":1}`, `{"who":"stint"}`, `{"who":"cold","runs":"many"}`} {
		if err := bench.Report(strings.NewReader(in), &bytes.Buffer{}, false); stint.CodeOf(err) != stint.Invalid {
			t.Errorf("%s: %v", in, err)
		}
	}
}
