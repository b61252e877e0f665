// Package page makes the playground's page: one HTML file that holds its style,
// its scripts and the WebAssembly, and asks for nothing else.
package page

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed index.html style.css *.js
var files embed.FS

// scripts are the page's own, in the order in which they run.
var scripts = []string{"core.js", "diagram.js", "charts.js", "panels.js", "inspector.js", "situations.js", "app.js"}

// program is what the page runs.
const program = "github.com/ackbits/ackbits/examples/playground/wasm"

// Build compiles the program to WebAssembly, with the Go that is installed, and
// returns the page.
func Build() ([]byte, error) {
	packed, err := Program()
	if err != nil {
		return nil, err
	}
	glue, err := loader()
	if err != nil {
		return nil, err
	}
	return assemble(glue, packed)
}

// Program returns the WebAssembly as the page holds it: compressed.
func Program() ([]byte, error) {
	wasm, err := compile()
	if err != nil {
		return nil, err
	}
	return pack(wasm)
}

// compile returns the program, built in a folder of its own; Go's build cache
// makes it quick the second time.
func compile() ([]byte, error) {
	dir, err := os.MkdirTemp("", "playground")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "playground.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, program)
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the page's WebAssembly, which works inside the repository of ackbits only: %w\n%s", err, text)
	}
	return os.ReadFile(file)
}

// loader returns Go's own script that runs its WebAssembly. It belongs to the
// version of Go that compiled it.
func loader() (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	return string(text), err
}

// pack compresses the program. The page unpacks it with DecompressionStream.
func pack(wasm []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(wasm); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// assemble puts all parts into the page.
func assemble(glue string, packed []byte) ([]byte, error) {
	html, err := files.ReadFile("index.html")
	if err != nil {
		return nil, err
	}
	style, err := files.ReadFile("style.css")
	if err != nil {
		return nil, err
	}
	var code strings.Builder
	for _, name := range scripts {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&code, "// %s\n%s\n", name, text)
	}
	if strings.Contains(glue+code.String(), "</script") {
		return nil, errors.New("a script would end its element")
	}
	return []byte(strings.NewReplacer(
		"/*STYLE*/", string(style),
		"/*LOADER*/", glue,
		"/*SCRIPT*/", code.String(),
		"/*WASM*/", base64.StdEncoding.EncodeToString(packed),
	).Replace(string(html))), nil
}

// Handler serves the page.
func Handler(html []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(html))
	})
}
