// Command session drives a Turnwire server: it creates a session, appends a turn with a streamed answer, edits the prompt
// of the next call, replays and tails the log, and reads what a conflict tells.
//
//	turnwire serve --db sessions.db &
//	go run ./examples/session
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	turnwire "turnwire.dev/go"
	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

func main() {
	server := flag.String("server", "127.0.0.1:7411", "the server's HOST:PORT, or unix:PATH")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, *server, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server string, out io.Writer) error {
	client, err := turnwire.Dial(server)
	if err != nil {
		return err
	}
	defer client.Close()

	created, err := client.CreateSession(ctx, &turnwirev1.CreateSessionRequest{
		Properties: &turnwirev1.SessionProperties{Title: proto.String("A talk from Go")},
	})
	if err != nil {
		return err
	}
	session := created.GetSession().GetId()
	fmt.Fprintf(out, "session %s\n", created.GetSession().GetProperties().GetTitle())

	turn, err := ask(ctx, client, session)
	if err != nil {
		return err
	}
	if err := answer(ctx, client, session, turn, out); err != nil {
		return err
	}
	if err := editPrompt(ctx, client, session, turn, out); err != nil {
		return err
	}
	if err := tail(ctx, client, session, out); err != nil {
		return err
	}
	return conflict(ctx, client, session, out)
}

var model = &turnwirev1.ModelRef{ProviderId: "anthropic", ModelId: "claude-sonnet-4-5"}

// ask appends a turn and the user's message in one request, all or none.
func ask(ctx context.Context, client *turnwire.Client, session string) (turnID string, err error) {
	turn := &turnwirev1.Turn{Id: "trn_1", Request: &turnwirev1.TurnRequest{Agent: "build", Model: model}}
	user := &turnwirev1.User{
		Id: "msg_ask", TurnId: turn.GetId(),
		Parts: []*turnwirev1.PromptPart{turnwire.Text("What does the README say?")},
	}
	_, err = client.Append(ctx, &turnwirev1.AppendRequest{SessionId: session, Entries: []*turnwirev1.EntryInput{
		{Payload: &turnwirev1.EntryInput_Turn{Turn: turn}},
		{Payload: &turnwirev1.EntryInput_User{User: &turnwirev1.UserPut{User: user}}},
	}})
	return turn.GetId(), err
}

// answer streams an assistant's message: first its header with an empty text, then the text in deltas, then the end.
func answer(ctx context.Context, client *turnwire.Client, session, turnID string, out io.Writer) error {
	text := turnwire.Text("")
	text.Id = "prt_answer"
	message := &turnwirev1.Assistant{
		Id: "msg_answer", TurnId: turnID, ParentId: proto.String("msg_ask"),
		Run:   &turnwirev1.Run{Agent: "build", Model: model},
		Parts: []*turnwirev1.PromptPart{text},
	}
	begun := &turnwirev1.EntryInput_Assistant{Assistant: &turnwirev1.AssistantPut{Assistant: message}}
	if err := appendOne(ctx, client, session, &turnwirev1.EntryInput{Payload: begun}); err != nil {
		return err
	}
	var offset int64
	for _, piece := range []string{"It says that ", "Turnwire stores ", "sessions."} {
		delta := &turnwirev1.PartDelta{
			PartId: text.GetId(), Offset: offset, Target: &turnwirev1.PartDelta_Text{Text: piece},
		}
		entry := &turnwirev1.EntryInput{Payload: &turnwirev1.EntryInput_Delta{Delta: delta}}
		if err := appendOne(ctx, client, session, entry); err != nil {
			return err
		}
		offset += int64(len(piece)) // in bytes of UTF-8
	}
	ended := proto.CloneOf(message)
	ended.Parts = nil // parts that a put does not carry stay
	now := timestamppb.Now()
	ended.Time = &turnwirev1.AssistantTime{Created: now, Completed: now}
	ended.Result = &turnwirev1.Result{Finish: proto.String("stop")}
	end := &turnwirev1.EntryInput_Assistant{Assistant: &turnwirev1.AssistantPut{Assistant: ended}}
	if err := appendOne(ctx, client, session, &turnwirev1.EntryInput{Payload: end}); err != nil {
		return err
	}

	history, err := client.ReadHistory(ctx, &turnwirev1.ReplayRequest{SessionId: session})
	if err != nil {
		return err
	}
	for _, each := range history.Messages {
		fmt.Fprintf(out, "%s: %s\n", name(turnwire.RoleOf(each)), texts(each.GetParts()))
	}
	return nil
}

func appendOne(ctx context.Context, client *turnwire.Client, session string, entry *turnwirev1.EntryInput) error {
	request := &turnwirev1.AppendRequest{SessionId: session, Entries: []*turnwirev1.EntryInput{entry}}
	_, err := client.Append(ctx, request)
	return err
}

// editPrompt slips a message into the next prompt, which never touches the history, and has the service record it.
func editPrompt(ctx context.Context, client *turnwire.Client, session, turnID string, out io.Writer) error {
	history, err := client.ReadHistory(ctx, &turnwirev1.ReplayRequest{SessionId: session})
	if err != nil {
		return err
	}
	editor, err := turnwire.EditPrompt(history, turnID)
	if err != nil {
		return err
	}
	if err := editor.Append(turnwire.UserMessage(turnwire.SyntheticText("Answer in one word."))); err != nil {
		return err
	}
	err = editor.Remove("msg_nobody")
	fmt.Fprintf(out, "refused at once: %s\n", turnwire.ReasonOf(err))

	recorded, err := client.ComputePrompt(ctx, &turnwirev1.MutatePromptRequest{
		SessionId: session, TurnId: turnID, Mutations: editor.Mutations(),
	})
	if err != nil {
		return err
	}
	digest, err := editor.Digest()
	if err != nil {
		return err
	}
	same := bytes.Equal(digest, recorded.End.GetRecord().GetDigest())
	fmt.Fprintf(out, "prompt of %d messages, computed alike here and there: %t\n", len(recorded.Items), same)
	return nil
}

// tail reads the log as it was written. Without the break it would go on with what anybody appends.
func tail(ctx context.Context, client *turnwire.Client, session string, out io.Writer) error {
	for next, err := range client.Follow(ctx, session, 0) {
		if err != nil {
			return err
		}
		if next.CaughtUp != nil {
			fmt.Fprintf(out, "caught up at revision %d\n", next.CaughtUp.GetRevision())
			break
		}
		payload := next.Entry.ProtoReflect()
		field := payload.WhichOneof(payload.Descriptor().Oneofs().ByName("payload"))
		fmt.Fprintf(out, "%d %s\n", next.Entry.GetRevision(), field.Name())
	}
	return nil
}

// conflict appends by a revision that is no longer the head, and reads from the error which one is.
func conflict(ctx context.Context, client *turnwire.Client, session string, out io.Writer) error {
	properties := &turnwirev1.SessionProperties{Title: proto.String("Another title")}
	_, err := client.Append(ctx, &turnwirev1.AppendRequest{
		SessionId: session, ExpectedRevision: proto.Int64(1),
		Entries: []*turnwirev1.EntryInput{{Payload: &turnwirev1.EntryInput_Session{Session: properties}}},
	})
	var refused *turnwire.Error
	if !errors.As(err, &refused) {
		return fmt.Errorf("a conflict was expected, not %w", err)
	}
	expected, actual, _ := refused.Revisions()
	fmt.Fprintf(out, "%s: expected %d, actual %d\n", refused.ReasonName, expected, actual)
	return nil
}

func name(role turnwirev1.Role) string {
	return strings.ToLower(strings.TrimPrefix(role.String(), "ROLE_"))
}

func texts(parts []*turnwirev1.PromptPart) string {
	var joined strings.Builder
	for _, part := range parts {
		joined.WriteString(part.GetText().GetText())
	}
	return joined.String()
}
