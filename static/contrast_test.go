package static

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// TestContrast compares each color of text with each ground that it is on, in both color schemes:
// WCAG 2.2 asks for a ratio of 4.5, and of 3 for parts of controls (1.4.3, 1.4.11).
func TestContrast(t *testing.T) {
	style, err := os.ReadFile("css/kuota.css")
	if err != nil {
		t.Fatal(err)
	}
	colors := map[string][2]string{} // of the light and of the dark scheme
	for _, m := range regexp.MustCompile(`--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)`).FindAllStringSubmatch(string(style), -1) {
		colors[m[1]] = [2]string{m[2], m[3]}
	}
	grounds := []string{"ground", "surface", "raised"}
	pairs := map[string][]string{"on-accent": {"accent", "accent-strong"}}
	for _, text := range []string{"text", "muted", "accent", "accent-strong", "ok", "wait", "bad", "pre"} {
		pairs[text] = grounds
	}
	for _, state := range []string{"accent", "ok", "wait", "bad", "pre"} {
		pairs[state] = append([]string{state + "-weak"}, grounds...)
	}
	check := func(front, ground string, want float64) {
		for scheme, name := range []string{"light", "dark"} {
			if got := contrast(t, colors[front][scheme], colors[ground][scheme]); got < want {
				t.Errorf("%s mode: --%s on --%s has the contrast %.2f, want %.1f", name, front, ground, got, want)
			}
		}
	}
	for text, all := range pairs {
		for _, ground := range all {
			check(text, ground, 4.5)
		}
	}
	for _, ground := range grounds {
		check("edge", ground, 3)
	}
}

// contrast returns the contrast ratio of two colors, as WCAG 2.2 defines it.
func contrast(t *testing.T, one, other string) float64 {
	luminance := func(color string) float64 {
		if color == "" {
			t.Fatal("a color is not in kuota.css")
		}
		sum := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			value, err := strconv.ParseUint(color[1+2*i:3+2*i], 16, 8)
			if err != nil {
				t.Fatal(fmt.Errorf("color %s: %w", color, err))
			}
			c := float64(value) / 255
			if c <= 0.04045 {
				c /= 12.92
			} else {
				c = math.Pow((c+0.055)/1.055, 2.4)
			}
			sum += weight * c
		}
		return sum
	}
	a, b := luminance(one), luminance(other)
	return (max(a, b) + 0.05) / (min(a, b) + 0.05)
}
