package cli

import (
	"math"
)

// heat solves the heat equation u_t = u_xx + u_yy on the unit square with u = 0
// at its edge, beginning with one sine mode:
//
//	u(x, y, t) = exp(-2 pi^2 t) sin(pi x) sin(pi y)
//
// Explicit Euler in time, second differences in space, with the longest time
// step that is stable. In leading order its deviation from the solution is
// pi^4/3 t h^2 exp(-2 pi^2 t), which is largest at t = 1/(2 pi^2): 0.605 h^2.
// So h^2 is a tolerance that a right program keeps, and one that takes an array
// from another step, or a row from another place, does not.
type heat struct {
	n    int // points in each direction, edges included
	t    float64
	u, v []float64
}

func newHeat(n int) *heat {
	s := &heat{n: n, u: make([]float64, n*n), v: make([]float64, n*n)}
	for i := 1; i < n-1; i++ {
		for j := 1; j < n-1; j++ {
			s.u[i*n+j] = math.Sin(math.Pi*s.at(i)) * math.Sin(math.Pi*s.at(j))
		}
	}
	return s
}

// h is the distance of points.
func (s *heat) h() float64 { return 1 / float64(s.n-1) }

func (s *heat) at(i int) float64 { return float64(i) * s.h() }

// advance makes some time steps.
func (s *heat) advance(steps int) {
	const r = 0.25 // dt/h^2; above 1/4 the scheme is not stable
	n := s.n
	for range steps {
		for i := 1; i < n-1; i++ {
			up, row, down, out := s.u[(i-1)*n:i*n], s.u[i*n:(i+1)*n], s.u[(i+1)*n:(i+2)*n], s.v[i*n:(i+1)*n]
			for j := 1; j < n-1; j++ {
				out[j] = row[j] + r*(up[j]+down[j]+row[j-1]+row[j+1]-4*row[j])
			}
		}
		s.u, s.v = s.v, s.u
		s.t += r * s.h() * s.h()
	}
}

// deviation returns the largest difference of a field of n x n points from the
// solution at time t. It is NaN if the field holds a NaN.
func deviation(u []float64, n int, t float64) float64 {
	sines := make([]float64, n)
	for i := 1; i < n-1; i++ {
		sines[i] = math.Sin(math.Pi * float64(i) / float64(n-1))
	}
	amplitude, worst := math.Exp(-2*math.Pi*math.Pi*t), 0.0
	for i := range n {
		for j := range n {
			d := math.Abs(u[i*n+j] - amplitude*sines[i]*sines[j])
			if d > worst || math.IsNaN(d) {
				worst = d
			}
			if math.IsNaN(worst) {
				return worst
			}
		}
	}
	return worst
}

// tolerance is h^2, see heat.
func tolerance(n int) float64 { return 1 / float64((n-1)*(n-1)) }
