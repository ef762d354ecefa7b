package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint/internal/explain"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "explain [CODE]", Short: "Explain a status, a code, a kind of entry, or a word",
		Long: `Explain what a status, a wait, a reason, an exit status, an error code, a kind of
entry, an effect or a word means, and what to do about it. Without CODE it lists the
pages.`,
		Example:   "  stint explain\n  stint explain waiting:doubt\n  stint explain exit 5\n  stint explain recovery\n  stint explain address",
		ValidArgs: explainKeys(),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				if a.json {
					return view.WriteJSON(a.out, explained[explain.Topic]{explain.Schema, explain.Topics()})
				}
				return explain.WriteTopics(a.out, a.style())
			}
			pages, err := explain.Find(strings.Join(args, " "))
			if err != nil {
				return err
			}
			if a.json {
				return view.WriteJSON(a.out, explained[explain.Page]{explain.Schema, pages})
			}
			return explain.Write(a.out, a.style(), pages)
		},
	}
}

// explained is pages, or topics with all their pages, as JSON.
type explained[T any] struct {
	Schema view.Schema `json:"schema"`
	Items  []T         `json:"items"`
}

// explainKeys are what can be explained, for completion.
func explainKeys() []string {
	var keys []string
	for _, t := range explain.Topics() {
		for _, p := range t.Pages {
			keys = append(keys, cobra.CompletionWithDesc(p.Key, p.Topic))
		}
	}
	return keys
}
