package main

// The work that both sides do on every step, as in interop/peers/cpp/sst.cpp.

// fill touches every byte. Element i of step s is s + i: the sum tells the step.
// A rank that has the elements from k on fills with s + k first.
// Eight at a time, as C++ compilers do unasked; so does sum.
func fill(data []int64, first int64) {
	v := first
	for ; len(data) >= 8; data = data[8:] {
		d := (*[8]int64)(data)
		d[0], d[1], d[2], d[3] = v, v+1, v+2, v+3
		d[4], d[5], d[6], d[7] = v+4, v+5, v+6, v+7
		v += 8
	}
	for i := range data {
		data[i] = v + int64(i)
	}
}

// sum touches every byte.
func sum(data []int64) uint64 {
	var a, b, c, d int64
	for ; len(data) >= 8; data = data[8:] {
		p := (*[8]int64)(data)
		a += p[0] + p[4]
		b += p[1] + p[5]
		c += p[2] + p[6]
		d += p[3] + p[7]
	}
	for _, v := range data {
		a += v
	}
	return uint64(a + b + c + d)
}

// expected is the sum of n elements that fill has written, modulo 2^64.
func expected(n int, first uint64) uint64 {
	m := uint64(n)
	triangle := m / 2 * (m - 1)
	if m%2 == 1 {
		triangle = (m - 1) / 2 * m
	}
	return m*first + triangle
}
