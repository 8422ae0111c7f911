package zoo

// dims saves writing out the type.
func dims(n ...int) []uint64 {
	out := make([]uint64, len(n))
	for i, v := range n {
		out[i] = uint64(v)
	}
	return out
}

// eachRank makes the blocks of a step rank by rank.
func eachRank(ranks int, blocks func(r int) []Block) []Block {
	var out []Block
	for r := range ranks {
		for _, b := range blocks(r) {
			b.Rank = r
			out = append(out, b)
		}
	}
	return out
}

func byAll(_, ranks int) ([]uint64, []Block) {
	return nil, eachRank(ranks, func(int) []Block { return []Block{{}} })
}

func byFirst(_, _ int) ([]uint64, []Block) { return nil, []Block{{}} }

func byLast(_, ranks int) ([]uint64, []Block) { return nil, []Block{{Rank: ranks - 1}} }

func byTurn(step, ranks int) ([]uint64, []Block) { return nil, []Block{{Rank: step % ranks}} }

// line is a 1-D array with n elements from each rank.
func line(n int) layout {
	return func(_, ranks int) ([]uint64, []Block) {
		return dims(n * ranks), eachRank(ranks, func(r int) []Block {
			return []Block{{Start: dims(n * r), Count: dims(n)}}
		})
	}
}

func rows(_, ranks int) ([]uint64, []Block) {
	return dims(2*ranks, 3), eachRank(ranks, func(r int) []Block {
		return []Block{{Start: dims(2*r, 0), Count: dims(2, 3)}}
	})
}

func columns(_, ranks int) ([]uint64, []Block) {
	return dims(4, 3*ranks), eachRank(ranks, func(r int) []Block {
		return []Block{{Start: dims(0, 3*r), Count: dims(4, 3)}}
	})
}

func cube(_, ranks int) ([]uint64, []Block) {
	return dims(2, 3*ranks, 4), eachRank(ranks, func(r int) []Block {
		return []Block{{Start: dims(0, 3*r, 0), Count: dims(2, 3, 4)}}
	})
}

// threeBlocks has three blocks a rank, put last to first.
func threeBlocks(_, ranks int) ([]uint64, []Block) {
	return dims(6 * ranks), eachRank(ranks, func(r int) (out []Block) {
		for b := 2; b >= 0; b-- {
			out = append(out, Block{Index: b, Start: dims(6*r + 2*b), Count: dims(2)})
		}
		return out
	})
}

func quadrants(_, ranks int) ([]uint64, []Block) {
	return dims(4, 4*ranks), eachRank(ranks, func(r int) (out []Block) {
		for b := range 4 {
			out = append(out, Block{Index: b, Start: dims(b/2*2, 4*r+b%2*2), Count: dims(2, 2)})
		}
		return out
	})
}

// growing has another shape in each step.
func growing(step, ranks int) ([]uint64, []Block) { return line(step+2)(step, ranks) }

// oneEmpty has two elements from every rank but one, whose turn it is to put a
// block of none. With one rank the shape is zero.
func oneEmpty(step, ranks int) ([]uint64, []Block) {
	at := 0
	blocks := eachRank(ranks, func(r int) []Block {
		n := 2
		if r == step%ranks {
			n = 0
		}
		at += n
		return []Block{{Start: dims(at - n), Count: dims(n)}}
	})
	return dims(at), blocks
}

// oneOwner has everything from one rank and blocks of none from the others.
func oneOwner(step, ranks int) ([]uint64, []Block) {
	return dims(10), eachRank(ranks, func(r int) []Block {
		n := 0
		if r == step%ranks {
			n = 10
		}
		return []Block{{Start: dims(0), Count: dims(n)}}
	})
}

// holes leaves elements 5 and 6 to nobody.
func holes(_, ranks int) ([]uint64, []Block) {
	return dims(10), []Block{
		{Start: dims(0), Count: dims(5)},
		{Rank: ranks - 1, Index: 1, Start: dims(7), Count: dims(3)},
	}
}

func big(_, ranks int) ([]uint64, []Block) {
	return dims(64*ranks, 100), eachRank(ranks, func(r int) []Block {
		return []Block{{Start: dims(64*r, 0), Count: dims(64, 100)}}
	})
}

func localLine(step, ranks int) ([]uint64, []Block) {
	return nil, eachRank(ranks, func(r int) []Block { return []Block{{Count: dims(1 + r + step%3)}} })
}

// localSome has zero to two blocks a rank; in some steps a rank has none, in
// some nobody has.
func localSome(step, ranks int) ([]uint64, []Block) {
	return nil, eachRank(ranks, func(r int) (out []Block) {
		for b := range (r + step) % 3 {
			out = append(out, Block{Index: b, Count: dims(1+r, 2+b)})
		}
		return out
	})
}

// localZero has an empty first block from one rank, by turns.
func localZero(step, ranks int) ([]uint64, []Block) {
	return nil, eachRank(ranks, func(r int) []Block {
		n := 2
		if r == step%ranks {
			n = 0
		}
		return []Block{{Count: dims(n)}, {Index: 1, Count: dims(3)}}
	})
}

func joinedRows(step, ranks int) ([]uint64, []Block) {
	return []uint64{JoinedDim, 2}, eachRank(ranks, func(r int) []Block {
		return []Block{{Count: dims(1+(r+step)%3, 2)}}
	})
}

// joinedColumns has two blocks a rank.
func joinedColumns(_, ranks int) ([]uint64, []Block) {
	return []uint64{2, JoinedDim}, eachRank(ranks, func(r int) []Block {
		return []Block{{Count: dims(2, 1+r)}, {Index: 1, Count: dims(2, 2+r)}}
	})
}

// odd is l in odd steps and nothing in even ones.
func odd(l layout) layout {
	return func(step, ranks int) ([]uint64, []Block) {
		if step%2 == 0 {
			return nil, nil
		}
		return l(step, ranks)
	}
}

func arrayByFirst(_, _ int) ([]uint64, []Block) {
	return dims(3, 2), []Block{{Start: dims(0, 0), Count: dims(3, 2)}}
}

func arrayByLast(_, ranks int) ([]uint64, []Block) {
	return dims(3, 2), []Block{{Rank: ranks - 1, Start: dims(0, 0), Count: dims(3, 2)}}
}

func eightByFirst(_, _ int) ([]uint64, []Block) {
	return dims(8), []Block{{Start: dims(0), Count: dims(8)}}
}
