package operator_test

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/operator"
)

// A stored block says itself which operator made it.
func Example() {
	block := operator.AppendNull(nil, []byte("abcd"))
	id, _, err := operator.FrameID(block)
	if err != nil {
		fmt.Println(err)
		return
	}
	dst := make([]byte, 4) // the size that the metadata promises
	err = operator.Decode(dst, block, operator.Block{Count: []uint64{4}, ElemSize: 1})
	fmt.Println(id, string(dst), err)
	// Output: null abcd <nil>
}

// A block of an operator that is not there fails alone, and says what is
// missing.
func ExampleUnsupportedError() {
	block := operator.AppendFrame(nil, operator.ZFP, 1)
	err := operator.Decode(make([]byte, 8), block, operator.Block{})
	fmt.Println(errors.Is(err, operator.ErrUnsupported), err)
	// Output: true operator: zfp (number 7): unsupported
}
