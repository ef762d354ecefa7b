package hook

import (
	"slices"

	"github.com/expr-lang/expr/builtin"

	"github.com/stint-dev/stint/internal/expression"
)

// Functions lists those of expr-lang that expressions can call.
func Functions() []string { return expression.Functions() }

// Builtins lists all that expr-lang has.
func Builtins() []string { return builtin.Names }

// IsBuiltin reports whether expr-lang has a function.
func IsBuiltin(name string) bool { return slices.Contains(builtin.Names, name) }
