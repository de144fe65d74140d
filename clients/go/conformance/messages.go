package main

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	turnwire "turnwire.dev/go"
	conformancev1 "turnwire.dev/go/turnwire/conformance/v1"
)

// encode reads a message and writes it.
func encode(request *conformancev1.EncodingRequest) (*conformancev1.Response, error) {
	message, err := newMessage(request.GetMessageType())
	if err != nil {
		return nil, err
	}
	switch input := request.GetInput().(type) {
	case *conformancev1.EncodingRequest_Binary:
		err = proto.Unmarshal(input.Binary, message)
	case *conformancev1.EncodingRequest_Json:
		err = protojson.Unmarshal([]byte(input.Json), message)
	}
	if err != nil {
		return nil, errUnreadable
	}
	made := &conformancev1.EncodingResponse{}
	if request.GetOutput() == conformancev1.Encoding_ENCODING_JSON {
		text, err := protojson.Marshal(message)
		if err != nil {
			return nil, err
		}
		made.Output = &conformancev1.EncodingResponse_Json{Json: string(text)}
	} else {
		data, err := proto.Marshal(message)
		if err != nil {
			return nil, err
		}
		made.Output = &conformancev1.EncodingResponse_Binary{Binary: data}
	}
	return &conformancev1.Response{Response: &conformancev1.Response_Encoding{Encoding: made}}, nil
}

// check tells which rules a message breaks.
func check(request *conformancev1.RulesRequest) (*conformancev1.Response, error) {
	message, err := newMessage(request.GetMessageType())
	if err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(request.GetMessage(), message); err != nil {
		return nil, err
	}
	ids := map[conformancev1.PartIds]turnwire.PartIDs{
		conformancev1.PartIds_PART_IDS_STORED:    turnwire.PartIDsStored,
		conformancev1.PartIds_PART_IDS_TRANSIENT: turnwire.PartIDsTransient,
	}[request.GetPartIds()]
	found, err := turnwire.Violations(message, turnwire.WithPartIDs(ids), turnwire.WithRole(request.GetRole()))
	if err != nil {
		return nil, err
	}
	made := &conformancev1.RulesResponse{}
	for _, each := range found {
		made.Violations = append(made.Violations, &conformancev1.Violation{Rule: each.Rule, Path: each.Path})
	}
	return &conformancev1.Response{Response: &conformancev1.Response_Rules{Rules: made}}, nil
}

func newMessage(fullName string) (proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(fullName))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fullName, err)
	}
	return kind.New().Interface(), nil
}
