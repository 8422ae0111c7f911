package cm

import "testing"

func TestAtoms(t *testing.T) {
	for _, a := range atomNames {
		if got := Atom(a.name); got != a.atom {
			t.Errorf("Atom(%q) = %#08x, the constant is %#08x", a.name, got, a.atom)
		}
		if name, ok := atomName(a.atom); !ok || name != a.name {
			t.Errorf("atomName(%#08x) = %q, %v", a.atom, name, ok)
		}
	}
	if _, ok := atomName(Atom("no such attribute")); ok {
		t.Error("an unknown atom has a name")
	}
}
