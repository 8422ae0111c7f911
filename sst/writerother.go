package sst

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/weft-fabric/weft/sst/internal/cp"
)

// A writer takes a name over, as in ADIOS2, whoever has it: a simulation that is
// started again must not depend on the end of the one before, which may still
// serve its last readers. But two that run under one name are a mistake, often,
// and the second is the one that can find out.

// askOther bounds how long Create waits for the answer of the writer before it.
const askOther = time.Second

// takeOver says what becomes of the contact file that is there, if any.
func (w *Writer) takeOver(ctx context.Context) {
	if _, err := os.Lstat(w.path); err != nil {
		return
	}
	log := w.session.log
	const goesOn = "; readers that come find this writer, those that it has stay with it"
	f := &finder{path: w.path, session: w.session}
	text, peer, err := w.session.askWriter(ctx, f, askOther)
	switch {
	case err == nil:
		args := []any{"path", w.path, "its address", peer}
		if st, bad := decodeStat(text); bad == nil {
			args = append(args, "its stream", st.Stream, "its steps", st.NextStep, "its readers", len(st.Readers)+st.MoreReaders, "it is closing", st.Ending)
		}
		log.WarnContext(ctx, "replacing a contact file whose writer is still running"+goesOn+"; give one of the two another name if both are meant to run", args...)
	case errors.Is(err, ErrNoStat):
		log.WarnContext(ctx, "replacing the contact file of an ADIOS2 writer, which cannot be asked whether it runs"+goesOn, "path", w.path, "its address", f.address())
	case errors.Is(err, ErrTimeout):
		log.WarnContext(ctx, "replacing a contact file whose writer does not answer: it is stopped, or out of reach"+goesOn, "path", w.path, "its address", f.address())
	case errors.Is(err, ErrContact):
		log.WarnContext(ctx, "replacing a file that is no contact file", "path", w.path, "error", err)
	case errors.Is(err, ErrStale), errors.Is(err, cp.ErrTooLate), errors.Is(err, fs.ErrNotExist):
		log.InfoContext(ctx, "replacing the contact file of a writer that is gone", "path", w.path)
	default:
		log.WarnContext(ctx, "replacing a contact file that is there"+goesOn, "path", w.path, "error", err)
	}
}

// address is that of the file as it is now.
func (f *finder) address() string {
	file, err := readContact(f.path)
	if err != nil {
		return ""
	}
	addr, err := file.contact.Addr()
	if err != nil {
		return ""
	}
	return addr.String()
}
