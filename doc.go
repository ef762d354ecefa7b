// Package stint is the vocabulary of stint: what a session is, what its journal
// holds, what an agent is asked and what a store keeps. It imports only the
// standard library, and every other package of the module imports it.
//
// # The shape
//
// A [Session] is a bounded unit of agent work. It moves in loops: the engine
// claims it, calls [Agent.Loop], journals each [Step] as it finishes, and at the
// loop's end makes the new state a [Checkpoint]. All that ever happened to it is
// its journal, a gapless sequence of [Entry] values in a hash chain; the Session
// value itself is nothing but the fold of that journal.
//
//	write  engine ─► Agent.Loop ─► journal ─► Store
//	read   Store (Reader) ─► views, command line
//	back in from outside, always the same door:  Store.Send (inbox) ─► engine
//
// # Writing an agent
//
// Implement [Agent]; do effects inside [Loop.Do], so that a loop that is begun
// again after a crash gets the recorded answer instead of doing them twice:
//
//	func (a triage) Loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
//		issues, err := stint.Do(ctx, l, stint.Step{Name: "list", Effect: stint.Read}, a.list)
//		if err != nil {
//			return stint.Next{}, err // park errors too: pass them on
//		}
//		…
//	}
//
// # Status
//
// The fold of a journal is never running: a session that could run is pending,
// and only a live lease makes it running ([Row.Status]). So no crash can leave a
// session that says it runs while nothing runs it.
package stint
