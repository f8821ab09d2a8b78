package kuota_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"testing"

	"golang.org/x/tools/go/packages"
)

// readers are the methods of a quantity that can overflow.
var readers = []string{"AsInt64", "MilliValue", "ScaledValue", "Value"}

// TestAmounts finds amounts of resources that are computed with operators, which wrap, and
// quantities that are read without package resources.
func TestAmounts(t *testing.T) {
	t.Parallel()
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile},
		module+"governance/...", module+"handlers/...", module+"cmd/kuota")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, p := range loaded {
		for _, problem := range p.Errors {
			t.Error(problem)
		}
		folder := p.PkgPath[len(module):]
		isAmount := func(e ast.Expr) bool {
			of := p.TypesInfo.Types[e]
			named, ok := of.Type.(*types.Named)
			return ok && of.Value == nil && named.Obj().Name() == "Amount" && named.Obj().Pkg().Path() == module+"governance/quota/resources"
		}
		report := func(at ast.Node, problem string) {
			t.Errorf("%s: %s", p.Fset.Position(at.Pos()), problem)
		}
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				switch e := n.(type) {
				case *ast.BinaryExpr:
					if isAmount(e) && slices.Contains([]token.Token{token.ADD, token.SUB, token.MUL, token.SHL}, e.Op) && folder != "governance/quota/resources" {
						report(e, "use the methods of resources.Amount")
					}
				case *ast.AssignStmt:
					if slices.Contains([]token.Token{token.ADD_ASSIGN, token.SUB_ASSIGN, token.MUL_ASSIGN, token.SHL_ASSIGN}, e.Tok) && isAmount(e.Lhs[0]) {
						report(e, "use the methods of resources.Amount")
					}
				case *ast.IncDecStmt:
					if isAmount(e.X) {
						report(e, "use the methods of resources.Amount")
					}
				case *ast.CallExpr:
					called, ok := e.Fun.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					if of, ok := p.TypesInfo.Selections[called]; ok && of.Obj().Pkg() != nil && of.Obj().Pkg().Path() == "k8s.io/apimachinery/pkg/api/resource" {
						if slices.Contains(readers, called.Sel.Name) && folder != "governance/quota/resources" {
							report(e, "use resources.AmountFromQuantity")
						}
						read++
					}
				}
				return true
			})
		}
	}
	if read == 0 {
		t.Error("no quantity is used: the test looks for the wrong type")
	}
}
