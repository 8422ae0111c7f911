package cp

// messageKind is the first byte of an encoded message.
type messageKind uint8

// Kinds of messages.
const (
	kindWriterHello messageKind = iota + 1
	kindContribute
	kindRoom
	kindWithdraw
	kindAdmitted
	kindPushFailed
	kindFinished
	kindWelcome
	kindStarted
	kindGo
	kindVerdict
	kindAdmit
	kindReplane
	kindDismiss
	kindPush
	kindFree
	kindDrained
	kindReaderHello
	kindAsk
	kindReleased
	kindLocked
	kindLeft
	kindRouted
	kindTryRoutes
	kindReaderOpened
	kindStepTo
	kindStreamEnd
	kindWriterGone
	kindStreamFailed
	kindEnd // no kind: one more than the last
)

// coded is a message that can be encoded: every Message is.
type coded interface {
	Message
	kind() messageKind
	layout(c *coder)
}

// newMessage returns an empty message of the kind, nil if there is none.
func newMessage(k messageKind) coded {
	if k == 0 || k >= kindEnd {
		return nil
	}
	return blankMessages[k]()
}

// blankMessages make an empty message of each kind.
var blankMessages = [kindEnd]func() coded{
	kindWriterHello:  func() coded { return new(WriterHello) },
	kindContribute:   func() coded { return new(Contribute) },
	kindRoom:         func() coded { return new(Room) },
	kindWithdraw:     func() coded { return new(Withdraw) },
	kindAdmitted:     func() coded { return new(Admitted) },
	kindPushFailed:   func() coded { return new(PushFailed) },
	kindFinished:     func() coded { return new(Finished) },
	kindWelcome:      func() coded { return new(Welcome) },
	kindStarted:      func() coded { return new(Started) },
	kindGo:           func() coded { return new(Go) },
	kindVerdict:      func() coded { return new(Verdict) },
	kindAdmit:        func() coded { return new(Admit) },
	kindReplane:      func() coded { return new(Replane) },
	kindDismiss:      func() coded { return new(Dismiss) },
	kindPush:         func() coded { return new(Push) },
	kindFree:         func() coded { return new(Free) },
	kindDrained:      func() coded { return new(Drained) },
	kindReaderHello:  func() coded { return new(ReaderHello) },
	kindAsk:          func() coded { return new(Ask) },
	kindReleased:     func() coded { return new(Released) },
	kindLocked:       func() coded { return new(Locked) },
	kindLeft:         func() coded { return new(Left) },
	kindRouted:       func() coded { return new(Routed) },
	kindTryRoutes:    func() coded { return new(TryRoutes) },
	kindReaderOpened: func() coded { return new(ReaderOpened) },
	kindStepTo:       func() coded { return new(StepTo) },
	kindStreamEnd:    func() coded { return new(StreamEnd) },
	kindWriterGone:   func() coded { return new(WriterGone) },
	kindStreamFailed: func() coded { return new(StreamFailed) },
}

func (*WriterHello) kind() messageKind  { return kindWriterHello }
func (*Contribute) kind() messageKind   { return kindContribute }
func (*Room) kind() messageKind         { return kindRoom }
func (*Withdraw) kind() messageKind     { return kindWithdraw }
func (*Admitted) kind() messageKind     { return kindAdmitted }
func (*PushFailed) kind() messageKind   { return kindPushFailed }
func (*Finished) kind() messageKind     { return kindFinished }
func (*Welcome) kind() messageKind      { return kindWelcome }
func (*Started) kind() messageKind      { return kindStarted }
func (*Go) kind() messageKind           { return kindGo }
func (*Verdict) kind() messageKind      { return kindVerdict }
func (*Admit) kind() messageKind        { return kindAdmit }
func (*Replane) kind() messageKind      { return kindReplane }
func (*Dismiss) kind() messageKind      { return kindDismiss }
func (*Push) kind() messageKind         { return kindPush }
func (*Free) kind() messageKind         { return kindFree }
func (*Drained) kind() messageKind      { return kindDrained }
func (*ReaderHello) kind() messageKind  { return kindReaderHello }
func (*Ask) kind() messageKind          { return kindAsk }
func (*Released) kind() messageKind     { return kindReleased }
func (*Locked) kind() messageKind       { return kindLocked }
func (*Left) kind() messageKind         { return kindLeft }
func (*Routed) kind() messageKind       { return kindRouted }
func (*TryRoutes) kind() messageKind    { return kindTryRoutes }
func (*ReaderOpened) kind() messageKind { return kindReaderOpened }
func (*StepTo) kind() messageKind       { return kindStepTo }
func (*StreamEnd) kind() messageKind    { return kindStreamEnd }
func (*WriterGone) kind() messageKind   { return kindWriterGone }
func (*StreamFailed) kind() messageKind { return kindStreamFailed }
