package forms

import (
	"net/url"
	"strings"
)

// TextOrFile returns the text that was sent, pasted or as a file.
func TextOrFile(values url.Values) (text, problem string) {
	text, problem = textOrFile(values, "text", "file")
	if text == "" {
		problem = "Paste a text, or choose a file."
	}
	return text, problem
}

// Script returns the script that was sent in the input script, or in the file input
// script-file; empty for none. Lines end with \n: browsers send \r\n, with which neither
// shells nor the kernel can read a script. It begins with its first line that is not empty.
func Script(values url.Values) (script, problem string) {
	script, problem = textOrFile(values, "script", "script-file")
	script = strings.TrimPrefix(script, "\ufeff")
	script = strings.TrimLeft(strings.ReplaceAll(script, "\r\n", "\n"), "\n")
	if strings.TrimSpace(script) == "" {
		script = ""
	}
	return script, problem
}

func textOrFile(values url.Values, textInput, fileInput string) (text, problem string) {
	text, file := values.Get(textInput), values.Get(fileInput)
	switch {
	case text != "" && file != "":
		return text, "Give either text or a file: both were sent."
	case file != "":
		return file, ""
	}
	return text, ""
}
