package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// digest is what is found in one package.
type digest struct {
	Package string `json:"package"`
	Files   int    `json:"files"`
	Lines   int    `json:"lines"`
	Funcs   int    `json:"funcs,omitempty"`
	Types   int    `json:"types,omitempty"`
	Sum     string `json:"sum,omitempty"` // SHA-256 of what sha256sum prints for the files
	Next    string `json:"next,omitempty"`
}

// packageAfter is the first folder with Go files that follows name; empty: none.
// As for the go command, testdata, vendor and folders that begin with a dot or an
// underscore are not looked into.
func packageAfter(root, name string) (string, error) {
	best := ""
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if b := d.Name(); path != root && (b == "testdata" || b == "vendor" || strings.HasPrefix(b, ".") || strings.HasPrefix(b, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if !isGo(d) {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if rel = filepath.ToSlash(rel); rel > name && (best == "" || rel < best) {
			best = rel
		}
		return nil
	})
	return best, err
}

func isGo(d fs.DirEntry) bool { return d.Type().IsRegular() && strings.HasSuffix(d.Name(), ".go") }

// digestPackage reads the files of one package, and looks which one follows.
func digestPackage(root, name string) (digest, error) {
	d := digest{Package: name}
	dir := filepath.Join(root, filepath.FromSlash(name))
	files, err := os.ReadDir(dir) // in the order of their names
	if err != nil {
		return d, err
	}
	whole := sha256.New()
	for _, f := range files {
		if !isGo(f) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return d, err
		}
		d.Files++
		for line := range bytes.Lines(data) {
			d.Lines++
			if bytes.HasPrefix(line, []byte("func ")) {
				d.Funcs++
			}
			if bytes.HasPrefix(line, []byte("type ")) {
				d.Types++
			}
		}
		fmt.Fprintf(whole, "%x  %s\n", sha256.Sum256(data), f.Name())
	}
	d.Sum = hex.EncodeToString(whole.Sum(nil))
	d.Next, err = packageAfter(root, name)
	return d, err
}

// appendLine appends the line with its key, unless a line with that key is there.
// What a crash cut off in the middle is no line, and is removed before. One session
// writes to a file at a time.
func appendLine(key string, d digest) (string, error) {
	path := os.Getenv("STINT_DIGEST_FILE")
	if path == "" {
		path = "digest.jsonl"
	}
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	whole := old[:bytes.LastIndexByte(old, '\n')+1]
	if bytes.Contains(whole, []byte(`{"key":"`+key+`",`)) {
		return "already there", nil
	}
	line, err := json.Marshal(struct {
		Key string `json:"key"`
		digest
	}{key, d})
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := f.Truncate(int64(len(whole))); err != nil {
		return "", err
	}
	if _, err := f.WriteAt(append(line, '\n'), int64(len(whole))); err != nil {
		return "", err
	}
	return "appended", f.Sync()
}
