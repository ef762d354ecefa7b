package cases_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// inPython is an agent whose program is in testdata, as an entry of agents.
func inPython(t *testing.T, name, program string, args ...string) string {
	t.Helper()
	at := func(path ...string) string {
		p, err := filepath.Abs(filepath.Join(path...))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	command := fmt.Sprintf("%q", append([]string{"python3", at("testdata", program)}, args...))
	return fmt.Sprintf("  %s: {kind: exec, command: %s, env: {PYTHONPATH: %q, PYTHONDONTWRITEBYTECODE: \"1\"}}\n", name, strings.ReplaceAll(command, `" "`, `", "`), at("..", "..", "sdk", "python"))
}

// piped sends a request by hand over a connection of its own, and returns all answers up
// to the end of the connection.
func (v *server) piped(parts ...string) (statuses []int) {
	v.t.Helper()
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(v.t.Context(), "tcp", strings.TrimPrefix(v.url, "http://"))
	if err != nil {
		v.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		v.t.Fatal(err)
	}
	go func() { // the server may stop listening before the end
		for _, p := range parts {
			if _, err := io.WriteString(conn, p); err != nil {
				return
			}
		}
	}()
	r := bufio.NewReader(conn)
	for {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			break
		}
		statuses = append(statuses, res.StatusCode)
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	if _, err := r.Peek(1); err == nil || strings.Contains(err.Error(), "timeout") {
		v.t.Errorf("the connection stays open: %v", err)
	}
	return statuses
}

// post is the head of a request to a hook.
func post(hook string, h headers) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST /hooks/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n", hook)
	for name, value := range h {
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	b.WriteString("\r\n")
	return b.String()
}

// chunked is a body as a sender writes it who does not say how long it is.
func chunked(body string) (parts []string) {
	for len(body) > 0 {
		n := min(len(body), 1<<16)
		parts, body = append(parts, fmt.Sprintf("%x\r\n%s\r\n", n, body[:n])), body[n:]
	}
	return append(parts, "0\r\n\r\n")
}

// sized is JSON of so many bytes, at least 16, that cannot be made much smaller.
func sized(n int) string {
	noise := make([]byte, n*3/4)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // it never fails
	return `{"x":"` + base64.RawStdEncoding.EncodeToString(noise)[:n-8] + `"}`
}

// TestB05LimitOfBodies: the limit of a body holds however it is sent, genuine or not, and
// the connection of one that is longer ends; a length that is a lie begins nothing
// (NousResearch/hermes-agent#58536, NousResearch/hermes-agent#3955).
func TestB05LimitOfBodies(t *testing.T) {
	t.Parallel()
	v := hooked(t, "", "gh: {agent: keep, scheme: github, secret: env:HOOK_SECRET}", "open: {agent: keep, scheme: none}").serves()
	long := sized(4 << 20)
	for _, hook := range []string{"gh", "open"} {
		genuine := gitHub("d-1", long)
		for what, c := range map[string]struct {
			status int
			parts  []string
		}{
			"by its length": {413, []string{post(hook, genuine.with(headers{"Content-Length": fmt.Sprint(len(long))})), long}},
			"in chunks":     {413, append([]string{post(hook, genuine.with(headers{"Transfer-Encoding": "chunked"}))}, chunked(long)...)},
			// What is behind the length that it says is another request, and none.
			"as if it were short": {map[string]int{"gh": 401, "open": 400}[hook], []string{post(hook, genuine.with(headers{"Content-Length": "100"})), long}},
			"with two lengths":    {400, []string{post(hook, genuine.with(headers{"Content-Length": "100", "Transfer-Encoding": "chunked"})), long}},
		} {
			got := v.piped(c.parts...)
			if len(got) == 0 || got[0] != c.status || len(got) > 2 || len(got) == 2 && (got[1] < 400 || got[1] > 499) {
				t.Errorf("%s, %s: %d, want %d", hook, what, got, c.status)
			}
		}
	}
	if n := v.sessions() + len(v.deliveries("gh")) + len(v.deliveries("open")); n != 0 {
		t.Errorf("%d sessions and deliveries came of it", n)
	}
	most := sized(1 << 20)
	v.takes(202, "gh", most, gitHub("d-1", most))
}

// TestB06LargeEvents: where the limit is raised, events of up to 25 MiB are taken. An
// agent has all of one, it is in the store once however many steps follow, and lists stay
// as short as they were (backstage/backstage#28910, microsoft/ghcrawler#148,
// stablyai/orca#15791).
func TestB06LargeEvents(t *testing.T) {
	t.Parallel()
	s := hooked(t, inPython(t, "count", "counts.py", "300"), "gh: {agent: count, scheme: github, secret: env:HOOK_SECRET, limits: {body: 26MiB}}")
	v := s.serves()
	total := 0
	for i, n := range []int{1 << 19, 1 << 20, 5 << 20, 25 << 20} {
		body := sized(n)
		d := v.takes(202, "gh", body, gitHub(fmt.Sprint("d-", i), body))
		v.becomes(d.Session, "completed")
		if got := unmarshal[struct{ Result struct{ Bytes, Done int } }](t, v.gets("/v1/sessions/"+d.Session+"/result")).Result; got.Bytes != n || got.Done != 300 {
			t.Errorf("the agent got %+v of %d bytes", got, n)
		}
		total += n
	}
	for _, path := range []string{"/v1/sessions", "/v1/hooks/gh/deliveries"} {
		if n := len(v.gets(path)); n > 20_000 {
			t.Errorf("%s is answered with %d bytes", path, n)
		}
	}
	v.ends()
	if size := sizeOf(t, s.path(".stint")); size > int64(total)*3/2 {
		t.Errorf("%d bytes of events take %d bytes", total, size)
	} else {
		t.Logf("%d bytes of events take %d bytes", total, size)
	}
	v.verified()
}

// sizeOf is how long the files of a folder are, in all.
func sizeOf(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
