package sys

import "github.com/weft-fabric/weft/internal/testutil"

// roles are what child processes of the tests do; each file that needs one adds it here.
var roles = []testutil.Role{
	{Name: "connect", Run: roleConnect},
	{Name: "container", Run: roleContainer},
	{Name: "crowded", Run: roleCrowded},
	{Name: "wake", Run: roleWake},
	{Name: "memory", Run: roleMemory},
	{Name: "own", Run: roleOwn},
	{Name: "forbidden", Run: roleForbidden},
}
