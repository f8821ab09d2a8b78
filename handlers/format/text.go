package format

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

// Sentence makes a whole sentence of what is wrong.
func Sentence(message string) string {
	if strings.HasSuffix(message, "?") || strings.HasSuffix(message, ".") {
		return Capitalize(message)
	}
	return Capitalize(message) + "."
}

// Capitalize begins a sentence that stands by itself. A name, such as that of an
// instance type, is written as it is.
func Capitalize(sentence string) string {
	word, _, _ := strings.Cut(sentence, " ")
	if strings.ContainsAny(strings.TrimRight(word, ".,:;"), ".0123456789") {
		return sentence
	}
	first, size := utf8.DecodeRuneInString(sentence)
	return string(unicode.ToUpper(first)) + sentence[size:]
}

func Members(all []v1alpha1.Member) []string {
	var names []string
	for _, m := range all {
		names = append(names, strings.ToLower(m.Kind)+" "+m.Name)
	}
	return names
}

// ClassName is a class as people call it.
func ClassName(object string) string { return strings.TrimSuffix(object, "-priority") }

// OtherTeams stands for teams that a reader may not see, and for queues of none.
const OtherTeams = "other teams"

// JoinedBy are the texts that are not empty.
func JoinedBy(between string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), between)
}

func Upper(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// Joined are the texts that are not empty.
func Joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

func OrDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
