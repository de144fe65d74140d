package turnwire_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	turnwire "turnwire.dev/go"
	"turnwire.dev/go/internal/turnwiretest"
	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

const (
	user      = turnwirev1.Role_ROLE_USER
	assistant = turnwirev1.Role_ROLE_ASSISTANT
)

var model = &turnwirev1.ModelRef{ProviderId: "anthropic", ModelId: "claude-sonnet-4-5"}

func text(id, content string) *turnwirev1.PromptPart {
	part := turnwire.Text(content)
	part.Id = id
	return part
}

func tool(id, callID string) *turnwirev1.PromptPart {
	return &turnwirev1.PromptPart{Id: id, Kind: &turnwirev1.PromptPart_Tool{Tool: &turnwirev1.ToolPart{
		CallId: callID, Name: "read", State: turnwirev1.ToolState_TOOL_STATE_RUNNING, InputJson: "{}",
	}}}
}

func signed(id, content string) *turnwirev1.PromptPart {
	part := text(id, content)
	part.GetText().Provider = &turnwirev1.ProviderMetadata{MetadataJson: `{"signature":"x"}`, Signed: true}
	return part
}

func theTurn(id string) *turnwirev1.Turn {
	return &turnwirev1.Turn{Id: id, Request: &turnwirev1.TurnRequest{Agent: "build", Model: model}}
}

func theUser(id string, parts ...*turnwirev1.PromptPart) *turnwirev1.User {
	return &turnwirev1.User{Id: id, TurnId: "T1", Parts: parts}
}

func theAssistant(id string, parts ...*turnwirev1.PromptPart) *turnwirev1.Assistant {
	return &turnwirev1.Assistant{
		Id: id, TurnId: "T1", Run: &turnwirev1.Run{Agent: "build", Model: model}, Parts: parts,
	}
}

// dialogue is a history of two messages: U1 with the parts u1 and u2, A1 with the parts a1 (signed), a2 (a tool) and a3.
func dialogue() *turnwire.History {
	return &turnwire.History{
		Turns: []*turnwirev1.Turn{theTurn("T1")},
		Messages: []turnwire.Message{
			theUser("U1", text("u1", "one"), text("u2", "two")),
			theAssistant("A1", signed("a1", "three"), tool("a2", "call_1"), text("a3", "four")),
		},
	}
}

// input makes what an append takes of a payload.
func input(payload proto.Message) *turnwirev1.EntryInput {
	switch each := payload.(type) {
	case *turnwirev1.Turn:
		return &turnwirev1.EntryInput{Payload: &turnwirev1.EntryInput_Turn{Turn: each}}
	case *turnwirev1.User:
		return input(&turnwirev1.UserPut{User: each})
	case *turnwirev1.UserPut:
		return &turnwirev1.EntryInput{Payload: &turnwirev1.EntryInput_User{User: each}}
	case *turnwirev1.Assistant:
		put := &turnwirev1.AssistantPut{Assistant: each}
		return &turnwirev1.EntryInput{Payload: &turnwirev1.EntryInput_Assistant{Assistant: put}}
	case *turnwirev1.PartPut:
		return &turnwirev1.EntryInput{Payload: &turnwirev1.EntryInput_Part{Part: each}}
	case *turnwirev1.PartDelta:
		return &turnwirev1.EntryInput{Payload: &turnwirev1.EntryInput_Delta{Delta: each}}
	case *turnwirev1.MessageSummary:
		return &turnwirev1.EntryInput{Payload: &turnwirev1.EntryInput_Summary{Summary: each}}
	case *turnwirev1.Removal:
		return &turnwirev1.EntryInput{Payload: &turnwirev1.EntryInput_Removal{Removal: each}}
	case *turnwirev1.Revert:
		return &turnwirev1.EntryInput{Payload: &turnwirev1.EntryInput_Revert{Revert: each}}
	case *turnwirev1.RevertClear:
		return &turnwirev1.EntryInput{Payload: &turnwirev1.EntryInput_RevertClear{RevertClear: each}}
	}
	panic("no payload of these tests")
}

func inputs(payloads ...proto.Message) []*turnwirev1.EntryInput {
	made := make([]*turnwirev1.EntryInput, len(payloads))
	for index, payload := range payloads {
		made[index] = input(payload)
	}
	return made
}

// shared is the server of all tests that stop none; each has sessions of its own name there.
var shared *turnwiretest.Server

func TestMain(m *testing.M) {
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "turnwire")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		shared, err = turnwiretest.Serve(filepath.Join(folder, "sessions.db"), "0")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer shared.Stop()
		return m.Run()
	}())
}

// connected is a client of the shared server.
func connected(t *testing.T) *turnwire.Client {
	t.Helper()
	return dial(t, shared.Address)
}

func dial(t *testing.T, address string) *turnwire.Client {
	t.Helper()
	client, err := turnwire.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// appended appends payloads to a session, which is created if it is not there.
func appended(t *testing.T, client *turnwire.Client, session string, payloads ...proto.Message) *turnwirev1.AppendResponse {
	t.Helper()
	response, err := client.Append(t.Context(), &turnwirev1.AppendRequest{
		SessionId: session, Entries: inputs(payloads...), Create: &turnwirev1.SessionProperties{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func history(t *testing.T, client *turnwire.Client, request *turnwirev1.ReplayRequest) *turnwire.History {
	t.Helper()
	found, err := client.ReadHistory(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// refused fails unless an error has a reason, and returns it.
func refused(t *testing.T, err error, reason turnwirev1.Reason) *turnwire.Error {
	t.Helper()
	var found *turnwire.Error
	if !errors.As(err, &found) || found.Reason != reason {
		t.Fatalf("got %v, want %v", err, reason)
	}
	return found
}

// equal fails unless two messages are equal, unknown fields included.
func equal(t *testing.T, got, want proto.Message) {
	t.Helper()
	if !proto.Equal(got, want) {
		t.Fatalf("got  %v\nwant %v", got, want)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
