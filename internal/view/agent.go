package view

// SchemaAgents is the schema of a list of agents.
const SchemaAgents Schema = "stint.agent.list/1"

// Agent is an agent of the configuration, as JSON in stint.agent.list/1.
type Agent struct {
	Name        string   `json:"name"`
	Kind        string   `json:"kind"`
	Command     []string `json:"command"` // of programs, else empty
	Model       string   `json:"model"`   // of language models, else empty
	URL         string   `json:"url"`     // of agents behind one, else empty
	Sum         string   `json:"definition_sum"`
	Description string   `json:"description"`
}
