package child

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-dev/stint"
)

// Variables is the environment of a program but for what depends on the session:
// PATH, HOME, LANG, TZ and TMPDIR (on Windows also what programs there cannot start
// without) and those named by pass, where this process has them, and env, which wins.
func Variables(pass []string, env map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range slices.Concat(passedAlways(), pass) {
		if v, ok := os.LookupEnv(name); ok {
			out[name] = v
		}
	}
	maps.Copy(out, env)
	return out
}

func passedAlways() []string {
	names := []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR"}
	if runtime.GOOS == "windows" {
		names = append(names, "SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
	}
	return names
}

// List is an environment as a program gets it: NAME=value, sorted by name.
func List(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// Describe adds what a program is told of the loop it serves: STINT_SESSION,
// STINT_NAME, STINT_LINE, STINT_LOOP, STINT_ATTEMPT and STINT_EPOCH.
func Describe(env map[string]string, ses stint.Session, epoch int64) {
	env["STINT_SESSION"] = ses.ID.String()
	env["STINT_NAME"] = strings.ReplaceAll(ses.Name, "\x00", "")
	env["STINT_LINE"] = strconv.Itoa(ses.At.Line)
	env["STINT_LOOP"] = strconv.Itoa(ses.At.Loop)
	env["STINT_ATTEMPT"] = strconv.Itoa(ses.At.Attempt)
	env["STINT_EPOCH"] = strconv.FormatInt(epoch, 10)
}
