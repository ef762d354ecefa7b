package hook

import (
	"maps"
	"slices"

	"github.com/expr-lang/expr/builtin"
)

// Functions lists those of expr-lang that expressions can call.
func Functions() []string { return slices.Sorted(maps.Keys(functions())) }

// Builtins lists all that expr-lang has.
func Builtins() []string { return builtin.Names }

// IsBuiltin reports whether expr-lang has a function.
func IsBuiltin(name string) bool { return slices.Contains(builtin.Names, name) }
