package api_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func page(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The page names each route, and no other.
func TestPageNamesEachRoute(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		named := map[string]bool{}
		for _, m := range regexp.MustCompile("`((?:GET|POST|DELETE) /[^` ]*)`").FindAllStringSubmatch(page(t), -1) {
			named[m[1]] = true
		}
		for _, route := range r.table {
			if !named[route.Key()] {
				t.Errorf("docs/api.md has no %s", route.Key())
			}
			delete(named, route.Key())
		}
		for key := range named {
			t.Errorf("docs/api.md has %s, which is no route", key)
		}
	})
}

// The examples of the page work, one after the other.
func TestExamplesOfThePage(t *testing.T) {
	t.Parallel()
	withTriggers(t, func(t *testing.T, r *room) {
		lines := regexp.MustCompile(`(?m)^    curl (.*)$`).FindAllStringSubmatch(page(t), -1)
		if len(lines) < 10 {
			t.Fatalf("the page has %d examples", len(lines))
		}
		for _, line := range lines {
			c := call{method: http.MethodGet, header: http.Header{}}
			words := regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line[1], -1)
			for i, w := range words {
				words[i] = strings.Trim(w, `'"`)
			}
			for i := 0; i < len(words); i++ {
				switch words[i] {
				case "--json":
					i++
					c.method, c.body = http.MethodPost, words[i]
				case "-H":
					i++
					name, value, _ := strings.Cut(words[i], ": ")
					if name != "Authorization" { // the room has tokens of its own
						c.header.Set(name, value)
					}
				default:
					c.path = strings.TrimPrefix(words[i], "localhost:7878")
				}
			}
			out := r.do(c)
			if out.status >= 300 {
				t.Errorf("%s: %d %s", line[1], out.status, out.body)
			}
			if name, _ := out.doc["name"].(string); name == "talk" && out.doc["status"] == "pending" {
				r.run(out.doc["id"].(string))
			}
		}
	})
}
