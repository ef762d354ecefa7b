package proc_test

import "context"

// backgroundForHelper is the root context of a helper process, which has no test to take one from.
func backgroundForHelper() context.Context { return context.Background() }
