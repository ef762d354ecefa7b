//go:build !faultinject

package faultpoint

import "time"

// Hit does nothing in this build.
func Hit(string) {}

// Now is time.Now.
func Now() time.Time { return time.Now() }
