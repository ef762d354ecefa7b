package sqlite

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Disk sees what the writers of this process make of their WALs, below the layer
// that keeps writes in memory. There is one, as SQLite calls functions that hold
// nothing; see [WatchDisk].
type Disk struct {
	writes, syncs, loose atomic.Int64 // loose: writes since the last sync
	fullAt               atomic.Int64 // the commit from now on whose first write fails; 0: none
	below                uintptr      // the VFS that is watched
	methods              uintptr      // of the files that it opens, with two of them replaced
	real                 lib.Tsqlite3_io_methods
}

var theDisk Disk

// WatchDisk watches the WALs that are opened from now on, until the test ends.
func WatchDisk(t *testing.T) *Disk {
	t.Helper()
	if err := registerVFS(); err != nil {
		t.Fatal(err)
	}
	tls := libc.NewTLS()
	t.Cleanup(tls.Close)
	name, err := libc.CString(vfsName)
	if err != nil {
		t.Fatal(err)
	}
	defer libc.Xfree(tls, name)
	l := at[layer](lib.Xsqlite3_vfs_find(tls, name))
	d := &theDisk
	d.below, d.methods = l.below, 0
	d.writes.Store(0)
	d.syncs.Store(0)
	d.loose.Store(0)
	d.fullAt.Store(0)
	watch := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_vfs{})))
	*at[lib.Tsqlite3_vfs](watch) = *at[lib.Tsqlite3_vfs](l.below)
	at[lib.Tsqlite3_vfs](watch).FxOpen = fn(diskOpen)
	l.below = watch
	t.Cleanup(func() { l.below = d.below })
	return d
}

// Syncs is how often a WAL was synced.
func (d *Disk) Syncs() int64 { return d.syncs.Load() }

// Loose is how many writes a power cut would lose now.
func (d *Disk) Loose() int64 { return d.loose.Load() }

// FillAt makes the n-th commit from now on, and that one alone, meet a full disk; 0
// takes that back.
func (d *Disk) FillAt(n int64) { d.fullAt.Store(n) }

func diskOpen(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	d := &theDisk
	rc := call[openFunc](at[lib.Tsqlite3_vfs](d.below).FxOpen)(tls, d.below, name, file, flags, out)
	if rc != lib.SQLITE_OK || flags&lib.SQLITE_OPEN_WAL == 0 {
		return rc
	}
	f := at[lib.Tsqlite3_file](file)
	if d.methods == 0 {
		d.real = *at[lib.Tsqlite3_io_methods](f.FpMethods)
		d.methods = libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(d.real)))
		m := at[lib.Tsqlite3_io_methods](d.methods)
		*m = d.real
		m.FxWrite, m.FxSync = fn(diskWrite), fn(diskSync)
	}
	f.FpMethods = d.methods
	return rc
}

func diskWrite(tls *libc.TLS, file, data uintptr, n int32, off int64) int32 {
	d := &theDisk
	if d.loose.Load() == 0 && d.fullAt.Load() > 0 && d.fullAt.Add(-1) == 0 {
		return lib.SQLITE_FULL
	}
	d.writes.Add(1)
	d.loose.Add(1)
	return call[ioFunc](d.real.FxWrite)(tls, file, data, n, off)
}

func diskSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	d := &theDisk
	rc := call[flagFunc](d.real.FxSync)(tls, file, flags)
	if rc == lib.SQLITE_OK {
		d.syncs.Add(1)
		d.loose.Store(0)
	}
	return rc
}
