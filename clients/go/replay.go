package turnwire

import (
	"context"
	"fmt"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// ReplayItems streams the folded history piece by piece, so that it need not fit into memory: each *turnwirev1.Turn once,
// before the first message that uses it; each *turnwirev1.User and *turnwirev1.Assistant with all its parts; the
// *turnwirev1.MessageSummary of a message if it is asked for; at the end the *turnwirev1.Head. An error ends it.
func (c *Client) ReplayItems(
	ctx context.Context, request *turnwirev1.ReplayRequest, options ...grpc.CallOption,
) iter.Seq2[proto.Message, error] {
	return wholeItems(responses(ctx, c.Replay, request, options))
}

// ReadHistory reads the folded history at a revision, or a window of it.
//
// The history does not know what was removed: an anchor on a removed message is unknown to a PromptEditor of it, and
// removed to the service.
func (c *Client) ReadHistory(
	ctx context.Context, request *turnwirev1.ReplayRequest, options ...grpc.CallOption,
) (*History, error) {
	return collect(c.ReplayItems(ctx, request, options...))
}

// ReadMessage reads one message, as a history of it alone: with its turn, and its summary if it is asked for.
func (c *Client) ReadMessage(
	ctx context.Context, request *turnwirev1.GetMessageRequest, options ...grpc.CallOption,
) (*History, error) {
	return collect(wholeItems(responses(ctx, c.GetMessage, request, options)))
}

// ReplayEntries streams the raw entries of a range. A payload of a later schema is kept in the entry's unknown fields.
func (c *Client) ReplayEntries(
	ctx context.Context, request *turnwirev1.ReadEntriesRequest, options ...grpc.CallOption,
) iter.Seq2[*turnwirev1.Entry, error] {
	return func(yield func(*turnwirev1.Entry, error) bool) {
		for response, err := range responses(ctx, c.ReadEntries, request, options) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, entry := range response.GetEntries() {
				if !yield(entry, nil) {
					return
				}
			}
		}
	}
}

func collect(items iter.Seq2[proto.Message, error]) (*History, error) {
	history := &History{Summaries: map[string]*turnwirev1.MessageSummary{}}
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		switch each := item.(type) {
		case *turnwirev1.Turn:
			history.Turns = append(history.Turns, each)
		case Message:
			history.Messages = append(history.Messages, each)
		case *turnwirev1.MessageSummary:
			history.Summaries[each.GetMessageId()] = each
		case *turnwirev1.Head:
			history.Head, history.Revision = each, each.GetRevision()
		}
	}
	return history, nil
}

// frames are a response of Replay or GetMessage.
type frames interface {
	GetFrames() []*turnwirev1.HistoryFrame
}

// wholeItems puts frames together: a message is given when all its parts have come.
func wholeItems[R frames](responses iter.Seq2[R, error]) iter.Seq2[proto.Message, error] {
	return func(yield func(proto.Message, error) bool) {
		joined := &joiner{yield: yield}
		for response, err := range responses {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, frame := range response.GetFrames() {
				if !joined.add(frame) {
					return
				}
			}
		}
		joined.flush()
	}
}

type joiner struct {
	yield   func(proto.Message, error) bool
	message Message // that further parts may follow
	number  int     // of the frame
}

// add takes the next frame; false: nothing more is wanted, or can be right.
func (j *joiner) add(frame *turnwirev1.HistoryFrame) bool {
	j.number++
	if more, ok := frame.GetFrame().(*turnwirev1.HistoryFrame_Parts); ok {
		return j.more(more.Parts)
	}
	if !j.flush() {
		return false
	}
	switch each := frame.GetFrame().(type) {
	case *turnwirev1.HistoryFrame_Turn:
		return j.yield(each.Turn, nil)
	case *turnwirev1.HistoryFrame_User:
		j.message = each.User
	case *turnwirev1.HistoryFrame_Assistant:
		j.message = each.Assistant
	case *turnwirev1.HistoryFrame_Summary:
		return j.yield(each.Summary, nil)
	case *turnwirev1.HistoryFrame_Head:
		return j.yield(each.Head, nil)
	default:
		if len(frame.ProtoReflect().GetUnknown()) > 0 {
			text := fmt.Sprintf("frame %d of the replay is of a later schema", j.number)
			reason := turnwirev1.Reason_REASON_UNKNOWN_PAYLOAD
			j.yield(nil, refusal(reason, text, "frame", fmt.Sprint(j.number)))
			return false
		}
	}
	return true
}

func (j *joiner) more(parts *turnwirev1.MoreParts) bool {
	switch message := j.message.(type) {
	case *turnwirev1.User:
		message.Parts = append(message.Parts, parts.GetParts()...)
	case *turnwirev1.Assistant:
		message.Parts = append(message.Parts, parts.GetParts()...)
	default:
		text := fmt.Sprintf("frame %d of the replay has parts of no message", j.number)
		j.yield(nil, &Error{Code: codes.Internal, Text: text})
		return false
	}
	return true
}

func (j *joiner) flush() bool {
	if j.message == nil {
		return true
	}
	message := j.message
	j.message = nil
	return j.yield(message, nil)
}
