package control

import (
	"maps"
	"slices"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
)

// Labels returns the labels of a new session: own, and those of its agent that they do not
// replace. A label that cannot be one, and too many of them, are [stint.Invalid].
func Labels(own, agent map[string]string) (map[string]string, error) {
	all := maps.Clone(agent)
	if all == nil {
		all = map[string]string{}
	}
	for _, k := range slices.Sorted(maps.Keys(own)) {
		if err := config.CheckLabel(k, own[k]); err != nil {
			return nil, err
		}
		all[k] = own[k]
	}
	if len(all) > config.MaxLabels {
		e := stint.Invalid.Errorf("", "%d labels are too many; a session has at most %d", len(all), config.MaxLabels)
		e.Hint = "keep what is longer in the input"
		return nil, e
	}
	return all, nil
}
