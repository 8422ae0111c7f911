package sst

import (
	"context"
	"fmt"

	"github.com/weft-fabric/weft/internal/wire/cm"
	"github.com/weft-fabric/weft/internal/wire/sstmsg"
	"github.com/weft-fabric/weft/sst/internal/carrier"
	"github.com/weft-fabric/weft/sst/internal/cp"
)

// push sends the data blocks of a step to every rank of a reader without being
// asked (speculative preload). The caller holds w.mu.
func (w *Writer) push(key readerKey, number int64) {
	r, d := w.readers[key], w.steps[number]
	if r == nil || d == nil {
		return
	}
	for rank, peer := range r.msg.Evpath {
		for _, m := range d.preloads(number, peer.ReaderID) {
			d.use()
			if rank == 0 {
				w.session.post(r.link, m, r.options, d.release)
				continue
			}
			w.pushFar(key, peer.Contact, m, r.options, d)
		}
	}
}

// preloads are the messages that carry all ranks' blocks to one reader rank.
func (d *stepData) preloads(number, readerID int64) []*sstmsg.Preload {
	var list []*sstmsg.Preload
	for rank, s := range d.stores {
		data, _ := s.Slices(0, s.Size()) // the whole range is never out of range
		list = append(list, &sstmsg.Preload{Step: number, WriterRank: int64(rank), ReaderID: readerID, Data: data})
	}
	return list
}

// pushFar pushes to a reader rank that has a connection of its own. A rank that
// cannot be reached would wait for ever, so its cohort is dropped.
func (w *Writer) pushFar(key readerKey, contact string, m *sstmsg.Preload, o sstmsg.Options, d *stepData) {
	w.session.background(func(ctx context.Context) {
		l, err := w.dialReader(ctx, contact)
		if err == nil {
			err = w.session.send(l, m, o, d.release)
		} else {
			d.release()
		}
		if err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.handle(cp.ReaderLost{Reader: key, Err: fmt.Errorf("preload to a reader rank: %w", err)})
		}
	})
}

func (w *Writer) dialReader(ctx context.Context, contact string) (carrier.Link, error) {
	c, err := cm.ParseContact(contact)
	if err != nil {
		return nil, err
	}
	return w.session.dial(ctx, c)
}
