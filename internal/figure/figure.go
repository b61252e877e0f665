// Package figure finishes the SVG charts of this repository: a title and a
// description for those who cannot see them, and colors that follow the reader's
// light or dark theme. A program without style sheets shows the light ones.
package figure

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"regexp"
	"strings"
)

// Color is one color by theme: draw with the light one, and the style sheet
// replaces it in the dark.
type Color struct{ Light, Dark color.RGBA }

func rgb(light, dark uint32) Color {
	of := func(c uint32) color.RGBA { return color.RGBA{uint8(c >> 16), uint8(c >> 8), uint8(c), 0xff} }
	return Color{of(light), of(dark)}
}

// The colors, and what each is for. No two have the same light one.
var (
	Ground = rgb(0xffffff, 0x161b22) // behind everything
	Ink    = rgb(0x2b3036, 0xe6eaee) // letters
	Rule   = rgb(0x8a929b, 0x7d8590) // axes
	Faint  = rgb(0xe3e6ea, 0x3a414a) // grid
	Shade  = rgb(0xfbecea, 0x3a1f1f) // a time at which something is wrong
	Bad    = rgb(0xc8322a, 0xff7b72)
	Good   = rgb(0x0a7d54, 0x3fb98a)

	Green  = rgb(0x0a7d55, 0x40ba8b)
	Blue   = rgb(0x2a62c9, 0x79a8ff)
	Violet = rgb(0x7c4dbd, 0xbe95ff)
	Teal   = rgb(0x0b8a9b, 0x39c5d8)
	Slate  = rgb(0x5a6778, 0xa3b1c2)
	Olive  = rgb(0x7c9000, 0xb8d332)
	Orange = rgb(0xc96a00, 0xffa657)
	Red    = rgb(0xc8322b, 0xff7b73)
	Pink   = rgb(0xd4588a, 0xf79ac0)
	Brown  = rgb(0x8c643c, 0xc9a27a)
	Navy   = rgb(0x1f4e79, 0x79b8f0)
	Sky    = rgb(0x6ba0d4, 0x4878a3)
)

var colors = []Color{Ground, Ink, Rule, Faint, Shade, Bad, Good, Green, Blue, Violet, Teal, Slate, Olive, Orange, Red, Pink, Brown, Navy, Sky}

// Hex is a color as CSS and gonum's SVG write it.
func Hex(c color.RGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }

// Style is the style sheet of the dark theme, for charts and whatever else in the
// page has the light colors in a style of its own.
func Style() string {
	var b strings.Builder
	b.WriteString("@media (prefers-color-scheme: dark) {\n")
	for _, c := range colors {
		for _, property := range []string{"fill", "stroke"} {
			fmt.Fprintf(&b, "[style*=\"%s:%s\"] { %s: %s !important; }\n", property, Hex(c.Light), property, Hex(c.Dark))
		}
	}
	b.WriteString("}\n")
	return b.String()
}

var opening = regexp.MustCompile(`<svg width="([0-9.]+)pt" height="([0-9.]+)pt"[^>]*>`)

// Inline returns a chart that gonum drew, for a page that has the Style: with a
// role, a title and a description, a ground, and fonts that every reader has.
func Inline(svg []byte, title, description string) string {
	svg = svg[max(bytes.Index(svg, []byte("<svg")), 0):] // without the XML prologue
	svg = opening.ReplaceAllFunc(svg, func([]byte) []byte {
		size := opening.FindSubmatch(svg)
		return fmt.Appendf(nil, `<svg role="img" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" xmlns="http://www.w3.org/2000/svg">
<title>%[3]s</title>
<desc>%[4]s</desc>
<rect width="100%%" height="100%%" style="fill:%[5]s" />`, size[1], size[2], html.EscapeString(title), html.EscapeString(description), Hex(Ground.Light))
	})
	// Fonts of the same widths, for readers without that one.
	svg = bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	svg = bytes.ReplaceAll(svg, []byte("font-variant:normal;"), nil)
	svg = bytes.ReplaceAll(svg, []byte("font-style:normal;"), nil)
	return string(bytes.ReplaceAll(svg, []byte("font-weight:normal;"), nil))
}

// Decoration returns a drawing that adds nothing to the text beside it, for a page that has the
// Style.
func Decoration(svg []byte) string {
	svg = svg[max(bytes.Index(svg, []byte("<svg")), 0):]
	return string(bytes.TrimSpace(opening.ReplaceAll(svg, []byte(`<svg aria-hidden="true" width="$1" height="$2" viewBox="0 0 $1 $2" xmlns="http://www.w3.org/2000/svg">`))))
}

// File returns a chart that stands alone.
func File(svg []byte, title, description string) []byte {
	inline := Inline(svg, title, description)
	end := strings.Index(inline, "<rect")
	return []byte(inline[:end] + "<style>\n" + Style() + "</style>\n" + inline[end:])
}
