package view

import (
	"io"
	"strconv"
	"strings"

	"github.com/stint-dev/stint/internal/term"
)

// column is one column of a table.
type column struct {
	head  string
	right bool // numbers
	most  int  // columns on a terminal; 0: no bound
	least int  // columns that are left of it where the last column needs room; 0: it gives none
}

// cell is one value of a table. Its text is printed as it is, so what came from
// outside has been through term.Line.
type cell struct {
	text  string
	color term.Color
	end   string // follows text, and stays when text is cut
	whole bool   // in the last column: what does not fit stands whole below the row
}

// table prints rows under their heads, as wide as their content asks for.
type table struct {
	columns []column
	rows    [][]cell // a row of one cell is a line of its own, over all columns
	lead    string   // before each row and the head
}

func plain(texts ...string) []cell {
	row := make([]cell, len(texts))
	for i, t := range texts {
		row[i].text = t
	}
	return row
}

// write prints t. On a terminal bounded columns are cut, and the last one to what
// is left of the width.
func (t *table) write(w io.Writer, st term.Style) error {
	n := len(t.columns)
	widths := make([]int, n)
	for i, c := range t.columns {
		widths[i] = term.Width(c.head)
		for _, row := range t.rows {
			if len(row) == n {
				widths[i] = max(widths[i], term.Width(row[i].text)+term.Width(row[i].end))
			}
		}
		if st.TTY && c.most > 0 {
			widths[i] = min(widths[i], max(c.most, term.Width(c.head)))
		}
	}
	if st.TTY && st.Width > 0 {
		t.fit(widths, st.Width)
	}
	var b strings.Builder
	heads := make([]cell, n)
	for i, c := range t.columns {
		heads[i] = cell{text: c.head, color: term.Dim}
	}
	t.line(&b, st, widths, heads)
	for _, row := range t.rows {
		if len(row) != n {
			b.WriteString(st.Paint(row[0].color, row[0].text) + "\n")
			continue
		}
		t.line(&b, st, widths, row)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// lastColumn is how much room the last column gets before others are cut for it.
const lastColumn = 36

// fit cuts widths to those of a terminal: what is in the way of the last column gives
// room, as far as it may, and the last one gets what is left.
func (t *table) fit(widths []int, width int) {
	last := len(widths) - 1
	left := width - term.Width(t.lead)
	for _, wd := range widths[:last] {
		left -= wd + 2
	}
	for i, c := range t.columns[:last] {
		if want := min(widths[last], lastColumn); c.least > 0 && left < want {
			give := min(max(widths[i]-c.least, 0), want-left)
			widths[i], left = widths[i]-give, left+give
		}
	}
	widths[last] = min(widths[last], max(left, 8))
}

func (t *table) line(b *strings.Builder, st term.Style, widths []int, row []cell) {
	below := ""
	if c := row[len(row)-1]; st.TTY && c.whole && len(row) == len(widths) && term.Width(c.text)+term.Width(c.end) > widths[len(row)-1] {
		below, row = c.text+c.end, row[:len(row)-1]
	}
	for len(row) > 1 && row[len(row)-1].text+row[len(row)-1].end == "" {
		row = row[:len(row)-1] // no space at the end of a line
	}
	b.WriteString(t.lead)
	for i, c := range row {
		text := c.text
		if st.TTY {
			text = term.Cut(text, max(widths[i]-term.Width(c.end), 1))
		}
		text += c.end
		if i < len(row)-1 || t.columns[i].right {
			text = term.Pad(text, widths[i], t.columns[i].right)
		}
		b.WriteString(st.Paint(c.color, text))
		if i < len(row)-1 {
			b.WriteString("  ")
		}
	}
	b.WriteByte('\n')
	if below != "" {
		for _, l := range wrap(below, st.Width-len(belowRow)) {
			b.WriteString(belowRow + l + "\n")
		}
	}
}

// belowRow stands before what did not fit into a row.
const belowRow = "     "

// maxCell is how wide a column of [WriteTable] gets on a terminal.
const maxCell = 60

// WriteTable prints rows of texts under their heads, made safe. Columns that hold
// numbers alone are aligned to the right. On a terminal long values are cut, but for that
// of the last column: it stands below its row where there is no room, since it may be what
// another command is to be given.
func WriteTable(w io.Writer, st term.Style, heads []string, rows [][]string) error {
	t := table{columns: make([]column, len(heads))}
	for i, h := range heads {
		t.columns[i] = column{head: term.Line(h), most: maxCell, right: len(rows) > 0}
	}
	for _, row := range rows {
		cells := make([]cell, len(row))
		for i, text := range row {
			if _, err := strconv.ParseFloat(text, 64); err != nil && text != "-" {
				t.columns[i].right = false
			}
			cells[i].text = term.Line(text)
		}
		if len(row) > 0 {
			cells[len(row)-1].whole = true
		}
		t.rows = append(t.rows, cells)
	}
	if len(heads) == 0 {
		return nil
	}
	t.columns[len(heads)-1].most = 0
	return t.write(w, st)
}
