package truth_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/PuerkitoBio/goquery"
)

// open requests a page as the admin's browser does.
func (l *lab) open(ctx context.Context, method, address string, values url.Values) (*goquery.Document, error) {
	if strings.HasPrefix(address, "/") {
		address = l.console + address
	}
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(values.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/html")
	if values != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if action := values.Get("action"); action == "preview" || action == "verify" { // as the script sends them
			request.Header.Set("X-Requested-With", "fetch")
		}
	}
	response, err := l.browser.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	document, err := goquery.NewDocumentFromReader(response.Body)
	if err != nil {
		return nil, err
	}
	document.Url = response.Request.URL
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s: %s", method, address, response.Status, text(document.Find("main")))
	}
	return document, nil
}

// formValues returns what a browser would post.
func formValues(form *goquery.Selection) url.Values {
	values := url.Values{}
	form.Find("input[name]").Each(func(_ int, input *goquery.Selection) {
		kind := input.AttrOr("type", "text")
		if _, checked := input.Attr("checked"); kind == "submit" || (kind == "checkbox" || kind == "radio") && !checked {
			return
		}
		values.Add(input.AttrOr("name", ""), input.AttrOr("value", "on"))
	})
	form.Find("textarea[name]").Each(func(_ int, area *goquery.Selection) { values.Add(area.AttrOr("name", ""), area.Text()) })
	form.Find("select[name]").Each(func(_ int, choice *goquery.Selection) {
		option := choice.Find("option[selected]")
		if option.Length() == 0 {
			option = choice.Find("option").First()
		}
		values.Add(choice.AttrOr("name", ""), option.AttrOr("value", option.Text()))
	})
	return values
}

// submitForm posts a form of a page with other values, by its button with an action.
func (l *lab) submitForm(ctx context.Context, page *goquery.Document, form string, values url.Values, action string) (*goquery.Document, error) {
	values.Set("action", action)
	to, err := page.Url.Parse(page.Find(form).AttrOr("action", page.Url.Path))
	if err != nil {
		return nil, err
	}
	return l.open(ctx, http.MethodPost, to.String(), values)
}

// follow opens the link of an offered change to the form of an allocation, where the
// figures are typed in, and reviews and saves it. amounts replace the figures.
func (l *lab) follow(ctx context.Context, c change) error {
	address, err := url.Parse(c.link)
	if err != nil {
		return err
	}
	values := address.Query()
	values.Del("figure")
	for name, amount := range c.amounts {
		values.Add("figure", fmt.Sprintf("%s=%d", name, amount))
	}
	address.RawQuery = values.Encode()
	form, err := l.open(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return err
	}
	review, err := l.submitForm(ctx, form, "form#allocation-form", formValues(form.Find("form#allocation-form")), "review")
	if err != nil {
		return err
	}
	if review.Find("form#review-form").Length() != 1 {
		return fmt.Errorf("the form has no review: %s", text(review.Find(".field-error, .notice")))
	}
	_, err = l.submitForm(ctx, review, "form#review-form", formValues(review.Find("form#review-form")), "save")
	return err
}

// stream reads the events of a page until one of them is the last.
func (l *lab) stream(ctx context.Context, page *goquery.Document, last func(part *goquery.Document) bool) error {
	body := page.Find("body")
	address, ok := body.Attr("data-stream")
	if !ok {
		return fmt.Errorf("%s has no stream", page.Url.Path)
	}
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.console+address+separator+url.Values{"as": {body.AttrOr("data-user", "")}}.Encode(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	request.Header.Set("Sec-Fetch-Mode", "cors")
	response, err := l.browser.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	reader, data := bufio.NewReader(response.Body), strings.Builder{}
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return fmt.Errorf("stream of %s: %w", page.Url.Path, err)
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			data.WriteString(text)
			continue
		}
		if strings.TrimSpace(line) != "" {
			continue
		}
		part, err := goquery.NewDocumentFromReader(strings.NewReader(data.String()))
		if err != nil {
			return err
		}
		data.Reset()
		if last(part) {
			return nil
		}
	}
}
