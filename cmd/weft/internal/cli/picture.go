package cli

import (
	"fmt"
	"math"
	"strings"
)

// picture is a small image of a field, values 0 to 255, with an even number of
// rows.
type picture struct {
	Width, Height int
	Pixels        []byte
}

const (
	pictureWidth  = 48
	pictureHeight = 24 * 2 // two pixels in a character
)

// newPicture samples a field of n x n values between 0 and 1.
func newPicture(u []float64, n int) picture {
	p := picture{Width: pictureWidth, Height: pictureHeight, Pixels: make([]byte, pictureWidth*pictureHeight)}
	for y := range p.Height {
		for x := range p.Width {
			v := u[y*(n-1)/(p.Height-1)*n+x*(n-1)/(p.Width-1)]
			p.Pixels[y*p.Width+x] = byte(math.Sqrt(min(max(v, 0), 1)) * 255) // the root shows more of what is cool
		}
	}
	return p
}

// ramp is black, violet, red, yellow, white in the 256 colours of terminals.
var ramp = [...]byte{16, 17, 18, 54, 55, 90, 125, 160, 196, 202, 208, 214, 220, 226, 228, 230, 231}

// shades are the blocks that stand for brightness without colours.
var shades = [...]rune{' ', '░', '▒', '▓', '█'}

// render draws the picture with block characters, a line for two rows.
func (p picture) render(color bool) string {
	if p.Width*p.Height > len(p.Pixels) {
		return ""
	}
	var b strings.Builder
	for y := 0; y+1 < p.Height; y += 2 {
		b.WriteString("  ")
		for x := range p.Width {
			up, down := p.Pixels[y*p.Width+x], p.Pixels[(y+1)*p.Width+x]
			if color {
				fmt.Fprintf(&b, "\x1b[38;5;%d;48;5;%dm▀", pick(ramp[:], up), pick(ramp[:], down))
			} else {
				b.WriteRune(pick(shades[:], byte((int(up)+int(down))/2)))
			}
		}
		if color {
			b.WriteString("\x1b[0m")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func pick[T any](list []T, v byte) T { return list[int(v)*len(list)/256] }
