// Package webtest starts a console with sign-in and browsers that sign in, and
// checks the access rules of every route. Only tests import it. It must not
// know any page.
package webtest
