package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	turnwire "turnwire.dev/go"
	conformancev1 "turnwire.dev/go/turnwire/conformance/v1"
)

const protocol = 1

// errUnreadable is that of an input of encoding that cannot be read.
var errUnreadable = errors.New("the input cannot be read")

// answer answers one request.
func answer(request *conformancev1.Request) *conformancev1.Response {
	response, err := respond(request)
	var refused *turnwire.Error
	switch {
	case err == nil:
		return response
	case errors.Is(err, errUnreadable):
		return refusal(&conformancev1.Refusal{})
	case errors.As(err, &refused):
		return refusal(&conformancev1.Refusal{Reason: refused.Reason, Path: refused.Path()})
	}
	return &conformancev1.Response{Response: &conformancev1.Response_Error{Error: err.Error()}}
}

func refusal(refused *conformancev1.Refusal) *conformancev1.Response {
	return &conformancev1.Response{Response: &conformancev1.Response_Refused{Refused: refused}}
}

func respond(request *conformancev1.Request) (*conformancev1.Response, error) {
	switch asked := request.GetRequest().(type) {
	case *conformancev1.Request_Hello:
		return hello(), nil
	case *conformancev1.Request_Encoding:
		return encode(asked.Encoding)
	case *conformancev1.Request_Rules:
		return check(asked.Rules)
	case *conformancev1.Request_Fold:
		return fold(asked.Fold)
	case *conformancev1.Request_Assembly:
		return assemble(asked.Assembly)
	case *conformancev1.Request_Mutation:
		return mutate(asked.Mutation)
	case *conformancev1.Request_Digest:
		return digest(asked.Digest)
	}
	return nil, fmt.Errorf("not a feature of this subject: %T", request.GetRequest())
}

func hello() *conformancev1.Response {
	on := runtime.Version()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			switch module.Path {
			case "google.golang.org/protobuf", "buf.build/go/protovalidate":
				on += ", " + module.Path + " " + module.Version
			}
		}
	}
	made := &conformancev1.HelloResponse{Protocol: protocol, Library: "turnwire.dev/go", Runtime: on}
	return &conformancev1.Response{Response: &conformancev1.Response_Hello{Hello: made}}
}
