"""Writes chunks.tar.gz: Blosc2 chunks made by the real C-Blosc2. Needs libblosc2.so.4 (Debian: libblosc2-4); see README.md."""
import ctypes
import gzip
import io
import itertools
import struct
import tarfile

lib = ctypes.CDLL("libblosc2.so.4")
lib.blosc2_init()
SHUFFLE = {"none": 0, "shuffle": 1, "bitshuffle": 2}
SPLIT = {"always": 1, "never": 2, "auto": 3}


def lcg(n):
    x, out = 1, bytearray()
    while len(out) < n:
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(x >> 24)
    return bytes(out)


def data(kind, n):
    if kind == "ramp":  # doubles i + 0.25
        return b"".join(struct.pack("<d", i + 0.25) for i in range(n // 8 + 1))[:n]
    if kind == "count":  # 32-bit integers 1000000 + 3*i
        return b"".join(struct.pack("<I", 1000000 + 3 * i) for i in range(n // 4 + 1))[:n]
    if kind == "text":
        return (b"the quick brown fox jumps over the lazy dog. " * (n // 45 + 1))[:n]
    if kind == "random":
        return lcg(n)
    if kind == "mixed":  # half random, half runs of one byte: raw, repeated and packed streams
        return (lcg(n // 2) + bytes([7]) * (n // 4) + bytes(n))[:n]
    if kind == "far":  # random text that comes again 9000 bytes later: long distances
        return (lcg(9000) * (n // 9000 + 1))[:n]
    if kind == "zeros":
        return bytes(n)
    raise ValueError(kind)


def chunk(codec, shuffle, typesize, blocksize, kind, n, split="auto", level=5, delta=0):
    src = data(kind, n)
    assert lib.blosc1_set_compressor(codec.encode()) >= 0
    lib.blosc1_set_blocksize(ctypes.c_size_t(blocksize))
    lib.blosc1_set_splitmode(SPLIT[split])
    lib.blosc2_set_delta(delta)
    dst = ctypes.create_string_buffer(n + 4096)
    size = lib.blosc1_compress(level, SHUFFLE[shuffle], ctypes.c_size_t(typesize), ctypes.c_size_t(n), src, dst, ctypes.c_size_t(len(dst)))
    assert size > 0, (codec, shuffle, typesize, blocksize, kind, n, size)
    back = ctypes.create_string_buffer(max(n, 1))
    got = lib.blosc1_decompress(dst, back, ctypes.c_size_t(n))
    # C-Blosc2 2.17.1 cannot read some of its own chunks back (a few bytes of zeros): those are no fixtures.
    if got != n or back.raw[:n] != src:
        return None
    name = f"{codec}-{shuffle}-{typesize}-{blocksize}-{kind}-{n}-{split}-{level}" + ("-delta" if delta else "")
    return name, dst.raw[:size]


def all_chunks():
    codecs = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]
    for codec, shuffle in itertools.product(codecs, SHUFFLE):
        yield chunk(codec, shuffle, 8, 1024, "ramp", 5000)
        yield chunk(codec, shuffle, 4, 2048, "mixed", 5003)
    for codec in codecs:
        yield chunk(codec, "none", 1, 0, "text", 3000)
        yield chunk(codec, "none", 1, 65536, "far", 30000 if codec != "zlib" else 100)
        for split in SPLIT:
            yield chunk(codec, "shuffle", 4, 1024, "count", 4100, split)
            yield chunk(codec, "bitshuffle", 8, 1024, "ramp", 3000, split)
    for typesize, n in itertools.product([1, 2, 3, 7, 12, 16, 32, 255], [1000, 1531]):
        for shuffle in ("shuffle", "bitshuffle"):
            yield chunk("lz4", shuffle, typesize, 600, "text", n)
    for shuffle in SHUFFLE:
        yield chunk("blosclz", shuffle, 4, 0, "random", 500)
        yield chunk("zstd", shuffle, 4, 0, "ramp", 500, "auto", 0)  # level 0 stores
        yield chunk("zstd", shuffle, 8, 0, "zeros", 4096)
        yield chunk("lz4", shuffle, 8, 512, "ramp", 2000, delta=1)
        yield chunk("blosclz", shuffle, 4, 1024, "count", 4100, delta=1)
    for n in (1, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128):
        yield chunk("blosclz", "shuffle", 8, 0, "ramp", n)
        yield chunk("blosclz", "bitshuffle", 8, 0, "zeros", n)


with gzip.GzipFile("chunks.tar.gz", "wb", mtime=0) as gz, tarfile.open(fileobj=gz, mode="w", format=tarfile.USTAR_FORMAT) as tar:
    for name, body in filter(None, all_chunks()):
        info = tarfile.TarInfo(name)
        info.size = len(body)
        tar.addfile(info, io.BytesIO(body))
        print(name, len(body), body[:32].hex(" ", 4))
lib.blosc2_destroy()
