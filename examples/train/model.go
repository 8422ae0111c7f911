package main

const (
	batchSize = 64
	rate      = 0.5
)

// samples are the inner points of a field of three successive times.
type samples struct {
	before, now, after []float64 // row after row
	width              int
}

// points returns where the samples are.
func (s samples) points() []int {
	var list []int
	for row := s.width; row < len(s.now)-s.width; row += s.width {
		for p := row + 1; p < row+s.width-1; p++ {
			list = append(list, p)
		}
	}
	return list
}

// at returns what is given at a point, u and D, and what the model has to tell.
func (s samples) at(p int) (given [2]float64, acceleration float64) {
	u := s.now[p]
	d := s.now[p-s.width] + s.now[p-1] + s.now[p+1] + s.now[p+s.width] - 4*u
	return [2]float64{u, d}, s.after[p] - 2*u + s.before[p]
}

// model holds the weights of u and D.
type model [2]float64

// descend takes one step of gradient descent with a batch of samples, and
// returns the sum of their squared errors before it. The gradient is divided by
// the squares of what is given, so that u and D, which differ in size, learn
// equally fast; with two weights a step is stable then at any rate below 1.
func (m *model) descend(s samples, batch []int) (loss float64) {
	var gradient, squares [2]float64
	for _, p := range batch {
		given, acceleration := s.at(p)
		miss := acceleration - m[0]*given[0] - m[1]*given[1]
		loss += miss * miss
		for i, x := range given {
			gradient[i] += miss * x
			squares[i] += x * x
		}
	}
	for i := range m {
		if squares[i] > 0 {
			m[i] += rate * gradient[i] / squares[i]
		}
	}
	return loss
}
