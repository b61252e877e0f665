package endpoint

import (
	"reflect"
	"strings"
	"unsafe"
)

// clone returns a copy of a whole world, whatever it is made of, that shares
// nothing with it but functions, errors, and what the crypto packages made, which
// does not change.
func clone[T any](world *T) *T {
	c := cloner{}
	return c.pointer(reflect.ValueOf(world)).Interface().(*T)
}

// spot is where a value lies; a struct and its first field lie at one address.
type spot struct {
	at unsafe.Pointer
	of reflect.Type
}

// cloner maps what was met already to its copy.
type cloner map[spot]reflect.Value

func (c cloner) pointer(src reflect.Value) reflect.Value {
	if src.IsNil() || src.Type().Implements(reflect.TypeFor[error]()) || constant(src.Type().Elem().PkgPath()) {
		return src
	}
	if dst, ok := c[spot{src.UnsafePointer(), src.Type()}]; ok {
		return dst
	}
	dst := reflect.New(src.Type().Elem())
	c[spot{src.UnsafePointer(), src.Type()}] = dst
	c.meet(dst.Elem(), src.Elem())
	c.copy(dst.Elem(), src.Elem())
	return dst
}

// constant tells packages whose values do not change, or are known by where they
// are.
func constant(path string) bool { return strings.HasPrefix(path, "crypto/") || path == "net/netip" }

// meet notes where the copies of a struct and of all structs that lie in it will
// be: pointers to the inside may come before.
func (c cloner) meet(dst, src reflect.Value) {
	if src.Kind() != reflect.Struct {
		return
	}
	c[spot{src.Addr().UnsafePointer(), src.Addr().Type()}] = dst.Addr()
	for i := range src.NumField() {
		if src.Field(i).Kind() == reflect.Struct {
			c.meet(open(dst.Field(i)), open(src.Field(i)))
		}
	}
}

// open lifts the protection of a field that is not exported.
func open(field reflect.Value) reflect.Value {
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()
}

// copy fills in dst; both are addressable.
func (c cloner) copy(dst, src reflect.Value) {
	switch src.Kind() {
	case reflect.Pointer:
		dst.Set(c.pointer(src))
	case reflect.Struct:
		for i := range src.NumField() {
			c.copy(open(dst.Field(i)), open(src.Field(i)))
		}
	case reflect.Array:
		for i := range src.Len() {
			c.copy(dst.Index(i), src.Index(i))
		}
	case reflect.Slice:
		if src.IsNil() {
			return
		}
		dst.Set(reflect.MakeSlice(src.Type(), src.Len(), src.Len()))
		if plain(src.Type().Elem()) {
			reflect.Copy(dst, src)
			return
		}
		for i := range src.Len() {
			c.meet(dst.Index(i), src.Index(i))
			c.copy(dst.Index(i), src.Index(i))
		}
	case reflect.Map:
		if src.IsNil() {
			return
		}
		dst.Set(reflect.MakeMapWithSize(src.Type(), src.Len()))
		for it := src.MapRange(); it.Next(); {
			dst.SetMapIndex(c.value(it.Key()), c.value(it.Value()))
		}
	case reflect.Interface:
		if !src.IsNil() {
			dst.Set(c.value(src.Elem()))
		}
	default:
		dst.Set(src)
	}
}

// value copies a value that is not addressable.
func (c cloner) value(src reflect.Value) reflect.Value {
	held, dst := reflect.New(src.Type()).Elem(), reflect.New(src.Type()).Elem()
	held.Set(src)
	c.copy(dst, held)
	return dst
}

func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Struct, reflect.Array, reflect.Slice, reflect.Map, reflect.Interface:
		return false
	}
	return true
}
