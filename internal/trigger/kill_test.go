package trigger_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/store/sqlite"
	"github.com/stint-dev/stint/store/storetest"
)

// buildReceiver builds testdata/receiver with fault points.
func buildReceiver(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join("testdata", "receiver", "main.go")); err != nil { // the go command sees what a test looks at, not what it builds
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "receiver")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-tags", "faultinject", "-o", bin, "./testdata/receiver")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, b)
	}
	return bin
}

// rig is deliveries to servers that are killed one after the other.
type rig struct {
	*testing.T

	bin, store, log string
	full            string // how large a file may become, in bytes; empty: as large as it likes

	mu   sync.Mutex
	told map[string]trigger.Delivered // what was answered first, by hook and id
}

// parcel is a delivery that a sender sends until it is told that it is there.
type parcel struct{ hook, id, body string }

// serve starts a server that dies at a visit of a fault point, or when it is ended.
func (r *rig) serve(fault string) (url string, ended func()) {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), r.bin, r.store)
	cmd.Env = append(os.Environ(), "STINT_FAULT="+fault, "STINT_FAULT_LOG="+r.log, "RECEIVER_FULL="+r.full)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		r.Fatalf("%s: the server says nothing: %v, %v\n%s", fault, err, cmd.Wait(), &stderr)
	}
	return "http://" + strings.TrimSpace(line), func() {
		_ = cmd.Process.Kill() // if it lives
		_ = cmd.Wait()
		if stderr.Len() > 0 {
			r.Errorf("%s: %s", fault, &stderr)
		}
	}
}

// deliver sends all parcels, from several at once, and returns those that nobody took.
func (r *rig) deliver(url string, all []parcel) (again []parcel) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	todo := make(chan parcel)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	defer client.CloseIdleConnections()
	for range 4 { // few, so that there are many commits to die at
		wg.Go(func() {
			for p := range todo {
				if !r.send(client, url, p) {
					mu.Lock()
					again = append(again, p)
					mu.Unlock()
				}
			}
		})
	}
	for _, p := range all {
		todo <- p
	}
	close(todo)
	wg.Wait()
	return again
}

// send sends one and checks that what it is told now is what it was told before.
func (r *rig) send(client *http.Client, url string, p parcel) bool {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, url+"/hooks/"+p.hook, strings.NewReader(p.body))
	if err != nil {
		r.Error(err)
		return true
	}
	resp, err := client.Do(req)
	if err != nil {
		return false // the server is dead
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return false
	}
	if r.full != "" && resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "" {
		return false
	}
	var o trigger.Delivered
	if resp.StatusCode > 202 || json.Unmarshal(b, &o) != nil || o.ID != p.id {
		r.Errorf("%s of %s: %d %s", p.id, p.hook, resp.StatusCode, b)
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was, there := r.told[p.hook+"/"+p.id]
	switch {
	case !there:
		r.told[p.hook+"/"+p.id] = o
	case !o.Repeated || o.Session != was.Session || o.Result != was.Result:
		r.Errorf("%s of %s: first %+v, then %+v", p.id, p.hook, was, o)
	}
	return true
}

// A server that dies between the acceptance of a delivery and its commit, or between that
// and the answer, loses none that it acknowledged and doubles none that is sent again.
func TestKilled(t *testing.T) {
	deaths := 20
	if os.Getenv("STINT_LONG") == "1" {
		deaths = 200
	}
	dir := t.TempDir()
	r := &rig{T: t, bin: buildReceiver(t), store: filepath.Join(dir, "stint.db"), log: filepath.Join(dir, "hit"), told: map[string]trigger.Delivered{}}
	points := []string{faultpoint.HookVerified, faultpoint.BeforeCommit, faultpoint.AfterCommit, faultpoint.HookDurable}
	random := rand.New(rand.NewPCG(7, 7))
	var sent, waiting []parcel
	killed := 0
	for i := range deaths {
		for n := range 30 {
			p := parcel{hook: []string{"plain", "keyed", "late"}[n%3], id: fmt.Sprintf("d-%d-%d", i, n)}
			p.body = fmt.Sprintf(`{"id":%q,"key":"k%d","order":%d}`, p.id, n%2, random.IntN(100))
			waiting = append(waiting, p)
		}
		sent = append(sent, waiting[len(waiting)-30:]...)
		url, ended := r.serve(fmt.Sprintf("%s:%d", points[i%len(points)], 6+random.IntN(6)))
		if waiting = r.deliver(url, waiting); len(waiting) > 0 {
			killed++
		}
		ended()
	}
	if killed < deaths*3/4 { // commits are shared, so that a visit may not take place
		t.Errorf("%d of %d deaths took place", killed, deaths)
	}
	url, ended := r.serve("")
	if lost := r.deliver(url, waiting); len(lost) > 0 {
		t.Fatalf("a server that lives took %d deliveries too few", len(lost))
	}
	if lost := r.deliver(url, sent); len(lost) > 0 { // each of them once more
		t.Fatalf("a server that lives took %d deliveries too few", len(lost))
	}
	ended()
	t.Logf("%d deaths, %d deliveries", killed, len(sent))
	hit, err := os.ReadFile(r.log)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		if !bytes.Contains(hit, []byte(p)) {
			t.Errorf("%s was never hit", p)
		}
	}
	r.count(sent)
}

// count compares what is in the store with what was sent and what was told.
func (r *rig) count(sent []parcel) {
	r.Helper()
	s, err := sqlite.Open(r.Context(), sqlite.Options{Path: r.store})
	if err != nil {
		r.Fatal(err)
	}
	defer s.Close()
	storetest.Check(r, s)
	rows, err := s.Sessions(r.Context(), stint.Filter{Trigger: "hook", Limit: 10_000})
	if err != nil {
		r.Fatal(err)
	}
	there := map[stint.ID]map[string]int{} // prompts by session
	for i := range rows {
		id := rows[i].Session.ID
		es, err := s.Entries(r.Context(), stint.Range{Session: id, Limit: 1})
		if err != nil {
			r.Fatal(err)
		}
		in, err := s.Inbox(r.Context(), id)
		if err != nil {
			r.Fatal(err)
		}
		first := es[0].Body
		if !es[0].Blob.IsZero() {
			if first, err = s.Blob(r.Context(), rows[i].Session.Family, es[0].Blob); err != nil {
				r.Fatal(err)
			}
		}
		there[id] = map[string]int{string(first): 1}
		for _, m := range in {
			there[id][string(m.Body)]++
		}
	}
	sessions, prompts := map[string]int{}, map[string]int{}
	for i := range rows {
		sessions[rows[i].Session.Trigger.Ref]++
	}
	for _, all := range there {
		for body, n := range all {
			prompts[body] += n
		}
	}
	plain := 0
	for _, p := range sent {
		o := r.told[p.hook+"/"+p.id]
		want := 1
		if p.hook == "plain" {
			plain++
		}
		if o.Result == trigger.Dropped {
			want = 0
		} else if there[o.Session][p.body] != 1 {
			r.Errorf("%s of %s is not in the session %s that was told", p.id, p.hook, o.Session)
		}
		if prompts[p.body] != want {
			r.Errorf("%s of %s has come %d times to sessions, want %d", p.id, p.hook, prompts[p.body], want)
		}
	}
	for name, n := range sessions { // the two keys of a hook have one each
		if want := map[string]int{"plain": plain, "keyed": 2, "late": 2}[name]; n != want {
			r.Errorf("%d sessions of %s, want %d", n, name, want)
		}
	}
	if sessions["plain"] == 0 || sessions["keyed"] == 0 {
		r.Errorf("there are sessions of %v", sessions)
	}
	if len(sent) != len(r.told) {
		r.Errorf("%d were sent, %d were answered", len(sent), len(r.told))
	}
}
