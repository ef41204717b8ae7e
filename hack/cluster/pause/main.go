// Command pause holds a pod's namespaces, and gives node tests things to do without a larger image:
//
//	pause                     waits for SIGTERM, reaping whatever is reparented to it
//	pause say TEXT            writes TEXT to the termination message and exits 0
//	pause read FILE           writes the first kilobytes of FILE to the termination message and exits 0, or 1, saying why
//	pause dial HOST:PORT      exits 0 if a TCP connection is made within five seconds, else 1, saying why
package main

import (
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const message = "/dev/termination-log"

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "say":
		end(os.Args[2], nil)
	case len(os.Args) == 3 && os.Args[1] == "read":
		content, err := os.ReadFile(os.Args[2])
		end(string(content), err)
	case len(os.Args) == 3 && os.Args[1] == "dial":
		_, err := net.DialTimeout("tcp", os.Args[2], 5*time.Second)
		end("connected to "+os.Args[2], err)
	case len(os.Args) == 1:
		hold()
	default:
		println("usage: pause [say TEXT | read FILE | dial HOST:PORT]")
		os.Exit(2)
	}
}

func end(text string, err error) {
	code := 0
	if err != nil {
		text, code = err.Error(), 1
	}
	if err := os.WriteFile(message, []byte(text), 0o644); err != nil {
		println(err.Error())
		os.Exit(3)
	}
	os.Exit(code)
}

func hold() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
	}
}
