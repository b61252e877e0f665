package figure

import (
	"encoding/xml"
	"errors"
	"image/color"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const drawn = `<?xml version="1.0"?>
<!-- by someone -->
<svg width="430pt" height="200.5pt" viewBox="0 0 430 200.5"
	xmlns="http://www.w3.org/2000/svg"
	xmlns:xlink="http://www.w3.org/1999/xlink">
<text style="font-family:Liberation Sans;font-variant:normal;font-weight:bold;fill:#2B3036">x</text></svg>`

func TestAFileHasTitleRoleAndBothThemes(t *testing.T) {
	file := string(File([]byte(drawn), "Bytes < time", "what & why"))
	require.True(t, strings.HasPrefix(file, `<svg role="img" width="430" height="200.5" viewBox="0 0 430 200.5"`))
	require.Contains(t, file, "<title>Bytes &lt; time</title>\n<desc>what &amp; why</desc>")
	require.Contains(t, file, "prefers-color-scheme: dark")
	require.Contains(t, file, "Liberation Sans,Arial")
	for d := xml.NewDecoder(strings.NewReader(file)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	require.NotContains(t, Inline([]byte(drawn), "a", "b"), "<style>")
}

// The style sheet tells colors apart by their light values.
func TestNoTwoColorsAreAlike(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range colors {
		require.False(t, seen[Hex(c.Light)], Hex(c.Light))
		seen[Hex(c.Light)] = true
	}
}

// WCAG 2.2, 1.4.3 and 1.4.11: letters have a contrast of 4.5, what is drawn one of 3.
func TestContrast(t *testing.T) {
	for _, c := range []Color{Ink, Bad, Good} {
		require.Greater(t, contrast(c.Light, Ground.Light), 4.5, Hex(c.Light))
		require.Greater(t, contrast(c.Dark, Ground.Dark), 4.5, Hex(c.Light))
	}
	for _, c := range []Color{Rule, Green, Blue, Violet, Teal, Slate, Olive, Orange, Red, Pink, Brown, Navy} {
		require.Greater(t, contrast(c.Light, Ground.Light), 3., Hex(c.Light))
		require.Greater(t, contrast(c.Dark, Ground.Dark), 3., Hex(c.Light))
	}
}

func contrast(a, b color.RGBA) float64 {
	luminance := func(c color.RGBA) float64 {
		linear := func(v uint8) float64 {
			x := float64(v) / 255
			if x <= 0.04045 {
				return x / 12.92
			}
			return math.Pow((x+0.055)/1.055, 2.4)
		}
		return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}
