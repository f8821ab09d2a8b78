package governance

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// ErrPanic is the error of what panicked.
var ErrPanic = errors.New("panic")

// Recovered returns the error of do, or that do panicked, which it logs. What runs in a
// goroutine of its own calls it around an object that users wrote: the panic would end the
// process, for the same object again at each start.
func Recovered(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v", ErrPanic, cause)
			slog.Default().Error("panic in background work", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
	}()
	return do()
}
