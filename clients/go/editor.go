package turnwire

import (
	"slices"

	"google.golang.org/protobuf/proto"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// PromptEditor is a prompt that can be edited, locally and without a server:
//
//	editor, err := turnwire.EditPrompt(history, turnID)
//	err = editor.Append(turnwire.UserMessage(turnwire.Text("Summarize the tool output above and continue.")))
//	err = editor.AppendTo(turnwirev1.Role_ROLE_USER, turnwire.Text("Answer in German."))
//
// Each edit applies at once, so that an error comes out of the call that is wrong; then nothing has changed. The
// history never changes. [PromptEditor.Mutations] is what MutatePrompt takes: the service applies the same and comes to
// the same digest. Reasons, and paths that count mutations as Mutations does, are those of the service.
//
// A PromptEditor is not safe for use by several goroutines at once.
type PromptEditor struct {
	draft     draft
	mutations []*turnwirev1.Mutation
}

// EditPrompt edits the prompt of a turn, as the default profile assembles it. The history must not be changed meanwhile.
// The reason of an error is TURN_NOT_FOUND.
func EditPrompt(history *History, turnID string) (*PromptEditor, error) {
	assembly, err := Assemble(history, turnID, "")
	if err != nil {
		return nil, err
	}
	return NewPromptEditor(assembly.Items, assembly), nil
}

// NewPromptEditor edits items that are there already: of an [Assembly], or of a prompt that a server computed. They must
// not be changed meanwhile. Fates may be nil: every anchor that the items do not show is unknown then.
func NewPromptEditor(items []*turnwirev1.PromptItem, fates Fates) *PromptEditor {
	if fates == nil {
		fates = nothingKnown{}
	}
	return &PromptEditor{draft: draft{items: slices.Clone(items), fates: fates}}
}

// BasedOn returns items as the input of the next prompt when hooks chain: those that the mutations of a prompt record
// made are marked with its id, others keep their origins.
func BasedOn(items []*turnwirev1.PromptItem, promptID string) []*turnwirev1.PromptItem {
	marked := slices.Clone(items)
	for index, item := range marked {
		origin := item.GetMutation()
		if item.GetMessageId() != "" || origin.GetPromptId() != "" {
			continue
		}
		made := shallow(item.ProtoReflect()).Interface().(*turnwirev1.PromptItem)
		of := proto.CloneOf(origin)
		if of == nil {
			of = &turnwirev1.MutationOrigin{}
		}
		of.PromptId = &promptID
		made.Origin = &turnwirev1.PromptItem_Mutation{Mutation: of}
		marked[index] = made
	}
	return marked
}

// Append puts a message at the end.
func (e *PromptEditor) Append(message *turnwirev1.PromptMessage) error {
	edit := &turnwirev1.Append{Message: message}
	return e.Apply(&turnwirev1.Mutation{Kind: &turnwirev1.Mutation_Append{Append: edit}})
}

// Prepend puts a message at the beginning.
func (e *PromptEditor) Prepend(message *turnwirev1.PromptMessage) error {
	edit := &turnwirev1.Prepend{Message: message}
	return e.Apply(&turnwirev1.Mutation{Kind: &turnwirev1.Mutation_Prepend{Prepend: edit}})
}

// AppendTo adds parts to the end of the last message of a role, synthetic or not. NO_MESSAGE_OF_ROLE: there is none.
func (e *PromptEditor) AppendTo(role turnwirev1.Role, parts ...*turnwirev1.PromptPart) error {
	edit := &turnwirev1.AppendTo{Role: role, Parts: parts}
	return e.Apply(&turnwirev1.Mutation{Kind: &turnwirev1.Mutation_AppendTo{AppendTo: edit}})
}

// InsertAfter puts a message directly after a stored one; of two after one anchor the later is nearer to it.
func (e *PromptEditor) InsertAfter(messageID string, message *turnwirev1.PromptMessage) error {
	edit := &turnwirev1.InsertAfter{MessageId: messageID, Message: message}
	return e.Apply(&turnwirev1.Mutation{Kind: &turnwirev1.Mutation_InsertAfter{InsertAfter: edit}})
}

// InsertBefore puts a message directly before a stored one; of two before one anchor the later is nearer to it.
func (e *PromptEditor) InsertBefore(messageID string, message *turnwirev1.PromptMessage) error {
	edit := &turnwirev1.InsertBefore{MessageId: messageID, Message: message}
	return e.Apply(&turnwirev1.Mutation{Kind: &turnwirev1.Mutation_InsertBefore{InsertBefore: edit}})
}

// Remove takes a stored message out, with whatever was added to it.
func (e *PromptEditor) Remove(messageID string) error {
	edit := &turnwirev1.Remove{MessageId: messageID}
	return e.Apply(&turnwirev1.Mutation{Kind: &turnwirev1.Mutation_Remove{Remove: edit}})
}

// RemovePart takes a stored part out; a message that loses its last part leaves the prompt. SIGNED_PART: it may not.
func (e *PromptEditor) RemovePart(partID string) error {
	edit := &turnwirev1.RemovePart{PartId: partID}
	return e.Apply(&turnwirev1.Mutation{Kind: &turnwirev1.Mutation_RemovePart{RemovePart: edit}})
}

// ReplacePart puts another part in the place of a stored one; it has no id afterwards. SIGNED_PART: it may not.
func (e *PromptEditor) ReplacePart(partID string, part *turnwirev1.PromptPart) error {
	edit := &turnwirev1.ReplacePart{PartId: partID, Part: part}
	return e.Apply(&turnwirev1.Mutation{Kind: &turnwirev1.Mutation_ReplacePart{ReplacePart: edit}})
}

// Apply applies mutations in order, all or none; they are copied.
//
// The reasons are UNKNOWN_TO_THIS_SERVER, RULE_VIOLATION, TRANSIENT_PART_HAS_ID and DUPLICATE_CALL_ID for a mutation by
// itself; NO_MESSAGE_OF_ROLE; ANCHOR_UNKNOWN, ANCHOR_COMPACTED, ANCHOR_REMOVED, ANCHOR_NOT_IN_PROMPT; SIGNED_PART.
func (e *PromptEditor) Apply(mutations ...*turnwirev1.Mutation) error {
	next := draft{items: slices.Clone(e.draft.items), fates: e.draft.fates}
	held := slices.Clone(e.mutations)
	for _, mutation := range mutations {
		copied := proto.CloneOf(mutation)
		if err := next.apply(copied, len(held)); err != nil {
			return err
		}
		held = append(held, copied)
	}
	e.draft, e.mutations = next, held
	return nil
}

// Items are the items as they now are, copied.
func (e *PromptEditor) Items() []*turnwirev1.PromptItem { return cloneAll(e.draft.items) }

// Messages are the messages as they now are, copied: what a model gets.
func (e *PromptEditor) Messages() []*turnwirev1.PromptMessage {
	messages := make([]*turnwirev1.PromptMessage, len(e.draft.items))
	for index, item := range e.draft.items {
		messages[index] = proto.CloneOf(item.GetMessage())
	}
	return messages
}

// Mutations is what was done so far, in order, copied.
func (e *PromptEditor) Mutations() []*turnwirev1.Mutation { return cloneAll(e.mutations) }

// Digest is the digest of the prompt as it now is; see [PromptDigest].
func (e *PromptEditor) Digest() ([]byte, error) { return PromptDigest(e.draft.items) }

// Len is how many items the prompt has.
func (e *PromptEditor) Len() int { return len(e.draft.items) }

func cloneAll[M proto.Message](messages []M) []M {
	copied := make([]M, len(messages))
	for index, message := range messages {
		copied[index] = proto.CloneOf(message)
	}
	return copied
}
