package sst

// ParamValue is one effective engine parameter.
type ParamValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Set says that the value was given; else it is the default.
	Set bool `json:"set"`
}

// ForWriter returns the parameters as they work for a writer, in the order of
// [ParamList]. What only a reader has is left out.
func (p *Params) ForWriter() []ParamValue { return p.values(writerSide) }

// ForReader is ForWriter for the other side.
func (p *Params) ForReader() []ParamValue { return p.values(readerSide) }

func (p *Params) values(s side) []ParamValue {
	var list []ParamValue
	for i := range paramTable {
		d := &paramTable[i]
		if d.sides&s == 0 {
			continue
		}
		v := ParamValue{Name: d.name, Value: d.def}
		if d.isSet(p) {
			v.Value, v.Set = d.get(p), true
		}
		list = append(list, v)
	}
	return list
}
