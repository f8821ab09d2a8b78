// Package imports renders the page that imports objects.
package imports
