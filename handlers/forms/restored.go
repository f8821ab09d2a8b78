package forms

import (
	"fmt"
	"strings"

	"kuota.dev/kuota/views"
)

func RestoresWords(number int64) string { return fmt.Sprintf("Restores version %d", number) }

// RestoredOf returns the notice of a form that a version filled in.
func RestoredOf(from string) views.Restored {
	if from == "" {
		return views.Restored{}
	}
	_, number, ok := strings.Cut(from, ":")
	if !ok {
		number = from
	}
	return views.Restored{Origin: from, Notice: "The form shows version " + number + ". Nothing is saved yet."}
}
