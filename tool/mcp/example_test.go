package mcp_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool/mcp"
)

// A configuration file as other programs have it. What is missing is named before
// anything is started.
func Example() {
	specs, err := mcp.ReadConfig([]byte(`{"mcpServers": {
		"memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]},
		"issues": {"type": "http", "url": "https://${HOST:-issues.example}/mcp", "headers": {"Authorization": "Bearer ${ISSUES_TOKEN}"}}
	}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	nothing := func(string) (string, bool) { return "", false }
	for _, spec := range specs {
		server, err := mcp.Open(context.Background(), spec, mcp.Options{Lookup: nothing})
		if err != nil {
			fmt.Println(err)
			var e *stint.Error
			if errors.As(err, &e) {
				fmt.Println("hint:", e.Hint)
			}
			continue
		}
		fmt.Println(server.Name(), "can be started; server.Tools(ctx) does that")
		server.Close()
	}
	// Output:
	// mcp server issues: headers.Authorization needs the variable ISSUES_TOKEN, which is not set
	// hint: set it where stint runs, or write ${NAME:-default}
	// memory can be started; server.Tools(ctx) does that
}
