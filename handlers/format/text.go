package format

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota/desired"
)

// Sentence converts an error message to a sentence.
func Sentence(message string) string {
	if strings.HasSuffix(message, "?") || strings.HasSuffix(message, ".") {
		return Capitalize(message)
	}
	return Capitalize(message) + "."
}

// Capitalize capitalizes the first word of a sentence. A name, such as that of an
// instance type, keeps its case.
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

// ClassName returns the displayed name of a priority class: of a number, the number.
func ClassName(object string) string {
	if number, ok := desired.NumberOf(object); ok {
		return strconv.Itoa(number)
	}
	return strings.TrimSuffix(object, "-priority")
}

// ClassWords returns a priority class where no heading says what it is, such as "priority
// class dev" or "priority 42"; empty for none.
func ClassWords(object string) string {
	switch {
	case object == "":
		return ""
	case desired.IsNumber(object):
		return "priority " + ClassName(object)
	}
	return "priority class " + ClassName(object)
}

// OtherTeams is shown for teams that the reader is not allowed to see, and for
// queues without a team.
const OtherTeams = "other teams"

// JoinedBy joins the texts that are not empty.
func JoinedBy(between string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), between)
}

func Upper(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// Joined joins the texts that are not empty.
func Joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

// Truncated shortens typed text for a message.
func Truncated(text string) string {
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return text
}

func OrDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// omissions are parts of Kueue that are not simulated.
var omissions = map[simulate.Omission]string{
	simulate.OmittedTopology:      "placement by topology",
	simulate.OmittedChecks:        "admission checks",
	simulate.OmittedElasticSlices: "slices of elastic jobs that replace each other",
	simulate.OmittedUsageHistory:  "the past usage of queues",
	simulate.OmittedDevices:       "devices that pods claim",
	simulate.OmittedOverhead:      "the overhead of runtime classes",
	simulate.OmittedTasks:         "tasks of other queues far behind in their order",
}

// NotSimulated returns a sentence about what a simulation leaves out; empty for
// nothing.
func NotSimulated(list []simulate.Omission) string {
	var parts []string
	for _, o := range list {
		parts = append(parts, omissions[o])
	}
	if len(parts) == 0 {
		return ""
	}
	return "Not simulated: " + strings.Join(parts, ", ") + "."
}

// CountedAs returns a number and what it counts, such as "3 running"; empty for 0.
func CountedAs(n int, what string) string {
	if n == 0 {
		return ""
	}
	return Thousands(int64(n)) + " " + what
}
