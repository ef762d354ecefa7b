package main

import (
	"context"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) sqlCommand() *cobra.Command {
	output := "table"
	cmd := &cobra.Command{
		Use: "sql QUERY", Short: "Ask the store in SQL, read-only",
		Long: `Run one SQL statement that reads. The views v_sessions, v_loops, v_steps, v_entries and v_ledger
are meant for it; the tables below them may change with a version.

Values that a terminal could act on are written as escapes; in JSON they keep their
value. Integers that a double cannot hold are strings in JSON, bytes are base64.`,
		Example: "  stint sql \"select name, status, loops, steps from v_sessions order by created desc limit 10\"\n  stint sql \"select agent, count(*) from v_sessions group by agent\" -o csv",
		Args:    exactly(1, "one statement, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.json && !cmd.Flags().Changed("output") {
				output = "json"
			}
			var to rowWriter
			switch output {
			case "table":
				to = &tableRows{style: a.style()}
			case "json":
				to = &jsonRows{}
			case "csv":
				to = &csvRows{w: csv.NewWriter(a.out)}
			default:
				return misused(cmd, "--output is table, json or csv, not %q", output)
			}
			return a.sql(cmd.Context(), args[0], to)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "table, json or csv")
	return cmd
}

func (a *app) sql(ctx context.Context, query string, to rowWriter) error {
	s, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	if err := s.db.Select(ctx, query, func(cols []string, row []any) error { return to.row(a.out, cols, row) }); err != nil {
		return err
	}
	return to.end(a.out)
}

// rowWriter prints the rows of an answer. A value is nil, int64, float64, string or
// []byte.
type rowWriter interface {
	row(w io.Writer, cols []string, row []any) error
	end(w io.Writer) error
}

// valueText is a value as text; it is not safe yet.
func valueText(v any, null string) string {
	switch v := v.(type) {
	case nil:
		return null
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []byte:
		return "x'" + hex.EncodeToString(v) + "'"
	}
	return fmt.Sprint(v)
}

// tableRows keeps the rows until the end, since every one has a say in the widths.
type tableRows struct {
	style term.Style
	cols  []string
	rows  [][]string
}

func (t *tableRows) row(_ io.Writer, cols []string, row []any) error {
	texts := make([]string, len(row))
	for i, v := range row {
		texts[i] = valueText(v, "-")
	}
	t.cols, t.rows = cols, append(t.rows, texts)
	return nil
}

// maxLast is how wide the last column gets on a terminal: of an answer in SQL nobody needs
// what is cut, which other formats have.
const maxLast = 60

func (t *tableRows) end(w io.Writer) error {
	for _, row := range t.rows {
		if last := len(row) - 1; t.style.TTY && last >= 0 {
			row[last] = term.Cut(term.Line(row[last]), maxLast)
		}
	}
	return view.WriteTable(w, t.style, t.cols, t.rows)
}

// csvRows writes RFC 4180 with a line of heads.
type csvRows struct {
	w     *csv.Writer
	begun bool
}

func (c *csvRows) row(_ io.Writer, cols []string, row []any) error {
	write := func(n int, text func(int) string) error {
		line := make([]string, n)
		for i := range line {
			line[i] = term.Escape(text(i))
		}
		return c.w.Write(line)
	}
	if !c.begun {
		c.begun = true
		if err := write(len(cols), func(i int) string { return cols[i] }); err != nil {
			return err
		}
	}
	return write(len(row), func(i int) string { return valueText(row[i], "") })
}

func (c *csvRows) end(io.Writer) error {
	c.w.Flush()
	return c.w.Error()
}

// schemaSQL is the schema of what jsonRows writes.
const schemaSQL = "stint.sql/1"

// jsonRows writes each row as an object with its columns in their order.
type jsonRows struct{ n int }

// maxExact is the largest integer up to which a double holds every one.
const maxExact = 1 << 53

func (j *jsonRows) row(w io.Writer, cols []string, row []any) error {
	var b strings.Builder
	if j.n == 0 {
		b.WriteString(`{"schema":"` + schemaSQL + `","items":[`)
	} else {
		b.WriteByte(',')
	}
	j.n++
	b.WriteString("\n{")
	for i, v := range row {
		switch n := v.(type) {
		case int64:
			if n > maxExact || n < -maxExact {
				v = valueText(n, "")
			}
		case float64:
			if _, err := json.Marshal(n); err != nil { // infinite
				v = valueText(n, "")
			}
		case []byte:
			v = base64.StdEncoding.EncodeToString(n)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		for k, part := range []any{cols[i], v} {
			if k == 1 {
				b.WriteByte(':')
			}
			var text strings.Builder
			if err := view.WriteJSON(&text, part); err != nil {
				return err
			}
			b.WriteString(strings.TrimSuffix(text.String(), "\n"))
		}
	}
	b.WriteByte('}')
	_, err := io.WriteString(w, b.String())
	return err
}

func (j *jsonRows) end(w io.Writer) error {
	end := "\n]}\n"
	if j.n == 0 {
		end = `{"schema":"` + schemaSQL + `","items":[]}` + "\n"
	}
	_, err := io.WriteString(w, end)
	return err
}
