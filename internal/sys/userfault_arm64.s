#include "textflag.h"

// The thread of a Userfault, as in userfault_amd64.s. All it knows is the address of its control words, in R19.

// func startWatcher(control unsafe.Pointer) (thread int)
TEXT ·startWatcher(SB), NOSPLIT, $0-16
	MOVD control+0(FP), R19

	MOVD $135, R8 // rt_sigprocmask
	MOVD $2, R0   // SIG_SETMASK
	ADD  $160, R19, R1
	ADD  $168, R19, R2
	MOVD $8, R3
	SVC

	MOVD $220, R8 // clone
	MOVD $0x350f00, R0 // VM FS FILES SIGHAND THREAD SYSVSEM PARENT_SETTID CHILD_CLEARTID
	ADD  $4096, R19, R1
	ADD  $48, R19, R2
	MOVD $0, R3
	ADD  $48, R19, R4
	SVC
	CBZ  R0, watch
	MOVD R0, R20

	MOVD $135, R8
	MOVD $2, R0
	ADD  $168, R19, R1
	MOVD $0, R2
	MOVD $8, R3
	SVC
	MOVD R20, thread+8(FP)
	RET

watch:
	MOVD $167, R8 // prctl
	MOVD $15, R0  // PR_SET_NAME
	ADD  $176, R19, R1
	SVC

wait:
	MOVD $73, R8 // ppoll
	ADD  $64, R19, R0
	MOVD $2, R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $8, R4
	SVC
	CMN  $4, R0 // EINTR
	BEQ  wait
	CMP  $0, R0
	BLE  end
	MOVHU 78(R19), R1 // revents of stop
	MOVD $0, R0
	CBNZ R1, end
	MOVHU 70(R19), R1 // revents of the userfaultfd
	MOVD $-5, R0      // EIO
	TBZ  $0, R1, end  // POLLIN

	MOVD 8(R19), R1 // begun
begin:
	LDAXR (R1), R20
	ADD   $1, R20, R2
	STLXR R2, (R1), R3
	CBNZ  R3, begin
	DMB   $0xb // before the event is read

	MOVD $63, R8 // read
	MOVWU 0(R19), R0
	ADD  $96, R19, R1
	MOVD $32, R2
	SVC
	MOVD $0, R5 // the event: address
	MOVD $0, R6 // and length; none
	CMN  $11, R0 // EAGAIN
	BEQ  post
	CMN  $4, R0
	BEQ  post
	CMP  $32, R0
	BNE  broken
	MOVBU 96(R19), R1
	MOVD 104(R19), R5 // start, or from
	MOVD 120(R19), R6 // length of a remap
	CMP  $0x14, R1    // UFFD_EVENT_REMAP
	BEQ  post
	MOVD 112(R19), R6 // end
	SUB  R5, R6, R6
	CMP  $0x15, R1    // UFFD_EVENT_REMOVE
	BEQ  post
	CMP  $0x16, R1    // UFFD_EVENT_UNMAP
	BEQ  post
	MOVD $0, R5       // what else: everything
	MOVD $-1, R6

post:
	MOVD 32(R19), R1 // mask
	AND  R20, R1, R1
	LSL  $4, R1, R1
	MOVD 24(R19), R2
	ADD  R2, R1, R1
	STLR R5, (R1)
	ADD  $8, R1, R1
	STLR R6, (R1)
	MOVD 16(R19), R1 // done
finish:
	LDAXR (R1), R2
	ADD   $1, R2, R2
	STLXR R2, (R1), R3
	CBNZ  R3, finish

	MOVD $64, R8 // write, so that the dead are cleaned up
	MOVWU 40(R19), R0
	ADD  $128, R19, R1
	MOVD $8, R2
	SVC
	B    wait

broken:
	MOVD 16(R19), R1
balance:
	LDAXR (R1), R2
	ADD   $1, R2, R2
	STLXR R2, (R1), R3
	CBNZ  R3, balance
	TBNZ  $63, R0, end
	MOVD  $-5, R0 // EIO: not a whole message

end:
	NEG  R0, R0
	MOVW R0, 56(R19)
	ADD  $52, R19, R1
	STLRW ZR, (R1)
	DMB  $0xb
	MOVD $24, R8 // dup3
	MOVWU 4(R19), R0
	MOVWU 0(R19), R1
	MOVD $0x80000, R2 // O_CLOEXEC
	SVC
	MOVD $93, R8 // exit
	MOVD $0, R0
	SVC
	B    end
