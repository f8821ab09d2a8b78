package web

import "testing"

func TestRows(t *testing.T) {
	for name, tc := range map[string]struct{ before, after, sent string }{
		"nothing was there":  {``, `<p><tr id="a"><td>1</td></tr></p>`, `<p><tr id="a"><td>1</td></tr></p>`},
		"one changed":        {`<tr id="a">1</tr><tr id="b">1</tr>`, `<tr id="a">1</tr><tr id="b">2</tr>!`, `<tr id="a" data-keep></tr><tr id="b">2</tr>!`},
		"one came, one went": {`<tr id="a">1</tr><tr id="b">1</tr>`, `<tr id="c">1</tr><tr id="a">1</tr>`, `<tr id="c">1</tr><tr id="a" data-keep></tr>`},
		"another attribute":  {`<tr id="a" class="x">1</tr>`, `<tr id="a" class="y">1</tr>`, `<tr id="a" class="y">1</tr>`},
		"without an id":      {`<tr><td>1</td></tr>`, `<tr><td>1</td></tr>`, `<tr><td>1</td></tr>`},
		"that does not end":  {`<tr id="a">1</tr>`, `<tr id="a">1`, `<tr id="a">1`},
	} {
		t.Run(name, func(t *testing.T) {
			_, has := rows(nil).update([]byte(tc.before))
			sent, _ := has.update([]byte(tc.after))
			if string(sent) != tc.sent {
				t.Errorf("%s is sent, not %s", sent, tc.sent)
			}
		})
	}
}
