package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// compiled is a package compiled with all of its mutants in it, and with tests.
type compiled struct {
	prefix  string // the package's folder in the module, with a slash; "" for the root
	mutants []mutant
	suites  []*suite
}

// compile builds the tests of the package in dir, and, if that lies in internal/,
// those of the module's root, against the package with all its mutants. What it
// writes lies in work.
func compile(dir, work string) (*compiled, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := moduleOf(dir)
	if err != nil {
		return nil, err
	}
	b := &compiled{prefix: filepath.ToSlash(strings.TrimPrefix(dir, root))}
	if b.prefix != "" {
		b.prefix = b.prefix[1:] + "/"
	}
	p, err := load(dir)
	if err != nil {
		return nil, err
	}
	overlay, err := b.write(p, dir, work)
	if err != nil {
		return nil, err
	}
	tested := []string{dir}
	if strings.HasPrefix(b.prefix, "internal/") {
		tested = append(tested, root)
	}
	for i, d := range tested {
		s, err := newSuite(d, overlay, filepath.Join(work, fmt.Sprintf("%d.test", i)))
		if err != nil {
			return nil, err
		}
		b.suites = append(b.suites, s)
	}
	return b, nil
}

// write puts the package with all its mutants into work and returns the path of the
// overlay that makes the compiler take it from there.
func (b *compiled) write(p *pkg, dir, work string) (string, error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	put := func(name string, text []byte) error {
		path := filepath.Join(work, name)
		overlay.Replace[filepath.Join(dir, name)] = path
		return os.WriteFile(path, text, 0o644)
	}
	for _, f := range p.files {
		text, found := p.instrument(f, len(b.mutants)+1)
		b.mutants = append(b.mutants, found...)
		if err := put(f.name, text); err != nil {
			return "", err
		}
	}
	name(b.mutants, b.prefix)
	if err := put("zz_mutants.go", fmt.Appendf(nil, helpers, p.name, len(b.mutants)+1)); err != nil {
		return "", err
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	path := filepath.Join(work, "overlay.json")
	return path, os.WriteFile(path, text, 0o644)
}

// moduleOf returns the folder of the go.mod that dir belongs to.
func moduleOf(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is in no module", dir)
		}
	}
}

// newSuite compiles the tests of the package in dir.
func newSuite(dir, overlay, binary string) (*suite, error) {
	c := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w:\n%s", err, out)
	}
	s := &suite{binary: binary, dir: dir, flags: []string{"-test.short", "-test.failfast"}}
	rapid := []string{"-rapid.nofailfile", "-rapid.shrinktime=1ms"}
	if exec.Command(binary, append(rapid, "-test.list=^$")...).Run() == nil {
		s.flags = append(s.flags, rapid...) // these tests use rapid
	}
	return s, nil
}
