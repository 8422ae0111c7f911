package fabrictest

import "testing"

func TestMain(m *testing.M) { Main(m, childWraps()...) }
