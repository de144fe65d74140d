package turnwire

import (
	"slices"

	"google.golang.org/protobuf/proto"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// Message is a stored message: a *[turnwirev1.User] or an *[turnwirev1.Assistant].
type Message interface {
	proto.Message
	GetId() string
	GetTurnId() string
	GetParts() []*turnwirev1.PromptPart
	GetExtraJson() string
}

// RoleOf is the role of a stored message.
func RoleOf(message Message) turnwirev1.Role {
	if _, ok := message.(*turnwirev1.User); ok {
		return turnwirev1.Role_ROLE_USER
	}
	return turnwirev1.Role_ROLE_ASSISTANT
}

// History is the folded history of a session at a revision, or a window of it.
type History struct {
	// Revision is the revision that was folded up to.
	Revision int64
	// Head is the end of the log at Revision, with its digest. Nil if Fold made the history.
	Head *turnwirev1.Head
	// Turns in order: that of the log if Fold made the history, else that of the first messages that use them.
	Turns []*turnwirev1.Turn
	// Messages in their order, whole.
	Messages []Message
	// Summaries by the id of the message, where they were asked for.
	Summaries map[string]*turnwirev1.MessageSummary

	// What the session once had and the history does not show (any more). Nil if a server told the history.
	gone *gone
}

type gone struct{ messages, parts map[string]bool }

// Fate is what became of a message or part.
type Fate int

const (
	// FateUnknown: the session never had it, as far as is known.
	FateUnknown Fate = iota
	// FateLive: the history shows it.
	FateLive
	// FateCompacted: the history shows it, but a compaction stands in its place in the prompt.
	FateCompacted
	// FateRemoved: it was taken out by a removal, or is hidden by a revert.
	FateRemoved
)

// Fates tells what became of the messages and parts that a prompt does not show. [Assembly] does.
type Fates interface {
	MessageFate(messageID string) Fate
	PartFate(partID string) Fate
}

// place is the index of a message; -1: the history shows none of that id.
func (h *History) place(messageID string) int {
	return slices.IndexFunc(h.Messages, func(message Message) bool { return message.GetId() == messageID })
}

// placeOfPart is the index of the message that holds a part; -1: no message does.
func (h *History) placeOfPart(partID string) int {
	return slices.IndexFunc(h.Messages, func(message Message) bool {
		return slices.ContainsFunc(message.GetParts(), func(part *turnwirev1.PromptPart) bool {
			return part.GetId() == partID
		})
	})
}
