package proto

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks may stand on one character. Vietnamese
// and Thai need two; more are stacked to write over the lines above.
const maxMarks = 2

// Clip makes a text of the user's fit to be sent: at most limit bytes, no
// control characters, no characters that show nothing, no stacks of combining
// marks, no spaces at either end. A text of nothing else becomes empty.
func Clip(s string, limit int) string {
	clean := make([]byte, 0, limit)
	marks := maxMarks // a mark needs something to stand on
	for _, c := range s {
		switch {
		case c == ' ':
			if len(clean) == 0 {
				continue
			}
			marks = maxMarks
		case !visible(c):
			continue
		case !unicode.Is(unicode.M, c):
			marks = 0
		case marks == maxMarks:
			continue
		default:
			marks++
		}
		if len(clean)+utf8.RuneLen(c) > limit {
			break
		}
		clean = utf8.AppendRune(clean, c)
	}
	return strings.TrimRight(string(clean), " ")
}

// visible reports whether a terminal shows something for a character. Some that
// count as letters show nothing, such as U+3164, the Hangul filler.
func visible(c rune) bool {
	switch {
	case c == utf8.RuneError, c == ' ', !unicode.IsPrint(c):
		return false
	case c == '\u2800': // a braille pattern without dots
		return false
	}
	return !unicode.In(c, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func appendText(dst []byte, s string) []byte {
	dst = append(dst, byte(len(s)))
	return append(dst, s...)
}
