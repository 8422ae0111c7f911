"""The zoo: variables and attributes of every type and shape kind, with values from closed formulas.

This is the Python half of package interop/zoo (zoo.go is the other). The two compute the same table
independently, so that a test which compares them also tests the peers. Nothing here knows ADIOS2.
"""

import numpy as np

# Key -> (ADIOS2's type name as a reader sees an array of it, numpy type).
TYPES = {
    "char": ("char", np.int8),  # numpy's int8 becomes ADIOS2's char, whatever one does
    "i8": ("int8_t", np.int8),
    "i16": ("int16_t", np.int16),
    "i32": ("int32_t", np.int32),
    "i64": ("int64_t", np.int64),
    "u8": ("uint8_t", np.uint8),
    "u16": ("uint16_t", np.uint16),
    "u32": ("uint32_t", np.uint32),
    "u64": ("uint64_t", np.uint64),
    "f32": ("float", np.float32),
    "f64": ("double", np.float64),
    "ld": ("long double", np.longdouble),
    "c64": ("float complex", np.complex64),
    "c128": ("double complex", np.complex128),
    "str": ("string", None),
}

FRACTION = {"f32": 0.5, "f64": 0.25, "ld": 0.125, "c64": 0.5, "c128": 0.25}
SPREAD = 0x9E3779B97F4A7C15  # times a small number: the high bits differ
U64 = (1 << 64) - 1

VALUE, LOCAL_VALUE = "global value", "local value"
GLOBAL, LOCAL, JOINED = "global array", "local array", "joined array"
JOINED_DIM = U64 - 1  # stands for the joined dimension, as in ADIOS2


def number(step, rank, index, i):
    """The number behind element i of block index of a rank in a step."""
    return 4096 * step + 512 * rank + 128 * index + i + 1


def value(key, n):
    """The value of type key for the number n. For strings a str, else a numpy scalar."""
    if key == "str":
        return "n=%d é" % n
    return values(key, np.array([n]))[0]


def values(key, n):
    """value() for an array of numbers."""
    dtype = TYPES[key][1]
    n = n.astype(np.int64)
    if key in ("c64", "c128"):
        return ((n + FRACTION[key]) - 1j * n).astype(dtype)
    if key in FRACTION:
        return ((n + FRACTION[key]) * np.where(n % 2 == 0, 1, -1)).astype(dtype)
    width = 8 * np.dtype(dtype).itemsize
    spread = n.astype(np.uint64) * np.uint64(SPREAD) >> np.uint64(64 - width)
    return spread.astype("u%d" % (width // 8)).view(dtype)


SPECIAL_F64 = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7976931348623157e308, 0.1, -1e-9]
SPECIAL_F32 = [np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4028235e38, 0.1, -1e-9]


class Block:
    """One Put: the putting rank, its number in the formula, where it lies."""

    def __init__(self, rank, index, start, count):
        self.rank, self.index, self.start, self.count = rank, index, list(start), list(count)


class Var:
    """One variable. layout(step, ranks) gives (shape, blocks in the order of the Puts).

    weft_only: ADIOS2's Python interface cannot write it. weft_reads: ADIOS2 itself cannot read it.
    """

    def __init__(self, name, key, kind, layout, const=None, weft_only=False, weft_reads=False):
        self.name, self.key, self.kind, self.layout = name, key, kind, layout
        self.const, self.weft_only, self.weft_reads = const, weft_only, weft_reads
        self.type, self.dtype = TYPES[key]

    def block_data(self, step, block):
        """The elements of a block; for strings a str."""
        if self.const is not None:
            return self.const
        rank = 0 if self.kind == VALUE else block.rank  # all ranks put the same global value
        if self.key == "str":
            return value("str", number(step, rank, block.index, 0))
        size = int(np.prod(block.count, dtype=np.int64)) if block.count else 1
        return values(self.key, number(step, rank, block.index, np.arange(size))).reshape(block.count)

    def present(self, step, ranks):
        return bool(self.layout(step, ranks)[1])

    def whole(self, step, ranks, fill=0):
        """The whole array as a reader sees it (fill in holes), with its shape."""
        shape, blocks = self.layout(step, ranks)
        if self.kind == LOCAL_VALUE:
            return np.array([self.block_data(step, b).item() for b in blocks], self.dtype)
        if self.kind == JOINED:
            shape, blocks = join(shape, blocks)
        out = np.full(shape, fill, self.dtype)
        for b in blocks:
            out[tuple(slice(s, s + c) for s, c in zip(b.start, b.count))] = self.block_data(step, b)
        return out


def join(shape, blocks):
    """Lay blocks end to end along the joined dimension."""
    dim, at, placed = shape.index(JOINED_DIM), 0, []
    for b in blocks:
        start = [0] * len(shape)
        start[dim] = at
        at += b.count[dim]
        placed.append(Block(b.rank, b.index, start, b.count))
    return shape[:dim] + [at] + shape[dim + 1 :], placed


# ---- layouts


def by_all(step, ranks):
    return None, [Block(r, 0, [], []) for r in range(ranks)]


def by_first(step, ranks):
    return None, [Block(0, 0, [], [])]


def by_last(step, ranks):
    return None, [Block(ranks - 1, 0, [], [])]


def by_turn(step, ranks):
    return None, [Block(step % ranks, 0, [], [])]


def line(per_rank):
    """A 1-D array, per_rank elements from each rank."""
    return lambda step, ranks: ([per_rank * ranks], [Block(r, 0, [per_rank * r], [per_rank]) for r in range(ranks)])


def rows(step, ranks):
    return [2 * ranks, 3], [Block(r, 0, [2 * r, 0], [2, 3]) for r in range(ranks)]


def columns(step, ranks):
    return [4, 3 * ranks], [Block(r, 0, [0, 3 * r], [4, 3]) for r in range(ranks)]


def cube(step, ranks):
    return [2, 3 * ranks, 4], [Block(r, 0, [0, 3 * r, 0], [2, 3, 4]) for r in range(ranks)]


def three_blocks(step, ranks):
    """Three blocks a rank, put last to first."""
    return [6 * ranks], [Block(r, b, [6 * r + 2 * b], [2]) for r in range(ranks) for b in (2, 1, 0)]


def quadrants(step, ranks):
    blocks = [Block(r, b, [b // 2 * 2, 4 * r + b % 2 * 2], [2, 2]) for r in range(ranks) for b in range(4)]
    return [4, 4 * ranks], blocks


def growing(step, ranks):
    n = step + 2
    return [n * ranks], [Block(r, 0, [n * r], [n]) for r in range(ranks)]


def one_empty(step, ranks):
    """Two elements from every rank but one, whose turn it is to put a block of none."""
    empty, at, blocks = step % ranks, 0, []
    for r in range(ranks):
        n = 0 if r == empty else 2
        blocks.append(Block(r, 0, [at], [n]))
        at += n
    return [at], blocks


def one_owner(step, ranks):
    """Everything from one rank, blocks of none from the others."""
    owner = step % ranks
    return [10], [Block(r, 0, [0], [10 if r == owner else 0]) for r in range(ranks)]


def holes(step, ranks):
    """Elements 5 and 6 are in nobody's block."""
    return [10], [Block(0, 0, [0], [5]), Block(ranks - 1, 1, [7], [3])]


def local_line(step, ranks):
    return None, [Block(r, 0, [], [1 + r + step % 3]) for r in range(ranks)]


def local_some(step, ranks):
    """Zero to two blocks a rank; in some steps a rank has none, in some nobody has."""
    return None, [Block(r, b, [], [1 + r, 2 + b]) for r in range(ranks) for b in range((r + step) % 3)]


def local_zero(step, ranks):
    """One rank's first block is empty, by turns."""
    blocks = []
    for r in range(ranks):
        blocks.append(Block(r, 0, [], [0 if r == step % ranks else 2]))
        blocks.append(Block(r, 1, [], [3]))
    return None, blocks


def joined_rows(step, ranks):
    return [JOINED_DIM, 2], [Block(r, 0, [], [1 + (r + step) % 3, 2]) for r in range(ranks)]


def joined_columns(step, ranks):
    """Two blocks a rank."""
    return [2, JOINED_DIM], [Block(r, b, [], [2, 1 + r + b]) for r in range(ranks) for b in range(2)]


def odd(layout):
    """Only in odd steps."""
    return lambda step, ranks: layout(step, ranks) if step % 2 else (None, [])


def array_by_first(step, ranks):
    return [3, 2], [Block(0, 0, [0, 0], [3, 2])]


def array_by_last(step, ranks):
    return [3, 2], [Block(ranks - 1, 0, [0, 0], [3, 2])]


def eight_by_first(step, ranks):
    return [8], [Block(0, 0, [0], [8])]


def big(step, ranks):
    return [64 * ranks, 100], [Block(r, 0, [64 * r, 0], [64, 100]) for r in range(ranks)]


NUMBERS = [k for k in TYPES if k not in ("char", "str")]
ARRAYS = [k for k in TYPES if k != "str"]


def table():
    """All variables, in the order in which a writer puts them."""
    out = [Var("value/" + k, k, VALUE, by_all) for k in NUMBERS + ["str"]]
    out += [Var("local/" + k, k, LOCAL_VALUE, by_all) for k in NUMBERS]
    # Python has no way to put an array of int8_t (see TYPES), Go has.
    out += [Var("array/" + k, k, GLOBAL, line(5), weft_only=k == "i8") for k in ARRAYS]
    out += [Var("blocks/" + k, k, LOCAL, local_line, weft_only=k == "i8") for k in ARRAYS]
    out += [
        Var("shape/rows", "f64", GLOBAL, rows),
        Var("shape/columns", "f32", GLOBAL, columns),
        Var("shape/cube", "i32", GLOBAL, cube),
        Var("shape/blocks", "i32", GLOBAL, three_blocks),
        Var("shape/quadrants", "i16", GLOBAL, quadrants),
        Var("shape/grow", "i64", GLOBAL, growing),
        Var("shape/empty", "f32", GLOBAL, one_empty),
        Var("shape/owner", "f64", GLOBAL, one_owner),
        Var("shape/holes", "f64", GLOBAL, holes),
        Var("shape/big", "f64", GLOBAL, big),
        Var("blocks/some", "i32", LOCAL, local_some),
        Var("blocks/zero", "f64", LOCAL, local_zero),
        Var("joined/rows", "f64", JOINED, joined_rows),
        Var("joined/columns", "c64", JOINED, joined_columns),
        Var("odd/array", "i32", GLOBAL, odd(line(3))),
        Var("odd/value", "u16", VALUE, odd(by_all)),
        Var("odd/blocks", "u8", LOCAL, odd(local_line)),
        Var("first/value", "f64", VALUE, by_first),
        Var("first/str", "str", VALUE, by_first),
        Var("first/array", "c128", GLOBAL, array_by_first),
        Var("last/value", "u64", VALUE, by_last),
        Var("last/str", "str", VALUE, by_last),
        Var("last/array", "u8", GLOBAL, array_by_last),
        # ADIOS2 2.10.2 reads these from the first rank that ever put them: zero, or a crash for a string.
        Var("turn/f64", "f64", VALUE, by_turn, weft_reads=True),
        Var("turn/i8", "i8", VALUE, by_turn, weft_reads=True),
        Var("turn/c64", "c64", VALUE, by_turn, weft_reads=True),
        Var("turn/str", "str", VALUE, by_turn, weft_reads=True),
        Var("special/f32", "f32", GLOBAL, eight_by_first, const=np.array(SPECIAL_F32, np.float32)),
        Var("special/f64", "f64", GLOBAL, eight_by_first, const=np.array(SPECIAL_F64)),
        Var("special/str", "str", VALUE, by_all, const=""),
        Var("name x_1_2_y", "i32", GLOBAL, line(2)),
        Var("name/été", "i32", VALUE, by_all),
        Var("name[0]", "i32", GLOBAL, line(2)),
        Var("BPG_8_10_fake", "i32", VALUE, by_all),
    ]
    return out


# ---- attributes


class Attr:
    """One attribute: a str, a list of str, or a numpy array (0-d for a single value)."""

    def __init__(self, name, key, content, weft_only=False):
        self.name, self.key, self.content, self.weft_only = name, key, content, weft_only
        self.type = TYPES[key][0]

    @property
    def single(self):
        return isinstance(self.content, str) or (isinstance(self.content, np.ndarray) and self.content.ndim == 0)


def attributes(step):
    """All attributes that exist in a step."""
    out = []
    for k in ARRAYS:
        weft_only = k == "i8"
        out.append(Attr("attr/" + k, k, values(k, np.array([42])).reshape(()), weft_only))
        out.append(Attr("attrs/" + k, k, values(k, np.array([40, 41, 42])), weft_only))
    f64 = TYPES["f64"][1]
    out += [
        Attr("attr/str", "str", "hello é"),
        Attr("attr/empty", "str", ""),
        Attr("attrs/str", "str", ["one", "", "three é"]),
        Attr("attrs/str1", "str", ["only"]),
        Attr("attrs/one", "f64", np.array([3.5])),
        Attr("attrs/none", "f64", np.zeros(0, f64)),
        Attr("attrs/nostr", "str", []),
        Attr("array/f64/units", "str", "m/s"),
        Attr("shape/rows/origin", "f64", np.array([0.5, -1.5])),
        Attr("special/attr", "f64", np.array([np.nan, np.inf, -np.inf])),
        Attr("changed/i32", "i32", np.array(1 if step < 2 else 2, np.int32)),
        Attr("changed/str", "str", "before" if step < 2 else "after"),
    ]
    if step >= 1:
        out.append(Attr("late/i32", "i32", np.array(1, np.int32)))
        out.append(Attr("late/str", "str", "late"))
    return out
