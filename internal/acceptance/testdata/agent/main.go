// Command agent is the agent of the acceptance tests. Its first argument says what
// it does; the folder AGENT_DIR is where it leaves what the tests look at.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "linger" {
		linger()
		return
	}
	if err := enlist(); err != nil {
		warn(err)
		os.Exit(1)
	}
	loops := map[string]func(*talk) (map[string]any, error){
		"work": work, "bulk": bulk, "chat": chat, "hold": hold, "spin": spin, "tree": tree,
	}
	loop := loops[os.Args[1]]
	if loop == nil {
		warn(fmt.Errorf("there is no mode %q", os.Args[1]))
		os.Exit(2)
	}
	if err := serve(os.Stdin, os.Stdout, loop); err != nil {
		warn(err)
		os.Exit(1)
	}
}

// memory is the state of the modes that count.
type memory struct {
	N    int    `json:"n"`
	Sum  string `json:"sum"`
	Word string `json:"word"`
}

func (t *talk) memory() (m memory, err error) {
	if len(t.begin.State) > 0 {
		err = json.Unmarshal(t.begin.State, &m)
	}
	return m, err
}

// option is a number among the arguments, like loops=4.
func option(name string, def int) int {
	for _, a := range os.Args[2:] {
		if v, ok := strings.CutPrefix(a, name+"="); ok {
			if n, err := strconv.Atoi(v); err == nil {
				return n
			}
		}
	}
	return def
}

// word is a choice among the arguments, like class=once.
func word(name, def string) string {
	for _, a := range os.Args[2:] {
		if v, ok := strings.CutPrefix(a, name+"="); ok {
			return v
		}
	}
	return def
}

// work has all that a session can have: a model, a group of tools of all classes,
// steps by themselves, a state, and after its first loop a wait for a message.
func work(t *talk) (map[string]any, error) {
	m, err := t.memory()
	if err != nil {
		return nil, err
	}
	m.N++
	if s := t.text(); s != "" {
		m.Word += s
	}
	t.say("loop %d", m.N)
	plan, err := t.step(thing("think", "model", "read", m))
	if err != nil {
		return nil, err
	}
	got, err := t.group(thing("look", "tool", "read", []any{plan, 1}), thing("put", "tool", "idempotent", []any{plan, 2}), thing("pay", "tool", "once", []any{plan, 3}))
	if err != nil {
		return nil, err
	}
	note, err := t.step(thing("note", "tool", "once", got))
	if err != nil {
		return nil, err
	}
	saved, err := t.step(thing("save", "step", "idempotent", note))
	if err != nil {
		return nil, err
	}
	m.Sum = sum([]any{plan, got, note, saved, m.Sum})
	t.replace(m)
	head := fmt.Sprintf("loop %d done", m.N)
	switch {
	case m.N == 1 && option("wait", 1) == 1:
		return map[string]any{"outcome": "wait", "headline": head, "wait": map[string]any{"for": "message", "what": "the word"}}, nil
	case m.N >= option("loops", 4):
		return map[string]any{"outcome": "complete", "headline": head, "reason": "all done", "result": m}, nil
	}
	return map[string]any{"outcome": "continue", "headline": head}, nil
}

func thing(name, kind, class string, input any) act {
	return act{name, kind, class, input, effect(name, class, input)}
}

// bulk has results of many bytes that do not compress well.
func bulk(t *talk) (map[string]any, error) {
	m, err := t.memory()
	if err != nil {
		return nil, err
	}
	m.N++
	class := word("class", "read")
	for i := range option("steps", 1) {
		n := 1000*m.N + i
		got, err := t.step(act{"fetch", "tool", class, n, func(key string) (any, error) {
			pause()
			res := noise(n, option("size", 1<<20))
			if class == "read" {
				return res, nil
			}
			return res, write(entry{key, "fetch", class, sum(n), []byte("null"), os.Getpid()})
		}})
		if err != nil {
			return nil, err
		}
		m.Sum = sum([]any{got, m.Sum})
	}
	t.replace(m)
	if m.N >= option("loops", 4) {
		return map[string]any{"outcome": "complete", "result": m}, nil
	}
	return map[string]any{"outcome": "continue"}, nil
}

// noise is a string of n characters that follows from seed.
func noise(seed, n int) string {
	const chars = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
	b, x := make([]byte, n), uint64(seed)*0x9e3779b97f4a7c15+1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = chars[x>>58]
	}
	return string(b)
}

// chat does one step for each message, and waits for the next one.
func chat(t *talk) (map[string]any, error) {
	m, err := t.memory()
	if err != nil {
		return nil, err
	}
	m.N++
	m.Word += t.text()
	if _, err := t.step(thing("answer", "tool", "idempotent", m)); err != nil {
		return nil, err
	}
	t.replace(m)
	if strings.Contains(t.text(), "bye") {
		return map[string]any{"outcome": "complete", "result": m}, nil
	}
	return map[string]any{"outcome": "wait", "wait": map[string]any{"for": "message", "what": "more"}}, nil
}

// hold does one effect, and the first time it does not come back from it.
func hold(t *talk) (map[string]any, error) {
	class := word("class", "once")
	res, err := t.step(act{"mail", "tool", class, "to: ana", func(key string) (any, error) {
		again := recorded("mail")
		v, err := effect("mail", class, "to: ana")(key)
		if err != nil || again {
			return v, err
		}
		if err := mark("held"); err != nil {
			return nil, err
		}
		await("release")
		return v, nil
	}})
	if err != nil {
		return nil, err
	}
	return map[string]any{"outcome": "complete", "result": res}, nil
}

// spin does short loops of one read step until a file tells it to end.
func spin(t *talk) (map[string]any, error) {
	m, err := t.memory()
	if err != nil {
		return nil, err
	}
	m.N++
	m.Word += t.text()
	t.say("turn %d", m.N)
	for i := range option("steps", 1) {
		if _, err := t.step(thing("turn", "tool", word("class", "read"), []int{m.N, i})); err != nil {
			return nil, err
		}
	}
	t.replace(m)
	if _, err := os.Stat(folder() + "/release"); err == nil || m.N >= option("loops", 1<<30) {
		return map[string]any{"outcome": "complete", "result": m}, nil
	}
	return map[string]any{"outcome": "continue"}, nil
}

// tree leaves processes behind that want to outlive it: they hold its output, have
// a session of their own, and take no notice of SIGTERM.
func tree(t *talk) (map[string]any, error) {
	_, err := t.step(act{"spawn", "tool", word("class", "read"), nil, func(string) (any, error) {
		for i := range 3 {
			c := exec.Command(os.Args[0], "linger", strconv.Itoa(i))
			c.Stdout, c.Stderr = os.Stdout, os.Stderr
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: i > 0}
			if err := c.Start(); err != nil {
				return nil, err
			}
			if i == 2 { // its parent ends, as that of a daemon does
				continue
			}
			go c.Wait()
		}
		for i := range 3 {
			await("lingers" + strconv.Itoa(i))
		}
		if err := mark("grown"); err != nil {
			return nil, err
		}
		if word("then", "stay") == "stay" {
			select {}
		}
		return nil, nil
	}})
	if err != nil {
		return nil, err
	}
	return map[string]any{"outcome": "complete"}, nil
}
