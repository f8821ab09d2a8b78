package teams

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/submit/recipes"
)

// recipeForm returns the form of a recipe, for a pool or, without one, the first of the team.
func recipeForm(t submit.Team, name, pool string) (submitForm, error) {
	recipe, ok := recipes.Find(name)
	if !ok {
		var names []string
		for _, r := range recipes.All {
			names = append(names, r.Name)
		}
		return submitForm{}, &governance.Error{Kind: governance.NotFound, Op: "read recipe", Message: fmt.Sprintf("There is no recipe %s; there are %s.", name, strings.Join(names, ", "))}
	}
	empty := emptySubmitForm(t)
	chosen, _ := governance.Find(t.Pools, func(p submit.QueuePool) bool { return p.Name == cmp.Or(pool, empty.pool) })
	r := recipe.Request(chosen)
	r.Class, r.Pool = empty.class, cmp.Or(pool, empty.pool)
	return formOf(t, r), nil
}

// overRecipe returns the form of the recipe that a request names, with the values of the request
// over it; without a recipe, with these alone.
func (r *TaskRequest) overRecipe(t submit.Team) (submitForm, error) {
	if r.Recipe == "" {
		return readSubmitForm(r.values(t), ""), nil
	}
	form, err := recipeForm(t, r.Recipe, r.Pool)
	if err != nil {
		return form, err
	}
	values := url.Values{}
	for name, value := range r.values(t) {
		if strings.Join(value, "") != "" || r.Elastic != nil && (name == "max" || name == "step" || name == "sizes" || name == "scale") {
			values[name] = value
		}
	}
	env := strings.Split(form.env, "\n")
	env = slices.DeleteFunc(env, func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		_, given := r.Env[name]
		return given
	})
	values.Set("env", strings.TrimSpace(strings.Join(env, "\n")+"\n"+values.Get("env")))
	form.read(values)
	if r.Command != "" && r.Script == "" { // in place of the recipe's
		form.script = ""
	}
	return form, nil
}
