package step

import "errors"

// What reading a step can fail with, apart from [ErrSelection] and the errors
// of the [Source]. All are wrapped with the variable and the numbers in
// question; test with errors.Is.
var (
	// ErrNoVariable says that the step has no variable of that name. In a
	// stream a variable exists only in the steps in which it was put.
	ErrNoVariable = errors.New("no such variable")
	// ErrNoAttribute says that there is no attribute of that name.
	ErrNoAttribute = errors.New("no such attribute")
	// ErrType says that a variable or attribute has another element type than
	// was asked for.
	ErrType = errors.New("wrong element type")
	// ErrStepEnded says that the step was ended; its data may be gone.
	ErrStepEnded = errors.New("step has ended")
	// ErrShortBuffer says that a destination is too small. Nothing was written
	// to it.
	ErrShortBuffer = errors.New("destination too short")
	// ErrTooLarge says that a slice would have to be made that is larger than
	// DecoderConfig.MaxAlloc.
	ErrTooLarge = errors.New("more memory than allowed")
	// ErrNotStored says that there is no data for a block, only its description:
	// the writer stored none, as for derived variables, or the step was made
	// without a source.
	ErrNotStored = errors.New("data not stored")
	// ErrUnreadable says that the element type or the definition of a variable
	// is not understood. It is listed all the same.
	ErrUnreadable = errors.New("unreadable variable")
	// ErrMetadata says that the records of the writers contradict themselves
	// or each other.
	ErrMetadata = errors.New("bad metadata")
	// ErrNoView says that a view is not possible; the text says why not.
	ErrNoView = errors.New("no view possible")
)
