//go:build !race

package sys

const raced = false
