"""A real ADIOS2 writer: writes the zoo. Run inside the root, alone or under mpirun.

stdout, rank 0 only: OPENING name, READY, STEP n after each step, HOLD (with --hold), DONE. Exit code 0 only
if all went well.
"""

import argparse
import time

import adios2.bindings as bindings
import numpy as np

import common
import zoo


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    common.add_arguments(p)
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--step-delay", type=float, default=0, metavar="SECONDS", help="after each step")
    p.add_argument("--hold", action="store_true", help="wait for a line on stdin before Close")
    p.add_argument("--operator", default="", help="compress shape/big with this operator")
    return p.parse_args()


class Writer:
    def __init__(self, args, comm):
        self.args, self.comm = args, comm
        # Debian's build would choose UCX, and serve only readers that have it.
        defaults = {"DataTransport": "WAN", "OpenTimeoutSecs": "60"} if args.engine == "SST" else {}
        self.adios, self.io = common.open_io(args, comm, bindings, defaults)
        self.handles, self.attributes = {}, {}
        self.table = [v for v in zoo.table() if not v.weft_only and common.wanted(args, v.name)]

    def handle(self, var, shape, block):
        """The ADIOS2 variable, defined at its first Put."""
        if var.name not in self.handles:
            self.handles[var.name] = self.define(var, shape, block)
            if self.args.operator and var.name == "shape/big":
                op = self.adios.DefineOperator("op", self.args.operator, {})
                self.handles[var.name].AddOperation(op, {})
        return self.handles[var.name]

    def define(self, var, shape, block):
        if var.key == "str":
            return self.io.DefineVariable(var.name)
        sample = np.zeros(block.count, var.dtype)
        if var.kind == zoo.LOCAL_VALUE:
            return self.io.DefineVariable(var.name, sample, [bindings.LocalValueDim], [], [])
        return self.io.DefineVariable(var.name, sample, shape or [], block.start, block.count)

    def put(self, var, step):
        shape, blocks = var.layout(step, self.comm.size)
        for block in blocks:
            if block.rank != self.comm.rank:
                continue
            handle = self.handle(var, shape, block)
            data = var.block_data(step, block)
            if var.key == "str":
                self.engine.Put(handle, data)
                continue
            if var.kind == zoo.GLOBAL:
                handle.SetShape(shape)
            if block.count:
                handle.SetSelection((block.start, block.count))
            self.engine.Put(handle, np.ascontiguousarray(data), bindings.Mode.Sync)

    def define_attributes(self, step):
        for attr in zoo.attributes(step):
            if attr.weft_only:
                continue
            shown = repr(attr.content)
            if self.attributes.get(attr.name) == shown:
                continue
            if attr.name in self.attributes:
                # The Python interface cannot modify an attribute; this has the same effect.
                self.io.RemoveAttribute(attr.name)
            self.attributes[attr.name] = shown
            self.io.DefineAttribute(attr.name, attr.content)

    def run(self):
        common.say(self.comm, "OPENING", self.args.name)
        self.engine = self.io.Open(self.args.name, bindings.Mode.Write)
        common.say(self.comm, "READY")
        for step in range(self.args.steps):
            if self.args.step_wait and not common.wait_line(self.comm):
                break
            status = self.engine.BeginStep()
            if status != bindings.StepStatus.OK:
                raise RuntimeError("BeginStep %d gave %s" % (step, status))
            if not self.args.no_attributes:
                self.define_attributes(step)
            for var in self.table:
                self.put(var, step)
            if self.args.lock and step == 0:
                self.engine.LockWriterDefinitions()
            self.engine.EndStep()
            common.say(self.comm, "STEP", step)
            time.sleep(self.args.step_delay)
        if self.args.hold:
            common.say(self.comm, "HOLD")
            common.wait_line(self.comm)
        self.engine.Close()
        self.comm.Barrier()
        common.say(self.comm, "DONE")
        return 0


if __name__ == "__main__":
    world = common.world()
    common.run(lambda: Writer(arguments(), world).run(), world)
