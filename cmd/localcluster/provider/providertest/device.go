package providertest

import (
	"context"
	"net/url"

	"golang.org/x/oauth2"
)

// Device starts the device flow.
func (b *Browser) Device() (*oauth2.DeviceAuthResponse, error) {
	return b.oauth.DeviceAuth(context.Background())
}

// DeviceToken waits until the device code is confirmed or refused, or ctx ends.
func (b *Browser) DeviceToken(ctx context.Context, d *oauth2.DeviceAuthResponse) (*oauth2.Token, error) {
	return b.oauth.DeviceAccessToken(ctx, d)
}

// OpenDevice opens the page that confirms a device.
func (b *Browser) OpenDevice(d *oauth2.DeviceAuthResponse) Page {
	b.t.Helper()
	return b.get(d.VerificationURIComplete)
}

// ConfirmDevice submits the form of that page. Without a name the browser's session
// confirms the code.
func (b *Browser) ConfirmDevice(userCode, name, password string) Page {
	b.t.Helper()
	form := url.Values{"user_code": {userCode}}
	if name != "" {
		form.Set("username", name)
		form.Set("password", password)
	}
	resp, err := b.http.PostForm(b.issuer+"/device", form)
	return b.follow(resp, err)
}
