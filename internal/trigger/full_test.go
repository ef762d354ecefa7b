//go:build linux || darwin

package trigger_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/trigger"
)

// While the disk is full every delivery is answered with 503, what was acknowledged stays,
// and all of the others are new once there is room.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	r := &rig{T: t, bin: buildReceiver(t), store: filepath.Join(dir, "stint.db"), log: filepath.Join(dir, "hit"), told: map[string]trigger.Delivered{}}
	r.full = fmt.Sprint(3 << 20)
	var all []parcel
	for n := range 600 {
		p := parcel{hook: []string{"plain", "keyed"}[n%2], id: fmt.Sprintf("d-%d", n)}
		p.body = fmt.Sprintf(`{"id":%q,"key":"k%d","x":%q}`, p.id, n/2%2, strings.Repeat(fmt.Sprint(n), 1000))
		all = append(all, p)
	}
	url, ended := r.serve("")
	refused := r.deliver(url, all)
	told := len(r.told)
	if again := r.deliver(url, refused); len(refused) == 0 || len(again) < len(refused)/2 || told == 0 {
		t.Errorf("%d were taken, %d refused, and %d of them again: the disk was not full", told, len(refused), len(again))
	}
	ended()
	r.full = ""
	url, ended = r.serve("")
	if lost := r.deliver(url, all); len(lost) > 0 {
		t.Errorf("with room %d were refused", len(lost))
	}
	ended()
	t.Logf("%d were taken before the disk was full, %d refused", told, len(refused))
	r.count(all)
}
