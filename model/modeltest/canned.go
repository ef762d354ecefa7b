package modeltest

import (
	"bytes"
	"io"
	"net/http"
)

// Canned returns a client that answers every request with stream, and no network.
func Canned(stream []byte) *http.Client { return &http.Client{Transport: canned(stream)} }

type canned []byte

// RoundTrip answers with the stream.
func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{"Content-Type": {"text/event-stream"}},
		Body:    io.NopCloser(bytes.NewReader(c)),
		Request: r,
	}, nil
}
