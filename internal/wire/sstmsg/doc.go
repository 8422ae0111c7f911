// Package sstmsg holds the messages of ADIOS2's SST engine as Go structs, and
// turns them into FFS records and back.
//
// Each struct is one message; its tags are the wire layout, so that the field
// names and type strings, which real peers compare letter by letter, stand in
// one place. Writers choose a [Release] because real readers accept only their
// own field set; readers decode by field name and need none.
//
// Sources: docs/wire/sst.md §3 (catalogue), §4 (parameters), §7 (steps), §8
// (evpath plane), §11 (rdma plane). The package has no state and does no I/O;
// everything is safe for concurrent use.
package sstmsg
