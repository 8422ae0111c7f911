package bp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/weft-fabric/weft/internal/wire/bp5"
	"github.com/weft-fabric/weft/internal/wire/ffs"
	"github.com/weft-fabric/weft/step"
)

// decoding is the part of a reader that makes steps. Attributes accumulate
// from step to step, so it remembers how far it has come, and starts again
// when an earlier step is asked for.
type decoding struct {
	cfg     step.DecoderConfig
	dec     *step.Decoder // nil before the first step
	formats int           // entries of mmd.0 that dec knows
	attrs   int           // dec has the attribute records of the steps before this one
	bare    []bool        // steps known to have no attribute records

	wmap    *mapRef // the writer map read last
	wmapRec bp5.WriterMap
}

// decode makes step n. Caller holds r.mu.
func (r *Reader) decode(ctx context.Context, n int) (*step.Step, error) {
	places, meta, err := r.advance(ctx, n)
	if err != nil {
		return nil, err
	}
	return r.assemble(uint64(n), meta, places)
}

// assemble makes a step of records.
func (r *Reader) assemble(number uint64, meta [][]byte, places []place) (*step.Step, error) {
	st, err := r.d.dec.Step(number, meta, r.source(places), ended)
	if err != nil {
		return nil, damaged(err)
	}
	return st, nil
}

// damaged gives the errors of records their identity here. Records are whole
// when they are parsed: what ends too early in them is damage, no short file.
func damaged(err error) error {
	if errors.Is(err, bp5.ErrOldMetadata) || errors.Is(err, ffs.ErrUnsupported) {
		return fmt.Errorf("%w: %w", ErrVersion, err)
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// decodeFlat makes one step of all: the writers of later steps count as
// further writers, so that their blocks lie over the earlier ones.
func (r *Reader) decodeFlat(ctx context.Context) (*step.Step, error) {
	var places []place
	var metas [][]byte
	for n := range r.whole {
		p, meta, err := r.advance(ctx, n)
		if err != nil {
			return nil, err
		}
		places, metas = append(places, p...), append(metas, meta...)
	}
	return r.assemble(0, metas, places)
}

// advance loads step n and brings the decoder to it.
func (r *Reader) advance(ctx context.Context, n int) (places []place, meta [][]byte, err error) {
	places, meta, attrs, err := r.load(n)
	if err != nil {
		return nil, nil, err
	}
	if err := r.seek(ctx, n); err != nil {
		return nil, nil, err
	}
	if err := r.formats.check(meta); err != nil {
		return nil, nil, err
	}
	return places, meta, r.addAttributes(n, attrs)
}

// ended is called when a step ends: files need no message that their data may
// go.
func ended() error { return nil }

// source returns access to the data of a step.
func (r *Reader) source(places []place) *source {
	return &source{path: r.path, files: r.data, places: places}
}

// load reads what the files say about step n: where the data of each writer
// is, and the records.
func (r *Reader) load(n int) (places []place, meta, attrs [][]byte, err error) {
	ref := r.idx.steps[n]
	rec, err := r.idx.stepRecord(ref)
	if err != nil {
		return nil, nil, nil, err
	}
	wmap, err := r.writerMap(ref.wmap)
	if err != nil {
		return nil, nil, nil, err
	}
	// The record has been parsed again, so there are as many writers.
	places = make([]place, ref.wmap.writers)
	for w := range places {
		places[w] = place{subfile: wmap.Subfile[w], pieces: rec.Pieces[w]}
	}
	b, err := readRange(r.meta, ref.metaPos, ref.metaLen)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", metaName, err)
	}
	if meta, attrs, err = bp5.ParseStepMeta(b, ref.wmap.writers); err != nil {
		return nil, nil, nil, fmt.Errorf("%s at %d: %w", metaName, ref.metaPos, err)
	}
	return places, meta, attrs, nil
}

// writerMap returns the record of a writer map. It is kept for the next step,
// which mostly has the same one: reading it again in each step would cost in
// proportion to the writers.
func (r *Reader) writerMap(ref *mapRef) (bp5.WriterMap, error) {
	if r.d.wmap != ref {
		m, err := r.idx.mapRecord(ref)
		if err != nil {
			return m, err
		}
		r.d.wmap, r.d.wmapRec = ref, m
	}
	return r.d.wmapRec, nil
}

// seek brings the decoder to where it knows all formats and the attributes of
// the steps before n.
func (r *Reader) seek(ctx context.Context, n int) error {
	// Attributes cannot be taken back: an earlier step needs a new decoder.
	if r.d.dec == nil || r.d.attrs > n+1 {
		r.d.dec, r.d.formats, r.d.attrs = step.NewDecoder(r.d.cfg), 0, 0
	}
	if err := r.addFormats(); err != nil {
		return err
	}
	for k := r.d.attrs; k < n; k++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		attrs, err := r.loadAttributes(k)
		if err != nil {
			return err
		}
		if err := r.addAttributes(k, attrs); err != nil {
			return err
		}
	}
	return nil
}

// addFormats gives the decoder the formats that it does not know, those that
// a writer at work has added since too.
func (r *Reader) addFormats() error {
	if err := r.openFormats(); err != nil {
		return err
	}
	if err := r.formats.update(); err != nil {
		return fmt.Errorf("%s: %w", formatsName, err)
	}
	for _, e := range r.formats.entries[r.d.formats:] {
		r.d.formats++
		// One that is damaged concerns only the steps that need it.
		r.formats.known[e.ID] = r.d.dec.AddFormat(e.ID, e.Description)
	}
	return nil
}

// addAttributes gives the decoder the attribute records of step n, unless it
// has them.
func (r *Reader) addAttributes(n int, attrs [][]byte) error {
	if n < r.d.attrs {
		return nil
	}
	if err := r.formats.check(attrs); err != nil {
		return err
	}
	// Steps without attributes are remembered: a walk backwards would read the
	// lengths of all earlier steps again for each step.
	bare := true
	for _, rec := range attrs {
		if rec == nil {
			continue
		}
		bare = false
		if err := r.d.dec.AddAttributes(rec); err != nil {
			return fmt.Errorf("attributes of step %d: %w", n, damaged(err))
		}
	}
	r.d.attrs = n + 1
	for len(r.d.bare) <= n {
		r.d.bare = append(r.d.bare, false)
	}
	r.d.bare[n] = bare
	return nil
}

// loadAttributes reads the attribute records of step n and no more than that.
func (r *Reader) loadAttributes(n int) ([][]byte, error) {
	if n < len(r.d.bare) && r.d.bare[n] {
		return nil, nil
	}
	// The metadata records in front may be large, and are not needed here: their
	// lengths say where the attributes begin.
	ref := r.idx.steps[n]
	writers := uint64(ref.wmap.writers)
	// wire: total u64 | record length u64 per writer | attribute length u64 per slot | ... (docs/wire/bp5.md §6.4)
	head, err := readRange(r.meta, ref.metaPos, min(8+16*writers, ref.metaLen))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", metaName, err)
	}
	if uint64(len(head)) < 8+16*writers {
		return nil, fmt.Errorf("%s at %d: %d bytes for %d writers: %w", metaName, ref.metaPos, ref.metaLen, writers, ErrDamaged)
	}
	at, lens := uint64(len(head)), head[8:]
	for range writers {
		if at, lens, err = skip(at, lens, ref); err != nil {
			return nil, err
		}
	}
	b, err := readRange(r.meta, ref.metaPos+at, ref.metaLen-at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", metaName, err)
	}
	out, start := make([][]byte, writers), at // start: of b in the step
	for w := range out {
		from := at - start
		if at, lens, err = skip(at, lens, ref); err != nil {
			return nil, err
		}
		if at-start > from {
			out[w] = b[from : at-start]
		}
	}
	return out, nil
}

// skip adds the length at the front of lens to at.
func skip(at uint64, lens []byte, ref stepRef) (uint64, []byte, error) {
	n := binary.LittleEndian.Uint64(lens)
	if n > math.MaxInt64 || n > ref.metaLen-at {
		return 0, nil, fmt.Errorf("%s at %d: record of %d bytes: %w", metaName, ref.metaPos, n, ErrDamaged)
	}
	return at + n, lens[8:], nil
}
