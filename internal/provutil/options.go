package provutil

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/fabric/provider"
	"github.com/weft-fabric/weft/internal/suggest"
)

// Options are a provider's options by name, each with what takes its value.
type Options map[string]func(value string) error

// Set takes the values that a program gave. An unknown name is an error with a suggestion.
func (o Options) Set(given map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		set, ok := o[name]
		if !ok {
			return o.unknown(name)
		}
		if err := set(given[name]); err != nil {
			return fmt.Errorf("option %s=%q: %w", name, given[name], err)
		}
	}
	return nil
}

func (o Options) unknown(name string) error {
	known := slices.Sorted(maps.Keys(o))
	if s := suggest.Nearest(name, known); s != "" {
		return fmt.Errorf("unknown option %q (do you mean %q?): %w", name, s, provider.ErrInvalid)
	}
	return fmt.Errorf("unknown option %q; known are %s: %w", name, strings.Join(known, ", "), provider.ErrInvalid)
}

// SizeOption takes a number of bytes into to: "65536", "64K", "1M", between least and most.
func SizeOption(to *uint64, least, most uint64) func(string) error {
	return func(value string) error {
		digits, shift := value, 0
		for i, unit := range []string{"K", "M", "G"} {
			if d, ok := strings.CutSuffix(value, unit); ok {
				digits, shift = d, 10*(i+1)
			}
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || n > most>>shift || n<<shift < least {
			return fmt.Errorf("want a number of bytes from %d to %d, as 65536 or 64K: %w", least, most, provider.ErrInvalid)
		}
		*to = n << shift
		return nil
	}
}

// ChoiceOption takes one of some words into to.
func ChoiceOption(to *string, words ...string) func(string) error {
	return func(value string) error {
		if !slices.Contains(words, value) {
			return fmt.Errorf("want one of %s: %w", strings.Join(words, ", "), provider.ErrInvalid)
		}
		*to = value
		return nil
	}
}
