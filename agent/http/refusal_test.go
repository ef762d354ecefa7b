package http_test

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	agenthttp "github.com/stint-dev/stint/agent/http"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status       int
		after        string
		retry, final bool
		began        bool // a step that was to proceed may have begun
		code         stint.Code
	}{
		{400, "", false, true, false, stint.Invalid},
		{401, "", false, true, false, stint.Invalid},
		{404, "7", false, true, false, stint.Invalid},
		{408, "", false, false, false, stint.Unavailable},
		{413, "", false, true, false, stint.Invalid},
		{425, "", false, false, false, stint.Unavailable},
		{429, "7", true, false, false, stint.Unavailable},
		{429, "", false, false, false, stint.Unavailable},
		{429, "soon", false, false, false, stint.Unavailable},
		{500, "", false, false, true, stint.Unavailable},
		{500, "7", false, false, true, stint.Unavailable},
		{502, "", false, false, true, stint.Unavailable},
		{503, "7", true, false, false, stint.Unavailable},
		{503, "", false, false, true, stint.Unavailable},
		{504, "", false, false, true, stint.Unavailable},
		{201, "", false, false, true, stint.Invalid},
		{204, "", false, false, true, stint.Invalid},
		{302, "", false, true, false, stint.Invalid},
	} {
		for _, proceed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/%s/proceed=%v", c.status, c.after, proceed), func(t *testing.T) {
				t.Parallel()
				s := raw(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
					if proceed && !bytes.Contains(body, []byte("proceed")) {
						w.Header().Set("Content-Type", "application/x-ndjson")
						_, _ = io.WriteString(w, strings.Replace(stepOne, "read", "once", 1))
						return
					}
					if c.after != "" {
						w.Header().Set("Retry-After", c.after)
					}
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, "\n  no \x1b[31mbudget\x07 left  \nsecond line\n")
				})
				l := newSingle()
				_, err := ask(t, newAgent(t, s, nil), l)
				after, retry, final := steering(err)
				if retry != c.retry || final != c.final || stint.CodeOf(err) != c.code || retry && after != 7*time.Second {
					t.Errorf("retry %v after %v, final %v, code %s; want %+v", retry, after, final, stint.CodeOf(err), c)
				}
				if proceed && (len(l.errs) != 1 || notBegun(l.errs[0]) == c.began) {
					t.Errorf("the step's error says that it did not begin: %v", notBegun(l.errs[0]))
				}
				want := fmt.Sprintf("the agent's server answered %d %s: no [31mbudget left", c.status, http.StatusText(c.status))
				if c.status == 204 { // has no body
					want = "the agent's server answered 204 No Content"
				}
				contains(t, "the error", err.Error(), want)
				if strings.Contains(err.Error(), "second") {
					t.Errorf("the error has more than the first line: %v", err)
				}
			})
		}
	}
}

func TestRetryAfterRefusal(t *testing.T) {
	t.Parallel()
	var c counter
	var refused atomic.Bool
	s := serve(t, func(k *talk) {
		if len(k.answers) > 1 && refused.CompareAndSwap(false, true) {
			k.w.Header().Set("Retry-After", "0")
			k.w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		k.step("charge", "once", c.do("charge"))
		k.say(`{"type":"end","outcome":"complete"}`)
	})
	r := newRig(t, newAgent(t, s, nil), nil)
	if ses := r.run(); ses.Status != stint.Completed || ses.At.Attempt != 2 || len(c.done()) != 1 {
		t.Fatalf("the session is %s (%s) at attempt %d after the effects %q", ses.Status, ses.Reason, ses.At.Attempt, c.done())
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	var s *server
	s = raw(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		s.Listener.Close() // no connection after this one
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, `{"type":"step","id":1,"name":"charge"}`)
	})
	l := newSingle()
	_, err := ask(t, newAgent(t, s, nil), l)
	if !errors.Is(err, stint.Unavailable) || len(l.errs) != 1 || !notBegun(l.errs[0]) {
		t.Fatalf("the loop gave %v, the step %v", err, l.errs)
	}
	contains(t, "the error", err.Error(), "the agent cannot be reached: ")
	if strings.Contains(err.Error(), "/agent") {
		t.Errorf("the error shows the URL: %v", err)
	}
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	for _, c := range []struct {
		status int
		to     string
		ok     bool
	}{
		{307, "/moved", true}, {308, "/moved", true}, {301, "/moved", false}, {302, "/moved", false}, {303, "/moved", false},
		{307, other.URL + "/moved", false}, {302, other.URL, false}, {307, "/agent", false}, {307, "", false},
	} {
		t.Run(fmt.Sprintf("%d to %.4s", c.status, c.to), func(t *testing.T) {
			t.Parallel()
			s := raw(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
				if r.URL.Path == "/moved" {
					if r.Method != http.MethodPost {
						t.Errorf("it came as a %s", r.Method)
					}
					w.Header().Set("Content-Type", "application/x-ndjson")
					_, _ = io.WriteString(w, ended)
					return
				}
				if c.to != "" {
					w.Header().Set("Location", c.to)
				}
				w.WriteHeader(c.status)
			})
			_, err := ask(t, newAgent(t, s, nil), newSingle())
			_, _, final := steering(err)
			if c.ok && err != nil || !c.ok && err == nil || c.to != "" && !c.ok && !final {
				t.Fatalf("the loop gave %v", err)
			}
			if !c.ok && c.to != "" {
				contains(t, "the error", err.Error(), fmt.Sprintf("the agent's server answered %d", c.status))
			}
			if n := len(s.all()); n > 5 {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
	t.Cleanup(func() {
		if elsewhere.Load() != 0 {
			t.Errorf("another origin got %d requests", elsewhere.Load())
		}
	})
}

func TestHead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header map[string]string
		want   string
	}{
		"a page":          {map[string]string{"Content-Type": "text/html; charset=utf-8"}, `the agent answered with Content-Type "text/html; charset=utf-8" and not with application/x-ndjson`},
		"another version": {map[string]string{"Content-Type": "application/x-ndjson", "Stint-Version": "2"}, `the agent speaks version "2"`},
		"gzip":            {map[string]string{"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}, `a response in "gzip"`},
		"its version":     {map[string]string{"Content-Type": "application/x-ndjson", "Stint-Version": "1"}, ""},
		"plain JSON":      {map[string]string{"Content-Type": "application/json; charset=utf-8"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := raw(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				_, _ = io.WriteString(w, ended)
			})
			_, err := ask(t, newAgent(t, s, nil), newSingle())
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, stint.Invalid) {
				t.Fatalf("the loop gave %v", err)
			}
			contains(t, "the error", err.Error(), c.want)
		})
	}
}

func TestCertificate(t *testing.T) {
	t.Parallel()
	const once = `{"type":"step","id":1,"name":"charge","effect":"once"}` + "\n"
	s := &server{}
	s.Server = httptest.NewUnstartedServer(s.keep(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if r.ProtoMajor != 2 {
			t.Errorf("the request came by %s", r.Proto)
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = io.WriteString(w, once)
		if bytes.Contains(body, []byte("proceed")) {
			_, _ = io.WriteString(w, resultOne+ended)
		}
	}))
	s.Config.ErrorLog = quiet()
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	_, err := ask(t, newAgent(t, s, nil), newSingle())
	if !errors.Is(err, stint.Unavailable) || !strings.Contains(err.Error(), "certificate") || len(s.all()) != 0 {
		t.Fatalf("the loop gave %v after %d requests", err, len(s.all()))
	}
	a := newAgent(t, s, func(spec *agenthttp.Spec) {
		spec.Roots = x509.NewCertPool()
		spec.Roots.AddCert(s.Certificate())
	})
	if _, err := ask(t, a, newSingle()); err != nil || len(s.all()) != 2 {
		t.Fatalf("the loop gave %v after %d requests", err, len(s.all()))
	}
}

func TestPrivateAddress(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://10.0.0.1/a", "https://169.254.169.254/", "https://[::ffff:127.0.0.1]:1/", "https://0.0.0.0/"} {
		a, err := agenthttp.New(agenthttp.Spec{URL: url, Secret: secret(t)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = ask(t, a, newSingle())
		if url == "https://[::ffff:127.0.0.1]:1/" { // names this machine, where nobody listens
			if !errors.Is(err, stint.Unavailable) {
				t.Errorf("%s gave %v", url, err)
			}
			continue
		}
		if _, _, final := steering(err); !errors.Is(err, stint.Invalid) || !final {
			t.Errorf("%s gave %v", url, err)
		}
	}
}

func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	const token = `Bearer hush"secret`
	leak := func(w io.Writer, r *http.Request, form string) {
		quoted := strings.ReplaceAll(r.Header.Get("Authorization"), `"`, `\"`)
		if form != "" {
			fmt.Fprintf(w, form, quoted, secretText)
		}
	}
	for name, form := range map[string]string{
		"a log":        `{"type":"log","text":"%s %s"}` + "\n" + ended,
		"a result":     `{"type":"end","outcome":"complete","reason":"%s","result":"%s"}` + "\n",
		"a bad line":   `{"type":"%s","text":"%s"}` + "\n",
		"no line":      "%s %s\n",
		"a bad status": "%s %s\n",
		"a long line":  "%s %s" + strings.Repeat("x", 5000),
		"a type":       "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := raw(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
				if r.Header.Get("Authorization") != token || r.Header.Get("X-Team") != "billing" {
					t.Errorf("the headers are %v", r.Header)
				}
				w.Header().Set("Content-Type", "application/x-ndjson")
				if name == "a bad status" {
					w.WriteHeader(400)
				}
				if name == "a type" {
					w.Header().Set("Content-Type", "text/"+r.Header.Get("Authorization")+secretText)
				}
				leak(w, r, form)
			})
			a := newAgent(t, s, func(s *agenthttp.Spec) {
				s.URL += "?key=k3y-in-the-url"
				s.MaxLine = 4096
				s.Headers = map[string]string{"X-Team": "billing"}
				s.Secrets = map[string]string{"Authorization": token}
			})
			r := newRig(t, a, nil)
			ses := r.run()
			all := r.journal() + ses.Reason
			for _, secret := range []string{"hush", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "k3y-in"} {
				if strings.Contains(all, secret) {
					t.Errorf("the journal shows %s:\n%s", secret, all)
				}
			}
			contains(t, "the journal", all, "{{secret:Authorization}}", "{{secret:webhook-secret}}")
		})
	}
}

func TestOnceIsSentOnce(t *testing.T) {
	t.Parallel()
	var proceeds atomic.Int64
	s := raw(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		if bytes.Contains(body, []byte("proceed")) {
			proceeds.Add(1)
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = io.WriteString(w, `{"type":"step","id":1,"name":"charge"}`)
	})
	l := newSingle()
	if _, err := ask(t, newAgent(t, s, nil), l); err == nil || proceeds.Load() != 1 || notBegun(l.errs[0]) {
		t.Fatalf("the loop gave %v after %d requests to proceed", err, proceeds.Load())
	}
}

// TestRefusalInSession shows what a status does to a session whose once step it answers.
func TestRefusalInSession(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{400: "failed", 500: "waiting for doubt"} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(k *talk) {
				if len(k.answers) > 1 {
					k.w.WriteHeader(status)
					return
				}
				k.step("charge", "once", nil)
			})
			r := newRig(t, newAgent(t, s, nil), nil)
			ses := r.run()
			got := string(ses.Status)
			if ses.Wait != nil {
				got += " for " + string(ses.Wait.For)
			}
			if got != want || len(s.all()) != 2 {
				t.Errorf("the session is %s (%s) after %d requests, want %s", got, ses.Reason, len(s.all()), want)
			}
		})
	}
}
