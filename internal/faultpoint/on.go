//go:build faultinject

package faultpoint

import (
	"expvar"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Hit counts a visit of the point name and ends the process where STINT_FAULT
// says so.
func Hit(name string) {
	n := count(name)
	if n == 1 {
		record(name)
	}
	want, times, ok := strings.Cut(os.Getenv("STINT_FAULT"), ":")
	if !ok || want != name {
		return
	}
	if k, err := strconv.ParseInt(times, 10, 64); err == nil && k == n {
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Kill()
		}
		select {} // SIGKILL is on its way
	}
}

// count keeps its numbers in a map of expvar's registry, which outlives the call:
// this package has no variables of its own.
func count(name string) int64 {
	m := counts()
	m.Add(name, 1)
	v, _ := m.Get(name).(*expvar.Int)
	return v.Value()
}

// counts returns the registered map, registering it first if nobody has: expvar
// refuses a second one of a name by a panic, which then means that it is there.
func counts() *expvar.Map {
	const key = "stint.faultpoint"
	if m, ok := expvar.Get(key).(*expvar.Map); ok {
		return m
	}
	m := new(expvar.Map).Init()
	func() {
		defer func() { _ = recover() }()
		expvar.Publish(key, m)
	}()
	return expvar.Get(key).(*expvar.Map)
}

func record(name string) {
	path := os.Getenv("STINT_FAULT_LOG")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faultpoint:", err)
		return
	}
	defer f.Close()
	fmt.Fprintln(f, name)
}

// Now is time.Now moved by the duration that the file STINT_TEST_CLOCK holds.
func Now() time.Time {
	path := os.Getenv("STINT_TEST_CLOCK")
	if path == "" {
		return time.Now()
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return time.Now()
	}
	d, err := time.ParseDuration(strings.TrimSpace(string(b)))
	if err != nil {
		return time.Now()
	}
	return time.Now().Add(d)
}
