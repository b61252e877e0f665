// Package trace finds the requirements of docs/protocol.md and what cites them: the
// code that keeps each and the tests that fail without it. A citation is a number
// like P-4.1.2 in a comment; in a test it stands in the comment or in the body of
// the test itself.
package trace

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Requirement is one rule of the document.
type Requirement struct {
	ID      string // P-chapter.section.rule
	Section string // the heading above it
	Text    string // its first sentence, as far as it goes on the first line
	Line    int
}

var (
	rule     = regexp.MustCompile(`^- \*\*(P-\d+\.\d+\.\d+)\*\* (.+)$`)
	heading  = regexp.MustCompile(`^#{2,3} (.+)$`)
	citation = regexp.MustCompile(`\bP-\d+\.\d+\.\d+\b`)
)

// Document returns the requirements of a document, in their order.
func Document(text string) (found []Requirement) {
	section := ""
	for i, line := range strings.Split(text, "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			section = m[1]
		}
		if m := rule.FindStringSubmatch(line); m != nil {
			found = append(found, Requirement{ID: m[1], Section: section, Text: sentence(m[2]), Line: i + 1})
		}
	}
	return found
}

// sentence returns the first sentence of a text.
func sentence(text string) string {
	for i := range text {
		if strings.HasPrefix(text[i:], ". ") && !strings.HasSuffix(text[:i], "e.g") {
			return text[:i+1]
		}
	}
	return text
}

// Numbers returns the parts of an id.
func Numbers(id string) (n [3]int) {
	for i, part := range strings.Split(strings.TrimPrefix(id, "P-"), ".") {
		n[i], _ = strconv.Atoi(part) // the pattern admits digits only
	}
	return n
}

// Compare orders ids by their numbers.
func Compare(a, b string) int {
	x, y := Numbers(a), Numbers(b)
	return slices.Compare(x[:], y[:])
}

// Mentions returns the ids that a text names.
func Mentions(text string) []string { return citation.FindAllString(text, -1) }

// Citation is a place that cites a requirement.
type Citation struct {
	ID       string
	File     string // relative to the module, with slashes
	Line     int
	Name     string // of the declaration that it belongs to
	Test     bool   // in a test
	From, To int    // the lines of what it stands for: a statement or a declaration
}

// Sources returns the citations in the Go files of the module in dir, nested
// modules and hidden folders apart.
func Sources(dir string) (found []Citation, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != dir:
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" {
				return filepath.SkipDir
			}
		case strings.HasSuffix(path, ".go"):
			relative, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			of, err := file(path, filepath.ToSlash(relative))
			found = append(found, of...)
			return err
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b Citation) int {
		return cmp.Or(Compare(a.ID, b.ID), strings.Compare(a.File, b.File), a.Line-b.Line)
	})
	return found, err
}

// file returns the citations of a file.
func file(path, name string) (found []Citation, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	test := strings.HasSuffix(name, "_test.go")
	for _, group := range f.Comments {
		for _, comment := range group.List {
			for _, id := range Mentions(comment.Text) {
				c := Citation{ID: id, File: name, Test: test, Line: fset.Position(comment.Pos()).Line}
				decl, guard := place(f, fset, group)
				if decl == nil {
					c.Name, c.From, c.To = "package "+f.Name.Name, 1, 1
				} else {
					c.Name = declared(decl, group)
					c.From, c.To = fset.Position(guard.Pos()).Line, fset.Position(guard.End()).Line
				}
				if test && !isTest(c.Name) {
					return nil, fmt.Errorf("%s:%d: %s is cited outside of a test", name, c.Line, id)
				}
				if !slices.ContainsFunc(found, func(o Citation) bool { return o.ID == c.ID && o.Name == c.Name && o.From == c.From }) {
					found = append(found, c)
				}
			}
		}
	}
	return found, nil
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example")
}

// place returns the declaration that a comment belongs to and what it stands for:
// the declaration, if the comment is above it or on it, or the statement of it that
// the comment is above or beside.
func place(f *ast.File, fset *token.FileSet, group *ast.CommentGroup) (decl ast.Decl, guard ast.Node) {
	for _, d := range f.Decls {
		from := d.Pos()
		if doc := docOf(d); doc != nil {
			from = doc.Pos()
		}
		if from <= group.Pos() && group.Pos() < d.End() || fset.Position(d.End()).Line == fset.Position(group.Pos()).Line {
			decl = d
			break
		}
	}
	fn, ok := decl.(*ast.FuncDecl)
	if !ok || fn.Body == nil || group.Pos() < fn.Body.Pos() {
		return decl, decl
	}
	line := fset.Position(group.Pos()).Line
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		s, ok := n.(ast.Stmt)
		if _, block := n.(*ast.BlockStmt); !ok || block {
			return true
		}
		beside := fset.Position(s.Pos()).Line == line && s.Pos() < group.Pos()
		above := s.Pos() > group.Pos()
		if guard == nil && (beside || above) {
			guard = s
		}
		return guard == nil
	})
	if guard == nil {
		guard = fn
	}
	return decl, guard
}

func docOf(d ast.Decl) *ast.CommentGroup {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Doc
	case *ast.GenDecl:
		return d.Doc
	}
	return nil
}

// declared names a declaration; of a group of them the one that a comment is at.
func declared(d ast.Decl, group *ast.CommentGroup) string {
	if fn, ok := d.(*ast.FuncDecl); ok {
		if fn.Recv == nil {
			return fn.Name.Name
		}
		t := fn.Recv.List[0].Type
		if star, ok := t.(*ast.StarExpr); ok {
			t = star.X
		}
		if id, ok := t.(*ast.Ident); ok {
			return id.Name + "." + fn.Name.Name
		}
		return fn.Name.Name
	}
	name := ""
	for _, spec := range d.(*ast.GenDecl).Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			name = spec.Name.Name
		case *ast.ValueSpec:
			name = spec.Names[0].Name
		}
		if spec.End() > group.Pos() {
			break
		}
	}
	return name
}
