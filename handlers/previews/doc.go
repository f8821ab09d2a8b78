// Package previews streams what a change does into the page that reviews it. The page
// is rendered at once; its part #preview follows when Kueue's scheduler has simulated
// the change.
package previews
