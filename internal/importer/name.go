package importer

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// maxName bounds the name that is made of a command; a number may be added to it.
const maxName = 40

// nameOf makes a name of a command: of its program, or of the file that an interpreter
// gets, and of a plain word that follows.
func nameOf(command string) string {
	if strings.HasPrefix(command, "cd ") {
		if _, rest, ok := strings.Cut(command, "&&"); ok {
			command = rest
		}
	}
	words := strings.Fields(command)
	for len(words) > 1 && isAssignment(words[0], words[0]) {
		words = words[1:]
	}
	for len(words) > 1 && prefixes(path.Base(words[0])) {
		rest := slices.IndexFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") })
		if rest < 0 {
			break
		}
		words = words[1+rest:]
	}
	if len(words) == 0 {
		return "job"
	}
	name := path.Base(strings.Trim(words[0], `"'`))
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	name = plain(name)
	if len(words) > 1 && words[1] == plain(words[1]) && len(words[1]) > 1 {
		name += "-" + words[1]
	}
	if name = strings.TrimRight(name[:min(len(name), maxName)], "-_."); name == "" {
		return "job"
	}
	return name
}

// prefixes reports whether a program runs the one that is named behind it.
func prefixes(program string) bool {
	return slices.Contains([]string{"sh", "bash", "zsh", "python", "python3", "node", "ruby", "perl", "php", "npx", "uvx", "env", "nohup", "sudo", "exec"}, program)
}

// plain makes of a word what a name may hold: small letters, digits, and - for the rest.
func plain(word string) string {
	out := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, word)
	return strings.Trim(out, "-_.")
}

// unique returns a name that is not taken yet, and takes it.
func unique(name string, taken map[string]bool) string {
	out := name
	for n := 2; taken[out]; n++ {
		out = fmt.Sprintf("%s-%d", name, n)
	}
	taken[out] = true
	return out
}
