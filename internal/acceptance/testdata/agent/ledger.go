package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// entry is one executed effect.
type entry struct {
	Key    string          `json:"key"`
	Name   string          `json:"name"`
	Class  string          `json:"class"`
	Input  string          `json:"input"`
	Result json.RawMessage `json:"result"`
	PID    int             `json:"pid"`
}

func folder() string { return os.Getenv("AGENT_DIR") }

// enlist says that this process lives: its pid is in a file, and it holds a lock
// that the system lets go of when it ends.
func enlist() error {
	f, err := os.OpenFile(filepath.Join(folder(), "alive"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); err != nil {
		return err
	}
	p, err := os.OpenFile(filepath.Join(folder(), "pids"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer p.Close()
	_, err = fmt.Fprintln(p, os.Getpid())
	return err // f stays open as long as the process lives
}

// sum is a short hash of v's JSON.
func sum(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:12])
}

// effect is what a step does: its line in the ledger, synced. The result follows
// from the input alone, so that a loop that is done again ends as it would have.
func effect(name, class string, input any) func(key string) (any, error) {
	return func(key string) (any, error) {
		pause()
		result := map[string]string{"of": name, "sum": sum(input)}
		b, err := json.Marshal(result)
		if err != nil {
			return nil, err
		}
		if err := write(entry{key, name, class, sum(input), b, os.Getpid()}); err != nil {
			return nil, err
		}
		pause()
		return result, nil
	}
}

func write(e entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(folder(), "ledger"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(append(b, '\n')); err != nil {
		return err
	}
	return f.Sync()
}

// recorded reports whether the ledger has a line of this name.
func recorded(name string) bool {
	b, _ := os.ReadFile(filepath.Join(folder(), "ledger"))
	return bytes.Contains(b, []byte(`"name":"`+name+`"`))
}

// pause makes an effect take as long as AGENT_PAUSE says, before and after it.
func pause() {
	if d, err := time.ParseDuration(os.Getenv("AGENT_PAUSE")); err == nil {
		time.Sleep(d)
	}
}

// mark makes a file that the test waits for.
func mark(name string) error {
	return os.WriteFile(filepath.Join(folder(), name), []byte(fmt.Sprint(os.Getpid())), 0o600)
}

// await returns once the test has made a file.
func await(name string) {
	for {
		if _, err := os.Stat(filepath.Join(folder(), name)); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
