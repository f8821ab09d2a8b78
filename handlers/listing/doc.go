// Package listing has what all lists share: filters and pages.
package listing
