package textdiff

import (
	"slices"
	"strings"
)

// Line is one line of the comparison of two texts.
type Line struct {
	Text    string
	Added   bool // only in the newer text
	Removed bool // only in the older text
}

// Texts returns the lines of two texts, as Lines does.
func Texts(before, after string) []Line { return Lines(split(before), split(after)) }

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// Differs reports whether one of the lines is only in one of the texts.
func Differs(lines []Line) bool {
	return slices.ContainsFunc(lines, func(l Line) bool { return l.Added || l.Removed })
}

// Lines returns the lines of both texts in order, by a longest common
// subsequence. Its time and memory are the product of the numbers of lines
// between the common beginning and the common end.
func Lines(before, after []string) []Line {
	var head, tail []Line
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		head = append(head, Line{Text: after[0]})
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		tail = append(tail, Line{Text: after[len(after)-1]})
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	// common[i][j] is the length of the longest common subsequence of before[i:] and
	// after[j:].
	common := make([][]int, len(before)+1)
	for i := range common {
		common[i] = make([]int, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	lines := head
	for i, j := 0, 0; i < len(before) || j < len(after); {
		switch {
		case i < len(before) && j < len(after) && before[i] == after[j]:
			lines = append(lines, Line{Text: after[j]})
			i, j = i+1, j+1
		case i < len(before) && (j == len(after) || common[i+1][j] >= common[i][j+1]):
			lines = append(lines, Line{Text: before[i], Removed: true})
			i++
		default:
			lines = append(lines, Line{Text: after[j], Added: true})
			j++
		}
	}
	for n := len(tail) - 1; n >= 0; n-- {
		lines = append(lines, tail[n])
	}
	return lines
}
