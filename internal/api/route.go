package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/guard"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/internal/problem"
	"github.com/stint-dev/stint/internal/view"
)

// Bounds of requests, in bytes. JSON writes a byte of a text as up to six.
const (
	smallBody  = 256 << 10
	maxText    = 8 << 20 // of a prompt or a message
	promptBody = 6*maxText + smallBody
)

// bodyTime is how long a body may take to come.
const bodyTime = 30 * time.Second

// server is the API while it is put together.
type server struct {
	Options

	mux   *guard.Mux
	huma  huma.API
	table access.Table
	write probe
}

func newServer(mux *guard.Mux, o Options) *server {
	format := huma.Format{Marshal: encode, Unmarshal: decode}
	c := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "stint", Version: o.Version, License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
				Description: "Sessions of AI agents: start, watch, steer. The documents are those that the command line prints with --json.",
			},
			Servers: []*huma.Server{{URL: "/", Description: "this server"}},
			Components: &huma.Components{Schemas: newRegistry(), SecuritySchemes: map[string]*huma.SecurityScheme{
				bearer: {Type: "http", Scheme: "bearer", Description: "A token that stint token create prints."},
			}},
		},
		Formats:                      map[string]huma.Format{"application/json": format, "json": format}, // the second is for +json
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{asProblem},
	}
	return &server{Options: o, mux: mux, huma: humago.New(mux, c)}
}

// bearer is the name of the security scheme.
const bearer = "token"

// encode writes a document. Who has gone does not read it, which is nobody's fault.
func encode(w io.Writer, v any) error {
	var b bytes.Buffer
	if err := view.WriteJSON(&b, v); err != nil {
		return err
	}
	_, _ = w.Write(b.Bytes())
	return nil
}

// decode reads a body strictly: it is an object. A body is decoded twice, into any for the
// schema and into its type.
func decode(b []byte, v any) error {
	if _, ok := v.(*any); ok {
		if !bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{")) {
			return errors.New("it is no JSON object")
		}
		if err := jsonx.Check(b, jsonx.Limits{}); err != nil {
			return err
		}
		return json.Unmarshal(b, v)
	}
	return jsonx.Decode(b, v)
}

// operation is a route: its row, and what the documentation says.
type operation struct {
	access.Route

	id, tag, summary, about string
	status                  int    // of success; 0: 200
	content                 string // of success, where it is not JSON
}

// add registers a route whose answers are typed.
func add[I, O any](s *server, op operation, h func(context.Context, *I) (*O, error)) {
	if op.MaxBody == 0 && op.Method != http.MethodGet {
		op.MaxBody = smallBody
	}
	s.table = append(s.table, op.Route)
	needs := "Needs the scope " + string(op.Scope) + "."
	security := []map[string][]string{{bearer: {}}}
	if op.Public != "" {
		needs, security = "Public: "+op.Public+".", []map[string][]string{{}}
	}
	status := op.status
	if status == 0 {
		status = http.StatusOK
	}
	huma.Register(s.huma, huma.Operation{
		OperationID: op.id, Method: op.Method, Path: op.Pattern, Tags: []string{op.tag}, Summary: op.summary,
		Description: strings.TrimSpace(op.about + " " + needs), DefaultStatus: status, MaxBodyBytes: max(op.MaxBody, 1), BodyReadTimeout: bodyTime,
		Security: security, Responses: s.responses(status, op.content), Middlewares: huma.Middlewares{s.oneOfEach(reflect.TypeFor[I]())},
	}, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if err != nil {
			return nil, s.refused(ctx, op.Route, err)
		}
		return out, nil
	})
	if item := s.huma.OpenAPI().Paths[op.Pattern]; op.Method == http.MethodPost && item.Post.RequestBody != nil {
		for _, body := range item.Post.RequestBody.Content { // one that may be absent may not be null
			if len(body.Schema.AnyOf) == 2 {
				*body.Schema = *body.Schema.AnyOf[0]
			}
		}
	}
}

// responses are those that every route has.
func (s *server) responses(status int, content string) map[string]*huma.Response {
	out := map[string]*huma.Response{}
	doc := s.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[problem.Document](), true, "")
	for code, what := range map[string]string{"4XX": "The request is refused.", "5XX": "The request failed."} {
		out[code] = &huma.Response{Description: what, Content: map[string]*huma.MediaType{problem.ContentType: {Schema: doc}}}
	}
	if content != "" {
		out["200"] = &huma.Response{Description: http.StatusText(status), Content: map[string]*huma.MediaType{content: {Schema: &huma.Schema{}}}}
	}
	return out
}

// oneOfEach refuses a query that cannot be read, a parameter without a value, and one that
// is there twice though it takes one value: of two, everybody who reads it takes another.
func (s *server) oneOfEach(input reflect.Type) func(huma.Context, func(huma.Context)) {
	var many []string
	for _, f := range reflect.VisibleFields(input) {
		if name, ok := strings.CutSuffix(f.Tag.Get("query"), ",explode"); ok {
			many = append(many, name)
		}
	}
	return func(ctx huma.Context, next func(huma.Context)) {
		u := ctx.URL()
		q, err := url.ParseQuery(u.RawQuery)
		if err != nil {
			_ = huma.WriteErr(s.huma, ctx, http.StatusBadRequest, "the query cannot be read") // who has gone does not read it
			return
		}
		for name, values := range q {
			if len(values) > 1 && !slices.Contains(many, name) {
				_ = huma.WriteErr(s.huma, ctx, http.StatusBadRequest, "a parameter is there twice", &huma.ErrorDetail{Message: "it takes one value", Location: "query." + name})
				return
			}
			if slices.Contains(values, "") {
				_ = huma.WriteErr(s.huma, ctx, http.StatusBadRequest, "a parameter is empty", &huma.ErrorDetail{Message: "it has no value; leave it out", Location: "query." + name})
				return
			}
		}
		next(ctx)
	}
}

// raw registers a handler of net/http.
func (s *server) raw(r access.Route, h http.Handler) {
	s.table = append(s.table, r)
	s.mux.Handle(r.Key(), h)
}

// document serves the description of the API, which is complete now.
func (s *server) document() error {
	for _, unused := range []string{"ErrorModel", "ErrorDetail"} { // of the framework; ours are problems
		delete(s.huma.OpenAPI().Components.Schemas.Map(), unused)
	}
	doc, err := json.Marshal(s.huma.OpenAPI())
	if err != nil {
		return stint.Internal.Errorf("api", "its description is no JSON: %w", err)
	}
	s.raw(access.Route{Method: http.MethodGet, Pattern: "/openapi.json", Public: "it describes the program, not its data"},
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(doc) // who has gone does not read it
		}))
	return nil
}

// refusal is an error in the form that the framework answers with.
type refusal struct {
	problem.Document

	header http.Header
}

// refused is err as it is answered. What stays out of the answer is logged.
func (s *server) refused(ctx context.Context, r access.Route, err error) error {
	if code := stint.CodeOf(err); code == stint.Internal || code == stint.Corrupt {
		s.Log.ErrorContext(ctx, "request failed", "route", r.Key(), "error", err)
	}
	doc, h := problem.Describe(err)
	if h.Del("X-Content-Type-Options"); r.Public == "" {
		h.Del("Cache-Control") // the guard has said both
	}
	return &refusal{doc, h}
}

// Error implements error.
func (r *refusal) Error() string { return r.Detail }

// GetStatus implements huma.StatusError.
func (r *refusal) GetStatus() int { return r.Status }

// GetHeaders implements huma.HeadersError.
func (r *refusal) GetHeaders() http.Header { return r.header }

// ContentType implements huma.ContentTypeFilter.
func (r *refusal) ContentType(string) string { return problem.ContentType }

// asProblem turns the framework's own refusals into problems. It has chosen the status.
func asProblem(_ huma.Context, _ string, v any) (any, error) {
	switch v := v.(type) {
	case *refusal:
		return v.Document, nil
	case *huma.ErrorModel:
		err := &stint.Error{Code: codeOf(v.Status), Op: "request", Err: errors.New(details(v)), Hint: "docs/api.md and /openapi.json say what is taken"}
		doc, _ := problem.Describe(problem.With(v.Status, err))
		return doc, nil
	}
	return v, nil
}

// codeOf is what a status of the framework means.
func codeOf(status int) stint.Code {
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return stint.Limit
	case status == http.StatusRequestTimeout:
		return stint.Unavailable
	case status < http.StatusInternalServerError:
		return stint.Invalid
	}
	return stint.Internal
}

// maxDetails is how many faults of a request are told at once.
const maxDetails = 5

// details is what is wrong with a request, in one line. What was sent is not repeated: it
// may be long, or a secret.
func details(m *huma.ErrorModel) string {
	var parts []string
	for i, d := range m.Errors {
		if i == maxDetails {
			parts = append(parts, "and more")
			break
		}
		if d.Location == "" {
			parts = append(parts, d.Message)
			continue
		}
		parts = append(parts, d.Location+": "+d.Message)
	}
	if parts == nil {
		return m.Detail
	}
	return strings.Join(parts, "; ")
}
