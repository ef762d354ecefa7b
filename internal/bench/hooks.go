package bench

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Flood is what a server did with a flood of deliveries to a hook.
type Flood struct {
	Deliveries int            `json:"deliveries"`
	Good       int            `json:"good"` // that begin a session each
	Clients    int            `json:"clients"`
	BodyBytes  int            `json:"body_bytes"`
	Seconds    float64        `json:"seconds"`
	PerS       float64        `json:"per_s"`          // deliveries of all kinds answered
	AcceptedPS float64        `json:"accepted_per_s"` // answered with 202
	P50ms      float64        `json:"p50_ms"`
	P99ms      float64        `json:"p99_ms"`
	MaxMS      float64        `json:"max_ms"`
	Answers    map[string]int `json:"answers"` // by status
	Wrong      int            `json:"wrong"`   // answers that are not the right one for their delivery
	Sessions   int            `json:"sessions"`
	RSSMB      float64        `json:"rss_mb"` // of the server, at most
}

// FloodSecret is what the deliveries of a flood are signed with, by Standard Webhooks.
const FloodSecret = "whsec_YSBmbG9vZCBvZiBkZWxpdmVyaWVzLCBhbmQgbm8gc2VjcmV0"

// The kinds of deliveries of a flood, of twenty: fourteen are good, four are one of those
// again, one has a signature of somebody else, one is signed well and an hour old.
const (
	floodOf     = 20
	floodGood   = 14
	floodAgain  = 4
	floodForged = 1
)

// floods makes the deliveries of a flood, in an order that is always the same.
type floods struct {
	url  string
	key  []byte
	kind []byte // good, again, forged, stale: g a f s
	id   []int  // which delivery each is
	body []byte
}

func newFloods(url string, n, size int) (*floods, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(FloodSecret, "whsec_"))
	if err != nil {
		return nil, err
	}
	const head, tail = `{"action":"opened","text":"`, `"}`
	if size < len(head)+len(tail) {
		return nil, fmt.Errorf("a body has at least %d bytes", len(head)+len(tail))
	}
	f := &floods{url: url, key: key, kind: make([]byte, n), id: make([]int, n), body: []byte(head + strings.Repeat("a", size-len(head)-len(tail)) + tail)}
	rnd := rand.New(rand.NewPCG(1, 2))
	for from := 0; from < n; from += floodOf {
		for i, place := range rnd.Perm(min(floodOf, n-from)) {
			if from == 0 {
				place = i // so that there is something to repeat
			}
			k := byte('g')
			switch {
			case i >= floodGood+floodAgain+floodForged:
				k = 's'
			case i >= floodGood+floodAgain:
				k = 'f'
			case i >= floodGood:
				k = 'a'
			}
			f.kind[from+place], f.id[from+place] = k, from+place
		}
	}
	var good []int
	for i, k := range f.kind {
		switch {
		case k == 'g':
			good = append(good, i)
		case k == 'a':
			f.id[i] = good[len(good)-1-rnd.IntN(min(len(good), 2000))] // may be on its way still
		}
	}
	return f, nil
}

// request is a delivery, and the statuses that are right for it.
func (f *floods) request(ctx context.Context, i int, now time.Time) (*http.Request, []int, error) {
	at, key, right := now, f.key, []int{http.StatusAccepted}
	switch f.kind[i] {
	case 'a':
		right = []int{http.StatusOK, http.StatusAccepted} // it may be there before the first one
	case 'f':
		key, right = []byte("somebody else's"), []int{http.StatusUnauthorized}
	case 's':
		at, right = now.Add(-time.Hour), []int{http.StatusUnauthorized}
	case 'g':
		right = []int{http.StatusAccepted, http.StatusOK}
	}
	id, stamp := "msg_"+strconv.Itoa(f.id[i]), strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	for _, part := range []string{id, ".", stamp, "."} {
		_, _ = io.WriteString(mac, part)
	}
	mac.Write(f.body)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(f.body))
	if err != nil {
		return nil, nil, err
	}
	req.Header["Content-Type"] = []string{"application/json"}
	req.Header["Webhook-Id"] = []string{id}
	req.Header["Webhook-Timestamp"] = []string{stamp}
	req.Header["Webhook-Signature"] = []string{"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))}
	return req, right, nil
}

// FloodHook sends n deliveries with bodies of size bytes to a hook at url, from so many
// clients at once, each with a connection that is kept, and says what came of them. The
// hook has the scheme standard-webhooks and [FloodSecret].
func FloodHook(ctx context.Context, url string, n, size, clients int) (Flood, error) {
	f, err := newFloods(url, n, size)
	if err != nil {
		return Flood{}, err
	}
	out := Flood{Deliveries: n, Clients: clients, BodyBytes: size, Answers: map[string]int{}}
	for _, k := range f.kind {
		if k == 'g' {
			out.Good++
		}
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients, MaxConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	took, errs := make([][]time.Duration, clients), make([]error, clients)
	var next, wrong atomic.Int64
	answers := make([]map[int]int, clients)
	var wg sync.WaitGroup
	begun := time.Now()
	for c := range clients {
		answers[c] = map[int]int{}
		wg.Go(func() {
			for errs[c] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				var code int
				var right []int
				var d time.Duration
				if code, right, d, errs[c] = f.send(ctx, client, i); errs[c] != nil {
					return
				}
				answers[c][code]++
				took[c] = append(took[c], d)
				if !slices.Contains(right, code) {
					wrong.Add(1)
				}
			}
		})
	}
	wg.Wait()
	out.Seconds = time.Since(begun).Seconds()
	if err := errors.Join(errs...); err != nil {
		return out, err
	}
	accepted := 0
	for _, of := range answers {
		accepted += of[http.StatusAccepted]
		for code, n := range of {
			out.Answers[strconv.Itoa(code)] += n
		}
	}
	out.Wrong, out.PerS, out.AcceptedPS = int(wrong.Load()), float64(n)/out.Seconds, float64(accepted)/out.Seconds
	all := slices.Concat(took...)
	slices.Sort(all)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	out.P50ms, out.P99ms, out.MaxMS = ms(all[len(all)/2]), ms(all[len(all)*99/100]), ms(all[len(all)-1])
	return out, nil
}

// send sends one delivery and reads all of its answer.
func (f *floods) send(ctx context.Context, client *http.Client, i int) (code int, right []int, took time.Duration, err error) {
	begun := time.Now()
	req, right, err := f.request(ctx, i, begun)
	if err != nil {
		return 0, nil, 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, right, time.Since(begun), err
}
