package main

import (
	"bytes"
	"io"
	"testing"

	"google.golang.org/protobuf/proto"

	conformancev1 "turnwire.dev/go/turnwire/conformance/v1"
)

func TestRequestsAreAnsweredOneByOneUntilThereAreNoMore(t *testing.T) {
	var in, out bytes.Buffer
	asked := []*conformancev1.Request{
		{Request: &conformancev1.Request_Hello{Hello: &conformancev1.HelloRequest{Protocol: protocol}}},
		{Request: &conformancev1.Request_Render{Render: &conformancev1.RenderRequest{}}},
		{Request: &conformancev1.Request_Encoding{Encoding: &conformancev1.EncodingRequest{
			MessageType: "turnwire.v1.Turn", Input: &conformancev1.EncodingRequest_Binary{Binary: []byte{0xff}},
		}}},
	}
	for _, request := range asked {
		if err := write(&in, request); err != nil {
			t.Fatal(err)
		}
	}
	if err := serve(&in, &out); err != nil {
		t.Fatal(err)
	}
	answers := make([]*conformancev1.Response, len(asked))
	for index := range asked {
		data, err := read(&out)
		if err != nil {
			t.Fatal(err)
		}
		answers[index] = &conformancev1.Response{}
		if err := proto.Unmarshal(data, answers[index]); err != nil {
			t.Fatal(err)
		}
	}
	if answers[0].GetHello().GetProtocol() != protocol {
		t.Error(answers[0])
	}
	if answers[1].GetError() == "" {
		t.Error("what is not claimed is an error: ", answers[1])
	}
	if !proto.Equal(answers[2].GetRefused(), &conformancev1.Refusal{}) || answers[2].GetRefused() == nil {
		t.Error("what cannot be read is refused without a reason: ", answers[2])
	}
	if out.Len() > 0 {
		t.Error("more than was asked")
	}
}

func TestAStreamThatBreaksOffIsAnError(t *testing.T) {
	for _, in := range []string{"\x00\x00", "\x00\x00\x00\x05abc", "\x00\x00\x00\x01\xff"} {
		if err := serve(bytes.NewReader([]byte(in)), io.Discard); err == nil {
			t.Errorf("%q is no error", in)
		}
	}
}
