package revisions

import "strings"

// Line is one line of a text that is compared with an older one.
type Line struct {
	Text    string
	Added   bool // it is not in the older text
	Removed bool // it is in the older text only
}

// compare lists the lines of two texts, in the order of both, with what is only
// in one of them marked.
func compare(before, after string) []Line {
	was, is := split(before), split(after)
	var head, tail []Line
	for len(was) > 0 && len(is) > 0 && was[0] == is[0] {
		head = append(head, Line{Text: is[0]})
		was, is = was[1:], is[1:]
	}
	for len(was) > 0 && len(is) > 0 && was[len(was)-1] == is[len(is)-1] {
		tail = append(tail, Line{Text: is[len(is)-1]})
		was, is = was[:len(was)-1], is[:len(is)-1]
	}
	// shared[i][j] is how many lines the rests from i and from j can share.
	shared := make([][]int, len(was)+1)
	for i := range shared {
		shared[i] = make([]int, len(is)+1)
	}
	for i := len(was) - 1; i >= 0; i-- {
		for j := len(is) - 1; j >= 0; j-- {
			if was[i] == is[j] {
				shared[i][j] = shared[i+1][j+1] + 1
			} else {
				shared[i][j] = max(shared[i+1][j], shared[i][j+1])
			}
		}
	}
	lines := head
	i, j := 0, 0
	for i < len(was) || j < len(is) {
		switch {
		case i < len(was) && j < len(is) && was[i] == is[j]:
			lines = append(lines, Line{Text: is[j]})
			i, j = i+1, j+1
		case i < len(was) && (j == len(is) || shared[i+1][j] >= shared[i][j+1]):
			lines = append(lines, Line{Text: was[i], Removed: true})
			i++
		default:
			lines = append(lines, Line{Text: is[j], Added: true})
			j++
		}
	}
	for n := len(tail) - 1; n >= 0; n-- {
		lines = append(lines, tail[n])
	}
	return lines
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
