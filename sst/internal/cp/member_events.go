package cp

// Events and actions that move messages between a leader and its members, alike
// on both sides of a stream. Member 0 is in the leader's process: its messages
// go the same way, as pointers.
type (
	// FromMember is a message of a member to the leader.
	FromMember struct {
		Member int
		Msg    Message
	}
	// MemberLost says to the leader that a member is gone. It comes after the
	// member's last message.
	MemberLost struct {
		Member int
		Err    error
	}
	// MemberStart is the first event of a member: its end of the channel is up.
	MemberStart struct{}
	// FromLeader is a message of the leader to a member.
	FromLeader struct{ Msg Message }
	// LeaderLost says to a member that the leader is gone.
	LeaderLost struct{ Err error }
)

// Actions that send.
type (
	// ToMember sends to one member.
	ToMember struct {
		Member int
		Msg    Message
	}
	// ToAll sends to every member, member 0 first.
	ToAll struct{ Msg Message }
	// ToLeader sends to the leader.
	ToLeader struct{ Msg Message }
)

func (FromMember) writerEvent() {}
func (FromMember) readerEvent() {}
func (MemberLost) writerEvent() {}
func (MemberLost) readerEvent() {}

func (MemberStart) writerMemberEvent() {}
func (MemberStart) readerMemberEvent() {}
func (FromLeader) writerMemberEvent()  {}
func (FromLeader) readerMemberEvent()  {}
func (LeaderLost) writerMemberEvent()  {}
func (LeaderLost) readerMemberEvent()  {}

func (ToMember) writerAction() {}
func (ToMember) readerAction() {}
func (ToAll) writerAction()    {}
func (ToAll) readerAction()    {}

func (ToLeader) writerMemberAction() {}
func (ToLeader) readerMemberAction() {}

// WriterMemberEvent is something that happened to a member of a writer.
type WriterMemberEvent interface{ writerMemberEvent() }

// WriterMemberAction is something that the shell of a writer's member must do, in
// order.
type WriterMemberAction interface{ writerMemberAction() }

// ReaderMemberEvent is something that happened to a member of a reader.
type ReaderMemberEvent interface{ readerMemberEvent() }

// ReaderMemberAction is something that the shell of a reader's member must do, in
// order.
type ReaderMemberAction interface{ readerMemberAction() }
