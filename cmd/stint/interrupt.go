package main

import (
	"context"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/journal"
)

// asks reports whether an interrupt is a question: where a person sits at a terminal,
// before a session that does not end with its command.
func (f *foreground) asks() bool {
	return !f.argv && f.screen != nil && term.IsTerminal(f.app.in)
}

// ctrlC is what the key gives where a terminal makes no signal of it.
const ctrlC = 3

// ask asks what an interrupt means while the session goes on. Where no key can be read
// it means what it does without a terminal.
func (f *foreground) ask(ctx context.Context, cancel func()) {
	asked, unask := context.WithCancel(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		unask()
		return
	}
	f.unask = unask
	f.asking.Go(func() {
		defer f.dismiss()
		var answered func(string)
		ready := func() { answered = f.screen.Ask("stint: [p]ause, [s]top, [k]ill, or go on (Enter)? ") }
		means := func(key byte) bool {
			_, act := f.answer(ctx, key, cancel)
			return act != nil
		}
		switch key, err := term.Key(asked, ready, means); {
		case answered == nil && asked.Err() == nil:
			f.drain(cancel)
		case answered == nil:
		case err != nil:
			answered("")
		default:
			word, act := f.answer(ctx, key, cancel)
			answered(word)
			act()
		}
	})
}

// asked ends a question that is open, since the session is over, and waits until the
// terminal is as it was.
func (f *foreground) asked() {
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	f.dismiss()
	f.asking.Wait()
}

// dismiss ends a question that is open, and reports whether one was.
func (f *foreground) dismiss() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unask == nil {
		return false
	}
	f.unask()
	f.unask = nil
	return true
}

// answer is what a key means, and how that is called; nil: nothing.
func (f *foreground) answer(ctx context.Context, key byte, cancel func()) (word string, act func()) {
	order := func(kind stint.MessageKind, how string) func() {
		return func() {
			if f.order(ctx, kind) {
				f.say("it %s at the end of the step under way; Ctrl-C once more kills it\n", how)
				return
			}
			f.drain(cancel)
		}
	}
	switch key {
	case 'p', 'P':
		return "pause", order(stint.Pause, "pauses")
	case 's', 'S':
		return "stop", order(stint.Stop, "stops")
	case 'k', 'K', ctrlC:
		return "kill", func() { f.kill(ctx, cancel) }
	case '\r', '\n', 'g', 'G':
		return "go on", func() { f.signals.Store(0) }
	}
	return "", nil
}

// drain gives the session back at the end of its step. One that a server drives is left to
// it.
func (f *foreground) drain(cancel func()) {
	if f.elsewhere.Load() {
		f.say("the server goes on with it\n")
	} else {
		f.say("finishing the step under way; once more to kill it\n")
	}
	cancel()
}

// kill ends the session at once.
func (f *foreground) kill(ctx context.Context, cancel func()) {
	f.dismiss()
	if !f.order(ctx, stint.Kill) {
		cancel() // there is nothing to kill yet
	}
}

// order sends the session what a person asks of it; false where that is not possible.
func (f *foreground) order(ctx context.Context, kind stint.MessageKind) bool {
	f.mu.Lock()
	id := f.id
	f.mu.Unlock()
	if id.IsZero() {
		return false
	}
	data, err := stint.Marshal(journal.Command{})
	if err != nil {
		return false
	}
	err = f.site.store.Send(context.WithoutCancel(ctx), id, stint.Message{ID: ident.New().String(), Kind: kind, From: f.app.actor(), Data: data})
	return err == nil
}
