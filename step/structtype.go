package step

import "fmt"

// StructType describes the elements of a Struct variable, as C would lay them
// out in the writer's memory.
type StructType struct {
	Name   string
	Size   int // bytes of one element, padding included
	Fields []StructField
}

// StructField is one member. Struct and String members do not exist in BP5.
type StructField struct {
	Name   string
	Type   Type
	Offset int // bytes from the start of the element
	Count  int // elements of a fixed array, 1 for a single one
}

// Size returns the bytes the member takes.
func (f StructField) Size() int { return f.Type.Size() * f.Count }

// Validate reports what is wrong with the description, if anything.
func (t *StructType) Validate() error {
	if t.Name == "" || t.Size <= 0 || len(t.Fields) == 0 {
		return fmt.Errorf("step: struct %q of %d bytes and %d fields: needs a name, a size and fields", t.Name, t.Size, len(t.Fields))
	}
	for _, f := range t.Fields {
		switch {
		case f.Type.Size() == 0 || f.Count < 1:
			return fmt.Errorf("step: struct %q: field %q of type %v, %d elements: not possible in a struct", t.Name, f.Name, f.Type, f.Count)
		case f.Offset < 0 || f.Offset > t.Size || f.Size() > t.Size-f.Offset:
			return fmt.Errorf("step: struct %q: field %q at offset %d leaves the %d bytes of the struct", t.Name, f.Name, f.Offset, t.Size)
		}
	}
	return nil
}
