package cp

// writerScripts are the rules of a writer, each as a script: see writerScript.
var writerScripts = []struct {
	name   string
	change func(*WriterConfig)
	script string
}{
	// docs/wire/sst.md §5.1, §6.1, §9.1.
	{"one reader, to the end", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> [1]: step 0; all: published 0
		release 1 0 -> all: free 0
		step -> [1]: step 1; all: published 1
		finish -> [1]: close after 1
		release 1 1 -> all: free 1; all: drained
		leave 1 -> drop [1]: nil
		end ->`},
	{"nothing is sent between the response and the activation", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		step +f -> all: published 0
		step -> all: published 1
		finish ->
		activate 1 -> [1]: step 0 +f; [1]: step 1; [1]: close after 1
		activate 1 ->`},
	{"nobody reads: nothing is kept", nil, `
		step +f @a -> all: published 0; all: free 0
		step -> all: published 1; all: free 1
		finish -> all: drained`},
	{"a stream without steps", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		finish -> [1]: close after -1; all: drained`},
	{"the response waits for every member", func(c *WriterConfig) { c.Members = 3 }, `
		register 1 -> all: admit [1]
		admit 1 0 ->
		admit 1 2 ->
		step -> all: published 0
		admit 1 1 -> [1]: response, next 0
		activate 1 -> [1]: step 0`},
	{"a reader that is lost before every member has answered", func(c *WriterConfig) { c.Members = 2 }, `
		register 1 -> all: admit [1]
		admit 1 0 ->
		step -> all: published 0
		lose 1 -> drop [1]: errTest; all: dismiss [1]; all: free 0
		admit 1 1 ->`},

	// Members whose memory is not free yet, because it is on its way to readers that
	// have given it back.
	{"a member without room holds a step up", func(c *WriterConfig) { c.Members, c.QueueLimit = 2, 4 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		share 0 full ->
		share 1 full ->
		room 1 ->
		room 0 -> [1]: step 0; all: published 0
		room 0 ->
		step -> [1]: step 1; all: published 1`},
	{"a member without room has a step discarded", func(c *WriterConfig) { c.Members, c.Discard = 2, true }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		share 0 full ->
		share 1 -> [1]: no step 0; all: discarded 0
		step -> [1]: step 1; all: published 1`},
	{"a member without room gives the step up", func(c *WriterConfig) { c.Members = 2 }, `
		share 0 full ->
		share 1 ->
		regret 0 -> all: aborted 0
		room 0 ->
		step -> all: published 0; all: free 0`},

	// The rendezvous.
	{"two readers are waited for, and observers do not count", func(c *WriterConfig) { c.Rendezvous = 2 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		observer 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		reader 3 -> all: admit [3]; [3]: response, next 0
		activate 3 -> all: started`},
	{"a reader that leaves the rendezvous does not count", func(c *WriterConfig) { c.Rendezvous = 2 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		leave 1 -> drop [1]: nil; all: dismiss [1]
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		reader 3 -> all: admit [3]; [3]: response, next 0
		activate 3 -> all: started`},

	// §7.3: formats and attributes, also for late readers.
	{"a late reader gets all formats and attributes", nil, `
		step +f @a -> all: published 0; all: free 0
		reader 1 -> all: admit [1]; [1]: response, next 1
		activate 1 ->
		step +g -> [1]: step 1 +f +g 0:a; all: published 1
		step -> [1]: step 2; all: published 2
		step +h @b -> [1]: step 3 +h 0:b; all: published 3
		step -> [1]: step 4; all: published 4`},
	{"formats and attributes of a step are those of its time", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		step +f @a -> all: published 0
		step +g @b -> all: published 1
		activate 1 -> [1]: step 0 +f 0:a; [1]: step 1 +g 0:b
		reader 2 -> all: admit [2]; [2]: response, next 0
		step -> [1]: step 2; all: published 2
		activate 2 -> [2]: step 0 +f 0:a; [2]: step 1 +g 0:b; [2]: step 2`},
	{"two members bring the same format", func(c *WriterConfig) { c.Members = 2 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		share 0 +f ->
		share 1 +f +g @b -> [1]: step 0 +f +g 1:b; all: published 0
		share 0 @a ->
		share 1 -> [1]: step 1 0:a; all: published 1`},

	// Tries.
	{"a step is out when every member has ended it", func(c *WriterConfig) { c.Members = 3 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		share 2 ->
		share 0 ->
		share 1 -> [1]: step 0; all: published 0`},
	{"a member that gives up gives up for all; what it brought of formats is kept", func(c *WriterConfig) { c.Members = 2 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		share 0 +f @a ->
		withdraw 1 -> all: aborted 0
		share 0 ->
		share 1 -> [1]: step 0 +f 0:a; all: published 0`},
	{"a withdrawal that comes after the verdict means nothing", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> [1]: step 0; all: published 0
		regret 0 ->
		step -> [1]: step 1; all: published 1`},
	{"a member that is late brings its formats all the same", func(c *WriterConfig) { c.Members = 2 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		withdraw 0 -> all: aborted 0
		share 1 +f @b ->
		share 0 ->
		share 1 -> [1]: step 0 +f 1:b; all: published 0`},
	{"a member that has finished keeps the others from writing", func(c *WriterConfig) { c.Members = 2 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		share 0 ->
		finish 1 -> all: aborted 0
		share 0 -> all: aborted 0
		finish 0 -> [1]: close after -1; all: drained`},
	{"a member that has ended the step may finish", func(c *WriterConfig) { c.Members = 2 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		share 1 ->
		finish 1 ->
		share 0 -> [1]: step 0; all: published 0
		share 0 -> all: aborted 1`},

	// §6.1: a full queue.
	{"F11 F15 block: the step waits for room", func(c *WriterConfig) { c.QueueLimit = 1 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> [1]: step 0; all: published 0
		step ->
		release 1 0 -> all: free 0; [1]: step 1; all: published 1
		step ->
		leave 1 -> drop [1]: nil; all: dismiss [1]; all: free 1; all: published 2; all: free 2`},
	{"block: whoever waits for room may give up", func(c *WriterConfig) { c.QueueLimit = 1 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> [1]: step 0; all: published 0
		step ->
		regret 0 -> all: aborted 1
		release 1 0 -> all: free 0
		step -> [1]: step 1; all: published 1`},
	{"F17 discard: every reader is told", func(c *WriterConfig) { c.QueueLimit, c.Discard = 1, true }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		reader 2 -> all: admit [2]; [2]: response, next 0
		step +f @a -> [1]: step 0 +f 0:a; all: published 0
		step +g @b -> [1]: no step 1; all: discarded 1
		activate 2 -> [2]: step 0 +f 0:a
		step -> [1]: no step 2; [2]: no step 2; all: discarded 2
		release 1 0 ->
		release 2 0 -> all: free 0
		step -> [1]: step 3 +g 0:b; [2]: step 3 +g 0:b; all: published 3
		finish -> [1]: close after 3; [2]: close after 3`},
	{"the last step is discarded", func(c *WriterConfig) { c.QueueLimit, c.Discard = 1, true }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> [1]: step 0; all: published 0
		step -> [1]: no step 1; all: discarded 1
		finish -> [1]: close after 0`},
	{"F13 bytes: a step waits until it fits", func(c *WriterConfig) { c.QueueLimitBytes = 100 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step 40 -> [1]: step 0; all: published 0
		step 60 -> [1]: step 1; all: published 1
		step 1 ->
		release 1 0 -> all: free 0; [1]: step 2; all: published 2
		step 60 ->
		release 1 1 -> all: free 1; [1]: step 3; all: published 3
		release 1 2 -> all: free 2`},
	{"F13 bytes: a step that can never fit goes alone", func(c *WriterConfig) { c.QueueLimitBytes = 100 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step 40 -> [1]: step 0; all: published 0
		step 500 ->
		release 1 0 -> all: free 0; [1]: step 1; all: published 1
		step 1 ->
		release 1 1 -> all: free 1; [1]: step 2; all: published 2`},
	{"F12 block in begin: a step is begun when there is room for it", func(c *WriterConfig) { c.QueueLimit, c.BlockInBegin, c.Rendezvous = 1, true, 1 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 -> all: started; all: go 0
		step -> [1]: step 0; all: published 0
		release 1 0 -> all: free 0; all: go 1
		step -> [1]: step 1; all: published 1
		leave 1 -> drop [1]: nil; all: dismiss [1]; all: free 1; all: go 2
		finish -> all: drained`},
	{"block in begin: after a try that was given up", func(c *WriterConfig) { c.QueueLimit, c.BlockInBegin, c.Rendezvous, c.Members = 2, true, 1, 2 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 -> all: started; all: go 0
		step -> [1]: step 0; all: published 0; all: go 1
		withdraw 1 -> all: aborted 1; all: go 2
		share 0 ->
		share 0 ->
		share 1 -> [1]: step 1; all: published 1
		finish 0 ->
		share 1 -> all: aborted 2
		finish 1 -> [1]: close after 1`},
	{"block in begin, with a policy that never blocks", func(c *WriterConfig) { c.QueueLimit, c.BlockInBegin, c.Discard, c.Rendezvous = 1, true, true, 1 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 -> all: started; all: go 0
		step -> [1]: step 0; all: published 0; all: go 1
		step -> [1]: no step 1; all: discarded 1; all: go 2`},

	// What is kept for readers to come.
	{"F20 the first step is precious", func(c *WriterConfig) { c.QueueLimit, c.FirstPrecious = 1, true }, `
		step +mesh @a -> all: published 0
		step -> all: published 1; all: free 1
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 -> [1]: step 0 +mesh 0:a
		step -> [1]: step 2; all: published 2
		step ->
		release 1 0 ->
		release 1 2 -> all: free 2; [1]: step 3; all: published 3
		finish -> all: free 0; [1]: close after 3
		release 1 3 -> all: free 3; all: drained`},
	{"the newest steps are kept", func(c *WriterConfig) { c.Reserve = 2 }, `
		step -> all: published 0
		step -> all: published 1
		step -> all: free 0; all: published 2
		reader 1 -> all: admit [1]; [1]: response, next 1
		activate 1 -> [1]: step 1; [1]: step 2
		release 1 1 ->
		step -> all: free 1; [1]: step 3; all: published 3
		release 1 2 ->
		finish -> all: free 2; [1]: close after 3
		release 1 3 -> all: free 3; all: drained`},
	{"kept steps give way, the oldest first", func(c *WriterConfig) { c.Reserve, c.QueueLimit, c.QueueLimitBytes = 3, 3, 100 }, `
		step 10 -> all: published 0
		step 10 -> all: published 1
		reader 1 -> all: admit [1]; [1]: response, next 0
		leave 1 -> drop [1]: nil; all: dismiss [1]
		step 10 -> all: published 2
		step 10 -> all: free 0; all: published 3
		step 85 -> all: free 1; all: free 2; all: published 4
		finish -> all: free 3; all: free 4; all: drained`},
	{"block in begin: kept steps give way when a step is begun", func(c *WriterConfig) { c.Reserve, c.QueueLimit, c.BlockInBegin = 2, 2, true }, `
		step -> all: published 0; all: go 1
		step -> all: published 1; all: free 0; all: go 2
		step -> all: published 2; all: free 1; all: go 3`},

	// Who gets a step.
	{"F18 round robin: readers take turns", func(c *WriterConfig) { c.Distribution = RoundRobin }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		step -> [1]: step 0; all: published 0
		step -> [2]: step 1; all: published 1
		step -> [1]: step 2; all: published 2
		step -> [2]: step 3; all: published 3
		finish -> [1]: close after 3; [2]: close after 3`},
	{"F18 round robin: one reader gets all, and one notice is given", func(c *WriterConfig) { c.Distribution = RoundRobin }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> notice; [1]: step 0; all: published 0
		step -> [1]: step 1; all: published 1`},
	{"F18 round robin: who joins gets its turn, who leaves takes none from others", func(c *WriterConfig) { c.Distribution = RoundRobin }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		step -> [1]: step 0; all: published 0
		release 1 0 -> all: free 0
		reader 3 -> all: admit [3]; [3]: response, next 1
		activate 3 ->
		step -> [2]: step 1; all: published 1
		release 2 1 -> all: free 1
		leave 1 -> drop [1]: nil; all: dismiss [1]
		step -> [3]: step 2; all: published 2
		step -> [2]: step 3; all: published 3
		step -> [3]: step 4; all: published 4`},
	{"F18 round robin: a lost reader's steps go to one that has no later one", func(c *WriterConfig) { c.Distribution = RoundRobin }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		step -> [1]: step 0; all: published 0
		step -> [2]: step 1; all: published 1
		step -> [1]: step 2; all: published 2
		lose 1 -> drop [1]: errTest; all: dismiss [1]; [2]: step 2; all: free 0
		finish -> [2]: close after 2`},
	{"F18 round robin: a lost reader's step does not go to one that was told to expect later ones", func(c *WriterConfig) { c.Distribution = RoundRobin }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> notice; [1]: step 0; all: published 0
		reader 2 -> all: admit [2]; [2]: response, next 1
		activate 2 ->
		register 3 -> all: admit [3]
		lose 1 -> drop [1]: errTest; all: dismiss [1]
		admit 3 0 -> [3]: response, next 0
		activate 3 -> [3]: step 0
		step -> [2]: step 1; all: published 1`},
	{"F18 on demand: nor while it has yet to activate", func(c *WriterConfig) { c.Distribution = OnDemand }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		ask 1 ->
		step -> notice; [1]: step 0; all: published 0
		reader 2 -> all: admit [2]; [2]: response, next 1
		lose 1 -> drop [1]: errTest; all: dismiss [1]; all: free 0
		activate 2 ->
		ask 2 ->
		finish -> [2]: close after 0; all: drained`},
	{"round robin: steps wait for a reader that is opening", func(c *WriterConfig) { c.Distribution, c.QueueLimit = RoundRobin, 2 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		step -> notice; all: published 0
		step -> all: published 1
		step ->
		activate 1 -> [1]: step 0; [1]: step 1
		release 1 0 -> all: free 0; [1]: step 2; all: published 2
		finish -> [1]: close after 2`},
	{"round robin: the last reader goes, and nobody can come for its steps", func(c *WriterConfig) { c.Distribution = RoundRobin }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> notice; [1]: step 0; all: published 0
		step -> [1]: step 1; all: published 1
		lose 1 -> drop [1]: errTest; all: dismiss [1]; all: free 0; all: free 1`},
	{"round robin: what nobody had is kept for readers to come, what somebody had is not", func(c *WriterConfig) { c.Distribution, c.Reserve = RoundRobin, 2 }, `
		step -> all: published 0
		step -> all: published 1
		step -> all: free 0; all: published 2
		reader 1 -> all: admit [1]; [1]: response, next 1
		activate 1 -> [1]: step 1; [1]: step 2
		release 1 1 -> all: free 1
		release 1 2 -> all: free 2
		step -> notice; [1]: step 3; all: published 3
		release 1 3 -> all: free 3`},
	{"F18 on demand: whoever asked first", func(c *WriterConfig) { c.Distribution = OnDemand }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		ask 2 ->
		ask 1 ->
		step -> [2]: step 0; all: published 0
		step -> [1]: step 1; all: published 1
		step -> all: published 2
		ask 1 -> [1]: step 2
		ask 2 ->
		finish -> [1]: close after 2; [2]: close after 2
		ask 1 ->
		release 2 0 -> all: free 0
		release 1 1 -> all: free 1
		release 1 2 -> all: free 2; all: drained`},
	{"on demand: who asks twice goes to the end of the line", func(c *WriterConfig) { c.Distribution = OnDemand }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		ask 1 ->
		ask 1 ->
		ask 2 ->
		step -> [1]: step 0; all: published 0
		step -> [2]: step 1; all: published 1
		step -> [1]: step 2; all: published 2`},
	{"on demand: the end comes after the last step was handed out", func(c *WriterConfig) { c.Distribution = OnDemand }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> notice; all: published 0
		finish ->
		ask 1 -> [1]: step 0; [1]: close after 0
		release 1 0 -> all: free 0; all: drained`},
	{"on demand: a lost reader's step goes back into the queue", func(c *WriterConfig) { c.Distribution, c.QueueLimit = OnDemand, 2 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		step -> all: published 0
		ask 1 -> [1]: step 0
		lose 1 -> drop [1]: errTest; all: dismiss [1]
		ask 2 -> [2]: step 0`},
	{"on demand with discard: a Weft reader is told before its next step, and at the end", func(c *WriterConfig) { c.Distribution, c.QueueLimit, c.Discard = OnDemand, 1, true }, `
		weft 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> notice; all: published 0
		step -> all: discarded 1
		ask 1 -> [1]: step 0
		release 1 0 -> all: free 0
		ask 1 ->
		step -> [1]: no step 1; [1]: step 2; all: published 2
		step -> all: discarded 3
		step -> all: discarded 4
		finish -> [1]: no step 3; [1]: no step 4; [1]: close after 2
		release 1 2 -> all: free 2; all: drained`},
	{"on demand with discard: what is announced keeps no step from anybody", func(c *WriterConfig) { c.Distribution, c.QueueLimit, c.Discard = OnDemand, 1, true }, `
		weft 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		weft 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		ask 1 ->
		step -> [1]: step 0; all: published 0
		step -> all: discarded 1
		ask 2 ->
		lose 1 -> drop [1]: errTest; all: dismiss [1]; [2]: step 0
		release 2 0 -> all: free 0
		ask 2 ->
		step -> notice; [2]: no step 1; [2]: step 2; all: published 2`},
	{"on demand with discard: readers see a gap", func(c *WriterConfig) { c.Distribution, c.QueueLimit, c.Discard = OnDemand, 1, true }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> notice; all: published 0
		step -> all: discarded 1
		ask 1 -> [1]: step 0
		release 1 0 -> all: free 0
		ask 1 ->
		step -> [1]: step 2; all: published 2`},

	// Observers.
	{"an observer gets the newest step, and holds nobody up", func(c *WriterConfig) { c.QueueLimit = 1 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> [1]: step 0; all: published 0
		observer 2 -> all: admit [2]; [2]: response, next 0
		activate 2 -> [2]: step 0
		release 1 0 ->
		step -> [1]: step 1; [2]: no step 1; all: published 1
		release 1 1 -> all: free 1
		release 2 0 -> all: free 0
		step -> [1]: step 2; [2]: step 2; all: published 2
		finish -> [1]: close after 2; [2]: close after 2
		release 1 2 -> all: free 2; all: drained`},
	{"an observer without any step", nil, `
		observer 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> [1]: step 0; all: published 0
		step -> [1]: no step 1; all: published 1; all: free 1
		finish -> [1]: close after 1; all: free 0; all: drained
		end -> drop [1]: ErrClosed`},
	{"an observer activates when the step that was announced to it is gone", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> [1]: step 0; all: published 0
		observer 2 -> all: admit [2]; [2]: response, next 0
		release 1 0 -> all: free 0
		activate 2 ->
		step -> [1]: step 1; [2]: step 1; all: published 1
		release 1 1 ->
		release 2 1 -> all: free 1
		finish -> [1]: close after 1; [2]: close after 1; all: drained`},
	{"observers take no part in a distribution", func(c *WriterConfig) { c.Distribution = OnDemand }, `
		observer 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		ask 1 ->
		step -> [1]: step 0; all: published 0
		reader 2 -> all: admit [2]; [2]: response, next 1
		activate 2 ->
		ask 2 ->
		step -> notice; [1]: no step 1; [2]: step 1; all: published 1
		release 1 0 -> all: free 0
		step -> [1]: step 2; all: published 2`},
	{"an observer that is still opening does not hold up the end", nil, `
		observer 1 -> all: admit [1]; [1]: response, next 0
		finish -> all: drained
		activate 1 -> [1]: close after -1`},

	// Lag.
	{"F17 a reader that lags is reported, and again after it has caught up", func(c *WriterConfig) { c.LagNotice = 2 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> [1]: step 0; all: published 0
		step -> [1]: step 1; all: published 1
		step -> [1]: step 2; all: published 2; [1] lags 3
		step -> [1]: step 3; all: published 3
		release 1 0 -> all: free 0
		release 1 1 -> all: free 1
		release 1 2 -> all: free 2
		step -> [1]: step 4; all: published 4
		release 1 3 -> all: free 3
		step -> [1]: step 5; all: published 5
		step -> [1]: step 6; all: published 6`},
	{"F17 a reader that lags too far is evicted: Weft is told why, ADIOS2 loses its link", func(c *WriterConfig) { c.LagLimit = 2 }, `
		weft 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		reader 3 -> all: admit [3]; [3]: response, next 0
		activate 3 ->
		step -> [1]: step 0; [2]: step 0; [3]: step 0; all: published 0
		step -> [1]: step 1; [2]: step 1; [3]: step 1; all: published 1
		release 3 0 ->
		step -> [1]: step 2; [2]: step 2; [3]: step 2; all: published 2; [1]: close after 2, evicted; drop [1]: ErrEvicted; all: dismiss [1]; cut [2]: ErrEvicted; all: dismiss [2]; all: free 0`},
	{"F17 eviction under discard: what others cause is nobody's lag", func(c *WriterConfig) { c.LagLimit, c.QueueLimit, c.Discard = 3, 1, true }, `
		weft 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		weft 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		step -> [1]: step 0; [2]: step 0; all: published 0
		release 2 0 ->
		step -> [1]: no step 1; [2]: no step 1; all: discarded 1
		step -> [1]: no step 2; [2]: no step 2; all: discarded 2
		step -> [1]: no step 3; [2]: no step 3; all: discarded 3; [1]: close after 0, evicted; drop [1]: ErrEvicted; all: dismiss [1]; all: free 0`},
	{"a late reader does not owe the gap behind a precious step", func(c *WriterConfig) { c.LagLimit, c.FirstPrecious = 2, true }, `
		step -> all: published 0
		step -> all: published 1; all: free 1
		step -> all: published 2; all: free 2
		step -> all: published 3; all: free 3
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 -> [1]: step 0
		step -> [1]: step 4; all: published 4
		release 1 0 ->
		step -> [1]: step 5; all: published 5
		step -> [1]: step 6; all: published 6; cut [1]: ErrEvicted; all: dismiss [1]; all: free 4; all: free 5; all: free 6`},
	{"round robin: steps of an evicted reader go on", func(c *WriterConfig) { c.LagLimit, c.Distribution = 2, RoundRobin }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		step -> [1]: step 0; all: published 0
		step -> [2]: step 1; all: published 1
		release 2 1 -> all: free 1
		step -> [1]: step 2; all: published 2; cut [1]: ErrEvicted; all: dismiss [1]; [2]: step 2; all: free 0`},

	// Bytes.
	{"F11 much memory: a warning names who holds the oldest step", func(c *WriterConfig) { c.WarnBytes = 100 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		step 60 -> [1]: step 0; [2]: step 0; all: published 0
		release 1 0 ->
		step 60 -> [1]: step 1; [2]: step 1; all: published 1; watermark: 120 bytes, 2 steps [2]
		step 60 -> [1]: step 2; [2]: step 2; all: published 2
		release 2 0 -> all: free 0
		release 1 1 ->
		release 2 1 -> all: free 1
		release 1 2 ->
		release 2 2 -> all: free 2
		step 101 -> [1]: step 3; [2]: step 3; all: published 3; watermark: 101 bytes, 1 steps [1]`},

	// §8.3: preload.
	{"preload for those who ask", func(c *WriterConfig) { c.Preload, c.MaxPush = true, 100 }, `
		reader 1 preload -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		step 100 -> all: push 0 [1]; [1]: step 0 preloaded; [2]: step 0; all: published 0
		step 101 -> [1]: step 1; [2]: step 1; all: published 1`},
	{"a Weft reader that waits asks for large blocks", func(c *WriterConfig) { c.Preload, c.AskFrom = true, 2000 }, `
		weft 1 preload -> all: admit [1]; [1]: response, next 0
		weft 2 insist -> all: admit [2]; [2]: response, next 0
		reader 3 preload -> all: admit [3]; [3]: response, next 0
		activate 1 ->
		activate 2 ->
		activate 3 ->
		step 1999 -> all: push 0 [1]; [1]: step 0 preloaded; all: push 0 [2]; [2]: step 0 preloaded; all: push 0 [3]; [3]: step 0 preloaded; all: published 0
		step 2000 -> all: push 1 [1]; [1]: step 1 preloaded; all: push 1 [2]; [2]: step 1 preloaded; all: push 1 [3]; [3]: step 1 preloaded; all: published 1
		release 1 0 ->
		release 1 1 ->
		step 2000 -> [1]: step 2; all: push 2 [2]; [2]: step 2 preloaded; all: push 2 [3]; [3]: step 2 preloaded; all: published 2
		release 1 2 ->
		step 2000 metadata 2 -> all: push 3 [1]; [1]: step 3 preloaded; all: push 3 [2]; [2]: step 3 preloaded; all: push 3 [3]; [3]: step 3 preloaded; all: published 3`},
	{"preload switched off", nil, `
		reader 1 preload -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> [1]: step 0; all: published 0`},
	{"a push that fails ends the reader", func(c *WriterConfig) { c.Preload = true }, `
		reader 1 preload -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> all: push 0 [1]; [1]: step 0 preloaded; all: published 0
		breaks 1 -> cut [1]: another error; all: dismiss [1]; all: free 0`},
	{"a push that fails ends the reader, and a Weft reader is told why", func(c *WriterConfig) { c.Preload = true }, `
		weft 1 preload -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> all: push 0 [1]; [1]: step 0 preloaded; all: published 0
		breaks 1 -> [1]: close after 0, failed; drop [1]: another error; all: dismiss [1]; all: free 0`},
	{"a push that fails when the end was said already", func(c *WriterConfig) { c.Preload = true }, `
		weft 1 preload -> all: admit [1]; [1]: response, next 0
		reader 2 preload -> all: admit [2]; [2]: response, next 0
		activate 1 ->
		activate 2 ->
		step -> all: push 0 [1]; [1]: step 0 preloaded; all: push 0 [2]; [2]: step 0 preloaded; all: published 0
		finish -> [1]: close after 0; [2]: close after 0
		breaks 1 -> [1]: close after 0, failed; drop [1]: another error; all: dismiss [1]
		breaks 2 -> cut [2]: another error; all: dismiss [2]; all: free 0; all: drained`},
	{"a push that fails before the activation", func(c *WriterConfig) { c.Preload = true }, `
		weft 1 preload -> all: admit [1]; [1]: response, next 0
		breaks 1 -> [1]: close after -1, failed; drop [1]: another error; all: dismiss [1]`},
	{"a Weft reader that breaks the rules is told", nil, `
		weft 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		ask 1 -> [1]: close after -1, failed; drop [1]: ErrProtocol; all: dismiss [1]`},

	// §9.3: a reader that goes, at any point, frees what it held.
	{"F23 F34 lost before the activation", func(c *WriterConfig) { c.QueueLimit = 1 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		step -> all: published 0
		step ->
		lose 1 -> drop [1]: errTest; all: dismiss [1]; all: free 0; all: published 1; all: free 1
		lose 1 ->
		activate 1 ->
		release 1 0 ->`},
	{"F23 lost while streaming", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		step -> [1]: step 0; [2]: step 0; all: published 0
		step -> [1]: step 1; [2]: step 1; all: published 1
		release 2 0 ->
		lose 1 -> drop [1]: errTest; all: dismiss [1]; all: free 0
		leave 2 -> drop [2]: nil; all: dismiss [2]; all: free 1
		step -> all: published 2; all: free 2`},
	{"F23 the close does not wait for the one that left", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		step -> [1]: step 0; [2]: step 0; all: published 0
		leave 1 -> drop [1]: nil; all: dismiss [1]
		finish -> [2]: close after 0
		release 2 0 -> all: free 0; all: drained`},
	{"F04 a late reader never blocks the first", func(c *WriterConfig) { c.QueueLimit = 1 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> [1]: step 0; all: published 0
		release 1 0 -> all: free 0
		register 2 -> all: admit [2]
		step -> [1]: step 1; all: published 1
		release 1 1 ->
		step ->
		admit 2 0 -> [2]: response, next 1
		activate 2 -> [2]: step 1
		release 2 1 -> all: free 1; [1]: step 2; [2]: step 2; all: published 2`},
	{"late messages mean nothing", nil, `
		activate 9 ->
		release 9 0 ->
		leave 9 ->
		ask 9 ->
		lose 9 ->`},

	// Readers that break the rules.
	{"releases that mean nothing", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		step -> all: published 0
		release 1 0 ->
		activate 1 -> [1]: step 0
		release 1 7 ->
		release 1 -1 ->
		release 1 0 -> all: free 0
		release 1 0 ->`},
	{"activation before the response", nil, `
		register 1 -> all: admit [1]
		activate 1 -> cut [1]: ErrProtocol; all: dismiss [1]`},
	{"a key that is in use", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		register 1 -> cut [1]: ErrProtocol; all: dismiss [1]
		activate 1 ->`},
	{"asking for steps, which is for another mode", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		step -> all: published 0
		ask 1 -> cut [1]: ErrProtocol; all: dismiss [1]; all: free 0`},
	{"locking, which we ignore", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		lock 1 ->
		step -> [1]: step 0; all: published 0`},

	// The end.
	{"a reader that comes after the last step", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		step -> [1]: step 0; all: published 0
		finish -> [1]: close after 0
		reader 2 -> all: admit [2]; [2]: response, next 0
		activate 2 -> [2]: step 0; [2]: close after 0
		release 1 0 ->
		release 2 0 -> all: free 0; all: drained
		reader 3 -> cut [3]: ErrClosed
		leave 1 -> drop [1]: nil
		end -> drop [2]: ErrClosed`},
	{"a handshake is let end: a real reader waits for it", nil, `
		register 1 -> all: admit [1]
		finish ->
		admit 1 0 -> [1]: response, next 0
		activate 1 -> [1]: close after -1; all: drained`},
	{"the stream is given up", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		weft 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		weft 3 -> all: admit [3]; [3]: response, next 0
		reader 5 -> all: admit [5]; [5]: response, next 0
		step -> [1]: step 0; [2]: step 0; all: published 0
		end -> all: failed: ErrClosed; [1]: close after 0; drop [1]: ErrClosed; [2]: close after 0; drop [2]: ErrClosed; [3]: close after 0; drop [3]: ErrClosed; cut [5]: ErrClosed
		reader 4 -> cut [4]: ErrClosed
		end ->`},
	{"the stream is given up with an error", nil, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		weft 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		step -> [1]: step 0; [2]: step 0; all: published 0
		fail -> all: failed: another error; cut [1]: errTest; [2]: close after 0, failed; drop [2]: errTest`},
	{"a member dies", func(c *WriterConfig) { c.Members = 3 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		weft 2 -> all: admit [2]; [2]: response, next 0
		activate 2 ->
		weft 3 -> all: admit [3]; [3]: response, next 0
		step -> [1]: step 0; [2]: step 0; all: published 0
		share 0 ->
		die 2 -> all: failed: ErrRankLost; cut [1]: ErrRankLost+errTest; [2]: close after 0, failed; drop [2]: ErrRankLost+errTest; [3]: close after 0, failed; drop [3]: ErrRankLost+errTest
		die 1 ->
		share 1 ->
		release 1 0 ->
		register 4 -> cut [4]: ErrRankLost+errTest`},
	{"a member cannot go on", func(c *WriterConfig) { c.Members = 2 }, `
		weft 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		refused 1 -> all: failed: ErrParam; [1]: close after -1, failed; drop [1]: ErrParam
		refused 1 ->`},
	{"a member dies when all is over", func(c *WriterConfig) { c.Members = 2 }, `
		reader 1 -> all: admit [1]; [1]: response, next 0
		activate 1 ->
		finish -> [1]: close after -1; all: drained
		die 1 ->
		leave 1 -> drop [1]: nil`},
}
