package guard

import (
	"net/http"
	"time"
)

// Server returns a server with every limit set, so that no client holds it by being slow:
// 5 s for the headers and 32 KiB of them, 30 s for the request, 60 s for the answer
// ([Guard] takes the last two off streams), 2 min between requests. "OPTIONS *" comes to
// the handler like all else. The caller adds TLS, base context and error log.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:                      h,
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  30 * time.Second,
		WriteTimeout:                 time.Minute,
		IdleTimeout:                  2 * time.Minute,
		MaxHeaderBytes:               32 << 10,
		DisableGeneralOptionsHandler: true,
	}
}
