package forms

import "net/url"

// TextOrFile returns the text that was sent, pasted or as a file.
func TextOrFile(values url.Values) (text, problem string) {
	text, file := values.Get("text"), values.Get("file")
	switch {
	case text != "" && file != "":
		return text, "Give either text or a file: both were sent."
	case file != "":
		return file, ""
	case text == "":
		return "", "Paste a text, or choose a file."
	}
	return text, ""
}
