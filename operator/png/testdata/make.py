"""Writes the dataset X.bp that X.block comes from. Needs the Python module of ADIOS2; see README.md."""
import sys

import adios2.bindings as adios2
import numpy as np


def image(*shape):
    return (np.arange(np.prod(shape)) * 3 % 256).astype(np.uint8).reshape(shape)


KINDS = {
    "gray": (image(6, 5, 1), {"color_type": "PNG_COLOR_TYPE_GRAY"}),
    "ga": (image(6, 5, 2), {"color_type": "PNG_COLOR_TYPE_GRAY_ALPHA"}),
    "rgb": (image(6, 5, 3), {"color_type": "PNG_COLOR_TYPE_RGB"}),
    "rgba": (image(6, 5, 4), {"color_type": "PNG_COLOR_TYPE_RGBA"}),
    "gray2d": (image(6, 5), {"color_type": "PNG_COLOR_TYPE_GRAY"}),
    "rgba2d32": (np.arange(30, dtype=np.uint32).reshape(6, 5) * 1234567, {}),
    "gray16": (image(6, 5, 2), {"color_type": "PNG_COLOR_TYPE_GRAY", "bit_depth": "16"}),
}

name = sys.argv[1]
array, params = KINDS[name]
adios = adios2.ADIOS()
io = adios.DeclareIO("o")
io.SetEngine("BP5")
shape = list(array.shape)
var = io.DefineVariable("img", array, shape, [0] * array.ndim, shape)
var.AddOperation(adios.DefineOperator("p", "png", params), {})
engine = io.Open(name + ".bp", adios2.Mode.Write)
engine.BeginStep()
engine.Put(var, array, adios2.Mode.Sync)
engine.EndStep()
engine.Close()
