package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one change.
type mutant struct {
	id   int
	file string
	line int
	fn   string
	code string // what is changed, as it stands
	text string // the line that it is in
	what string // and how
	key  string // its name in equivalent.txt; it does not move when lines do
}

// name gives the mutants of the package in the folder prefix their keys. The second
// of those that read the same gets a 2.
func name(mutants []mutant, prefix string) {
	seen := map[string]int{}
	for i := range mutants {
		m := &mutants[i]
		m.key = strings.Join(strings.Fields(fmt.Sprintf("%s%s %s: %s: %s: in %s", prefix, m.file, m.fn, m.code, m.what, m.text)), " ")
		seen[m.key]++
		if n := seen[m.key]; n > 1 {
			m.key += fmt.Sprintf(" (%d)", n)
		}
	}
}

type pkg struct {
	name  string
	fset  *token.FileSet
	files []*file
	info  *types.Info
	types *types.Package
}

type file struct {
	name string
	text []byte
	ast  *ast.File
}

// load parses and checks the package in dir, without its tests.
func load(dir string) (*pkg, error) {
	found, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	if err := os.Chdir(dir); err != nil { // the importer looks for the module here
		return nil, err
	}
	p := &pkg{name: found.Name, fset: token.NewFileSet(), info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
	}}
	var parsed []*ast.File
	for _, name := range found.GoFiles {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(p.fset, name, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, &file{name, text, f})
		parsed = append(parsed, f)
	}
	cfg := types.Config{Importer: importer.ForCompiler(p.fset, "source", nil)}
	p.types, err = cfg.Check(found.ImportPath, p.fset, parsed, p.info)
	return p, err
}

// instrumenter collects the edits of one file.
type instrumenter struct {
	*pkg
	f       *file
	id      int
	fn      string
	mutants []mutant
	insert  map[int]*strings.Builder // text to be put before an offset
	close   map[int]string           // and text that closes what was opened, which comes first
	blank   [][2]int                 // parts that are left out
	imports map[string]bool
}

// instrument returns the file with its mutants, numbered from id on.
func (p *pkg) instrument(f *file, id int) ([]byte, []mutant) {
	in := &instrumenter{pkg: p, f: f, id: id, insert: map[int]*strings.Builder{}, close: map[int]string{}, imports: map[string]bool{}}
	for _, i := range f.ast.Imports {
		in.imports[strings.Trim(i.Path.Value, `"`)] = true
	}
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			in.fn = fn.Name.Name
			in.block(fn.Body)
		}
	}
	var out strings.Builder
	blank := 0
	slices.SortFunc(in.blank, func(a, b [2]int) int { return a[0] - b[0] })
	for i := 0; i <= len(f.text); i++ {
		out.WriteString(in.close[i])
		if b := in.insert[i]; b != nil {
			out.WriteString(b.String())
		}
		for blank < len(in.blank) && in.blank[blank][1] <= i {
			blank++
		}
		if i < len(f.text) && (blank == len(in.blank) || i < in.blank[blank][0]) {
			out.WriteByte(f.text[i])
		}
	}
	return []byte(out.String()), in.mutants
}

func (in *instrumenter) offset(pos token.Pos) int { return in.fset.Position(pos).Offset }

// wrap puts text around a node. Outer nodes must be wrapped before inner ones.
func (in *instrumenter) wrap(n ast.Node, before, after string) {
	from, to := in.offset(n.Pos()), in.offset(n.End())
	if in.insert[from] == nil {
		in.insert[from] = &strings.Builder{}
	}
	in.insert[from].WriteString(before)
	in.close[to] = after + in.close[to]
}

// add notes mutants of a node, and returns the number of the first.
func (in *instrumenter) add(n ast.Node, what ...string) int {
	first := in.id
	code := string(in.f.text[in.offset(n.Pos()):in.offset(n.End())])
	if line, _, more := strings.Cut(code, "\n"); more {
		code = line + " …"
	}
	line := in.fset.Position(n.Pos()).Line
	text := strings.Split(string(in.f.text), "\n")[line-1]
	for _, w := range what {
		in.mutants = append(in.mutants, mutant{id: in.id, file: in.f.name, line: line, fn: in.fn, code: code, text: text, what: w})
		in.id++
	}
	return first
}

// block looks at the statements of a function.
func (in *instrumenter) block(body ast.Node) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			in.statements(n.List)
		case *ast.CaseClause:
			in.statements(n.Body)
		case *ast.IfStmt:
			first := in.add(n.Cond, "always", "never")
			in.wrap(n.Cond, fmt.Sprintf("mutBool(%d, ", first), ")")
		case *ast.ReturnStmt:
			for _, r := range n.Results {
				if t := in.info.Types[r]; t.Value == nil && isBool(t.Type) && !isComparison(r) {
					in.wrap(r, fmt.Sprintf("mutNot(%d, ", in.add(r, "not")), ")")
				}
			}
		case *ast.GenDecl:
			return n.Tok == token.VAR
		case *ast.ArrayType:
			return false
		case ast.Expr:
			return in.expression(n)
		}
		return true
	})
}

// statements lets those be left out that can be.
func (in *instrumenter) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || isBlank(s.Lhs[0]) {
				continue
			}
		default:
			continue
		}
		in.wrap(s, fmt.Sprintf("if mutKeep(%d) { ", in.add(s, "left out")), " }")
	}
}

var arithmetic = map[token.Token]struct{ helper, what string }{
	token.ADD: {"mutAdd", "+ → −"}, token.SUB: {"mutSub", "− → +"}, token.MUL: {"mutMul", "* → +"},
	token.QUO: {"mutQuo", "/ → *"}, token.REM: {"mutRem", "% → /"}, token.AND: {"mutAnd", "& → |"},
	token.OR: {"mutOr", "| → &"}, token.AND_NOT: {"mutAndNot", "&^ → &"},
	token.SHL: {"mutShl", "<< → >>"}, token.SHR: {"mutShr", ">> → <<"},
}

var comparisons = map[token.Token]struct {
	helper string
	what   [2]string
}{
	token.LSS: {"mutLss", [2]string{"< → <=", "< → >="}}, token.LEQ: {"mutLeq", [2]string{"<= → <", "<= → >"}},
	token.GTR: {"mutGtr", [2]string{"> → >=", "> → <="}}, token.GEQ: {"mutGeq", [2]string{">= → >", ">= → <"}},
}

// expression instruments an expression and reports whether to look inside.
func (in *instrumenter) expression(e ast.Expr) (inside bool) {
	t := in.info.Types[e]
	if t.IsType() {
		return false
	}
	if t.Value != nil {
		in.constant(e, t)
		return false
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		operand := in.info.Types[e.X].Type
		if basic, ok := operand.Underlying().(*types.Basic); !ok || basic.Info()&types.IsString != 0 && e.Op == token.ADD {
			if e.Op == token.EQL || e.Op == token.NEQ {
				in.wrap(e, fmt.Sprintf("mutNot(%d, ", in.add(e, "not")), ")")
			}
			return true
		}
		switch e.Op {
		case token.EQL, token.NEQ:
			in.wrap(e, fmt.Sprintf("mutNot(%d, ", in.add(e, "not")), ")")
		case token.LAND, token.LOR:
			what := "→ true"
			helper := "mutTrue"
			if e.Op == token.LOR {
				what, helper = "→ false", "mutFalse"
			}
			for _, x := range []ast.Expr{e.X, e.Y} {
				in.wrap(x, fmt.Sprintf("%s(%d, ", helper, in.add(x, what)), ")")
			}
		case token.LSS, token.LEQ, token.GTR, token.GEQ:
			c := comparisons[e.Op]
			in.call(e, c.helper, in.add(e, c.what[:]...), false)
		default:
			a := arithmetic[e.Op]
			in.call(e, a.helper, in.add(e, a.what), e.Op == token.SHL || e.Op == token.SHR)
		}
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			in.wrap(e, fmt.Sprintf("mutNot(%d, ", in.add(e, "! left out")), ")")
		}
	case *ast.CompositeLit:
		for _, element := range e.Elts {
			if kv, ok := element.(*ast.KeyValueExpr); ok {
				in.block(kv.Value)
			} else {
				in.block(element)
			}
		}
		return false
	}
	return true
}

// call turns x op y into helper(id, x, y).
func (in *instrumenter) call(e *ast.BinaryExpr, helper string, id int, shift bool) {
	in.wrap(e, fmt.Sprintf("%s(%d, ", helper, id), ")")
	if t := in.info.Types[e.X]; shift && t.Value != nil {
		in.wrap(e.X, in.name(in.info.Types[e].Type, e.Pos())+"(", ")")
	}
	at := in.offset(e.OpPos)
	in.blank = append(in.blank, [2]int{at, at + len(e.Op.String())})
	if in.insert[at] == nil {
		in.insert[at] = &strings.Builder{}
	}
	in.insert[at].WriteString(",")
}

// constant changes an integer or boolean constant, where its type can be named.
func (in *instrumenter) constant(e ast.Expr, t types.TypeAndValue) {
	basic, ok := t.Type.Underlying().(*types.Basic)
	if !ok || basic.Info()&types.IsUntyped != 0 {
		return
	}
	name := in.name(t.Type, e.Pos())
	switch {
	case name == "":
	case basic.Info()&types.IsInteger != 0:
		what := []string{"one more", "one less"}
		if constant.Sign(t.Value) == 0 {
			what = what[:1]
		}
		in.wrap(e, fmt.Sprintf("mutInt%d(%d, %s(", len(what), in.add(e, what...), name), "))")
	case basic.Info()&types.IsBoolean != 0:
		in.wrap(e, fmt.Sprintf("mutNot(%d, %s(", in.add(e, "not"), name), "))")
	}
}

// name returns a type's name at a place; "" if it has none there.
func (in *instrumenter) name(t types.Type, at token.Pos) string {
	ok := true
	if named, is := t.(*types.Named); is && named.Obj().Pkg() == in.types {
		_, found := in.types.Scope().Innermost(at).LookupParent(named.Obj().Name(), at)
		ok = found == named.Obj()
	}
	name := types.TypeString(t, func(p *types.Package) string {
		if p == in.types {
			return ""
		}
		ok = ok && in.imports[p.Path()]
		return p.Name()
	})
	if !ok {
		return ""
	}
	return name
}

func isBool(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Kind() == types.Bool
}

func isComparison(e ast.Expr) bool {
	b, ok := e.(*ast.BinaryExpr)
	return ok && b.Op != token.LAND && b.Op != token.LOR
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// helpers are what the instrumented package calls; its name and how many numbers
// there are go in. Number 0 changes nothing. With a file for the mutants that are
// felt, the place of each whose result would be another is set to 1 in it.
const helpers = `package %s

import (
	"os"
	"strconv"
	"syscall"
)

var mutant = func() int { n, _ := strconv.Atoi(os.Getenv("MUTANT")); return n }()

// mutFelt is nil, or the file as memory: nothing that is measured by a test changes.
var mutFelt = func() []byte {
	name := os.Getenv("MUTANTS_FELT")
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	felt, err := syscall.Mmap(int(f.Fd()), 0, %d, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return felt
}()

type mutInteger interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

type mutOrdered interface{ mutInteger | ~float64 | ~string }

// mutEither returns what a place computes, x, or with the mutant what that does, y.
func mutEither[T comparable](id int, x, y T) T {
	if mutFelt != nil && x != y {
		mutFelt[id] = 1
	}
	if mutant == id {
		return y
	}
	return x
}

func mutKeep(id int) bool { return mutEither(id, true, false) }
func mutNot[T ~bool](id int, b T) T { return mutEither(id, b, !b) }
func mutTrue[T ~bool](id int, b T) T { return mutEither(id, b, true) }
func mutFalse[T ~bool](id int, b T) T { return mutEither(id, b, false) }
func mutBool(id int, b bool) bool { return mutEither(id+1, mutEither(id, b, true), false) }
func mutInt1[T mutInteger](id int, n T) T { return mutEither(id, n, n+1) }
func mutInt2[T mutInteger](id int, n T) T { return mutEither(id+1, mutEither(id, n, n+1), n-1) }
func mutLss[T mutOrdered](id int, x, y T) bool { return mutEither(id+1, mutEither(id, x < y, x <= y), x >= y) }
func mutLeq[T mutOrdered](id int, x, y T) bool { return mutEither(id+1, mutEither(id, x <= y, x < y), x > y) }
func mutGtr[T mutOrdered](id int, x, y T) bool { return mutLss(id, y, x) }
func mutGeq[T mutOrdered](id int, x, y T) bool { return mutLeq(id, y, x) }
func mutAdd[T mutInteger](id int, x, y T) T { return mutEither(id, x+y, x-y) }
func mutSub[T mutInteger](id int, x, y T) T { return mutEither(id, x-y, x+y) }
func mutMul[T mutInteger](id int, x, y T) T { return mutEither(id, x*y, x+y) }
func mutQuo[T mutInteger](id int, x, y T) T { return mutEither(id, x/y, x*y) }
func mutRem[T mutInteger](id int, x, y T) T { return mutEither(id, x%%y, x/y) }
func mutAnd[T mutInteger](id int, x, y T) T { return mutEither(id, x&y, x|y) }
func mutOr[T mutInteger](id int, x, y T) T { return mutEither(id, x|y, x&y) }
func mutAndNot[T mutInteger](id int, x, y T) T { return mutEither(id, x&^y, x&y) }
func mutShl[T, N mutInteger](id int, x T, n N) T { return mutEither(id, x<<n, x>>n) }
func mutShr[T, N mutInteger](id int, x T, n N) T { return mutEither(id, x>>n, x<<n) }
`
