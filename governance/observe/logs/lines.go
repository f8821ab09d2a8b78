package logs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxLine is how many bytes of a line are kept.
	maxLine = 4 << 10
	// readBuffer is the size of a read from a log.
	readBuffer = 32 << 10
)

// Line is a line of a log, as a page shows it.
type Line struct {
	At   string // RFC 3339 with nanoseconds; empty unless timestamps were requested
	Text string // without control characters
	Cut  bool   // the line was longer than maxLine
}

// rawLine is a line as the container wrote it. Its slices are valid until the next
// call of lineReader.next.
type rawLine struct {
	at, text []byte
	cut      bool
}

// lineReader splits a log into lines, of which it keeps at most maxLine bytes. A
// carriage return starts the line again, as in a terminal: progress bars write one
// endless line.
type lineReader struct {
	from       *bufio.Reader
	timestamps bool // each line begins with its time
	at, text   []byte
}

func newLineReader(from io.Reader, timestamps bool) *lineReader {
	return &lineReader{from: bufio.NewReaderSize(from, readBuffer), timestamps: timestamps}
}

// next returns the next line. At the end of the log it returns the last line, even if
// nothing ends it, and then the error of the log, such as io.EOF.
func (r *lineReader) next() (line rawLine, err error) {
	r.at, r.text = r.at[:0], r.text[:0]
	began, stamped, returned := false, !r.timestamps, false
	for {
		piece, err := r.from.ReadSlice('\n')
		began = began || len(piece) > 0
		complete := bytes.HasSuffix(piece, []byte("\n"))
		piece = bytes.TrimSuffix(piece, []byte("\n"))
		if !stamped {
			stamped = true
			if at, rest, found := bytes.Cut(piece, []byte(" ")); found {
				r.at, piece = append(r.at, at...), rest
			}
		}
		if returned && len(piece) > 0 { // the return at the end of the last piece
			r.text, line.cut, returned = r.text[:0], false, false
		}
		if returned = bytes.HasSuffix(piece, []byte("\r")) || returned && len(piece) == 0; returned {
			piece = bytes.TrimRight(piece, "\r")
		}
		if i := bytes.LastIndexByte(piece, '\r'); i >= 0 {
			r.text, line.cut, piece = r.text[:0], false, piece[i+1:]
		}
		kept := min(len(piece), maxLine-len(r.text))
		r.text = append(r.text, piece[:kept]...)
		line.cut = line.cut || kept < len(piece)
		line.at, line.text = r.at, r.text
		switch {
		case complete:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case began && errors.Is(err, io.EOF):
			return line, nil // the next call returns the error again
		default:
			return rawLine{}, err
		}
	}
}

// clean returns text that is harmless on a page: without escape sequences of terminals,
// and with a replacement character for other control characters, for characters that
// reverse the order of text, and for bytes that are no UTF-8.
func clean(text []byte) string {
	if plain(text) {
		return string(text)
	}
	var out strings.Builder
	for len(text) > 0 {
		if n := escapeSequence(text); n > 0 {
			text = text[n:]
			continue
		}
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			r = utf8.RuneError
		}
		out.WriteRune(r)
	}
	return out.String()
}

// plain reports whether text is printable ASCII, which most lines are.
func plain(text []byte) bool {
	for _, b := range text {
		if b != '\t' && (b < ' ' || b > '~') {
			return false
		}
	}
	return true
}

// escapeSequence returns the length of the escape sequence (ECMA-48) that text begins
// with; 0 if there is none.
func escapeSequence(text []byte) int {
	if len(text) < 2 || text[0] != 0x1b {
		return 0
	}
	switch text[1] {
	case '[': // CSI: parameters and intermediate bytes, then a final byte
		for i, b := range text[2:] {
			if b >= 0x40 && b <= 0x7e {
				return i + 3
			}
			if b < 0x20 || b > 0x7e {
				return i + 2
			}
		}
		return len(text)
	case ']', 'P', 'X', '^', '_': // a string, up to BEL or ESC \
		for i := 2; i < len(text); i++ {
			if text[i] == 0x07 {
				return i + 1
			}
			if text[i] == 0x1b {
				return min(i+2, len(text))
			}
		}
		return len(text)
	}
	return 2
}
