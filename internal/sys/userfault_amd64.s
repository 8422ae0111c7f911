#include "textflag.h"

// The thread of a Userfault (userfault_unsafe.go), which never runs Go. All it knows is the address of its control words, in BX; it has no
// stack, and calls nothing. userfaultControl says what lies where.

// func startWatcher(control unsafe.Pointer) (thread int)
// It is negative if there is no thread.
TEXT ·startWatcher(SB), NOSPLIT, $0-16
	MOVQ control+0(FP), BX

	// The new thread inherits that all signals are blocked: a handler of Go could not run there.
	MOVQ $14, AX // rt_sigprocmask
	MOVQ $2, DI  // SIG_SETMASK
	LEAQ 160(BX), SI
	LEAQ 168(BX), DX
	MOVQ $8, R10
	SYSCALL

	MOVQ $56, AX // clone
	MOVQ $0x350f00, DI // VM FS FILES SIGHAND THREAD SYSVSEM PARENT_SETTID CHILD_CLEARTID
	LEAQ 4096(BX), SI
	LEAQ 48(BX), DX
	LEAQ 48(BX), R10
	MOVQ $0, R8
	SYSCALL
	CMPQ AX, $0
	JEQ  watch
	MOVQ AX, R12

	MOVQ $14, AX
	MOVQ $2, DI
	LEAQ 168(BX), SI
	MOVQ $0, DX
	MOVQ $8, R10
	SYSCALL
	MOVQ R12, thread+8(FP)
	RET

watch:
	MOVQ $157, AX // prctl
	MOVQ $15, DI  // PR_SET_NAME
	LEAQ 176(BX), SI
	SYSCALL

wait:
	MOVQ $7, AX // poll
	LEAQ 64(BX), DI
	MOVQ $2, SI
	MOVQ $-1, DX
	SYSCALL
	CMPQ AX, $-4 // EINTR
	JEQ  wait
	CMPQ AX, $0
	JLE  end
	MOVQ $0, AX
	MOVWLZX 78(BX), CX // revents of stop
	TESTL CX, CX
	JNE  end
	MOVWLZX 70(BX), CX // revents of the userfaultfd
	TESTL $1, CX // POLLIN
	MOVQ $-5, AX // EIO
	JEQ  end

	// From now until done says otherwise every hit is a miss: reading the event lets the thread go that has made it.
	MOVQ 8(BX), R8
	MOVQ $1, R12
	LOCK
	XADDQ R12, 0(R8)

	MOVQ $0, AX // read
	MOVL 0(BX), DI
	LEAQ 96(BX), SI
	MOVQ $32, DX
	SYSCALL
	MOVQ $0, R8 // the event: address
	MOVQ $0, R9 // and length; none
	CMPQ AX, $-11 // EAGAIN
	JEQ  post
	CMPQ AX, $-4
	JEQ  post
	CMPQ AX, $32
	JNE  broken
	MOVBLZX 96(BX), CX
	MOVQ 104(BX), R8 // start, or from
	MOVQ 120(BX), R9 // length of a remap
	CMPL CX, $0x14   // UFFD_EVENT_REMAP
	JEQ  post
	MOVQ 112(BX), R9 // end
	SUBQ R8, R9
	CMPL CX, $0x15   // UFFD_EVENT_REMOVE
	JEQ  post
	CMPL CX, $0x16   // UFFD_EVENT_UNMAP
	JEQ  post
	MOVQ $0, R8      // what else: everything
	MOVQ $-1, R9

post:
	MOVQ R12, CX
	ANDQ 32(BX), CX
	SHLQ $4, CX
	ADDQ 24(BX), CX
	XCHGQ R8, 0(CX)
	XCHGQ R9, 8(CX)
	MOVQ 16(BX), R8
	MOVQ $1, R12
	LOCK
	XADDQ R12, 0(R8)

	MOVQ $1, AX // write, so that the dead are cleaned up
	MOVL 40(BX), DI
	LEAQ 128(BX), SI
	MOVQ $8, DX
	SYSCALL
	JMP  wait

broken:
	MOVQ AX, R12
	MOVQ 16(BX), R8
	MOVQ $1, R9
	LOCK
	XADDQ R9, 0(R8)
	MOVQ R12, AX
	CMPQ AX, $0
	JLT  end
	MOVQ $-5, AX // EIO: not a whole message

end:
	// AX says why. Nobody is alive any more before the userfaultfd closes, which lets go of all who wait for their event to be
	// read. dup3 over it keeps the number ours.
	NEGL AX
	MOVL AX, 56(BX)
	MOVL $0, CX
	XCHGL CX, 52(BX)
	MOVQ $292, AX // dup3
	MOVL 4(BX), DI
	MOVL 0(BX), SI
	MOVQ $0x80000, DX // O_CLOEXEC
	SYSCALL
	MOVQ $60, AX // exit
	MOVQ $0, DI
	SYSCALL
	JMP  end
