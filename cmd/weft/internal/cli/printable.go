package cli

import (
	"strconv"
	"strings"
	"unicode"
)

// printable makes text from a file or a stream safe for a terminal: characters
// that would do something to it, such as escape sequences, show as escapes.
func printable(s string) string {
	if !strings.ContainsFunc(s, harmful) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == unicode.ReplacementChar:
			// U+FFFD itself, or a byte that is not UTF-8.
			if strings.HasPrefix(s[i:], string(unicode.ReplacementChar)) {
				b.WriteRune(r)
			} else {
				b.WriteString(`\x` + strconv.FormatUint(uint64(s[i]), 16))
			}
		case harmful(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func harmful(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }
