package view

import (
	"context"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// ancestor is a session that another one branched off, as it was there.
type ancestor struct {
	row   stint.Row
	es    []stint.Entry  // of the kinds of a course
	loops []journal.Loop // up to the one that the branch begins behind
}

// ancestry returns the sessions that s branched off, the nearest first, at most so many. It
// ends at one that is not there any more.
func ancestry(ctx context.Context, r stint.Reader, s *stint.Session, most int) ([]ancestor, error) {
	var all []ancestor
	for s.Parent.Branch && len(all) < most {
		row, err := r.Session(ctx, s.Parent.Session)
		if stint.CodeOf(err) == stint.NotFound {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		a := ancestor{row: row}
		if a.es, err = courseUntil(ctx, r, row.Session.ID, s.Parent.Seq); err != nil {
			return nil, err
		}
		if a.loops, err = journal.Course(a.es, -1); err != nil {
			return nil, err
		}
		all = append(all, a)
		s = &all[len(all)-1].row.Session
	}
	return all, nil
}

// maxAncestors is how many sessions a page goes back for the loops before a branch.
const maxAncestors = 100

// before fills in who the parent is, and what a branch has of those that it comes from:
// their loops, as far as there is room for them, and what the first one was begun with.
func (out *Show) before(ctx context.Context, b bodies, row *stint.Row, all bool) error {
	switch p := &row.Session.Parent; {
	case p.Session.IsZero():
		return nil
	case !p.Branch:
		parent, err := b.src.Session(ctx, p.Session)
		switch {
		case err == nil:
			out.Parent.Name, out.Parent.Short = parent.Session.Name, parent.Short
		case stint.CodeOf(err) != stint.NotFound: // brought here without it
			return err
		}
		return nil
	}
	from, err := ancestry(ctx, b.src, &row.Session, maxAncestors)
	if err != nil || len(from) == 0 {
		return err
	}
	out.Parent.Name, out.Parent.Short = from[0].row.Session.Name, from[0].row.Short
	if out.LoopsOmitted == 0 {
		for i := range from {
			a := &from[i]
			for j := len(a.loops) - 1; j >= 0; j-- {
				if len(out.Loops) >= shownLoops && !all {
					out.LoopsOmitted += j + 1
					break
				}
				l := loopInfo(&a.loops[j], &a.row, a.loops[j].Ended)
				l.Session = &a.row.Session.ID
				out.Loops = append([]loopPart{l}, out.Loops...)
			}
		}
	} else {
		for i := range from {
			out.LoopsOmitted += len(from[i].loops)
		}
	}
	root := &from[len(from)-1].row.Session
	out.Goal = nil
	if !root.Parent.Branch {
		out.Goal, err = b.excerpt(ctx, root.ID, stint.SessionCreated)
	}
	return err
}
