package turnwire

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// Folded is the state of a session at a revision, made by applying the entries of its log in order. It takes entries as
// a server admitted them and checks no rule again.
//
// The zero value is the state before the first entry.
type Folded struct {
	revision   int64
	properties *turnwirev1.SessionProperties
	turns      []*turnwirev1.Turn
	prompts    map[string]*turnwirev1.PromptRecord
	revert     *turnwirev1.OpenRevert
	messages   places[*foldedMessage]    // hidden ones included
	owners     map[string]*foldedMessage // from a part's id to the message that holds it
	ever       gone                      // every message and part that there ever was
}

type foldedMessage struct {
	id      string
	header  Message // without parts
	parts   places[*foldedPart]
	summary *turnwirev1.MessageSummary
	hidden  bool // by the open revert
}

type foldedPart struct {
	id     string
	put    *turnwirev1.PromptPart
	deltas []*turnwirev1.PartDelta
	hidden bool // by the open revert, which starts before it in its message
}

// Fold applies entries in order, up to and including a revision (0: all of them). The entries are shared with the
// result and must not be changed. It fails with UNKNOWN_PAYLOAD at an entry of a later schema that may not be ignored,
// and for what is no log: an entry about a message or part that is not there.
func Fold(entries iter.Seq[*turnwirev1.Entry], revision int64) (*Folded, error) {
	state := &Folded{}
	for entry := range entries {
		if revision > 0 && entry.GetRevision() > revision {
			break
		}
		if err := state.Apply(entry); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// Apply applies the next entry, as a reader does that follows a log. After an error the state is not to be used.
func (f *Folded) Apply(entry *turnwirev1.Entry) error {
	if f.prompts == nil {
		f.prompts = map[string]*turnwirev1.PromptRecord{}
		f.owners = map[string]*foldedMessage{}
		f.ever = gone{messages: map[string]bool{}, parts: map[string]bool{}}
	}
	if !f.apply(entry) {
		return fmt.Errorf("turnwire: entry %d is about a message or part that is not there", entry.GetRevision())
	}
	if entry.GetPayload() == nil && !entry.GetIgnorable() {
		text := fmt.Sprintf("entry %d has a payload of a later schema", entry.GetRevision())
		return refusal(turnwirev1.Reason_REASON_UNKNOWN_PAYLOAD, text, "revision", fmt.Sprint(entry.GetRevision()))
	}
	f.revision = entry.GetRevision()
	return nil
}

func (f *Folded) apply(entry *turnwirev1.Entry) (ok bool) {
	switch payload := entry.GetPayload().(type) {
	case *turnwirev1.Entry_Session:
		f.properties = payload.Session
	case *turnwirev1.Entry_Turn:
		f.turns = append(f.turns, payload.Turn)
	case *turnwirev1.Entry_User:
		f.putMessage(payload.User.GetUser(), payload.User.GetBeforeId())
	case *turnwirev1.Entry_Assistant:
		f.putMessage(payload.Assistant.GetAssistant(), payload.Assistant.GetBeforeId())
	case *turnwirev1.Entry_Part:
		message, found := f.messages.get(payload.Part.GetMessageId())
		if found {
			f.putPart(message, payload.Part.GetPart(), payload.Part.GetBeforeId())
		}
		return found
	case *turnwirev1.Entry_Delta:
		part, found := f.part(payload.Delta.GetPartId())
		if found {
			part.deltas = append(part.deltas, payload.Delta)
		}
		return found
	case *turnwirev1.Entry_Summary:
		message, found := f.messages.get(payload.Summary.GetMessageId())
		if found {
			message.summary = payload.Summary
		}
		return found
	case *turnwirev1.Entry_Removal:
		return f.remove(payload.Removal)
	case *turnwirev1.Entry_Revert:
		f.revert = &turnwirev1.OpenRevert{Revision: entry.GetRevision(), Revert: payload.Revert}
		f.hide(payload.Revert)
	case *turnwirev1.Entry_RevertClear:
		f.show()
	case *turnwirev1.Entry_Prompt:
		f.prompts[payload.Prompt.GetId()] = payload.Prompt
	}
	return true
}

// Revision is that of the last entry that was applied; 0: there was none.
func (f *Folded) Revision() int64 { return f.revision }

// Properties are the session's; nil before the first entry.
func (f *Folded) Properties() *turnwirev1.SessionProperties { return f.properties }

// Prompts are the prompt records by their ids.
func (f *Folded) Prompts() map[string]*turnwirev1.PromptRecord { return maps.Clone(f.prompts) }

// OpenRevert is the revert that hides places; nil: none is open.
func (f *Folded) OpenRevert() *turnwirev1.OpenRevert { return f.revert }

// History is what the session shows: the messages that are neither removed nor hidden, with their parts, deltas
// included. Parts without deltas are shared with the entries and must not be changed.
func (f *Folded) History() *History {
	history := &History{
		Revision:  f.revision,
		Turns:     slices.Clone(f.turns),
		Summaries: map[string]*turnwirev1.MessageSummary{},
		gone:      &gone{messages: maps.Clone(f.ever.messages), parts: maps.Clone(f.ever.parts)},
	}
	for message := range f.messages.all() {
		if message.hidden {
			continue
		}
		history.Messages = append(history.Messages, message.built())
		if message.summary != nil {
			history.Summaries[message.id] = message.summary
		}
	}
	return history
}

func (m *foldedMessage) built() Message {
	var parts []*turnwirev1.PromptPart
	for part := range m.parts.all() {
		if !part.hidden {
			parts = append(parts, part.built())
		}
	}
	return withParts(m.header, parts)
}

// withParts copies a message with other parts; all else is shared with it.
func withParts(message Message, parts []*turnwirev1.PromptPart) Message {
	made := shallow(message.ProtoReflect()).Interface().(Message)
	switch into := made.(type) {
	case *turnwirev1.User:
		into.Parts = parts
	case *turnwirev1.Assistant:
		into.Parts = parts
	}
	return made
}

func (p *foldedPart) built() *turnwirev1.PromptPart {
	if len(p.deltas) == 0 {
		return p.put
	}
	part := proto.CloneOf(p.put)
	grown := map[string]*[]byte{}
	for _, delta := range p.deltas {
		grow(part, delta, grown)
	}
	kind := openKind(part)
	for name, text := range grown {
		kind.Set(kind.Descriptor().Fields().ByName(protoreflect.Name(name)), protoreflect.ValueOfString(string(*text)))
	}
	return part
}

// grow appends the text of a delta to what its part has in the field of the same name.
func grow(part *turnwirev1.PromptPart, delta *turnwirev1.PartDelta, grown map[string]*[]byte) {
	from := delta.ProtoReflect()
	field := from.WhichOneof(from.Descriptor().Oneofs().ByName("target"))
	kind := openKind(part)
	if field == nil || kind == nil {
		return
	}
	into := kind.Descriptor().Fields().ByName(field.Name())
	if into == nil {
		return
	}
	text := grown[string(field.Name())]
	if text == nil {
		start := []byte(kind.Get(into).String())
		text = &start
		grown[string(field.Name())] = text
	}
	*text = append(*text, from.Get(field).String()...)
}

// openKind is the member of a part's oneof to which deltas can append; nil: the part takes none.
func openKind(part *turnwirev1.PromptPart) protoreflect.Message {
	switch kind := part.GetKind().(type) {
	case *turnwirev1.PromptPart_Text:
		return kind.Text.ProtoReflect()
	case *turnwirev1.PromptPart_Reasoning:
		return kind.Reasoning.ProtoReflect()
	case *turnwirev1.PromptPart_Tool:
		return kind.Tool.ProtoReflect()
	}
	return nil
}
