// Package fabric sends messages between processes and lets them read and write
// each other's memory, through whatever way there is: the same process, shared
// memory of a node, a network. Its model and its words are libfabric's; its
// types are plain Go.
//
// # For someone who knows sockets
//
// A socket is a connection. Here an [Endpoint] is one mailbox that talks to
// any number of others: there is no listen, no accept and no connect. It has an
// address; whoever has that address turns it into a [Peer] with Insert, and sends.
// The first message connects.
//
// Calls do not block. Send and Recv are posts: they say what is to happen, and return. What
// has happened is read from a [CompletionQueue], one [Completion] for each
// post, which brings back the word that was given as Context. Until then the buffer
// belongs to the fabric. Messages keep their borders: one Send fills one Recv.
//
//	sockets                     fabric
//	socket, bind, listen        OpenDomain, OpenCompletionQueue, OpenEndpoint
//	getsockname                 Endpoint.Address
//	connect, accept             Domain.Insert; the rest happens by itself
//	write                       Endpoint.Send, then a completion: the buffer is yours again
//	read                        Endpoint.Recv, then a completion: the bytes are there
//	poll, epoll                 CompletionQueue.Wait, Ready (a channel), Descriptor
//	EAGAIN                      ErrAgain: read completions, then post again
//	EPIPE, ECONNRESET           ErrPeerGone in the error of a completion
//	close                       Close, of the domain for everything at once
//
// The example "sockets" is a whole program; examples/fabric-sockets is one of two processes.
//
// # For someone who knows libfabric
//
// Endpoints are reliable and connectionless (FI_EP_RDM). Fabric, domain and event queue are one [Domain],
// whose address vector is a part of it.
//
//	libfabric                         fabric
//	fi_getinfo                        Discover
//	fi_fabric, fi_domain              OpenDomain
//	fi_endpoint, fi_ep_bind, enable   Domain.OpenEndpoint: queues and counters stand in its config
//	fi_av_insert, fi_av_remove        Domain.Insert, Domain.Remove; FI_ADDR_UNSPEC is Peer 0
//	fi_mr_reg                         Domain.Register; or Domain.Alloc, memory that peers can map
//	fi_mr_key, fi_mr_desc             Memory.Key, Memory.Slice
//	fi_send, sendv, senddata, inject  Endpoint.Send with Locals, RemoteData, Inject
//	fi_sendmsg with flags             the same Send: flags are a field of Op
//	fi_trecv, FI_PEEK, FI_CLAIM       Endpoint.RecvTagged with Peek, Claim, Discard
//	fi_read, fi_write, fi_writedata   Endpoint.Read, Endpoint.Write
//	fi_atomic, fetch_, compare_       Endpoint.Atomic with Result, Compare
//	fi_cancel                         Endpoint.Cancel
//	fi_cq_read, fi_cq_readerr         CompletionQueue.Read: an error is an entry in its place
//	fi_cq_sread, fi_cq_signal         CompletionQueue.Wait, CompletionQueue.Signal
//	fi_control(FI_GETWAIT), fi_trywait  CompletionQueue.Descriptor, TryWait
//	FI_SELECTIVE_COMPLETION           Quiet
//	FI_PROGRESS_AUTO, _MANUAL         DomainConfig.Progress; Auto sleeps when there is nothing to do
//	struct fi_context                 Op.Context, a word; nothing is asked of it
//	-FI_EAGAIN                        ErrAgain, and only for back-pressure of this side
//
// Contexts need not be unique, but Cancel and Claim find operations by them. Resource management is
// always on: a completion is never lost, a post that could lose one gets ErrAgain.
// The example "libfabric" is a whole program; examples/fabric-libfabric is one of two processes.
//
// # Providers
//
// A program links the providers it wants, as image formats are linked:
//
//	import _ "github.com/weft-fabric/weft/prov/shm"
//
// Authors of providers implement the interfaces of package fabric/provider.
// This package adds to them what all need alike: arguments are checked before a provider
// sees them, errors carry operation, provider and address, and closing follows an order.
//
// # What it is not
//
// It starts no goroutine, keeps no copy of a buffer, and allocates nothing between a
// post and its completion.
//
// All methods of all types are safe for concurrent use.
package fabric
