package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// builtIn are the providers that are there without a word in the file. An entry of
// the same name under providers begins as one of these, but without its key if it is
// elsewhere.
func builtIn() map[string]Provider {
	with := func(name string, api API, key string) Provider {
		return Provider{Name: name, API: api, Key: key, Timeout: 5 * time.Minute, Parallel: 32}
	}
	return map[string]Provider{
		"anthropic": with("anthropic", Messages, fromEnv+"ANTHROPIC_API_KEY"),
		"openai":    with("openai", Responses, fromEnv+"OPENAI_API_KEY"),
		"script":    {Name: "script", API: Script},
	}
}

// provider reads one entry under providers.
func (d *decoder) provider(key, n *node, path string) {
	if why := badName(key.text); why != "" {
		d.fail(key, path, "the name "+why, nameRule)
		return
	}
	if key.text == string(Script) {
		d.fail(key, path, "script plays a file and is reached nowhere", "use another name; write model: script/PATH to play a file")
		return
	}
	p, known := builtIn()[key.text]
	if !known {
		p = Provider{Name: key.text, Timeout: 5 * time.Minute, Parallel: 32}
	}
	given := d.section(n, path, "a mapping with the keys api, base_url and key", d.providerMembers(&p))
	if n.shape == mapping && !known {
		if given["api"] == nil {
			d.fail(key, path, "the key api is missing", "add api: chat, responses or messages; most services speak chat")
		}
		if given["base_url"] == nil {
			d.fail(key, path, "the key base_url is missing", "add, for example, base_url: http://127.0.0.1:11434/v1")
		}
	}
	if given["base_url"] != nil && given["key"] == nil {
		p.Key = "" // a vendor's key is for the vendor
	}
	d.providers[p.Name] = p
}

func (d *decoder) providerMembers(p *Provider) []member {
	return []member{
		{"api", func(n *node, path string) {
			if hint := map[string]string{"anthropic": "write messages", "openai": "write responses, or chat for a service that speaks as OpenAI does"}[n.text]; n.shape == text && hint != "" {
				d.expected(n, path, "chat, responses or messages", "", hint)
				return
			}
			choose(d, n, path, &p.API, Chat, Responses, Messages)
		}},
		{"base_url", func(n *node, path string) {
			if u, ok := d.address(n, path, "a URL such as http://127.0.0.1:11434/v1", false); ok {
				p.BaseURL = u.String()
			}
		}},
		{"key", func(n *node, path string) { d.secretRef(n, path, "the key", &p.Key) }},
		{"headers", func(n *node, path string) { d.headers(n, path, &p.Headers, "Content-Type", "Accept") }},
		{"timeout", func(n *node, path string) { d.duration(n, path, &p.Timeout, false) }},
		{"parallel", func(n *node, path string) { integer(d, n, path, &p.Parallel, 1, 10_000, false) }},
	}
}

// model reads PROVIDER/MODEL and finds the provider.
func (d *decoder) model(n *node, path string, to *ModelRef) {
	const what = "PROVIDER/MODEL such as anthropic/claude-sonnet-5"
	s, ok := d.oneLine(n, path, what, 4096)
	if !ok {
		return
	}
	all := slices.Sorted(maps.Keys(d.providers))
	listed := clip(strings.Join(all, ", "), 200)
	provider, name, slash := strings.Cut(s, "/")
	p, known := d.providers[provider]
	switch {
	case !slash:
		hint := "write the provider before it; the providers are " + listed
		switch {
		case known:
			hint = "write the name of the model after it: " + provider + "/MODEL"
		case strings.HasPrefix(s, "claude"):
			hint = "write anthropic/" + clip(s, 80)
		case strings.HasPrefix(s, "gpt"):
			hint = "write openai/" + clip(s, 80)
		}
		d.expected(n, path, what, "", hint)
	case !known:
		hint := "the providers are " + listed + "; others are described under providers"
		if near := nearest(provider, all); near != "" {
			hint = "did you mean " + near + "/" + clip(name, 80) + "?"
		}
		d.fail(n, path, "there is no provider "+quote(clip(provider, 64)), hint)
	case name == "":
		d.expected(n, path, what, "the name of the model is missing", "write it after "+provider+"/")
	case p.API == Script:
		if name, ok = d.joined(n, path, name); ok {
			*to = ModelRef{Model: p.Name + "/" + filepath.ToSlash(name), Provider: p}
		}
	default:
		*to = ModelRef{Model: s, Provider: p}
	}
}
