package llm

import (
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/health"
	"github.com/stint-dev/stint/model"
)

// see shows a call and its result to the health rules.
func (p *pass) see(c model.Call, r *model.Result, at time.Time) {
	if p.a.health.Off() {
		return
	}
	t, _ := p.offer().set.Lookup(c.Name)
	call := health.Call{Tool: c.Name, Args: string(c.Args), Result: r.Text, Failed: r.Error, Poll: t.Poll, At: at}
	for _, f := range p.a.health.See(&p.mem.Watch, call) {
		line := oneLine(f.Rule+": "+f.What, 300)
		if f.Pause && p.halt == "" {
			p.halt = line
		}
		p.note = line
		p.log(line)
	}
}

// log adds a line to the session's log.
func (p *pass) log(line string) {
	if rep, ok := p.l.(stint.Reporter); ok {
		rep.Log("log", []byte(line+"\n"))
	}
}

// forgive forgets what the rules have seen, once a person let the session go on.
func (p *pass) forgive() {
	p.mem.Paused = false
	p.mem.Watch = health.Watch{}
}
