package turnwire_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	turnwire "turnwire.dev/go"
	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

func TestAConflictTellsBothRevisions(t *testing.T) {
	client := connected(t)
	appended(t, client, t.Name(), theTurn("T1"), theUser("U1", text("u1", "one")))
	_, err := client.Append(t.Context(), &turnwirev1.AppendRequest{
		SessionId: t.Name(), ExpectedRevision: proto.Int64(1), Entries: inputs(theUser("U2", text("u2", "two"))),
	})
	found := refused(t, err, turnwirev1.Reason_REASON_REVISION_CONFLICT)
	expected, actual, ok := found.Revisions()
	if !ok || expected != 1 || actual != 3 {
		t.Errorf("expected %d, actual %d, %t", expected, actual, ok)
	}
	if found.Code != codes.Aborted || found.Path() != "expected_revision" || found.ReasonName != "REVISION_CONFLICT" {
		t.Error(found.Code, found.Metadata, found.ReasonName)
	}
	if !errors.Is(err, &turnwire.Error{Reason: turnwirev1.Reason_REASON_REVISION_CONFLICT}) ||
		errors.Is(err, &turnwire.Error{Reason: turnwirev1.Reason_REASON_SESSION_DELETED}) || errors.Is(err, &turnwire.Error{}) {
		t.Error("errors.Is goes by the reason")
	}
	if !strings.HasPrefix(err.Error(), "turnwire: REVISION_CONFLICT: expected_revision: ") {
		t.Error(err)
	}
	if status.Code(err) != codes.Aborted {
		t.Error("gRPC's own functions know it:", status.Code(err))
	}
	if turnwire.ReasonOf(fmt.Errorf("wrapped: %w", err)) != turnwirev1.Reason_REASON_REVISION_CONFLICT {
		t.Error("wrapped, it has lost its reason")
	}
}

func TestEveryViolationIsListed(t *testing.T) {
	client := connected(t)
	part := &turnwirev1.PromptPart{Kind: &turnwirev1.PromptPart_Extension{
		Extension: &turnwirev1.ExtensionPart{DataJson: "{"},
	}}
	_, err := client.Append(t.Context(), &turnwirev1.AppendRequest{
		SessionId: t.Name(), Create: &turnwirev1.SessionProperties{}, Entries: inputs(theTurn("T1"), theUser("U1", part)),
	})
	found := refused(t, err, turnwirev1.Reason_REASON_RULE_VIOLATION)
	var listed []string
	for _, each := range found.Violations {
		listed = append(listed, each.Path+" "+each.Rule)
	}
	got := strings.Join(listed, "; ")
	want := "entries[1].user.user.parts[0].extension.type string.min_len; " +
		"entries[1].user.user.parts[0].extension.data_json turnwire.json.syntax"
	if got != want {
		t.Error(got)
	}
}

func TestErrorsOfStreams(t *testing.T) {
	client := connected(t)
	_, err := client.ReadHistory(t.Context(), &turnwirev1.ReplayRequest{SessionId: "nobody"})
	found := refused(t, err, turnwirev1.Reason_REASON_SESSION_NOT_FOUND)
	if found.Metadata["session_id"] != "nobody" {
		t.Error(found.Metadata)
	}
	appended(t, client, t.Name(), theTurn("T1"))
	for _, err := range client.Follow(t.Context(), t.Name(), 7) {
		found = refused(t, err, turnwirev1.Reason_REASON_REVISION_OUT_OF_RANGE)
	}
	if _, actual, _ := found.Revisions(); actual != 2 {
		t.Error(found)
	}
	_, err = client.ComputePrompt(t.Context(), &turnwirev1.MutatePromptRequest{SessionId: t.Name(), TurnId: "T9"})
	refused(t, err, turnwirev1.Reason_REASON_TURN_NOT_FOUND)
}

func TestARefusalOnAnAppendStreamHasItsReason(t *testing.T) {
	client := connected(t)
	stream, err := client.AppendStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, create := range []*turnwirev1.SessionProperties{nil, {}} {
		request := &turnwirev1.AppendRequest{SessionId: t.Name(), Create: create, Entries: inputs(theTurn("T1"))}
		if err := stream.Send(&turnwirev1.AppendStreamRequest{Append: request}); err != nil {
			t.Fatal(err)
		}
	}
	var outcomes []*turnwirev1.AppendOutcome
	for len(outcomes) < 2 {
		outcomes = append(outcomes, must(stream.Recv()).GetOutcomes()...)
	}
	refused(t, turnwire.FromRefusal(outcomes[0].GetRefusal()), turnwirev1.Reason_REASON_SESSION_NOT_FOUND)
	if outcomes[1].GetAppend().GetHead().GetRevision() != 2 {
		t.Error("the stream goes on after a refusal: ", outcomes)
	}
}

func TestARequestOverTheServersLimit(t *testing.T) {
	client := connected(t)
	large := theUser("U1", text("u1", strings.Repeat("x", 20<<20)))
	_, err := client.Append(t.Context(), &turnwirev1.AppendRequest{SessionId: t.Name(), Entries: inputs(large)})
	found := refused(t, err, turnwirev1.Reason_REASON_REQUEST_TOO_LARGE)
	if limit, ok := found.Detail.(*turnwirev1.SizeLimit); !ok || limit.GetSize() < 20<<20 || limit.GetUnit() != "bytes" {
		t.Error(found.Detail)
	}
}

func TestNoServerIsAnErrorWithoutAReason(t *testing.T) {
	client := dial(t, "127.0.0.1:1")
	_, err := client.GetServerInfo(t.Context(), &turnwirev1.GetServerInfoRequest{})
	found := refused(t, err, turnwirev1.Reason_REASON_UNSPECIFIED)
	if found.Code != codes.Unavailable || found.ReasonName != "" {
		t.Error(found)
	}
}

func TestAContextThatHasEndedIsInTheError(t *testing.T) {
	client := connected(t)
	appended(t, client, t.Name(), theTurn("T1"))
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if _, err := client.GetSession(ctx, &turnwirev1.GetSessionRequest{SessionId: t.Name()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var last error
	for next, err := range client.Follow(ctx, t.Name(), 0) {
		last = err
		if next.CaughtUp != nil {
			leave()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Error(last)
	}
}

// gone is a client of a server that is not there.
func gone(t *testing.T) *turnwire.Client {
	return dial(t, "unix:"+filepath.Join(t.TempDir(), "gone"))
}

func lastOf(client *turnwire.Client, ctx context.Context, sessionID string, each func(turnwire.Followed)) (last error) {
	for next, err := range client.Follow(ctx, sessionID, 0) {
		last = err
		each(next)
	}
	return last
}

func TestADeadlineEndsFollowingAServerThatIsGone(t *testing.T) {
	for _, patience := range []time.Duration{time.Millisecond, 300 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		err := lastOf(gone(t), ctx, t.Name(), func(turnwire.Followed) {})
		var found *turnwire.Error
		if !errors.As(err, &found) || found.Code != codes.DeadlineExceeded || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%T: %v", err, err)
		}
	}
}

func TestAClosedClientMakesNoCallsAnyMore(t *testing.T) {
	closed := func(what string, err error) {
		if found := turnwire.AsError(err); found == nil || found.Code != codes.Canceled || !strings.Contains(found.Text, "clos") {
			t.Errorf("%s: %v", what, err)
		}
	}
	client := dial(t, shared.Address)
	appended(t, client, t.Name(), theTurn("T1"))
	closed("a tail that is open", lastOf(client, t.Context(), t.Name(), func(next turnwire.Followed) {
		if next.CaughtUp != nil {
			_ = client.Close()
		}
	}))
	_, err := client.GetServerInfo(t.Context(), &turnwirev1.GetServerInfoRequest{})
	closed("a call", err)
	_, err = client.ReadHistory(t.Context(), &turnwirev1.ReplayRequest{SessionId: t.Name()})
	closed("a stream", err)
	closed("a tail", lastOf(client, t.Context(), t.Name(), func(turnwire.Followed) {}))
	if err := client.Close(); err != nil {
		t.Error(err)
	}

	waiting := gone(t)
	time.AfterFunc(50*time.Millisecond, func() { _ = waiting.Close() })
	closed("a tail that waits", lastOf(waiting, t.Context(), t.Name(), func(turnwire.Followed) {}))

	conn, err := grpc.NewClient(shared.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	closed("a tail over a connection of the caller's", lastOf(turnwire.New(conn), t.Context(), t.Name(), func(turnwire.Followed) {}))
}

func TestEveryReasonSurvivesAsAStatus(t *testing.T) {
	values := turnwirev1.Reason(0).Descriptor().Values()
	for index := range values.Len() {
		reason := turnwirev1.Reason(values.Get(index).Number())
		if reason == turnwirev1.Reason_REASON_UNSPECIFIED {
			continue
		}
		code := codes.Code(0)
		name := proto.GetExtension(values.Get(index).Options(), turnwirev1.E_Status).(string)
		if err := code.UnmarshalJSON([]byte(`"` + name + `"`)); err != nil {
			t.Fatal(err)
		}
		sent := &turnwire.Error{
			Reason: reason, ReasonName: strings.TrimPrefix(reason.String(), "REASON_"), Code: code,
			Text: "why", Metadata: map[string]string{"path": "a.b"},
		}
		got := turnwire.AsError(sent.GRPCStatus().Err())
		if got.Reason != reason || got.Code != code || got.Path() != "a.b" || got.Text != "why" {
			t.Errorf("%v: got %+v", reason, got)
		}
	}
}

func TestAReasonOfALaterSchemaKeepsItsName(t *testing.T) {
	sent := &turnwire.Error{ReasonName: "OUT_OF_TEA", Code: codes.FailedPrecondition, Text: "why"}
	got := turnwire.FromStatus(sent.GRPCStatus())
	if got.Reason != turnwirev1.Reason_REASON_UNSPECIFIED || got.ReasonName != "OUT_OF_TEA" {
		t.Errorf("%+v", got)
	}
}
