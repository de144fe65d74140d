// Package turnwiretest starts real Turnwire servers for tests.
package turnwiretest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Server is a `turnwire serve` of the repository's own .venv, over a file.
type Server struct {
	// Address is its HOST:PORT.
	Address string
	// DB is the file that it serves.
	DB string

	process *exec.Cmd
}

// Start starts a server over a new file, on a free port of 127.0.0.1. It ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	return StartOn(t, filepath.Join(t.TempDir(), "sessions.db"), "0")
}

// StartOn starts a server over a file, on a port of 127.0.0.1 ("0": a free one). It ends with the test.
func StartOn(t testing.TB, db, port string) *Server {
	t.Helper()
	server, err := Serve(db, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// Serve starts a server over a file, on a port of 127.0.0.1 ("0": a free one). The caller stops it.
func Serve(db, port string) (*Server, error) {
	process := Command("serve", "--db", db, "--port", port, "--json", "--log-format", "none", "--grace", "2")
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("no server (`make setup` at the root of the repository makes one): %w", err)
	}
	server := &Server{DB: db, process: process}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var ready struct{ Address string }
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		server.Stop()
		return nil, fmt.Errorf("the server did not start, and said %q: %w", line, err)
	}
	server.Address = ready.Address
	return server, nil
}

// Stop ends the server, by its own process id, and waits until it has ended.
func (s *Server) Stop() {
	if s.process.ProcessState != nil {
		return
	}
	_ = s.process.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(20*time.Second, func() { _ = s.process.Process.Kill() })
	_ = s.process.Wait() // its status says how it was ended, which is known
	kill.Stop()
}

// Command is the turnwire command of the repository's .venv.
func Command(args ...string) *exec.Cmd {
	return exec.Command(venv("turnwire"), args...)
}

// Python is the interpreter of the repository's .venv, which has the package turnwire.
func Python(args ...string) *exec.Cmd {
	return exec.Command(venv("python"), args...)
}

func venv(program string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "../../../../.venv/bin", program)
}
