"""Has a real library hook the memory functions of the C library, says READY, and stays until its input ends."""

import ctypes
import os
import sys


def ucx():
    """UCX's libucm, asked for what memory goes away, as its registration cache does."""
    ctypes.CDLL("libucs.so.0", ctypes.RTLD_GLOBAL)
    ucm = ctypes.CDLL("libucm.so.0")
    unmapped = 1 << 17
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    ucx.handler = handler(lambda event, data, arg: None)  # kept alive
    status = ucm.ucm_set_event_handler(unmapped, 1000, ucx.handler, None)
    assert status == 0, status


def openmpi():
    """Open MPI with registrations that stay, which it watches by its patcher."""
    os.environ["OMPI_MCA_mpi_leave_pinned"] = "1"
    os.environ["OMPI_MCA_pml"] = "ob1"
    os.environ["OMPI_MCA_btl"] = "self,vader"
    from mpi4py import MPI  # which initialises it

    assert MPI.Is_initialized()


{"ucx": ucx, "openmpi": openmpi}[sys.argv[1]]()
print("READY", flush=True)
sys.stdin.read()
os._exit(0)  # without their ends, which are not looked at
