package sst

// Side is a set of the two sides of a stream.
type Side = side

// The sides.
const (
	WriterSide = writerSide
	ReaderSide = readerSide
)

// EffectiveParam is a parameter as it works in a stream.
type EffectiveParam struct {
	Name  string `json:"name"`
	Value string `json:"value"` // the default, if none was set
	Set   bool   `json:"set"`   // the value was set, and is not the default
}

// Effective lists every parameter of a side with the value that is in effect,
// in the order of [ParamList]. It is an error if p has one that is out of range,
// or of the other side.
func (p Params) Effective(s Side) ([]EffectiveParam, error) {
	p, err := p.resolve(s)
	if err != nil {
		return nil, err
	}
	var list []EffectiveParam
	for i := range paramTable {
		d := &paramTable[i]
		if d.sides&s == 0 {
			continue
		}
		e := EffectiveParam{Name: d.name, Value: d.def}
		if d.isSet(&p) && d.get(&p) != d.def {
			e.Value, e.Set = d.get(&p), true
		}
		list = append(list, e)
	}
	return list, nil
}
