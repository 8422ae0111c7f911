package sst

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Stat is what a running writer tells about itself to whoever asks: see
// [QueryStat]. In JSON it is one flat object, that of WriterInfo with the fields
// of Stat beside.
type Stat struct {
	// Time is when the writer took the snapshot, by its own clock.
	Time time.Time `json:"time"`
	// Stream is the writer's number, as in its contact file. Another number
	// under the same name is another writer.
	Stream string `json:"stream"`
	WriterInfo
	// MoreReaders is the number of readers left out of Readers, because there are
	// very many.
	MoreReaders int `json:"more_readers"`
	// Params are the writer's effective engine parameters.
	Params []EffectiveParam `json:"params"`
}

// maxStatText is the longest text of a Stat, in bytes. It bounds what an asker
// keeps of an answer, and what a writer queues for one.
const maxStatText = 256 << 10

// Stat returns what [QueryStat] gets from this writer.
func (w *Writer) Stat() Stat {
	params, err := w.cfg.Params.Effective(WriterSide)
	if err != nil {
		params = []EffectiveParam{} // cannot be: Create has checked them
	}
	st := Stat{Time: time.Now(), Stream: streamText(w.contact.stream), WriterInfo: w.Info(), Params: params}
	if st.Readers == nil {
		st.Readers = []AttachedReader{} // a list in JSON too
	}
	if st.RankBytes == nil {
		st.RankBytes = []uint64{}
	}
	return st
}

func streamText(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }

// encode returns st as JSON of at most limit bytes: readers are left out until
// it fits.
func (st Stat) encode(limit int) ([]byte, error) {
	for {
		text, err := json.Marshal(st)
		if err != nil || len(text) <= limit {
			return text, err
		}
		keep := len(st.Readers) / 2
		if len(st.Readers) == 0 {
			return nil, fmt.Errorf("statistics of %d bytes, at most %d can be sent", len(text), limit)
		}
		st.MoreReaders += len(st.Readers) - keep
		st.Readers = st.Readers[:keep]
	}
}

// decodeStat reads a Stat. Fields that a newer writer may have are passed over.
func decodeStat(text []byte) (Stat, error) {
	var st Stat
	if len(text) > maxStatText {
		return st, fmt.Errorf("%w: statistics of %d bytes", ErrProtocol, len(text))
	}
	if err := json.Unmarshal(text, &st); err != nil {
		return Stat{}, fmt.Errorf("%w: statistics that cannot be read: %w", ErrProtocol, err)
	}
	return st, nil
}
