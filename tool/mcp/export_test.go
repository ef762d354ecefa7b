package mcp

// Secrets is what is taken out of the outputs of a server.
func Secrets(s Spec, vars map[string]string) (map[string]string, error) {
	_, secrets, err := s.expand(func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	})
	return secrets, err
}
