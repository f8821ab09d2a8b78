package forms

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

// EachLine calls do with each line of a field that is not empty, without spaces around it, and
// with its number from 1.
func EachLine(text string, do func(number int, line string)) {
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			do(i+1, line)
		}
	}
}

// ScaleConfig parses the variables of sizes, SIZE NAME=value in each line, and says what is wrong
// with lines that are not.
func ScaleConfig(text string) (config []v1alpha1.ScaleConfig, wrong []string) {
	EachLine(text, func(n int, line string) {
		size, variable, _ := strings.Cut(line, " ")
		replicas, err := strconv.ParseInt(size, 10, 32)
		name, value, found := strings.Cut(strings.TrimSpace(variable), "=")
		if err != nil || !found {
			wrong = append(wrong, fmt.Sprintf("line %d is no SIZE NAME=value, such as 8 BATCH_SIZE=32", n))
			return
		}
		i := slices.IndexFunc(config, func(c v1alpha1.ScaleConfig) bool { return c.Replicas == int32(replicas) })
		if i < 0 {
			i, config = len(config), append(config, v1alpha1.ScaleConfig{Replicas: int32(replicas)})
		}
		one := v1alpha1.ScaleVariable{Name: strings.TrimSpace(name), Value: value}
		if slices.ContainsFunc(config[i].Env, func(v v1alpha1.ScaleVariable) bool { return v.Name == one.Name }) {
			wrong = append(wrong, fmt.Sprintf("line %d sets %s for %d pods a second time", n, one.Name, replicas))
			return
		}
		config[i].Env = append(config[i].Env, one)
	})
	return config, wrong
}

// ScaleText returns the lines that ScaleConfig parses.
func ScaleText(config []v1alpha1.ScaleConfig) string {
	var lines []string
	for _, c := range config {
		for _, v := range c.Env {
			lines = append(lines, fmt.Sprintf("%d %s=%s", c.Replicas, v.Name, v.Value))
		}
	}
	return strings.Join(lines, "\n")
}

// ScaleLines returns the lines that ScaleConfig parses of variables by size and name, and the names
// of those whose value has several lines, which no line can have.
func ScaleLines(bySize map[string]map[string]string) (text string, wrong []string) {
	var lines []string
	for _, size := range slices.Sorted(maps.Keys(bySize)) {
		for _, name := range slices.Sorted(maps.Keys(bySize[size])) {
			value := bySize[size][name]
			if strings.ContainsAny(value, "\r\n") {
				wrong = append(wrong, name)
			}
			lines = append(lines, size+" "+name+"="+value)
		}
	}
	return strings.Join(lines, "\n"), wrong
}
