package main

import (
	"fmt"
	"net"
	"net/rpc"
	"os"
)

// control is the RPC service of a running instance, on a socket that only its
// user can open: what each call does with its argument, and its reply.
type control map[string]func(arg string) (string, error)

// Call calls the function of the name call[0] with the argument call[1].
func (c control) Call(call [2]string, reply *string) (err error) {
	f, ok := c[call[0]]
	if !ok {
		return fmt.Errorf("no call %q", call[0])
	}
	*reply, err = f(call[1])
	return err
}

// socket returns the path of the control socket and an open folder that the
// path depends on. The path leads through the folder's descriptor, since the
// address of a socket fits in about 100 bytes only.
func (l layout) socket() (path string, folder *os.File, err error) {
	folder, err = os.Open(l.path("run"))
	if err != nil {
		return "", nil, fmt.Errorf("control socket: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/control.sock", folder.Fd()), folder, nil
}

// serve answers calls until the returned function is called.
func (c control) serve(l layout) (stop func(), err error) {
	path, folder, err := l.socket()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		folder.Close()
		return nil, fmt.Errorf("open control socket: %w", err)
	}
	stop = func() { listener.Close(); folder.Close() }
	if err := os.Chmod(l.run("control.sock"), 0o600); err != nil {
		stop()
		return nil, fmt.Errorf("protect control socket: %w", err)
	}
	server := rpc.NewServer()
	if err := server.RegisterName("Control", c); err != nil {
		stop()
		return nil, fmt.Errorf("control service: %w", err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go server.ServeConn(conn)
		}
	}()
	return stop, nil
}

// call calls a function of the running instance and prints its reply.
func call(l layout, name, arg string) error {
	if !isRunning(l) {
		return fmt.Errorf("nothing runs in %s", l.dir)
	}
	path, folder, err := l.socket()
	if err != nil {
		return err
	}
	defer folder.Close()
	client, err := rpc.Dial("unix", path)
	if err != nil {
		return fmt.Errorf("connect to the instance in %s: %w", l.dir, err)
	}
	defer client.Close()
	var reply string
	if err := client.Call("Control.Call", [2]string{name, arg}, &reply); err != nil {
		return err
	}
	if reply != "" {
		fmt.Println(reply)
	}
	return nil
}
