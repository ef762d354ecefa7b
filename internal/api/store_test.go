package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/api"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/internal/wire"
)

// storeCall is a request of package client.
func storeCall(token, name string, body any) call {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return call{method: http.MethodPost, path: wire.Prefix + name, body: string(b), token: token}
}

func delivery(to stint.ID, kind stint.MessageKind, id, data, body string) wire.Delivery {
	return wire.Delivery{Session: to, Message: wire.Message{ID: id, Kind: kind, Data: []byte(data), Body: []byte(body), From: "human:mallory"}}
}

func (r *room) system() stint.ID {
	r.t.Helper()
	id, err := engine.SystemJournal(r.t.Context(), r.store)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// Each kind of message needs the scope of what it does, to a session or to the server
// itself.
func TestSendNeedsTheScopeOfItsMessage(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		session, err := stint.ParseID(r.begin(`{"agent":"pay"}`))
		if err != nil {
			t.Fatal(err)
		}
		system := r.system()
		decision := `{"approval":%d,"state":"approved"}`
		n := 0
		for _, c := range []struct {
			what    string
			message func(id string) wire.Delivery
			may     string // roles that may, of viewer operator approver admin and agent
		}{
			{"prompt", func(id string) wire.Delivery { return delivery(session, stint.Prompt, id, "", "hello") }, "operator admin agent"},
			{"pause", func(id string) wire.Delivery { return delivery(session, stint.Pause, id, "{}", "") }, "operator admin agent"},
			{"decision", func(string) wire.Delivery {
				return delivery(session, stint.Decision, fmt.Sprintf("decision-%d", n), fmt.Sprintf(decision, n), "")
			}, "approver admin"},
			{"a schedule is fired", func(id string) wire.Delivery {
				return delivery(system, stint.Prompt, id, "", `{"verb":"schedule.fire","schedule":"x"}`)
			}, "operator admin agent"},
			{"a delivery is judged again", func(id string) wire.Delivery {
				return delivery(system, stint.Prompt, id, "", `{"verb":"hook.redeliver","hook":"x","id":"y"}`)
			}, "operator admin agent"},
			{"a token is made", func(id string) wire.Delivery {
				return delivery(system, stint.Prompt, id, "", `{"verb":"token.create","token":{}}`)
			}, "admin"},
			{"a token is made, without a session", func(id string) wire.Delivery {
				return delivery(stint.ID{}, stint.Prompt, id, "", `{"verb":"token.create","token":{}}`)
			}, "admin"},
			{"two things at once", func(id string) wire.Delivery {
				return delivery(system, stint.Prompt, id, "", `{"verb":"schedule.fire","schedule":"x","Verb":"token.create","token":{}}`)
			}, "admin"},
			{"twice", func(id string) wire.Delivery {
				return delivery(system, stint.Prompt, id, "", `{"verb":"token.create","verb":"schedule.fire","schedule":"x"}`)
			}, "admin"},
		} {
			tokens := map[string]string{"agent": r.agent}
			for role, text := range r.texts {
				tokens[string(role)] = text
			}
			for role, token := range tokens {
				n++
				want := http.StatusForbidden
				if strings.Contains(" "+c.may+" ", " "+role+" ") {
					want = http.StatusOK
				}
				out := r.do(storeCall(token, wire.Send, c.message(fmt.Sprint("m", n))))
				if out.status != want {
					t.Errorf("%s as %s: %d, want %d\n%s", c.what, role, out.status, want, out.body)
				}
				if hint, _ := out.doc["hint"].(string); want != http.StatusOK && !strings.Contains(hint, "stint token create") {
					t.Errorf("%s as %s: it has no hint\n%s", c.what, role, out.body)
				}
			}
		}
		for _, id := range []stint.ID{session, system} {
			in, err := r.store.Inbox(t.Context(), id)
			if err != nil || len(in) == 0 {
				t.Fatalf("%d messages, %v", len(in), err)
			}
			for _, m := range in {
				if m.From == "human:mallory" || !strings.HasPrefix(string(m.From), "human:") && m.From != "agent:robot" {
					t.Errorf("%s comes from %s", m.ID, m.From)
				}
			}
		}
	})
}

// What is no message of a client is refused, also for who may do everything.
func TestSendRefusesWhatIsTheServers(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		session, err := stint.ParseID(r.begin(`{"agent":"pay"}`))
		if err != nil {
			t.Fatal(err)
		}
		for want, d := range map[string]wire.Delivery{
			"one of the server's":    delivery(session, stint.Prompt, "decision-3", "", "I was first"),
			"is one of the server's": delivery(session, stint.Prompt, "api:1", "", "x"),
			"no decision of its id":  delivery(session, stint.Decision, "decision-3", `{"approval":4,"state":"approved"}`, ""),
			"kind that there is":     delivery(session, "erase", "x", "", ""),
			"an id is 1 to 255":      delivery(session, stint.Prompt, "", "", ""),
			"only a prompt":          delivery(r.system(), stint.Stop, "x", "{}", ""),
		} {
			r.fails(stint.Invalid, want, storeCall("", wire.Send, d))
		}
		r.fails(stint.Invalid, "body.message.keys", call{method: http.MethodPost, path: wire.Prefix + wire.Send,
			body: `{"session":"` + session.String() + `","message":{"id":"x","kind":"prompt","keys":[{"scope":"delivery"}]}}`})
		r.fails(stint.NotFound, "", storeCall("", wire.Send, delivery(stint.ID{9}, stint.Prompt, "x", "", "")))
		if in, err := r.store.Inbox(t.Context(), session); err != nil || len(in) != 0 {
			t.Errorf("%v came, %v", in, err)
		}
	})
}

// The server's own journal says what each person did: it is for auditors, by whatever way,
// and takes no orders as a session.
func TestOwnJournalIsForAuditors(t *testing.T) {
	t.Parallel()
	events := func(o *api.Options) {
		o.SessionEvents = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	}
	inRoomWith(t, events, func(t *testing.T, r *room) {
		system := r.system()
		ways := []func(token string) call{
			func(tk string) call { return storeCall(tk, wire.Session, wire.One{Session: system}) },
			func(tk string) call { return storeCall(tk, wire.Sessions, wire.Filter{Trigger: "system"}) },
			func(tk string) call { return storeCall(tk, wire.Entries, wire.Range{Session: system}) },
			func(tk string) call { return storeCall(tk, wire.Inbox, wire.One{Session: system}) },
			func(tk string) call { return storeCall(tk, wire.Keys, wire.Like{Like: wire.Key{Scope: "system"}}) },
			func(tk string) call { return storeCall(tk, wire.State, wire.Section{Section: "tokens"}) },
			func(tk string) call {
				return call{method: http.MethodGet, path: "/v1/sessions/" + system.String(), token: tk}
			},
			func(tk string) call {
				return call{method: http.MethodGet, path: "/v1/sessions/" + system.String() + "/entries", token: tk}
			},
			func(tk string) call {
				return call{method: http.MethodGet, path: "/v1/sessions/" + system.String() + "/events", token: tk}
			},
		}
		for i, way := range ways {
			for _, role := range []access.Role{access.Viewer, access.Operator, access.Approver} {
				if out := r.do(way(r.texts[role])); out.status != http.StatusForbidden {
					t.Errorf("way %d as %s: %d\n%s", i, role, out.status, out.body)
				}
			}
			if out := r.do(way("")); out.status != http.StatusOK {
				t.Errorf("way %d as admin: %d\n%s", i, out.status, out.body)
			}
		}
		blob := storeCall(r.texts[access.Viewer], wire.Blob, wire.Body{Family: system, Ref: stint.BlobRef{Size: 1}})
		if out := r.do(blob); out.status != http.StatusForbidden {
			t.Errorf("a body of it: %d", out.status)
		}
		if out := r.do(storeCall(r.texts[access.Viewer], wire.State, wire.Section{Section: trigger.Section})); out.status != http.StatusOK {
			t.Errorf("the schedules: %d", out.status)
		}
		for _, token := range []string{r.texts[access.Operator], ""} {
			make := call{method: http.MethodPost, path: "/v1/sessions/" + system.String() + "/messages", body: `{"text":"{\"verb\":\"token.create\"}"}`, token: token}
			if out := r.do(make); out.status == http.StatusOK {
				t.Errorf("an order came to the server as a message to a session")
			}
		}
		r.fails(stint.Invalid, "itself", storeCall("", wire.Settle, wire.One{Session: system}))
	})
}

// A decision is refused where the server says so, whoever may decide otherwise.
func TestSentDecisionsAsk(t *testing.T) {
	t.Parallel()
	asked := 0
	inRoomWith(t, func(o *api.Options) {
		o.MayDecide = func(context.Context, *stint.Row) error {
			asked++
			return stint.Denied.Errorf("approval", "an agent's process asks")
		}
	}, func(t *testing.T, r *room) {
		session, err := stint.ParseID(r.begin(`{"agent":"pay"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.fails(stint.Denied, "an agent's process asks", storeCall("", wire.Send, delivery(session, stint.Decision, "decision-4", `{"approval":4,"state":"approved"}`, "")))
		if asked != 1 {
			t.Errorf("it was asked %d times", asked)
		}
	})
}

// Answers are bounded, and say where there is more.
func TestStoreAnswersAreBounded(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"loud"}`)
		r.run(id)
		session, err := stint.ParseID(id)
		if err != nil {
			t.Fatal(err)
		}
		out := r.do(storeCall("", wire.Entries, wire.Range{Session: session, Limit: 3}))
		var j wire.Journal
		if err := json.Unmarshal(out.body, &j); err != nil || len(j.Entries) != 3 || j.More {
			t.Errorf("%d entries, more %v, %v", len(j.Entries), j.More, err)
		}
		text := strings.Repeat("x", 8<<20)
		chat, err := stint.ParseID(r.begin(`{"agent":"chat"}`))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 9 {
			m := stint.Message{ID: fmt.Sprint(i), Kind: stint.Prompt, From: "human:ann", Body: []byte(text)}
			if err := r.store.Send(t.Context(), chat, m); err != nil {
				t.Fatal(err)
			}
		}
		r.fails(stint.Limit, "where the store is", storeCall("", wire.Inbox, wire.One{Session: chat}))
		long := delivery(chat, stint.Prompt, "long", "", "")
		b, err := json.Marshal(long)
		if err != nil {
			t.Fatal(err)
		}
		body := strings.Replace(string(b), `"kind":"prompt"`, `"kind":"prompt","body":"`+base64.StdEncoding.EncodeToString([]byte(text+"x"))+`"`, 1)
		r.fails(stint.Limit, "at most", call{method: http.MethodPost, path: wire.Prefix + wire.Send, body: body})
	})
}
