"""What writer.py and reader.py share: arguments, MPI, the Adios object."""

import os
import sys

# Chosen by the ADIOS2 package at import in the same way.
UNDER_MPI = "OMPI_COMM_WORLD_SIZE" in os.environ


class Solo:
    """Stands for a communicator of one process."""

    rank, size = 0, 1

    def bcast(self, value):
        return value

    def gather(self, value):
        return [value]

    def Barrier(self):
        pass

    def Abort(self, code):
        os._exit(code)


def world():
    if not UNDER_MPI:
        return Solo()
    from mpi4py import MPI

    return MPI.COMM_WORLD


def open_io(args, comm, bindings, defaults):
    """An IO with engine and parameters set, and its Adios object (keep it alive)."""
    adios = bindings.ADIOS(comm) if UNDER_MPI else bindings.ADIOS()
    io = adios.DeclareIO("io")
    io.SetEngine(args.engine)
    params = dict(defaults)
    for pair in args.param:
        key, sep, val = pair.partition("=")
        if not sep:
            sys.exit("--param wants KEY=VALUE, got " + pair)
        params[key] = val
    io.SetParameters(params)
    return adios, io


def add_arguments(parser):
    parser.add_argument("name", help="stream or folder name")
    parser.add_argument("--engine", default="SST", choices=["SST", "BP5"])
    parser.add_argument("--param", action="append", default=[], metavar="K=V", help="engine parameter")
    parser.add_argument("--vars", default="", metavar="PREFIX,...", help="only variables with these prefixes")
    parser.add_argument("--no-attributes", action="store_true")
    parser.add_argument("--lock", action="store_true", help="in the first step: lock definitions (writer) or selections (reader)")
    parser.add_argument("--step-wait", action="store_true", help="wait for a line on stdin in each step; at its end close in order")


def wanted(args, name):
    return not args.vars or name.startswith(tuple(args.vars.split(",")))


def say(comm, *words):
    """A line on stdout, from rank 0."""
    if comm.rank == 0:
        print(*words, flush=True)


def wait_line(comm):
    """Every rank waits until rank 0 has read a line; False at the end of stdin."""
    got = sys.stdin.readline() if comm.rank == 0 else None
    return bool(comm.bcast(got))


def run(main, comm):
    """Run main; an exception on one rank ends all of them with code 1."""
    try:
        code = main()
    except BaseException as err:  # noqa: B902 - also SystemExit: no rank may wait for a dead one
        import traceback

        traceback.print_exc()
        print("FAILED", type(err).__name__, str(err).replace("\n", " "), flush=True)
        sys.stderr.flush()
        comm.Abort(1)
    sys.exit(code)
