package turnwire

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// draft is a prompt under edit: the slice is its own, the items and their parts are shared and never changed.
type draft struct {
	items []*turnwirev1.PromptItem
	fates Fates
}

// nothingKnown are the fates where there is no history to ask.
type nothingKnown struct{}

func (nothingKnown) MessageFate(string) Fate { return FateUnknown }
func (nothingKnown) PartFate(string) Fate    { return FateUnknown }

// apply applies one mutation, whose index in its list is for origins and paths.
func (d *draft) apply(mutation *turnwirev1.Mutation, index int) error {
	path := fmt.Sprintf("mutations[%d]", index)
	if err := checked(mutation, path); err != nil {
		return err
	}
	switch kind := mutation.GetKind().(type) {
	case *turnwirev1.Mutation_Append:
		d.put(len(d.items), kind.Append.GetMessage(), index)
	case *turnwirev1.Mutation_Prepend:
		d.put(0, kind.Prepend.GetMessage(), index)
	case *turnwirev1.Mutation_InsertAfter:
		place, err := d.place(kind.InsertAfter.GetMessageId(), path+".insert_after.message_id")
		if err != nil {
			return err
		}
		d.put(place+1, kind.InsertAfter.GetMessage(), index)
	case *turnwirev1.Mutation_InsertBefore:
		place, err := d.place(kind.InsertBefore.GetMessageId(), path+".insert_before.message_id")
		if err != nil {
			return err
		}
		d.put(place, kind.InsertBefore.GetMessage(), index)
	case *turnwirev1.Mutation_AppendTo:
		return d.appendTo(kind.AppendTo, path+".append_to")
	case *turnwirev1.Mutation_Remove:
		place, err := d.place(kind.Remove.GetMessageId(), path+".remove.message_id")
		if err != nil {
			return err
		}
		d.items = slices.Delete(d.items, place, place+1)
	case *turnwirev1.Mutation_RemovePart:
		return d.removePart(kind.RemovePart, path+".remove_part")
	case *turnwirev1.Mutation_ReplacePart:
		return d.replacePart(kind.ReplacePart, path+".replace_part")
	}
	return nil
}

func (d *draft) put(place int, message *turnwirev1.PromptMessage, index int) {
	origin := &turnwirev1.MutationOrigin{Index: int32(index)}
	d.items = slices.Insert(d.items, place, &turnwirev1.PromptItem{
		Message: message, Origin: &turnwirev1.PromptItem_Mutation{Mutation: origin},
	})
}

func (d *draft) appendTo(edit *turnwirev1.AppendTo, path string) error {
	for place, item := range slices.Backward(d.items) {
		if item.GetMessage().GetRole() != edit.GetRole() {
			continue
		}
		beside := item.GetMessage().GetParts()
		at := func(index int) string { return fmt.Sprintf("%s.parts[%d]", path, index) }
		if err := fits(edit.GetParts(), beside, at); err != nil {
			return err
		}
		d.setParts(place, slices.Concat(beside, edit.GetParts()))
		return nil
	}
	reason := turnwirev1.Reason_REASON_NO_MESSAGE_OF_ROLE
	return refusal(reason, "the prompt has no message of this role", "path", path, "role", edit.GetRole().String())
}

func (d *draft) removePart(edit *turnwirev1.RemovePart, path string) error {
	place, at, err := d.placeOfPart(edit.GetPartId(), path+".part_id")
	if err != nil {
		return err
	}
	parts := slices.Delete(slices.Clone(d.items[place].GetMessage().GetParts()), at, at+1)
	if len(parts) == 0 {
		d.items = slices.Delete(d.items, place, place+1)
	} else {
		d.setParts(place, parts)
	}
	return nil
}

func (d *draft) replacePart(edit *turnwirev1.ReplacePart, path string) error {
	place, at, err := d.placeOfPart(edit.GetPartId(), path+".part_id")
	if err != nil {
		return err
	}
	parts := slices.Clone(d.items[place].GetMessage().GetParts())
	role := d.items[place].GetMessage().GetRole()
	if err := checked(edit.GetPart(), path+".part", WithRole(role)); err != nil {
		return err
	}
	beside := slices.Delete(slices.Clone(parts), at, at+1)
	here := func(int) string { return path + ".part" }
	if err := fits([]*turnwirev1.PromptPart{edit.GetPart()}, beside, here); err != nil {
		return err
	}
	parts[at] = edit.GetPart()
	d.setParts(place, parts)
	return nil
}

// setParts puts a copy of an item, with other parts, in its place.
func (d *draft) setParts(place int, parts []*turnwirev1.PromptPart) {
	item := shallow(d.items[place].ProtoReflect()).Interface().(*turnwirev1.PromptItem)
	item.Message = shallow(item.GetMessage().ProtoReflect()).Interface().(*turnwirev1.PromptMessage)
	item.Message.Parts = parts
	d.items[place] = item
}

// place is where a stored message is in the prompt; else the error says why it is not there.
func (d *draft) place(messageID, path string) (int, error) {
	place := slices.IndexFunc(d.items, func(item *turnwirev1.PromptItem) bool {
		return item.GetMessageId() == messageID
	})
	if place < 0 {
		return 0, absent(d.fates.MessageFate(messageID), "message", messageID, path)
	}
	return place, nil
}

// placeOfPart is where a stored part is, as the item and the index in it; it fails where a mutation may not touch it.
func (d *draft) placeOfPart(partID, path string) (place, at int, err error) {
	for place, item := range d.items {
		if item.GetMessageId() == "" {
			continue
		}
		for at, part := range item.GetMessage().GetParts() {
			if part.GetId() != partID {
				continue
			}
			if fixed(part) {
				text := "the part is signed: remove its whole message, or append to it"
				reason := turnwirev1.Reason_REASON_SIGNED_PART
				return 0, 0, refusal(reason, text, "path", path, "part_id", partID)
			}
			return place, at, nil
		}
	}
	return 0, 0, absent(d.fates.PartFate(partID), "part", partID, path)
}

// fixed tells whether a mutation may neither replace nor remove a part: it is signed, or of a kind that this version
// does not know. A later one may find a signature in that, and must not refuse a mutation that this one recorded.
func fixed(part *turnwirev1.PromptPart) bool {
	switch kind := part.GetKind().(type) {
	case nil:
		return true
	case *turnwirev1.PromptPart_Text:
		return kind.Text.GetProvider().GetSigned()
	case *turnwirev1.PromptPart_Reasoning:
		return kind.Reasoning.GetProvider().GetSigned()
	case *turnwirev1.PromptPart_Tool:
		return kind.Tool.GetProvider().GetSigned()
	}
	return false
}

// absent is the error for an anchor that the prompt does not show.
func absent(fate Fate, what, id, path string) *Error {
	reason, text := turnwirev1.Reason_REASON_ANCHOR_UNKNOWN, "the session has no such %s"
	switch fate {
	case FateRemoved:
		reason, text = turnwirev1.Reason_REASON_ANCHOR_REMOVED, "the %s was removed or reverted"
	case FateCompacted:
		reason, text = turnwirev1.Reason_REASON_ANCHOR_COMPACTED, "the %s exists, but was compacted away"
	case FateLive:
		reason, text = turnwirev1.Reason_REASON_ANCHOR_NOT_IN_PROMPT, "the %s exists, but is not in this prompt"
	}
	return refusal(reason, fmt.Sprintf(text, what), "path", path, what+"_id", id)
}

// checked validates what a hook wrote; path is where it is in the request.
func checked(message proto.Message, path string, options ...ValidateOption) error {
	found, err := Violations(message, options...)
	if err != nil || len(found) == 0 {
		return err
	}
	return refuseFor(found).at(path)
}

// fits checks that no call id of parts is one of those beside them; at is the path of a part by its index.
func fits(parts, beside []*turnwirev1.PromptPart, at func(index int) string) error {
	calls := map[string]bool{}
	for _, part := range beside {
		if part.GetTool() != nil {
			calls[part.GetTool().GetCallId()] = true
		}
	}
	for index, part := range parts {
		if call := part.GetTool().GetCallId(); part.GetTool() != nil && calls[call] {
			text := "another tool part of the message has this call id"
			reason := turnwirev1.Reason_REASON_DUPLICATE_CALL_ID
			return refusal(reason, text, "path", at(index)+".tool.call_id", "call_id", call)
		}
	}
	return nil
}
