package turnwire_test

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	turnwire "turnwire.dev/go"
	"turnwire.dev/go/internal/turnwiretest"
	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

func TestAHistoryIsWholeHoweverLargeItsMessagesAre(t *testing.T) {
	client := connected(t)
	var parts []*turnwirev1.PromptPart
	for _, id := range []string{"u1", "u2", "u3", "u4", "u5"} {
		parts = append(parts, text(id, strings.Repeat(id, 300_000)))
	}
	put := theUser("U1", parts...)
	summary := &turnwirev1.MessageSummary{MessageId: "U1", Title: proto.String("large")}
	head := appended(t, client, t.Name(), theTurn("T1"), put, summary, theAssistant("A1", text("a1", "two"))).GetHead()

	found := history(t, client, &turnwirev1.ReplayRequest{SessionId: t.Name(), IncludeSummaries: true})
	if len(found.Messages) != 2 || len(found.Turns) != 1 || found.Turns[0].GetId() != "T1" {
		t.Fatalf("%d messages, %d turns", len(found.Messages), len(found.Turns))
	}
	for index, part := range found.Messages[0].GetParts() {
		equal(t, part, parts[index])
	}
	if len(found.Messages[0].GetParts()) != len(parts) {
		t.Error(len(found.Messages[0].GetParts()), "parts")
	}
	equal(t, found.Summaries["U1"], summary)
	equal(t, found.Head, head)

	alone, err := client.ReadMessage(t.Context(), &turnwirev1.GetMessageRequest{SessionId: t.Name(), MessageId: "U1"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, alone.Messages[0], found.Messages[0])

	prompt, err := client.ComputePrompt(t.Context(), &turnwirev1.MutatePromptRequest{SessionId: t.Name(), TurnId: "T1"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, prompt.Items[0].GetMessage(), turnwire.UserMessage(parts...))
	if got := must(turnwire.PromptDigest(prompt.Items)); !slices.Equal(got, prompt.End.GetRecord().GetDigest()) {
		t.Error("the digest is not that of the service")
	}
}

func TestAPromptIsComputedAlikeHereAndThere(t *testing.T) {
	client := connected(t)
	appended(t, client, t.Name(), theTurn("T1"),
		theUser("U1", text("u1", "one")), theAssistant("A1", signed("a1", "two"), tool("a2", "c"), text("a3", "three")))
	editor := must(turnwire.EditPrompt(history(t, client, &turnwirev1.ReplayRequest{SessionId: t.Name()}), "T1"))
	for _, err := range []error{
		editor.Append(hook("x")), editor.InsertBefore("A1", hook("y")), editor.AppendTo(assistant, turnwire.Text("z")),
		editor.ReplacePart("u1", turnwire.SyntheticText("new")), editor.RemovePart("a2"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	request := &turnwirev1.MutatePromptRequest{SessionId: t.Name(), TurnId: "T1", Mutations: editor.Mutations()}
	prompt, err := client.ComputePrompt(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	for index, item := range editor.Items() {
		equal(t, item, prompt.Items[index])
	}
	if digest := must(editor.Digest()); !slices.Equal(digest, prompt.End.GetRecord().GetDigest()) {
		t.Errorf("got %x, want %x", digest, prompt.End.GetRecord().GetDigest())
	}
	again, err := client.ReadPrompt(t.Context(), &turnwirev1.GetPromptRequest{
		SessionId: t.Name(), PromptId: prompt.End.GetRecord().GetId(),
	})
	if err != nil || !again.End.GetDigestHolds() {
		t.Error(again, err)
	}
	rendering, err := client.Render(t.Context(), &turnwirev1.RenderPromptRequest{
		SessionId: t.Name(), Dialect: turnwirev1.Dialect_DIALECT_ANTHROPIC_MESSAGES, Record: true,
		Source: &turnwirev1.RenderPromptRequest_PromptId{PromptId: prompt.End.GetRecord().GetId()},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(rendering.Body, `"new"`) || !slices.Equal(rendering.End.GetBodySha256(), shaBytes(rendering.Body)) {
		t.Error(rendering.Body)
	}
}

// A reply that is lost on the way: the server has written, the connection breaks, the client tries again.
func TestAWriteWhoseReplyIsLostIsDoneOnce(t *testing.T) {
	direct := connected(t)
	appended(t, direct, t.Name(), theTurn("T1"))
	proxy := between(t, shared.Address)
	client := dial(t, proxy.address)
	if _, err := client.GetServerInfo(t.Context(), &turnwirev1.GetServerInfoRequest{}); err != nil {
		t.Fatal(err)
	}

	proxy.hold()
	type outcome struct {
		response *turnwirev1.AppendResponse
		err      error
	}
	done := make(chan outcome, 1)
	go func() {
		request := &turnwirev1.AppendRequest{SessionId: t.Name(), Entries: inputs(theUser("U1", text("u1", "one")))}
		response, err := client.Append(t.Context(), request)
		done <- outcome{response, err}
	}()
	for next, err := range direct.Follow(t.Context(), t.Name(), 2) {
		if err != nil {
			t.Fatal(err)
		}
		if next.Entry.GetRevision() == 3 {
			break // it is written, and the reply is held
		}
	}
	proxy.cut()
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	if got.response.GetHead().GetRevision() != 3 || got.response.GetResults()[0].GetRevision() != 3 {
		t.Error(got.response)
	}
	if count := len(entries(t, direct, t.Name())); count != 3 {
		t.Errorf("%d entries", count)
	}
}

func TestASessionWithoutAnIdIsCreatedOnce(t *testing.T) {
	client := connected(t)
	request := &turnwirev1.CreateSessionRequest{}
	created, err := client.CreateSession(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if id := created.GetSession().GetId(); !strings.HasPrefix(id, "ses_") || len(id) != 24 {
		t.Error(id)
	}
	if !proto.Equal(request, &turnwirev1.CreateSessionRequest{}) {
		t.Error("the request was changed: ", request)
	}
}

func TestFollowGoesOnWhenTheServerIsBack(t *testing.T) {
	server := turnwiretest.Start(t)
	client := dial(t, server.Address)
	appended(t, client, t.Name(), theTurn("T1"), theUser("U1", text("u1", "one")))
	_, port, err := net.SplitHostPort(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	var seen []int64
	for next, err := range client.Follow(t.Context(), t.Name(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if next.CaughtUp != nil {
			if next.CaughtUp.GetRevision() != 3 {
				t.Error("caught up at", next.CaughtUp.GetRevision())
			}
			server.Stop()
			server = turnwiretest.StartOn(t, server.DB, port)
			other := dial(t, server.Address)
			appended(t, other, t.Name(), theAssistant("A1", text("a1", "")), delta("a1", 0, "x"))
			continue
		}
		if seen = append(seen, next.Entry.GetRevision()); len(seen) == 4 {
			break
		}
	}
	if !slices.Equal(seen, []int64{2, 3, 4, 5}) {
		t.Error(seen)
	}
}

// An outage is counted in refused connections: with the pauses that grpc-go makes by itself nine take two minutes.
func away(t *testing.T, address string) *turnwire.Client {
	t.Helper()
	var tries atomic.Int32
	client, err := turnwire.Dial(address, grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
		if tries.Add(1) <= 9 {
			return nil, syscall.ECONNREFUSED
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", to)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestAnAppendComesThroughAfterALongOutage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request := &turnwirev1.AppendRequest{
		SessionId: t.Name(), Entries: inputs(theTurn("T1")), Create: &turnwirev1.SessionProperties{},
	}
	response, err := away(t, shared.Address).Append(ctx, request, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if response.GetHead().GetRevision() != 2 {
		t.Error(response)
	}
}

func TestFollowGoesOnAfterALongOutage(t *testing.T) {
	t.Parallel()
	appended(t, connected(t), t.Name(), theTurn("T1"))
	for next, err := range away(t, shared.Address).Follow(t.Context(), t.Name(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if next.CaughtUp != nil {
			if next.CaughtUp.GetRevision() != 2 {
				t.Error(next.CaughtUp)
			}
			return
		}
	}
}

func TestClosingTwiceIsNoError(t *testing.T) {
	client := dial(t, shared.Address)
	if first, second := client.Close(), client.Close(); first != nil || second != nil {
		t.Error(first, second)
	}
}

func TestTextThatIsNoUTF8IsARuleViolation(t *testing.T) {
	client := connected(t)
	request := &turnwirev1.AppendRequest{
		SessionId: t.Name(), Entries: inputs(theTurn("T1"), theUser("U1", text("u1", "a\xffb"))),
		Create: &turnwirev1.SessionProperties{},
	}
	_, err := client.Append(t.Context(), request)
	found := refused(t, err, turnwirev1.Reason_REASON_RULE_VIOLATION)
	if found.Path() != "entries[1].user.user.parts[0].text.text" || found.Violations[0].Rule != "turnwire.wire_format" {
		t.Error(found.Path(), found.Violations)
	}
	_, err = client.ReadHistory(t.Context(), &turnwirev1.ReplayRequest{SessionId: "\xff"})
	if found := refused(t, err, turnwirev1.Reason_REASON_RULE_VIOLATION); found.Path() != "session_id" {
		t.Error(found.Path())
	}
	stream, err := client.AppendStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found := refused(t, stream.Send(&turnwirev1.AppendStreamRequest{Append: request}), turnwirev1.Reason_REASON_RULE_VIOLATION); len(found.Violations) != 1 {
		t.Error(found.Violations)
	}
}

func TestANilRequestIsAnEmptyOne(t *testing.T) {
	client := connected(t)
	_, err := client.Append(t.Context(), nil)
	_, want := client.Append(t.Context(), &turnwirev1.AppendRequest{})
	if want == nil || err == nil || err.Error() != want.Error() {
		t.Errorf("got %v, want %v", err, want)
	}
	if _, err := client.MutatePrompt(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ReadHistory(t.Context(), nil); turnwire.AsError(err) == nil {
		t.Error(err)
	}
	if _, err := client.ComputePrompt(t.Context(), nil); turnwire.AsError(err) == nil {
		t.Error(err)
	}
	created, err := client.CreateSession(t.Context(), nil)
	if err != nil || !strings.HasPrefix(created.GetSession().GetId(), "ses_") {
		t.Error(created, err)
	}
}

func TestFollowEndsWhenTheSessionIsDeleted(t *testing.T) {
	client := connected(t)
	appended(t, client, t.Name(), theTurn("T1"))
	var last error
	for next, err := range client.Follow(t.Context(), t.Name(), 0) {
		last = err
		if next.CaughtUp != nil {
			if _, err := client.DeleteSession(t.Context(), &turnwirev1.DeleteSessionRequest{SessionId: t.Name()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	refused(t, last, turnwirev1.Reason_REASON_SESSION_DELETED)
}

// proxy passes bytes between clients and a server, until it is told to hold what the server says.
type proxy struct {
	address string

	mutex sync.Mutex
	held  bool
	conns []net.Conn
}

func between(t *testing.T, server string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made := &proxy{address: listener.Addr().String()}
	t.Cleanup(func() { _ = listener.Close(); made.cut() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.DialTimeout("tcp", server, 10*time.Second)
			if err != nil {
				_ = client.Close()
				continue
			}
			made.mutex.Lock()
			made.conns = append(made.conns, client, upstream)
			made.mutex.Unlock()
			go func() { _, _ = io.Copy(upstream, client); _ = upstream.Close() }()
			go func() { _, _ = io.Copy(replies{client, made}, upstream); _ = client.Close() }()
		}
	}()
	return made
}

func (p *proxy) hold() { p.mutex.Lock(); p.held = true; p.mutex.Unlock() }

// cut ends the connections that there are, and lets later ones pass.
func (p *proxy) cut() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns, p.held = nil, false
}

type replies struct {
	net.Conn
	proxy *proxy
}

func (r replies) Write(data []byte) (int, error) {
	r.proxy.mutex.Lock()
	held := r.proxy.held
	r.proxy.mutex.Unlock()
	if held {
		return len(data), nil
	}
	return r.Conn.Write(data)
}
