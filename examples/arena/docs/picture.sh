#!/usr/bin/env bash
# Makes docs/play.png: what a player sees after a while among bots, as the terminal client
# draws it. freeze turns the colours of the terminal into an SVG, Chromium that into a
# PNG, because freeze's own renderer lacks some of the characters.
#
#   examples/arena/docs/picture.sh [arena screen's flags]
#
# It needs Chromium (or CHROMIUM=…) and the font DejaVu Sans Mono, which has all characters
# in one width.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go run . screen "$@" >"$dir/screen.ansi"
go run github.com/charmbracelet/freeze@v0.2.2 "$dir/screen.ansi" --language ansi -o "$dir/play.svg" \
	--font.family "DejaVu Sans Mono" --font.size 14 --line-height 1.2 --background '#1a202c' --padding 16 \
	--border.radius 8 --border.width 1 --border.color '#4a5568'
# The SVG says how large it is.
read -r width height < <(sed -n 's/.*<svg width="\([0-9]*\)[.0-9]*" height="\([0-9]*\).*/\1 \2/p' "$dir/play.svg" | head -1)
"${CHROMIUM:-chromium}" --headless --no-sandbox --hide-scrollbars --default-background-color=00000000 \
	--window-size="$((width + 1)),$((height + 1))" --screenshot="$dir/play.png" "file://$dir/play.svg" 2>"$dir/chromium.log" ||
	{ cat "$dir/chromium.log"; exit 1; }
mv "$dir/play.png" docs/play.png
ls -l docs/play.png
