package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/stint-dev/stint/internal/modelhttp"
	"github.com/stint-dev/stint/model"
)

const defaultBase = "https://api.openai.com/v1"

// afterFinish is how long a stream may stay open once the answer is whole: the usage
// and [DONE] come at once, or not at all.
const afterFinish = 10 * time.Second

// API says which of the two a Model speaks.
type API string

// The APIs. The default is the one that everybody speaks.
const (
	Chat      API = "chat"      // POST /chat/completions
	Responses API = "responses" // POST /responses
)

// Options says which model, and where. Only Model has to be set.
type Options struct {
	Model   string
	API     API    // default: Chat
	BaseURL string // default: the vendor's; with /v1 at its end, as these services document it
	// Key is asked for the key at each call, so that it is stored nowhere; nil: none is sent.
	Key     func() (string, error)
	Headers http.Header     // sent with each request
	Extra   json.RawMessage // an object whose members are added to each request: "reasoning_effort", "seed"
	// OldMaxTokens sends the bound of an answer as max_tokens; nil: where BaseURL is set.
	OldMaxTokens *bool
	Connect      time.Duration // for the connection; default 10s
	Idle         time.Duration // without a byte, from the request on; default 5m
	Client       *http.Client  // default: one that follows no redirects
}

// Model is a [model.Model] over HTTP.
type Model struct {
	opts   Options
	old    bool
	extra  modelhttp.Extra
	client sdk.Client
}

var _ model.Model = (*Model)(nil)

// reader builds an answer from a stream.
type reader interface {
	read(dec ssestream.Decoder) (*model.Answer, error)
}

// New returns the model. It connects to nothing. The error says what is wrong with o.
func New(o Options) (*Model, error) {
	if o.Model == "" {
		return nil, errors.New("openai: no model is named")
	}
	if o.API == "" {
		o.API = Chat
	}
	if o.API != Chat && o.API != Responses {
		return nil, errors.New("openai: the API is " + string(Chat) + " or " + string(Responses))
	}
	if err := modelhttp.CheckBase(o.BaseURL); err != nil {
		return nil, errors.Join(errors.New("openai"), err)
	}
	extra, err := modelhttp.ParseExtra(o.Extra, "model", "messages", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls",
		"max_tokens", "max_completion_tokens", "max_output_tokens", "temperature", "stop", "response_format", "text", "stream", "stream_options", "store")
	if err != nil {
		return nil, errors.Join(errors.New("openai"), err)
	}
	m := &Model{opts: o, extra: extra, old: o.BaseURL != ""}
	if o.OldMaxTokens != nil {
		m.old = *o.OldMaxTokens
	}
	if o.BaseURL == "" {
		o.BaseURL = defaultBase
	}
	if o.Client == nil {
		o.Client = modelhttp.NewClient(o.Connect)
	}
	opts := []option.RequestOption{
		option.WithHTTPClient(o.Client),
		option.WithMaxRetries(0),
		option.WithBaseURL(o.BaseURL),
	}
	for name, values := range o.Headers {
		for _, v := range values {
			opts = append(opts, option.WithHeaderAdd(name, v))
		}
	}
	m.client = sdk.Client{Options: opts} // NewClient would read keys and addresses from the environment
	return m, nil
}

// Name is the model's name in Options.
func (m *Model) Name() string { return m.opts.Model }

// Call asks r; see [model.Model].
func (m *Model) Call(ctx context.Context, r *model.Request, hear func(model.Delta)) (*model.Answer, error) {
	if err := r.Check(); err != nil {
		model.AsError(err).Model = m.Name()
		return nil, err
	}
	x := &modelhttp.Exchange{Model: m.Name(), Idle: m.opts.Idle}
	path, body, s := "chat/completions", m.chatBody, reader(&chatStream{x: x, hear: hear})
	if m.opts.API == Responses {
		path, body, s = "responses", m.responsesBody, &responsesStream{x: x, hear: hear}
	}
	opts := []option.RequestOption{
		option.WithRequestBody("application/json", body(r)),
		option.WithHeader("Accept", "text/event-stream"),
		option.WithMiddleware(x.RoundTrip),
	}
	key, err := m.key()
	if err != nil {
		return nil, err
	}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	x.Secrets = modelhttp.Secrets(key, m.opts.Headers)
	ctx = x.Begin(ctx)
	defer x.End()
	var res *http.Response
	if err := m.client.Post(ctx, path, nil, &res, opts...); err != nil {
		return nil, x.Fail(err)
	}
	defer func() { _ = res.Body.Close() }()
	a, err := s.read(ssestream.NewDecoder(res))
	if err != nil {
		return nil, err
	}
	a.Message.Role = model.Assistant
	a.Raw, a.RawSize = x.Raw()
	settleStop(a)
	r.Settle(&a.Message)
	return a, nil
}

// settleStop mends what services say that use one word for everything.
func settleStop(a *model.Answer) {
	calls := len(a.Message.Calls())
	switch {
	case a.Stop == model.EndTurn && calls > 0:
		a.Stop = model.ToolUse
	case a.Stop == model.ToolUse && calls == 0:
		a.Stop = model.EndTurn
	}
}

func (m *Model) key() (string, error) {
	if m.opts.Key == nil {
		return "", nil
	}
	key, err := m.opts.Key()
	if err != nil {
		return "", &model.Error{Kind: model.Auth, Model: m.Name(), Message: "the key could not be read", Err: err}
	}
	return key, nil
}
