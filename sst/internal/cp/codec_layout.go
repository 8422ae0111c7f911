package cp

import "github.com/weft-fabric/weft/internal/wire/sstmsg"

// The fields of each message, in the order of message.go.

func (m *WriterHello) layout(c *coder) {
	c.num(&m.Ranks)
	c.text(&m.Contact)
	c.text(&m.Native)
	c.text(&m.Params)
}

func (m *Contribute) layout(c *coder) {
	c.i64(&m.Try)
	list(c, &m.Formats, 2, (*coder).format)
	list(c, &m.Metadata, 1, (*coder).block)
	list(c, &m.Attributes, 1, (*coder).blob)
	list(c, &m.Bytes, 8, (*coder).u64)
	list(c, &m.Native, 1, (*coder).block)
	c.flag(&m.Full)
}

func (m *Room) layout(c *coder) { c.i64(&m.Try) }

func (m *Withdraw) layout(c *coder) {
	c.i64(&m.Try)
	c.fault(&m.Cause)
}

func (m *Admitted) layout(c *coder) {
	c.reader(&m.Reader)
	list(c, &m.Control, 8, (*coder).i64)
	list(c, &m.Data, 8, (*coder).i64)
}

func (m *PushFailed) layout(c *coder) {
	c.reader(&m.Reader)
	c.fault(&m.Cause)
}

func (m *Finished) layout(*coder) {}

func (m *Welcome) layout(c *coder) {
	c.num(&m.Base)
	c.num(&m.Ranks)
}

func (m *Started) layout(*coder) {}
func (m *Go) layout(c *coder)    { c.i64(&m.Try) }

func (m *Verdict) layout(c *coder) {
	c.i64(&m.Try)
	c.i64(&m.Step)
	c.small((*uint8)(&m.Outcome), uint8(Aborted))
	c.fault(&m.Cause)
}

func (m *Admit) layout(c *coder) {
	c.reader(&m.Reader)
	list(c, &m.Ranks, 9, (*coder).evpathReader)
	c.flag(&m.Weft)
	c.flag(&m.Observer)
	c.text(&m.Plane)
}

func (m *Replane) layout(c *coder) {
	c.reader(&m.Reader)
	c.text(&m.Plane)
}

func (m *Dismiss) layout(c *coder) { c.reader(&m.Reader) }

func (m *Push) layout(c *coder) {
	c.reader(&m.Reader)
	c.i64(&m.Step)
}

func (m *Free) layout(c *coder)  { c.i64(&m.Step) }
func (m *Drained) layout(*coder) {}

func (m *ReaderHello) layout(c *coder) {
	c.text(&m.CP.Contact)
	c.i64(&m.CP.ReaderID)
	c.evpathReader(&m.DP)
	c.text(&m.Params)
}

func (m *Ask) layout(c *coder)      { c.i64(&m.Index) }
func (m *Released) layout(c *coder) { c.i64(&m.Step) }
func (m *Locked) layout(*coder)     {}
func (m *Left) layout(c *coder)     { list(c, &m.Looks, 8, (*coder).i64) }

func (m *Routed) layout(c *coder) {
	c.i64(&m.Try)
	c.num(&m.Native)
	c.num(&m.Total)
	c.fault(&m.Cause)
}

func (m *TryRoutes) layout(c *coder) {
	c.i64(&m.Try)
	list(c, &m.Contacts, 1, (*coder).text)
}

func (m *ReaderOpened) layout(c *coder) {
	pointer(c, &m.Response, (*coder).response)
	c.text(&m.Plane)
	c.flag(&m.Weft)
	c.text(&m.Writer)
	c.text(&m.Release)
}

func (m *StepTo) layout(c *coder) {
	c.i64(&m.Index)
	pointer(c, &m.Msg, (*coder).step)
	c.i64(&m.Skipped)
}

func (m *StreamEnd) layout(c *coder)    { c.fault(&m.Cause) }
func (m *WriterGone) layout(c *coder)   { c.fault(&m.Cause) }
func (m *StreamFailed) layout(c *coder) { c.fault(&m.Cause) }

// Parts of messages.

func (c *coder) fault(f *Fault) {
	c.text(&f.Text)
	c.u64(&f.Kinds)
	c.i64(&f.Rank)
}

func (c *coder) reader(k *ReaderKey) { c.num((*int)(k)) }

func (c *coder) evpathReader(r *sstmsg.EvpathReader) {
	c.text(&r.Contact)
	c.i64(&r.ReaderID)
}

func (c *coder) block(b *sstmsg.Block) { c.blob(&b.Data) }

func (c *coder) format(f *sstmsg.FormatBlock) {
	c.blob(&f.Body)
	c.blob(&f.ID)
}

func (c *coder) rdmaBuffer(b *sstmsg.RdmaBuffer) {
	c.i64(&b.Block)
	c.i64(&b.Key)
}

func (c *coder) step(m *sstmsg.TimestepMetadata) {
	c.i64(&m.ReaderID)
	c.i64(&m.Step)
	c.i32(&m.CohortSize)
	c.i32(&m.PreloadMode)
	list(c, &m.Formats, 2, (*coder).format)
	list(c, &m.Metadata, 1, (*coder).block)
	list(c, &m.Attributes, 1, (*coder).block)
	list(c, &m.Rdma, 16, (*coder).rdmaBuffer)
	list(c, &m.Native, 1, (*coder).block)
}

func (c *coder) response(m *sstmsg.WriterResponse) {
	c.i32(&m.Condition)
	pointer(c, &m.Params, (*coder).params)
	c.i64(&m.NextStep)
	list(c, &m.CP, 9, func(c *coder, w *sstmsg.CPWriter) {
		c.text(&w.Contact)
		c.i64(&w.WriterID)
	})
	list(c, &m.Evpath, 9, func(c *coder, w *sstmsg.EvpathWriter) {
		c.text(&w.Contact)
		c.i64(&w.WriterID)
	})
	list(c, &m.Rdma, 25, func(c *coder, w *sstmsg.RdmaWriter) {
		c.i64(&w.WriterID)
		c.blob(&w.Address)
		c.rdmaBuffer(&w.Roll)
	})
	list(c, &m.Native, 1, func(c *coder, w *sstmsg.NativeWriter) { c.text(&w.Contact) })
}

// params goes through the writer's parameters in the order of sstmsg.Params.
func (c *coder) params(p *sstmsg.Params) {
	c.i64(&p.MarshalMethod)
	c.i32(&p.Verbose)
	c.i64(&p.RegistrationMethod)
	c.i64(&p.StepDistributionMode)
	c.text(&p.DataTransport)
	c.text(&p.WANDataTransport)
	c.text(&p.MercuryProtocol)
	c.i32(&p.OpenTimeoutSecs)
	c.i32(&p.RendezvousReaderCount)
	c.i32(&p.QueueLimit)
	c.i32(&p.ReserveQueueLimit)
	c.i64(&p.QueueFullPolicy)
	c.i32(&p.IsRowMajor)
	c.i32(&p.FirstTimestepPrecious)
	c.text(&p.ControlTransport)
	c.text(&p.NetworkInterface)
	c.text(&p.ControlInterface)
	c.text(&p.DataInterface)
	c.i64(&p.CPCommPattern)
	c.i64(&p.CompressionMethod)
	c.i32(&p.AlwaysProvideLatestTimestep)
	c.i32(&p.SpeculativePreloadMode)
	c.i32(&p.SpecAutoNodeThreshold)
	c.i32(&p.ReaderShortCircuitReads)
	c.i32(&p.StatsLevel)
	c.i32(&p.UseOneTimeAttributes)
	c.text(&p.RemoteGroup)
	c.text(&p.ControlModule)
}
