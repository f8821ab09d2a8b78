package governance

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Recovered returns the error of do, or that do panicked, which it logs. What runs in a
// goroutine of its own calls it around an object that users wrote: the panic would end the
// process, for the same object again at each start.
func Recovered(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
			slog.Default().Error("panic; its object is left out", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
	}()
	return do()
}
