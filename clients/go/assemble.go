package turnwire

import (
	"slices"
	"strings"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// AssemblyVersion is the version of the rules of [Assemble] and of mutations. A prompt record keeps the one that it was
// made by.
const AssemblyVersion = 1

// profile is what assembling leaves open.
type profile struct {
	// A summary without text completes a compaction too.
	emptySummary bool
	// The messages between the compaction message and the first summary that names it as parent, complete or not, stay
	// before the kept tail. Else the summary that completed the compaction follows the compaction message directly, and
	// what stood between them comes after the tail, with the rest.
	summaryInPlace bool
	// A compaction whose tail start is not before it in the history leaves nothing out. Else it just has no tail.
	lostTailKeepsAll bool
}

var profiles = map[string]profile{
	"":         {},
	"default":  {},
	"opencode": {emptySummary: true, summaryInPlace: true, lostTailKeepsAll: true},
}

// Assembly is the prompt of a turn before any mutation. It tells what became of messages and parts that the prompt does
// not show.
type Assembly struct {
	// Items in order. Their parts are shared with the history and must not be changed.
	Items []*turnwirev1.PromptItem

	history *History
	// How many messages at the beginning of the history a compaction stands for.
	compacted int
}

// Assemble makes the prompt of a turn: every message up to the turn's last one, those of other turns included; a turn
// without messages yet gets all. From the newest completed compaction on there is the compaction message, its summary,
// the kept tail, the rest. Messages without parts are left out. An empty profile is "default"; a nil
// history is empty.
//
// The reasons are TURN_NOT_FOUND and UNKNOWN_PROFILE.
func Assemble(history *History, turnID, profileName string) (*Assembly, error) {
	chosen, known := profiles[profileName]
	if !known {
		text := "the known profiles are default, opencode"
		return nil, refusal(turnwirev1.Reason_REASON_UNKNOWN_PROFILE, text, "profile", profileName)
	}
	if history == nil {
		history = &History{}
	}
	end, err := turnEnd(history, turnID)
	if err != nil {
		return nil, err
	}
	messages := history.Messages[:end]
	order, compacted := compactedOrder(messages, chosen)
	result := &Assembly{history: history, compacted: compacted}
	for _, place := range order {
		if message := messages[place]; len(message.GetParts()) > 0 {
			result.Items = append(result.Items, storedItem(message))
		}
	}
	return result, nil
}

// MessageFate tells what became of a message, whether or not the prompt shows it.
func (a *Assembly) MessageFate(messageID string) Fate {
	return a.fate(a.history.place(messageID), a.history.gone != nil && a.history.gone.messages[messageID])
}

// PartFate tells what became of a part, whether or not the prompt shows it.
func (a *Assembly) PartFate(partID string) Fate {
	return a.fate(a.history.placeOfPart(partID), a.history.gone != nil && a.history.gone.parts[partID])
}

func (a *Assembly) fate(place int, ever bool) Fate {
	switch {
	case place >= a.compacted:
		return FateLive
	case place >= 0:
		return FateCompacted
	case ever:
		return FateRemoved
	}
	return FateUnknown
}

// turnEnd is the place behind the last message of a turn.
func turnEnd(history *History, turnID string) (int, error) {
	for place, message := range slices.Backward(history.Messages) {
		if message.GetTurnId() == turnID {
			return place + 1, nil
		}
	}
	is := func(turn *turnwirev1.Turn) bool { return turn.GetId() == turnID }
	if !slices.ContainsFunc(history.Turns, is) {
		reason := turnwirev1.Reason_REASON_TURN_NOT_FOUND
		return 0, refusal(reason, "the history has no such turn", "turn_id", turnID)
	}
	return len(history.Messages), nil
}

// compactedOrder lays out the places of messages as the newest completed compaction leaves them, and tells how many at
// the beginning it stands for. A compaction is complete when a completed summary after it names it as parent.
func compactedOrder(messages []Message, chosen profile) (order []int, compacted int) {
	// From a parent's id to its first completed summary: going backwards, the earlier one overwrites. The first is
	// taken so that a second summary of the same compaction, which can only come at the end, moves nothing.
	summaries := map[string]int{}
	for place, message := range slices.Backward(messages) {
		if assistant, ok := message.(*turnwirev1.Assistant); ok {
			if completesCompaction(assistant, chosen) {
				summaries[assistant.GetParentId()] = place
			}
			continue
		}
		summary, summarized := summaries[message.GetId()]
		if !summarized {
			continue
		}
		for _, part := range message.GetParts() {
			if compaction := part.GetCompaction(); compaction != nil {
				return layOut(messages, place, summary, compaction, chosen)
			}
		}
	}
	return span(0, len(messages)), 0
}

// completesCompaction tells whether a message is a summary with a finish, no failure and, by most profiles, a text.
func completesCompaction(message *turnwirev1.Assistant, chosen profile) bool {
	result := message.GetResult()
	if !isSummary(message) || result.GetFinish() == "" || result.GetFailure() != nil {
		return false
	}
	return chosen.emptySummary || slices.ContainsFunc(message.GetParts(), func(part *turnwirev1.PromptPart) bool {
		text := part.GetText()
		return !text.GetIgnored() && strings.TrimSpace(text.GetText()) != ""
	})
}

func isSummary(message *turnwirev1.Assistant) bool {
	return message.GetResult().GetKind() == turnwirev1.ResultKind_RESULT_KIND_SUMMARY
}

func layOut(
	messages []Message, place, summary int, part *turnwirev1.CompactionPart, chosen profile,
) (order []int, compacted int) {
	compactionID := messages[place].GetId()
	tailStart := place
	if part.TailStartId != nil && part.GetTailStartId() != compactionID {
		found := slices.IndexFunc(messages[:place], func(message Message) bool {
			return message.GetId() == part.GetTailStartId()
		})
		if found >= 0 {
			tailStart = found
		} else if chosen.lostTailKeepsAll {
			return span(0, len(messages)), 0
		}
	}
	tail, rest := span(tailStart, place), span(place+1, len(messages))
	if !chosen.summaryInPlace {
		rest = slices.DeleteFunc(rest, func(index int) bool { return index == summary })
		return slices.Concat([]int{place, summary}, tail, rest), tailStart
	}
	if len(tail) == 0 {
		return span(place, len(messages)), tailStart
	}
	after := slices.IndexFunc(messages[place+1:], func(message Message) bool {
		assistant, ok := message.(*turnwirev1.Assistant)
		return ok && isSummary(assistant) && assistant.GetParentId() == compactionID
	})
	return slices.Concat([]int{place}, rest[:after+1], tail, rest[after+1:]), tailStart
}

// span lists the numbers from one up to, and without, another.
func span(from, to int) []int {
	numbers := make([]int, 0, max(to-from, 0))
	for number := from; number < to; number++ {
		numbers = append(numbers, number)
	}
	return numbers
}

func storedItem(message Message) *turnwirev1.PromptItem {
	item := &turnwirev1.PromptItem{
		Message: &turnwirev1.PromptMessage{Role: RoleOf(message), Parts: message.GetParts()},
		Origin:  &turnwirev1.PromptItem_MessageId{MessageId: message.GetId()},
	}
	if assistant, ok := message.(*turnwirev1.Assistant); ok {
		result := assistant.GetResult()
		item.Facts = &turnwirev1.AssistantFacts{
			Model:     assistant.GetRun().GetModel(),
			Failure:   result.GetFailure(),
			Completed: assistant.GetTime().GetCompleted() != nil,
			Kind:      turnwirev1.ResultKind_RESULT_KIND_REPLY,
		}
		if result != nil {
			item.Facts.Finish = result.Finish
		}
		if kind := result.GetKind(); kind != turnwirev1.ResultKind_RESULT_KIND_UNSPECIFIED {
			item.Facts.Kind = kind
		}
	}
	return item
}
