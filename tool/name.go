package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxName is the longest name of a tool that every provider takes.
const MaxName = 64

// Join names a tool of a server: "server__tool". Characters that providers refuse become
// _, and a name that this changes or that is longer than [MaxName] ends in a hash of the
// whole, so that two tools never get one name by accident. With an empty space it is the
// name of the tool alone. The same names give the same result always.
func Join(space, name string) string {
	whole := name
	if space != "" {
		whole = space + "__" + name
	}
	clean := strings.Map(func(r rune) rune {
		if nameRune(r) {
			return r
		}
		return '_'
	}, whole)
	if clean == whole && len(clean) <= MaxName && clean != "" {
		return clean
	}
	sum := sha256.Sum256([]byte(space + "\x00" + name))
	tail := "_" + hex.EncodeToString(sum[:4])
	return clean[:min(len(clean), MaxName-len(tail))] + tail
}

func nameRune(r rune) bool {
	return r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

func validName(name string) bool {
	return name != "" && len(name) <= MaxName && strings.IndexFunc(name, func(r rune) bool { return !nameRune(r) }) < 0
}
