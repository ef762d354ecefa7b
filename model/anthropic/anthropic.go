package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"github.com/stint-dev/stint/internal/modelhttp"
	"github.com/stint-dev/stint/model"
)

// provider marks opaque blocks as this API's.
const provider = "anthropic"

// defaultMaxTokens is sent when a request names no bound, for the API wants one.
const defaultMaxTokens = 8192

// Options says which model, and where. Only Model has to be set.
type Options struct {
	Model   string
	BaseURL string // default: the vendor's; with or without /v1 at its end
	// Key is asked for the key at each call, so that it is stored nowhere; nil: none is sent.
	Key     func() (string, error)
	Bearer  bool            // send the key as a bearer token and not as x-api-key
	Headers http.Header     // sent with each request
	Extra   json.RawMessage // an object whose members are added to each request: "thinking", "service_tier"
	Connect time.Duration   // for the connection; default 10s
	Idle    time.Duration   // without a byte, from the request on; default 5m
	Client  *http.Client    // default: one that follows no redirects
}

// Model is a [model.Model] over HTTP.
type Model struct {
	opts   Options
	extra  modelhttp.Extra
	client sdk.Client
}

var _ model.Model = (*Model)(nil)

// New returns the model. It connects to nothing. The error says what is wrong with o.
func New(o Options) (*Model, error) {
	if o.Model == "" {
		return nil, errors.New("anthropic: no model is named")
	}
	if err := modelhttp.CheckBase(o.BaseURL); err != nil {
		return nil, errors.Join(errors.New("anthropic"), err)
	}
	extra, err := modelhttp.ParseExtra(o.Extra, "model", "max_tokens", "system", "messages", "tools", "tool_choice",
		"temperature", "stop_sequences", "metadata", "output_config", "stream")
	if err != nil {
		return nil, errors.Join(errors.New("anthropic"), err)
	}
	if o.Client == nil {
		o.Client = modelhttp.NewClient(o.Connect)
	}
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithHTTPClient(o.Client),
		option.WithMaxRetries(0),
		option.WithoutOpenTelemetry(),
	}
	if o.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(strings.TrimSuffix(strings.TrimSuffix(o.BaseURL, "/"), "/v1")))
	}
	for name, values := range o.Headers {
		for _, v := range values {
			opts = append(opts, option.WithHeaderAdd(name, v))
		}
	}
	return &Model{opts: o, extra: extra, client: sdk.NewClient(opts...)}, nil
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
	opts := []option.RequestOption{
		option.WithRequestBody("application/json", m.body(r)),
		option.WithHeader("Accept", "text/event-stream"),
		option.WithMiddleware(x.RoundTrip),
	}
	key, err := m.key()
	if err != nil {
		return nil, err
	}
	switch {
	case key != "" && m.opts.Bearer:
		opts = append(opts, option.WithAuthToken(key))
	case key != "":
		opts = append(opts, option.WithAPIKey(key))
	}
	x.Secrets = modelhttp.Secrets(key, m.opts.Headers)
	ctx = x.Begin(ctx)
	defer x.End()
	var res *http.Response
	if err := m.client.Post(ctx, "v1/messages", nil, &res, opts...); err != nil {
		return nil, x.Fail(err)
	}
	defer func() { _ = res.Body.Close() }()
	s := stream{x: x, hear: hear}
	a, err := s.read(ssestream.NewDecoder(res))
	if err != nil {
		return nil, err
	}
	a.Raw, a.RawSize = x.Raw()
	r.Settle(&a.Message)
	return a, nil
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
