package turnwire_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"

	turnwire "turnwire.dev/go"
	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// raw is a codec that leaves responses as they came.
type raw struct{}

func (raw) Name() string                  { return "proto" }
func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}

// rawEntries reads a log as the bytes that the server sends.
func rawEntries(ctx context.Context, address, session string) ([][]byte, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true},
		turnwirev1.SessionService_ReadEntries_FullMethodName, grpc.ForceCodec(raw{}))
	if err != nil {
		return nil, err
	}
	request := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), session)
	if err := errors.Join(stream.SendMsg(&request), stream.CloseSend()); err != nil {
		return nil, err
	}
	var found [][]byte
	for {
		var response []byte
		if err := stream.RecvMsg(&response); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		for len(response) > 0 { // field 1, repeated
			_, _, tag := protowire.ConsumeTag(response)
			entry, length := protowire.ConsumeBytes(response[tag:])
			if length < 0 {
				return nil, fmt.Errorf("no response: %w", protowire.ParseError(length))
			}
			found = append(found, entry)
			response = response[tag+length:]
		}
	}
}

func TestTheChainOfALogIsThatOfTheServer(t *testing.T) {
	client := connected(t)
	unknown := theUser("U1", text("u1", "one"))
	unknown.Parts[0].ProtoReflect().SetUnknown([]byte{0xaa, 0x06, 0x01, 'x'}) // field 101
	response := appended(t, client, t.Name(), theTurn("T1"), unknown, theAssistant("A1", text("a1", "")), delta("a1", 0, "é"))

	raw, err := rawEntries(t.Context(), shared.Address, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	digest := turnwire.ChainStart(t.Name())
	for index, entry := range entries(t, client, t.Name()) {
		digest, err = turnwire.ChainEntry(digest, raw[index])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(digest, entry.GetDigest()) {
			t.Fatalf("entry %d: got %x, want %x", entry.GetRevision(), digest, entry.GetDigest())
		}
	}
	if !bytes.Equal(digest, response.GetHead().GetDigest()) {
		t.Error("the head has another")
	}
}

func TestTheChainByHand(t *testing.T) {
	start := turnwire.ChainStart("ses_1")
	if got := fmt.Sprintf("%x", start); got != sha("turnwire/1ses_1") {
		t.Error(got)
	}
	recorded := time.Unix(1, 2000).UTC()
	link := string(start) + "\x00\x00\x00\x00\x00\x00\x00\x05" + "\x00\x00\x00\x00\x3b\x9a\xd1\xd0" + "\x00\x00\x00\x0b" +
		string(shaBytes("payload"))
	if got := fmt.Sprintf("%x", turnwire.ChainLink(start, 5, recorded, 11, []byte("payload"))); got != sha(link) {
		t.Error(got)
	}
}

func shaBytes(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

func sha(text string) string { return fmt.Sprintf("%x", shaBytes(text)) }

func TestBytesThatAreNoEntryHaveNoDigest(t *testing.T) {
	start := turnwire.ChainStart(t.Name())
	for _, entry := range [][]byte{nil, {0x08, 0x01}, {0x52}, {0x52, 0x00, 0x5a, 0x00}, {0xff}} {
		if digest, err := turnwire.ChainEntry(start, entry); err == nil {
			t.Errorf("%x has %x", entry, digest)
		}
	}
}
