package cli

import (
	"slices"

	"github.com/stint-dev/stint"
)

// readers are the tools of each CLI that look and change nothing, or keep a list
// inside the CLI itself. A tool that fetches an address of the model's choosing is not
// among them: a request can have an effect.
func readers(p Protocol) []string {
	switch p {
	case Codex:
		return []string{"web_search", "todo_list"}
	case Claude:
		return []string{"Read", "Glob", "Grep", "LS", "NotebookRead", "WebSearch", "TodoRead", "TodoWrite", "ToolSearch"}
	case OpenCode:
		return []string{"read", "glob", "grep", "list", "websearch", "codesearch", "todoread", "todowrite", "lsp"}
	case Gemini:
		return []string{"read_file", "read_many_files", "list_directory", "glob", "grep_search", "search_file_content",
			"google_web_search", "write_todos", "get_internal_docs"}
	}
	return nil
}

// effectOf is what is known of a tool without the user's word.
func effectOf(p Protocol, name string) stint.Effect {
	if slices.Contains(readers(p), name) {
		return stint.Read
	}
	return stint.Once
}
