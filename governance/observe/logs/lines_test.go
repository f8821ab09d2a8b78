package logs

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 3*readBuffer)
	bar := strings.Repeat("10%|█\r", 2*readBuffer)
	for name, tc := range map[string]struct {
		log        string
		timestamps bool
		want       []Line
	}{
		"empty":                         {},
		"lines":                         {log: "a\n\nb\n", want: []Line{{Text: "a"}, {}, {Text: "b"}}},
		"without a last line break":     {log: "a\nb", want: []Line{{Text: "a"}, {Text: "b"}}},
		"of Windows":                    {log: "a\r\nb\r\n", want: []Line{{Text: "a"}, {Text: "b"}}},
		"an endless line":               {log: long + "\nb\n", want: []Line{{Text: long[:maxLine], Cut: true}, {Text: "b"}}},
		"an endless line at the end":    {log: long, want: []Line{{Text: long[:maxLine], Cut: true}}},
		"a line of the largest size":    {log: long[:maxLine] + "\n", want: []Line{{Text: long[:maxLine]}}},
		"a progress bar":                {log: "0%\r50%\r100%\nb\n", want: []Line{{Text: "100%"}, {Text: "b"}}},
		"an endless progress bar":       {log: bar + "100%\n", want: []Line{{Text: "100%"}}},
		"a bar that ends with a return": {log: bar + "100%\r\n", want: []Line{{Text: "100%"}}},
		"a bar after an endless line":   {log: long + "\rend\n", want: []Line{{Text: "end"}}},
		"timestamps":                    {timestamps: true, log: "2026-01-02T03:04:05.6Z a b\n2026-01-02T03:04:06Z \n", want: []Line{{At: "2026-01-02T03:04:05.6Z", Text: "a b"}, {At: "2026-01-02T03:04:06Z"}}},
		"a bar with timestamps":         {timestamps: true, log: "2026-01-02T03:04:05Z " + bar + "100%\n", want: []Line{{At: "2026-01-02T03:04:05Z", Text: "100%"}}},
		"colors":                        {log: "\x1b[1;31mred\x1b[0m\n", want: []Line{{Text: "red"}}},
		"a title and a link":            {log: "\x1b]0;title\x07a\x1b]8;;https://example.com\x1b\\b\x1b(B\n", want: []Line{{Text: "abB"}}},
		"sequences that do not end":     {log: "a\x1b[31\nb\x1b]0;x\nc\x1b\n", want: []Line{{Text: "a"}, {Text: "b"}, {Text: "c�"}}},
		"binary":                        {log: "\x00\x01\xff\xfe\tö€\x7f\n", want: []Line{{Text: "����\tö€�"}}},
		"reversed text":                 {log: "a\u202Eb\n", want: []Line{{Text: "a�b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, from := range []io.Reader{strings.NewReader(tc.log), iotest.OneByteReader(strings.NewReader(tc.log)), iotest.DataErrReader(strings.NewReader(tc.log))} {
				lines := newLineReader(from, tc.timestamps)
				var got []Line
				for {
					line, err := lines.next()
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, Line{At: clean(line.at), Text: clean(line.text), Cut: line.cut})
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%T: (-want +got)\n%s", from, diff)
				}
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	for _, text := range []string{"a", "\x1b[31ma\x1b[0m", "\x1b]0;x", "\xff", "a\u202E"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		once := clean(text)
		if strings.ContainsAny(once, "\x1b\x00\r\n") && !strings.ContainsAny(string(text), "\r\n") {
			t.Errorf("clean(%q) = %q has control characters", text, once)
		}
		if again := clean([]byte(once)); again != once {
			t.Errorf("clean(%q) = %q, and again %q", text, once, again)
		}
	})
}
