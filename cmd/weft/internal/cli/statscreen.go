package cli

import (
	"fmt"
	"io"
	"unicode/utf8"
)

// screen redraws a few lines in place at the bottom of a terminal. Between two
// draws the terminal is as it was: nothing has to be restored, however the
// program ends.
type screen struct {
	w     io.Writer
	size  func() (width, height int)
	drawn int // lines of the last drawing
	width int // of the terminal then
}

// Control sequences of terminals (ECMA-48, and DEC's for wrapping).
const (
	clearAll   = "\x1b[2J\x1b[H" // and go to the upper left corner
	clearLine  = "\x1b[K"        // from here to its end
	clearBelow = "\x1b[J"        // from here to the end of the screen
	noWrap     = "\x1b[?7l"
	doWrap     = "\x1b[?7h"
)

// draw replaces what was drawn before, in one write, so that nothing flickers.
// What does not fit is cut.
func (s *screen) draw(lines []string) error {
	width, height := s.size()
	if height > 1 && len(lines) >= height {
		more := len(lines) - (height - 2)
		lines = append(lines[:height-2:height-2], fmt.Sprintf("... and %s", plural(more, "line")))
	}
	b := []byte(noWrap)
	switch {
	case s.drawn > 0 && width != s.width: // the old lines may have been wrapped anew
		b = append(b, clearAll...)
	case s.drawn > 0:
		b = fmt.Appendf(b, "\x1b[%dA\r", s.drawn)
	}
	for _, line := range lines {
		b = append(append(append(b, cutText(line, width)...), clearLine...), '\n')
	}
	b = append(append(b, clearBelow...), doWrap...)
	s.drawn, s.width = len(lines), width
	if _, err := s.w.Write(b); err != nil {
		return errOutput{err}
	}
	return nil
}

// cutText cuts a text to a number of characters; 0 means no limit.
func cutText(text string, width int) string {
	n := utf8.RuneCountInString(text)
	if width <= 0 || n < width {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(width-2, 0)]) + "…" // one column stays free
}
