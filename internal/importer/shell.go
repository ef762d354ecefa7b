package importer

import (
	"path"
	"slices"
	"strings"
)

// split takes a command line apart as a shell would, if no shell is needed for that:
// words, quotation marks, backslashes. Otherwise why says what in it only a shell knows.
func split(line string) (words []string, why string) {
	s := splitter{rest: line}
	for {
		s.rest = strings.TrimLeft(s.rest, " \t")
		if s.rest == "" {
			break
		}
		word, why := s.word()
		if why != "" {
			return nil, why
		}
		words = append(words, word)
		if len(words) > 1 {
			continue
		}
		switch name, _, _ := strings.Cut(word, "="); {
		case isAssignment(line, word):
			return nil, name + "=" // its value may be a secret
		case word == "":
			return nil, "no program"
		case ofShell(word):
			return nil, word
		}
	}
	return words, ""
}

// splitter takes words off the beginning of a line.
type splitter struct{ rest string }

// word takes one. It ends at a blank outside of quotation marks.
func (s *splitter) word() (word string, why string) {
	var b strings.Builder
	for first := true; s.rest != "" && s.rest[0] != ' ' && s.rest[0] != '\t'; first = false {
		c := s.rest[0]
		s.rest = s.rest[1:]
		switch {
		case c == '\'':
			text, after, closed := strings.Cut(s.rest, "'")
			if !closed {
				return "", "'"
			}
			b.WriteString(text)
			s.rest = after
		case c == '"':
			if why := s.quoted(&b); why != "" {
				return "", why
			}
		case c == '\\':
			if s.rest == "" {
				return "", `\`
			}
			b.WriteByte(s.rest[0])
			s.rest = s.rest[1:]
		case strings.IndexByte("|&;<>()$`*?[]{}!", c) >= 0, first && strings.IndexByte("~#=", c) >= 0:
			return "", string(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// quoted takes what stands in double quotation marks, and the one that ends it.
func (s *splitter) quoted(b *strings.Builder) (why string) {
	for s.rest != "" {
		c := s.rest[0]
		s.rest = s.rest[1:]
		switch {
		case c == '"':
			return ""
		case c == '$' || c == '`':
			return string(c)
		case c == '\\' && s.rest != "" && strings.IndexByte("$`\"\\", s.rest[0]) >= 0:
			c = s.rest[0]
			s.rest = s.rest[1:]
		}
		b.WriteByte(c)
	}
	return `"`
}

// isAssignment reports whether a line begins with one, as in A=1 run.
func isAssignment(line, word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && isName(name) && strings.HasPrefix(strings.TrimLeft(line, " \t"), name+"=")
}

func isName(s string) bool {
	other := func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}
	return s != "" && (s[0] < '0' || s[0] > '9') && !strings.ContainsFunc(s, other)
}

// ofShell reports whether a word means something to a shell at the beginning of a
// command: it is reserved, or a builtin that no program does as well. echo is one of
// them, since shells differ from the program in what they make of a backslash.
func ofShell(word string) bool {
	const all = ". : alias bg bind break builtin caller case cd command continue coproc declare dirs disown do done echo elif else enable esac " +
		"eval exec exit export fc fg fi for function getopts hash help history if in jobs let local logout mapfile popd pushd read readarray " +
		"readonly return select set shift shopt source suspend then time times trap type typeset ulimit umask unalias unset until wait while"
	return slices.Contains(strings.Fields(all), word)
}

// isShell reports whether a program reads commands as a POSIX shell does.
func isShell(program string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "ksh93", "mksh", "yash", "zsh"}, path.Base(program))
}
