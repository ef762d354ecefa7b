package sqlite

import (
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"github.com/stint-dev/stint"
)

// SQLite writes each page of a commit to the WAL with two system calls, one for
// the page and one for the 24 bytes before it, and those calls were more than half
// of what a durable step cost. So the WAL is opened through a layer over the
// system's own that keeps consecutive writes in memory until SQLite says sync, and
// then makes them with one call for each 120 KiB.
//
// That changes nothing that anybody can rely on. With synchronous=FULL SQLite
// syncs the WAL before it tells readers, through the shared index, that there are
// new frames; frames that were not synced may be lost in a crash anyway. Whoever
// reads, truncates or measures the file through this layer sees what was written.
//
// What is kept belongs to the transaction that runs, and must be gone when another
// process may write: one that is rolled back, be it because the disk is full, leaves
// frames that another process's commit then takes the place of. SQLite does not tell
// the WAL of a rollback. So the layer also stands before the lock of writers, which
// is a method of the database's file, and forgets what is kept when it is let go.

// vfsName is how connections ask for the layer: file:PATH?vfs=stint.
const vfsName = "stint"

const (
	walWrite  = 120 << 10    // bytes of one call: SQLite's own takes less than 128 KiB
	walBuffer = 2 * walWrite // bytes kept at most: more would save no call
	walFirst  = walWrite     // size of the first buffer
	walGrow   = 256 << 10    // by how much the file grows at least
)

// layer is the VFS, in memory that SQLite owns: first its own table, then that of
// the WALs that it opens, then the VFS below.
type layer struct {
	vfs     lib.Tsqlite3_vfs
	methods lib.Tsqlite3_io_methods
	below   uintptr
}

// walFile is an open WAL, in memory that SQLite allocated; the file of the VFS
// below lies right behind it.
type walFile struct {
	methods uintptr
	buf     uintptr // len bytes that begin at off in the file are not written yet
	len     int64
	cap     int64
	off     int64
	size    int64 // of the file below, as far as it is known
	zero    uintptr
	main    uintptr // the [mainFile]; 0: none
}

// mainFile lies behind a database file of the VFS below, whose methods are these. The
// file points to the first field.
type mainFile struct {
	methods lib.Tsqlite3_io_methods // those of the VFS below, but for the lock
	lock    uintptr                 // the lock's method below
	wal     uintptr                 // the [walFile] of the connection; 0: none is open
}

// writeLock is the place of the lock that a writer holds: WAL_WRITE_LOCK, see "WAL
// File Format" in SQLite's documentation.
const writeLock = 0

// at is the value that lies at an address outside Go's memory.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// fn is the address of a function as SQLite keeps it. f must be declared, not a
// closure.
func fn[T any](f T) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// call is the inverse of fn.
func call[T any](p uintptr) T { return *(*T)(unsafe.Pointer(&p)) }

// The types of the methods that the layer calls.
type (
	openFunc  = func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32
	closeFunc = func(*libc.TLS, uintptr) int32
	ioFunc    = func(*libc.TLS, uintptr, uintptr, int32, int64) int32
	sizeFunc  = func(*libc.TLS, uintptr, int64) int32
	flagFunc  = func(*libc.TLS, uintptr, int32) int32
	outFunc   = func(*libc.TLS, uintptr, uintptr) int32
	ctlFunc   = func(*libc.TLS, uintptr, int32, uintptr) int32
	lockFunc  = func(*libc.TLS, uintptr, int32, int32, int32) int32
)

// registerVFS makes the layer known to SQLite, once a process.
func registerVFS() error {
	tls := libc.NewTLS()
	defer tls.Close()
	useFdatasync(tls)
	name, err := libc.CString(vfsName)
	if err != nil {
		return stint.Internal.Errorf("open", "%w", err)
	}
	if lib.Xsqlite3_vfs_find(tls, name) != 0 {
		libc.Xfree(tls, name)
		return nil
	}
	below := lib.Xsqlite3_vfs_find(tls, 0)
	p := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(layer{})))
	if below == 0 || p == 0 {
		return stint.Internal.Errorf("open", "SQLite has no file system")
	}
	l := at[layer](p)
	l.vfs, l.below = *at[lib.Tsqlite3_vfs](below), below
	l.vfs.FzName, l.vfs.FpNext = name, 0
	l.vfs.FszOsFile += int32(max(unsafe.Sizeof(walFile{}), unsafe.Sizeof(mainFile{})))
	l.vfs.FxOpen = fn(walOpen)
	l.methods = lib.Tsqlite3_io_methods{
		FiVersion: 1, FxClose: fn(walClose), FxRead: fn(walRead), FxWrite: fn(walWriteAt), FxTruncate: fn(walTruncate), FxSync: fn(walSync),
		FxFileSize: fn(walFileSize), FxLock: fn(walLock), FxUnlock: fn(walUnlock), FxCheckReservedLock: fn(walReserved),
		FxFileControl: fn(walControl), FxSectorSize: fn(walSector), FxDeviceCharacteristics: fn(walDevice),
	}
	// Two that register at once leave one of them unused.
	if rc := lib.Xsqlite3_vfs_register(tls, p, 0); rc != lib.SQLITE_OK {
		return stint.Internal.Errorf("open", "SQLite refused the file layer with code %d", rc)
	}
	return nil
}

// walOpen opens a WAL through the layer, a database with the layer before its lock,
// and every other file without it.
func walOpen(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	l := at[layer](vfs)
	open := call[openFunc](at[lib.Tsqlite3_vfs](l.below).FxOpen)
	if flags&lib.SQLITE_OPEN_WAL == 0 {
		rc := open(tls, l.below, name, file, flags, outFlags)
		if rc == lib.SQLITE_OK && flags&lib.SQLITE_OPEN_MAIN_DB != 0 {
			watchLock(file, file+uintptr(at[lib.Tsqlite3_vfs](l.below).FszOsFile))
		}
		return rc
	}
	w := at[walFile](file)
	*w = walFile{}
	rc := open(tls, l.below, name, under(file), flags, outFlags)
	if rc == lib.SQLITE_OK {
		w.methods = vfs + unsafe.Offsetof(l.methods)
		w.main = at[lib.Tsqlite3_file](lib.Xsqlite3_database_file_object(tls, name)).FpMethods
		at[mainFile](w.main).wal = file
	}
	return rc
}

// watchLock puts [mainLock] before the lock of a database file, with the memory
// behind it.
func watchLock(file, behind uintptr) {
	f, m := at[lib.Tsqlite3_file](file), at[mainFile](behind)
	*m = mainFile{methods: *at[lib.Tsqlite3_io_methods](f.FpMethods)}
	m.lock, m.methods.FxShmLock = m.methods.FxShmLock, fn(mainLock)
	f.FpMethods = behind
}

func mainLock(tls *libc.TLS, file uintptr, from, n, flags int32) int32 {
	m := at[mainFile](at[lib.Tsqlite3_file](file).FpMethods)
	if m.wal != 0 && from == writeLock && flags == lib.SQLITE_SHM_UNLOCK|lib.SQLITE_SHM_EXCLUSIVE {
		at[walFile](m.wal).len = 0
	}
	return call[lockFunc](m.lock)(tls, file, from, n, flags)
}

// under is the file of the VFS below.
func under(file uintptr) uintptr { return file + unsafe.Sizeof(walFile{}) }

// below returns the methods of the file below.
func below(file uintptr) *lib.Tsqlite3_io_methods {
	return at[lib.Tsqlite3_io_methods](at[lib.Tsqlite3_file](under(file)).FpMethods)
}

// flush writes what is kept. If that fails it stays, as SQLite believes it written,
// until the transaction ends.
func flush(tls *libc.TLS, file uintptr) int32 {
	w := at[walFile](file)
	write := call[ioFunc](below(file).FxWrite)
	for done := int64(0); done < w.len; {
		n := min(w.len-done, walWrite)
		if rc := write(tls, under(file), w.buf+uintptr(done), int32(n), w.off+done); rc != lib.SQLITE_OK {
			return rc
		}
		done += n
	}
	if w.off == 0 {
		w.size = 0 // the WAL starts over: somebody may have cut it off
	}
	end := w.off + w.len
	w.len = 0
	return grow(tls, file, end)
}

// grow writes zeros behind the end of a file that has just become longer. To write
// where the file has blocks already makes the next syncs twice as fast, as they need
// not wait for new ones; zeros are no frame, so that a reader stops there.
func grow(tls *libc.TLS, file uintptr, end int64) int32 {
	w := at[walFile](file)
	if end <= w.size {
		return lib.SQLITE_OK
	}
	if rc := call[outFunc](below(file).FxFileSize)(tls, under(file), file+unsafe.Offsetof(w.size)); rc != lib.SQLITE_OK || end < w.size {
		return rc
	}
	if w.zero == 0 {
		if w.zero = libc.Xcalloc(tls, 1, walWrite); w.zero == 0 {
			return lib.SQLITE_OK
		}
	}
	write := call[ioFunc](below(file).FxWrite)
	for until := (end/walGrow + 1) * walGrow; end < until; {
		n := min(until-end, walWrite)
		if rc := write(tls, under(file), w.zero, int32(n), end); rc != lib.SQLITE_OK {
			return lib.SQLITE_OK // a full disk is told of when it matters
		}
		end += n
		w.size = end
	}
	return lib.SQLITE_OK
}

func walWriteAt(tls *libc.TLS, file, data uintptr, n int32, off int64) int32 {
	w, size := at[walFile](file), int64(n)
	if w.len > 0 && (off < w.off || off > w.off+w.len || off+size-w.off > walBuffer) {
		if rc := flush(tls, file); rc != lib.SQLITE_OK {
			return rc
		}
	}
	if size > walBuffer {
		return call[ioFunc](below(file).FxWrite)(tls, under(file), data, n, off)
	}
	if w.len == 0 {
		w.off = off
	}
	start := off - w.off
	if need := start + size; need > w.cap {
		room := min(max(2*w.cap, need, walFirst), walBuffer)
		p := libc.Xrealloc(tls, w.buf, libc.Tsize_t(room))
		if p == 0 {
			return lib.SQLITE_IOERR_NOMEM
		}
		w.buf, w.cap = p, room
	}
	copy(unsafe.Slice(at[byte](w.buf+uintptr(start)), size), unsafe.Slice(at[byte](data), size))
	w.len = max(w.len, start+size)
	return lib.SQLITE_OK
}

func walRead(tls *libc.TLS, file, data uintptr, n int32, off int64) int32 {
	if rc := flush(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	return call[ioFunc](below(file).FxRead)(tls, under(file), data, n, off)
}

func walSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	if rc := flush(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	return call[flagFunc](below(file).FxSync)(tls, under(file), flags)
}

func walTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	if rc := flush(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	return call[sizeFunc](below(file).FxTruncate)(tls, under(file), size)
}

func walFileSize(tls *libc.TLS, file, out uintptr) int32 {
	if rc := flush(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	return call[outFunc](below(file).FxFileSize)(tls, under(file), out)
}

func walClose(tls *libc.TLS, file uintptr) int32 {
	w := at[walFile](file)
	libc.Xfree(tls, w.buf)
	libc.Xfree(tls, w.zero)
	at[mainFile](w.main).wal = 0
	*w = walFile{methods: w.methods}
	return call[closeFunc](below(file).FxClose)(tls, under(file))
}

func walLock(tls *libc.TLS, file uintptr, level int32) int32 {
	return call[flagFunc](below(file).FxLock)(tls, under(file), level)
}

func walUnlock(tls *libc.TLS, file uintptr, level int32) int32 {
	return call[flagFunc](below(file).FxUnlock)(tls, under(file), level)
}

func walReserved(tls *libc.TLS, file, out uintptr) int32 {
	return call[outFunc](below(file).FxCheckReservedLock)(tls, under(file), out)
}

func walControl(tls *libc.TLS, file uintptr, code int32, arg uintptr) int32 {
	return call[ctlFunc](below(file).FxFileControl)(tls, under(file), code, arg)
}

func walSector(tls *libc.TLS, file uintptr) int32 {
	return call[closeFunc](below(file).FxSectorSize)(tls, under(file))
}

func walDevice(tls *libc.TLS, file uintptr) int32 {
	return call[closeFunc](below(file).FxDeviceCharacteristics)(tls, under(file))
}
