//go:build linux

package acceptance_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// treeAgent is a program in sh. Each session leaves a process behind that has a session of
// its own and no ear for signals; the first two levels spawn two of the next, and all spin.
const treeAgent = `read -r line
echo $$ >> "$OUT/pids"
setsid sh -c 'trap "" TERM HUP INT; echo $$ >> "$OUT/pids"; while :; do sleep 0.2; done' &
case $STINT_NAME in
*.*.*) ;;
*)
	for i in 1 2; do
		echo '{"type":"spawn","id":'$i',"agent":"tree","name":"'$STINT_NAME.$i'"}'
		read -r answer
	done ;;
esac
echo '{"type":"step","id":9,"name":"spin","effect":"read"}'
read -r proceed
trap "" TERM
while :; do sleep 0.05; done
`

// TestKillReachesTheTree: three levels of sessions, seven in all, each with processes that
// do not listen. A kill of the first ends them all within five seconds.
func TestKillReachesTheTree(t *testing.T) {
	t.Parallel()
	s := siteAt(t, t.TempDir(), nil)
	s.write("tree.sh", treeAgent)
	s.write("stint.yaml", `agents:
  tree: {kind: exec, command: [sh, tree.sh], env: {OUT: "`+s.dir+`", PATH: "`+os.Getenv("PATH")+`"}}
`)
	server := s.serves(bin.stint).up()
	s.must("start", "tree", "--name", "top")
	alive := func() (pids []int) {
		b, _ := os.ReadFile(s.path("pids"))
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && syscall.Kill(pid, 0) == nil && !defunct(pid) {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	t.Cleanup(func() {
		for _, pid := range alive() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	eventually(t, "the tree spins", patience, func() bool { return len(s.list()) == 7 && len(alive()) == 14 })
	begun := time.Now()
	s.must("kill", "top")
	over := func() bool {
		for _, v := range s.list() {
			if v.Status != "canceled" {
				return false
			}
		}
		return len(alive()) == 0
	}
	if !soon(patience, over) {
		t.Fatalf("%v live of the sessions %+v", alive(), s.list())
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %v", took)
	} else {
		t.Logf("it took %v", took)
	}
	server.drains()
	s.quiet()
}

// defunct reports whether a process has ended and nobody has asked how.
func defunct(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(after, "Z")
}
