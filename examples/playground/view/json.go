package view

import (
	"reflect"
	"slices"
	"strconv"
)

// encode writes a value as JSON, with the names of fields as they are and lists
// that are nil as empty ones. It is encoding/json for the few kinds that views are
// made of: that package would make the page a tenth larger.
func encode(v any) []byte { return appendJSON(nil, reflect.ValueOf(v)) }

func appendJSON(dst []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10)
	case reflect.Uint8:
		return strconv.AppendUint(dst, v.Uint(), 10)
	case reflect.Float64:
		return strconv.AppendFloat(dst, v.Float(), 'g', -1, 64)
	case reflect.String:
		return appendString(dst, v.String())
	case reflect.Slice, reflect.Array:
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, v.Index(i))
		}
		return append(dst, ']')
	case reflect.Map:
		return appendMap(dst, v)
	case reflect.Struct:
		return append(appendFields(append(dst, '{'), v), '}')
	case reflect.Interface:
		return appendJSON(dst, v.Elem())
	}
	panic("view: no JSON for " + v.Kind().String())
}

// appendFields appends what a struct has to show; what is embedded in it counts
// as its own.
func appendFields(dst []byte, v reflect.Value) []byte {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		if dst[len(dst)-1] != '{' && dst[len(dst)-1] != ',' {
			dst = append(dst, ',')
		}
		if field.Anonymous {
			dst = appendFields(dst, v.Field(i))
			continue
		}
		dst = append(appendString(dst, field.Name), ':')
		dst = appendJSON(dst, v.Field(i))
	}
	return dst
}

// appendMap appends a map from strings, in the order of its keys.
func appendMap(dst []byte, v reflect.Value) []byte {
	keys := make([]string, 0, v.Len())
	for _, key := range v.MapKeys() {
		keys = append(keys, key.String())
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, key), ':')
		dst = appendJSON(dst, v.MapIndex(reflect.ValueOf(key)))
	}
	return append(dst, '}')
}

func appendString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
