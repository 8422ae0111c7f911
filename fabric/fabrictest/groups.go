package fabrictest

import "github.com/weft-fabric/weft/fabric/provider"

// groups are all parts of the law, from what everything stands on to what takes long. A group that
// answers reports of users names them, F43.
func groups() []group {
	const (
		msg    = provider.Msg
		tagged = provider.Msg | provider.Tagged
		rma    = provider.Msg | provider.RMA
		arena  = provider.Arena | provider.Msg | provider.RMA
		views  = provider.Views | provider.Arena | provider.Msg
	)
	return []group{
		{name: "info", run: testInfo},
		{name: "insert", needs: msg, run: testInsert},
		{name: "messages", needs: msg, run: testMessages},
		{name: "zero", needs: msg, run: testZero},
		{name: "truncation", needs: msg, run: testTruncation},
		{name: "vectored", needs: msg, run: testVectored},
		{name: "self", needs: msg, run: testSelf},
		{name: "tagged", needs: tagged, run: testTagged},
		{name: "peek-F57", needs: tagged, run: testPeek},
		{name: "peek-many-F57", needs: tagged, run: testPeekMany},
		{name: "directed", needs: msg | provider.DirectedRecv, run: testDirected},
		{name: "multi-receive", needs: msg | provider.MultiRecv, run: testMulti},
		{name: "inject-F43", needs: msg, run: testInject},
		{name: "flags-F44", needs: msg, run: testFlags},
		{name: "order", needs: msg, run: testOrder},
		{name: "data-order", needs: rma, run: testDataOrder},
		{name: "many", needs: msg, run: testMany},

		{name: "rma", needs: rma, run: testRMA},
		{name: "rma-edges", needs: rma, run: testRMAEdges},
		{name: "rma-vectored", needs: rma, run: testRMAVectored},
		{name: "keys", needs: rma, run: testKeys},
		{name: "huge-F41", needs: rma, run: testHuge},
		{name: "atomics", needs: msg | provider.Atomics, run: testAtomics},
		{name: "atomics-pieces-F43", needs: msg | provider.Atomics, run: testAtomicPieces},
		{name: "atomicity", needs: msg | provider.Atomics, run: testAtomicity},
		{name: "arena", needs: provider.Arena, run: testArena},
		{name: "memory-close", needs: provider.Arena | provider.Msg, run: testMemoryClose},
		{name: "memory-F93", needs: arena, run: testMemoryStats},
		{name: "views", needs: views, run: testViews},
		{name: "lease", needs: views, run: testLease},
		{name: "viewer-dies", needs: views, procs: 2, run: testViewer},
		{name: "view-outlives", needs: views, run: testViewOutlives},

		{name: "fence", needs: rma, run: testFence},
		{name: "fenced-sends", needs: tagged, run: testFencedSends},
		{name: "delivery-complete", needs: msg, run: testDelivered},
		{name: "counters", needs: msg, run: testCounters},
		{name: "cancel", needs: msg, run: testCancel},
		{name: "cancel-sends", needs: msg, run: testCancelSends},
		{name: "statistics", needs: msg, run: testStats},
		{name: "tracer", needs: msg, run: testTracer},

		{name: "queue", needs: msg, run: testQueueRules},
		{name: "ways", needs: msg, run: testWays},
		{name: "descriptor", needs: msg, run: testDescriptor},
		{name: "wait-ends-F48-F49", needs: msg, run: testWaitEnds},
		{name: "shared-queue-F49", needs: msg, run: testSharedQueue},
		{name: "small-queue-F51", needs: msg, run: testSmallQueue},
		{name: "room", needs: msg, run: testRoom},
		{name: "shared-room", needs: msg, run: testSharedRoom},
		{name: "allocations", needs: msg, run: testAllocs},
		{name: "goroutines", needs: msg, run: testGoroutines},

		{name: "unexpected-F35", needs: tagged, run: testUnexpected},
		{name: "slow-receiver-F37", needs: msg, run: testSlowReceiver},
		{name: "exit-F31", needs: tagged, run: testExit},
		{name: "first-F46", needs: msg, run: testFirst},
		{name: "never", needs: msg, run: testNever},
		{name: "descriptors-F53", needs: msg, run: testDescriptors},
		{name: "denied-F38-F39", needs: msg, denied: true, run: testDenied},
		{name: "compute-arena-F52", needs: arena, run: testComputeArena},
		{name: "compute-private-F52", needs: rma, auto: true, run: testComputePrivate},

		{name: "unreachable", needs: msg, run: testUnreachable},
		{name: "names-F25-F32", needs: msg, run: testNames},
		{name: "stale-F26", needs: msg, run: testStale},
		{name: "death-F29", needs: msg, procs: 2, run: testDeath},
		{name: "one-dies", needs: msg, run: testOnePeerDies},
		{name: "kill-F33-F34", needs: msg, procs: 2, run: testKill},
		{name: "stop-F34", needs: msg, procs: 2, run: testStop},
		{name: "others-go-on-F34", needs: msg, procs: 2, run: testOthersGoOn},
		{name: "close-ends", needs: msg, run: testCloseEnds},
		{name: "close-races", needs: msg, run: testCloseRaces},

		{name: "four", needs: msg, run: testFour},
		{name: "peers", needs: msg, run: testPeers},
		{name: "all-to-all-F27", needs: msg, run: testAllToAll},
		{name: "cycles-F42", needs: msg, run: testCycles},
		{name: "idle", needs: msg, run: testIdle},
	}
}
