package turnwire

import turnwirev1 "turnwire.dev/go/turnwire/v1"

// putMessage replaces a header and sets the parts that the message carries, or makes a new place.
func (f *Folded) putMessage(message Message, beforeID string) {
	if f.revert != nil {
		f.finish()
	}
	header := withParts(message, nil)
	there, found := f.messages.get(message.GetId())
	if found {
		there.header = header
	} else {
		there = &foldedMessage{id: message.GetId(), header: header}
		f.messages.insert(there.id, there, beforeID)
		f.ever.messages[there.id] = true
	}
	for _, part := range message.GetParts() {
		f.putPart(there, part, "")
	}
}

func (f *Folded) putPart(message *foldedMessage, part *turnwirev1.PromptPart, beforeID string) {
	if there, found := message.parts.get(part.GetId()); found {
		there.put, there.deltas = part, nil
		return
	}
	message.parts.insert(part.GetId(), &foldedPart{id: part.GetId(), put: part}, beforeID)
	f.owners[part.GetId()] = message
	f.ever.parts[part.GetId()] = true
}

func (f *Folded) part(id string) (*foldedPart, bool) {
	owner, found := f.owners[id]
	if !found {
		return nil, false
	}
	return owner.parts.get(id)
}

func (f *Folded) remove(removal *turnwirev1.Removal) bool {
	switch target := removal.GetTarget().(type) {
	case *turnwirev1.Removal_MessageId:
		message, found := f.messages.remove(target.MessageId)
		if found {
			f.disown(message)
		}
		return found
	case *turnwirev1.Removal_PartId:
		owner, found := f.owners[target.PartId]
		if found {
			owner.parts.remove(target.PartId)
			delete(f.owners, target.PartId)
		}
		return found
	}
	return true
}

func (f *Folded) disown(message *foldedMessage) {
	for part := range message.parts.all() {
		delete(f.owners, part.id)
	}
}

// hide hides what is there from a place on. No message comes into being while a revert is open.
func (f *Folded) hide(revert *turnwirev1.Revert) {
	behind := false
	for message := range f.messages.all() {
		switch {
		case behind:
			message.hidden = true
		case message.id == revert.GetMessageId():
			behind = true
			message.hidden = revert.PartId == nil
			if revert.PartId != nil {
				message.hideParts(revert.GetPartId())
			}
		}
	}
}

func (m *foldedMessage) hideParts(from string) {
	behind := false
	for part := range m.parts.all() {
		behind = behind || part.id == from
		part.hidden = behind
	}
}

// show shows again what the open revert hides.
func (f *Folded) show() {
	f.revert = nil
	for message := range f.messages.all() {
		message.hidden = false
		for part := range message.parts.all() {
			part.hidden = false
		}
	}
}

// finish takes out what the open revert hides.
func (f *Folded) finish() {
	f.revert = nil
	for message := range f.messages.all() {
		if message.hidden {
			f.messages.remove(message.id)
			f.disown(message)
			continue
		}
		for part := range message.parts.all() {
			if part.hidden {
				message.parts.remove(part.id)
				delete(f.owners, part.id)
			}
		}
	}
}
