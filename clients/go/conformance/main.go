// Command conformance is Turnwire's conformance subject for Go: it answers the requests of the runner on standard input
// with what the client library makes of them. tests/conformance/README.md of the repository says how they talk.
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/protobuf/proto"

	conformancev1 "turnwire.dev/go/turnwire/conformance/v1"
)

func main() {
	if err := serve(bufio.NewReader(os.Stdin), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve answers requests until there are no more.
func serve(in io.Reader, out io.Writer) error {
	for {
		data, err := read(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		request := &conformancev1.Request{}
		if err := proto.Unmarshal(data, request); err != nil {
			return err
		}
		if err := write(out, answer(request)); err != nil {
			return err
		}
	}
}

// read reads a message: its length in four bytes, then the message. io.EOF: there is none.
func read(in io.Reader) ([]byte, error) {
	var length uint32
	if err := binary.Read(in, binary.BigEndian, &length); err != nil {
		return nil, err
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(in, data); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return data, nil
}

func write(out io.Writer, message proto.Message) error {
	data, err := proto.Marshal(message)
	if err != nil {
		return err
	}
	_, err = out.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
	return err
}
