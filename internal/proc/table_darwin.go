package proc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func bootID() string { return "" }

// lookup reads one row of the process table.
func lookup(pid int) (entry, bool) {
	if pid <= 0 {
		return entry{}, false
	}
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return entry{}, false
	}
	return row(k), true
}

// processes reads the process table.
func processes() ([]entry, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("proc: read the process table: %w; try again", err)
	}
	out := make([]entry, 0, len(all))
	for i := range all {
		out = append(out, row(&all[i]))
	}
	return out, nil
}

func row(k *unix.KinfoProc) entry {
	const zombie = 5 // SZOMB of sys/proc.h
	t := k.Proc.P_starttime
	return entry{pid: int(k.Proc.P_pid), ppid: int(k.Eproc.Ppid),
		start: uint64(t.Sec)*1e6 + uint64(t.Usec), zombie: k.Proc.P_stat == zombie}
}
