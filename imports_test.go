package ackbits

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const modulePath = "github.com/ackbits/ackbits"

// allowedImports is what the library takes of the standard library: nothing
// that does I/O, tells the time behind the caller's back, locks or draws lots.
var allowedImports = map[string]bool{
	"errors": true, "encoding/binary": true, "iter": true, "math": true,
	"math/bits": true, "slices": true, "strconv": true, "time": true,
}

// source is a package of the library, without its tests.
type source struct {
	path  string
	files []*ast.File
	info  types.Info
	scope *types.Scope
}

// library parses the root package and every package of the module that it
// imports, directly or not.
func library(t *testing.T) (packages []*source, fset *token.FileSet) {
	fset = token.NewFileSet()
	seen := map[string]bool{modulePath: true}
	for todo := []string{modulePath}; len(todo) > 0; todo = todo[1:] {
		pkg := parsePackage(t, fset, todo[0])
		packages = append(packages, pkg)
		for _, path := range pkg.imports(t) {
			if strings.HasPrefix(path, modulePath+"/internal/") && !seen[path] {
				seen[path] = true
				todo = append(todo, path)
			}
		}
	}
	return packages, fset
}

func parsePackage(t *testing.T, fset *token.FileSet, path string) *source {
	dir := filepath.Join(".", filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(path, modulePath), "/")))
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	pkg := &source{path: path, info: types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		pkg.files = append(pkg.files, file)
	}
	require.NotEmpty(t, pkg.files, path)
	// Names are all that is asked of the checker: what other packages declare
	// stays unknown, and the errors about that are of no interest.
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	checked, _ := config.Check(path, fset, pkg.files, &pkg.info)
	pkg.scope = checked.Scope()
	return pkg
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not asked for") }

func (s *source) imports(t *testing.T) (paths []string) {
	for _, file := range s.files {
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			paths = append(paths, path)
		}
	}
	return paths
}

// inspect visits every node of a package.
func (s *source) inspect(visit func(ast.Node)) {
	for _, file := range s.files {
		ast.Inspect(file, func(n ast.Node) bool {
			visit(n)
			return true
		})
	}
}

// global returns the variable of the package in which an expression lies, if
// any: v of v, v.f, v[i], *v and (v).
func (s *source) global(e ast.Expr) *types.Var {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			v, _ := s.info.Uses[x].(*types.Var)
			if v != nil && v.Parent() == s.scope {
				return v
			}
			return nil
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

func TestLibraryImportsOnlyWhatItMay(t *testing.T) {
	packages, _ := library(t)
	require.Greater(t, len(packages), 1, "the internal packages were found")
	for _, pkg := range packages {
		for _, path := range pkg.imports(t) {
			if !strings.HasPrefix(path, modulePath+"/internal/") {
				require.True(t, allowedImports[path], "%s imports %s", pkg.path, path)
			}
		}
	}
}

func TestClockIsReadInOnePlace(t *testing.T) {
	packages, fset := library(t)
	var reads []string
	for _, pkg := range packages {
		pkg.inspect(func(n ast.Node) {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				x, _ := sel.X.(*ast.Ident)
				if x != nil && x.Name == "time" && clockReaders[sel.Sel.Name] {
					reads = append(reads, fset.Position(sel.Pos()).Filename+" "+sel.Sel.Name)
				}
			}
		})
	}
	require.Equal(t, []string{"clock.go Now"}, reads)
}

// clockReaders are the functions of package time that look at the clock or wait
// for it.
var clockReaders = map[string]bool{
	"Now": true, "Since": true, "Until": true, "After": true, "AfterFunc": true,
	"NewTimer": true, "NewTicker": true, "Tick": true, "Sleep": true,
}

func TestLibraryStartsNoGoroutine(t *testing.T) {
	packages, fset := library(t)
	for _, pkg := range packages {
		pkg.inspect(func(n ast.Node) {
			switch n.(type) {
			case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt:
				t.Errorf("%s: the library knows no concurrency", fset.Position(n.Pos()))
			}
		})
	}
}

func TestNoGlobalVariableChanges(t *testing.T) {
	packages, fset := library(t)
	for _, pkg := range packages {
		changed := func(at ast.Node, e ast.Expr) {
			if e == nil {
				return
			}
			if v := pkg.global(e); v != nil {
				t.Errorf("%s: %s changes, or could", fset.Position(at.Pos()), v.Name())
			}
		}
		pkg.inspect(func(n ast.Node) {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					changed(n, e)
				}
			case *ast.IncDecStmt:
				changed(n, n.X)
			case *ast.RangeStmt:
				changed(n, n.Key)
				changed(n, n.Value)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					changed(n, n.X)
				}
			}
		})
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	packages, fset := library(t)
	for _, pkg := range packages {
		exported := func(name *ast.Ident, docs ...*ast.CommentGroup) {
			if !name.IsExported() {
				return
			}
			for _, doc := range docs {
				if doc.Text() != "" {
					return
				}
			}
			t.Errorf("%s: %s has no comment", fset.Position(name.Pos()), name.Name)
		}
		documentedTypes := map[string]*ast.CommentGroup{}
		pkg.inspect(func(n ast.Node) {
			if decl, ok := n.(*ast.GenDecl); ok && decl.Tok == token.TYPE {
				for _, spec := range decl.Specs {
					spec := spec.(*ast.TypeSpec)
					exported(spec.Name, spec.Doc, decl.Doc)
					documentedTypes[spec.Name.Name] = decl.Doc
				}
			}
		})
		pkg.inspect(func(n ast.Node) {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil || ast.IsExported(receiverName(n)) {
					exported(n.Name, n.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range n.Specs {
					if spec, ok := spec.(*ast.ValueSpec); ok {
						var kind *ast.CommentGroup // a type's comment tells of its constants
						if id, ok := spec.Type.(*ast.Ident); ok && n.Tok == token.CONST {
							kind = documentedTypes[id.Name]
						}
						for _, name := range spec.Names {
							exported(name, spec.Doc, spec.Comment, n.Doc, kind)
						}
					}
				}
			}
		})
	}
}

// receiverName returns the name of a method's type.
func receiverName(f *ast.FuncDecl) string {
	e := f.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
