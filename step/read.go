package step

import "context"

// Read reads a whole variable by name into a new slice: [Lookup] and [Var.Get]
// in one. It is the short way for programs that take arrays as they are.
func Read[T Element](ctx context.Context, s *Step, name string) ([]T, error) {
	v, err := Lookup[T](s, name)
	if err != nil {
		return nil, err
	}
	return v.Get(ctx, All, nil)
}
