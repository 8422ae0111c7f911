package bp5

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/internal/wire/ffs"
)

// maxElemSize bounds the element size that a field name may claim: that of the largest record of a format.
const maxElemSize = 1<<31 - 1

// ParseFieldName is the inverse of VarDesc.FieldName. It leaves Type and ElemSize of values zero: those are in the field's
// type. Any type code is accepted; what it means is for the reader of the data to know.
//
// wire: BPg_NAME, BPl_NAME (values) | BPG_SIZE_TYPE_NAME (arrays; L and J alike) | BPG_SIZE_16_HEXID_NAME (structs) |
// BPG-LEN-BASE64-SIZE_TYPE_NAME (with an expression) (docs/wire/bp5.md §2.1)
func ParseFieldName(s string) (VarDesc, error) {
	if len(s) < 4 || s[:2] != "BP" {
		return VarDesc{}, fmt.Errorf("bp5: field %q of a metadata format is no variable: %w", clip(s), ErrBadRecord)
	}
	d := VarDesc{Kind: Kind(s[2])}
	var err error
	switch {
	case d.Kind == GlobalValue || d.Kind == LocalValue:
		if s[3] != '_' {
			err = fmt.Errorf("%q instead of '_'", s[3])
		}
		d.Name = s[4:]
	case d.Kind.IsArray():
		err = d.parseArrayName(s[3:])
	default:
		err = fmt.Errorf("unknown shape kind %q", s[2])
	}
	if err != nil {
		return VarDesc{}, fmt.Errorf("bp5: field %q: %w: %w", clip(s), err, ErrBadRecord)
	}
	return d, nil
}

// parseArrayName parses what follows the kind letter. Names hold anything, underscores too, so it splits from the left.
func (v *VarDesc) parseArrayName(s string) (err error) {
	if s[0] == '-' {
		if s, err = v.parseExpression(s[1:]); err != nil {
			return err
		}
	} else if s[0] != '_' {
		return fmt.Errorf("%q instead of '_' or '-'", s[0])
	} else {
		s = s[1:]
	}
	size, s, ok1 := strings.Cut(s, "_")
	code, name, ok2 := strings.Cut(s, "_")
	if !ok1 || !ok2 {
		return fmt.Errorf("no element size and type")
	}
	n, err := parseDecimal(size, maxElemSize)
	if err != nil || n == 0 {
		return fmt.Errorf("element size %q", clip(size))
	}
	t, err := parseDecimal(code, 255)
	if err != nil {
		return fmt.Errorf("type code %q", clip(code))
	}
	v.ElemSize, v.Type, v.Name = n, Type(t), name
	if v.Type == Struct {
		return v.parseStructID(name)
	}
	return nil
}

// parseExpression cuts LEN-BASE64- off the front. The length counts, not the next '-': base64 has none, but nobody
// promises that the text is base64.
func (v *VarDesc) parseExpression(s string) (rest string, err error) {
	length, s, ok := strings.Cut(s, "-")
	n, err := parseDecimal(length, len(s))
	if !ok || err != nil || n >= len(s) || s[n] != '-' {
		return "", fmt.Errorf("expression of length %q", clip(length))
	}
	v.Expression = s[:n]
	return s[n+1:], nil
}

// parseStructID cuts HEXID_ off the front of a struct array's name. Only lower-case digits are taken: the id is looked
// up as ADIOS2 spells it.
func (v *VarDesc) parseStructID(s string) error {
	id, name, ok := strings.Cut(s, "_")
	parsed, err := ffs.ParseID(id)
	if !ok || err != nil || strings.ToLower(id) != id {
		return fmt.Errorf("struct id %q", clip(id))
	}
	v.StructID, v.Name = parsed, name
	return nil
}

// parseDecimal parses a plain decimal number up to most.
func parseDecimal(s string, most int) (int, error) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.Atoi(s)
	if err == nil && n > most {
		return 0, strconv.ErrRange
	}
	return n, err
}

// clip shortens text from outside for error texts.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// valueType returns the element type of a single value, or of the elements of an old-style attribute, and its size. They
// follow from the FFS type (docs/wire/bp5.md §2.1); None means a type that BP5 does not use there.
func valueType(t ffs.Type, size int) (Type, int) {
	switch t.Kind {
	case ffs.Integer, ffs.Unsigned:
		base := Int8
		if t.Kind == ffs.Unsigned {
			base = Uint8
		}
		switch size {
		case 1:
			return base, 1
		case 2:
			return base + 1, 2
		case 4:
			return base + 2, 4
		case 8:
			return base + 3, 8
		}
	case ffs.Float:
		switch size {
		case 4:
			return Float, 4
		case 8:
			return Double, 8
		case 16:
			return LongDouble, 16
		}
	case ffs.Char:
		if size == 1 {
			return Char, 1
		}
	case ffs.String:
		return String, 0
	case ffs.Substruct:
		switch {
		case t.Struct == complex4Name && size == 8:
			return ComplexFloat, 8
		case t.Struct == complex8Name && size == 16:
			return ComplexDouble, 16
		}
	}
	return None, size
}
