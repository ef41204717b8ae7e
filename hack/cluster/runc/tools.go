//go:build tools

// Package runc pins the program that starts containers; in a module of its own, so that it gets the versions it was released with.
package runc

import _ "github.com/opencontainers/runc"
