package cp

import (
	"bytes"

	"github.com/weft-fabric/weft/internal/wire/sstmsg"
)

// Steps that are not delivered come as messages without metadata. Of a row of them
// the first one stands for all: they must not pile up while nobody asks for a step,
// even if each brings attributes.

// modeLearned is the preload mode in whose first step a writer learns what to push
// from then on (docs/wire/sst.md §8.3).
const modeLearned = 2

// fullAttributes reports whether each attribute record of a rank has all its
// attributes, so that the newest is enough: Weft's have, and ADIOS2's of the old
// style. Others have what is new or changed (docs/wire/bp5.md §4).
func fullAttributes(weft bool, response *sstmsg.WriterResponse) bool {
	return weft || response != nil && response.Params != nil && response.Params.UseOneTimeAttributes == 0
}

// merge adds what m brings to the message before it, which stands for both then. It
// returns false, and changes nothing, if that cannot be. One that brings learned
// preload stays by itself, for its step may be the one in which the writer learns.
func merge(last, m *sstmsg.TimestepMetadata, full bool) bool {
	if m.PreloadMode == modeLearned && last.PreloadMode != modeLearned {
		return false
	}
	for rank, a := range m.Attributes {
		if a.Data.Len() > 0 && (rank >= len(last.Attributes) || !full && !replaces(last.Attributes[rank].Data, a.Data)) {
			return false
		}
	}
	for rank, a := range m.Attributes {
		if a.Data.Len() > 0 {
			last.Attributes[rank].Data = ownBlob(a.Data)
		}
	}
	for _, f := range m.Formats {
		last.Formats = append(last.Formats, ownFormat(f))
	}
	return true
}

// replaces reports whether a record of what has changed can stand for it and the
// one before it.
func replaces(old, new sstmsg.Blob) bool {
	return old.Len() == 0 || old.Len() == new.Len() && bytes.Equal(old.Bytes(), new.Bytes())
}

// withoutData copies what every reader needs of a step that is not delivered: the
// members' planes look at its preload mode.
func withoutData(m *sstmsg.TimestepMetadata) *sstmsg.TimestepMetadata {
	c := &sstmsg.TimestepMetadata{ReaderID: m.ReaderID, Step: m.Step, CohortSize: m.CohortSize, PreloadMode: m.PreloadMode, Attributes: make([]sstmsg.Block, len(m.Attributes))}
	for i, a := range m.Attributes {
		c.Attributes[i].Data = ownBlob(a.Data)
	}
	for _, f := range m.Formats {
		c.Formats = append(c.Formats, ownFormat(f))
	}
	return c
}

func ownFormat(f sstmsg.FormatBlock) sstmsg.FormatBlock {
	return sstmsg.FormatBlock{ID: ownBlob(f.ID), Body: ownBlob(f.Body)}
}

func ownBlob(b sstmsg.Blob) sstmsg.Blob {
	if len(b) == 1 {
		return sstmsg.ByteBlob(bytes.Clone(b[0]))
	}
	return sstmsg.ByteBlob(b.Bytes()) // of several pieces it is a copy
}
