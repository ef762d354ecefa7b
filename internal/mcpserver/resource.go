package mcpserver

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stint-dev/stint"
)

// uri begins the name of every resource.
const uri = "stint://session/"

func (s *Server) addResources() {
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: uri + "{session}", Name: "session", Title: "A session", MIMEType: "application/json",
		Description: "One session as show_session gives it, stint.session/1."}, s.readResource)
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: uri + "{session}/log", Name: "session-log", Title: "The log of a session", MIMEType: "text/plain",
		Description: "The newest entries of a session's log, in words."}, s.readResource)
}

// readResource reads a session, or its log.
func (s *Server) readResource(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	name, isLog := strings.CutSuffix(strings.TrimPrefix(r.Params.URI, uri), "/log")
	address, err := url.PathUnescape(name)
	if err != nil {
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	}
	out := &mcp.ResourceContents{URI: r.Params.URI}
	var a answer
	if isLog {
		a, err = s.readLog(ctx, "", logInput{Session: address, Limit: logMost})
	} else {
		a, err = s.showSession(ctx, "", sessionInputs{Session: address})
	}
	switch {
	case errors.Is(err, stint.NotFound), errors.Is(err, stint.Invalid), errors.Is(err, stint.Denied):
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	case err != nil:
		return nil, err
	case isLog:
		out.MIMEType, out.Text = "text/plain", a.words()
	default:
		doc, err := bounded(a.doc)
		if err != nil {
			return nil, err
		}
		out.MIMEType, out.Text = "application/json", string(doc)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{out}}, nil
}
