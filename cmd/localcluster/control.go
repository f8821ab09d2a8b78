package main

import (
	"fmt"
	"net"
	"net/rpc"
	"os"
)

// control is the RPC service of a running instance, on a socket that only its
// user can open.
type control struct {
	sup  *supervisor
	quit func()
}

// Stop stops the component of that name.
func (c *control) Stop(name string, reply *string) (err error) {
	*reply, err = c.sup.stopByName(name)
	return err
}

// Start starts the component of that name and waits until it is ready.
func (c *control) Start(name string, reply *string) (err error) {
	*reply, err = c.sup.startByName(name)
	return err
}

// Status lists the components.
func (c *control) Status(_ string, reply *string) error {
	*reply = c.sup.status()
	return nil
}

// Reset returns all objects to their state when the instance became ready.
func (c *control) Reset(_ string, reply *string) (err error) {
	*reply, err = c.sup.reset()
	return err
}

// Import imports the images of an archive into the real node.
func (c *control) Import(archive string, reply *string) (err error) {
	*reply, err = c.sup.importImages(archive)
	return err
}

// Down starts the shutdown of the instance.
func (c *control) Down(string, *string) error {
	c.quit()
	return nil
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
func (c *control) serve(l layout) (stop func(), err error) {
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

// call calls a method of the running instance and prints its reply.
func call(l layout, method, arg string) error {
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
	if err := client.Call("Control."+method, arg, &reply); err != nil {
		return err
	}
	if reply != "" {
		fmt.Println(reply)
	}
	return nil
}
