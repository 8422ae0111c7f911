package memmon

import (
	"testing"

	"github.com/weft-fabric/weft/internal/testutil"
)

func TestMain(m *testing.M) {
	Process() // it stays for the life of the process
	testutil.Main(m, testutil.Role{Name: "process", Run: roleProcess})
}
