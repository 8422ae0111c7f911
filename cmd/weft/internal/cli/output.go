package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// output is buffered standard output that keeps its first error: after one,
// nothing is written any more.
type output struct {
	buf *bufio.Writer
	err error // an errOutput
}

func newOutput(w io.Writer) *output { return &output{buf: bufio.NewWriterSize(w, 1<<16)} }

func (o *output) bytes(b []byte) {
	if o.err == nil {
		_, err := o.buf.Write(b)
		o.keep(err)
	}
}

func (o *output) text(s string) {
	if o.err == nil {
		_, err := o.buf.WriteString(s)
		o.keep(err)
	}
}

func (o *output) printf(format string, args ...any) {
	if o.err == nil {
		_, err := fmt.Fprintf(o.buf, format, args...)
		o.keep(err)
	}
}

func (o *output) flush() error {
	if o.err == nil {
		o.keep(o.buf.Flush())
	}
	return o.err
}

func (o *output) keep(err error) {
	if err != nil {
		o.err = errOutput{err}
	}
}

// jsonLine is v as one line of JSON, in which the & of an address stays one, so that it can be copied.
func jsonLine(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// errOutput marks errors of standard output, which end a command.
type errOutput struct{ error }

func (e errOutput) Unwrap() error { return e.error }

// isOutput reports whether err came from standard output.
func isOutput(err error) bool {
	_, ok := errors.AsType[errOutput](err)
	return ok
}
