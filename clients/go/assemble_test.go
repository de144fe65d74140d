package turnwire_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	turnwire "turnwire.dev/go"
	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// compacted is U1 A1 U2 A2 C(compaction, tail from A2) S(summary of C) A3.
func compacted(summary string, tailStart *string) *turnwire.History {
	compaction := &turnwirev1.CompactionPart{TailStartId: tailStart}
	summarized := theAssistant("S", text("s", summary))
	summarized.ParentId = proto.String("C")
	summarized.Result = &turnwirev1.Result{
		Finish: proto.String("stop"), Kind: turnwirev1.ResultKind_RESULT_KIND_SUMMARY,
	}
	return &turnwire.History{
		Turns: []*turnwirev1.Turn{theTurn("T1")},
		Messages: []turnwire.Message{
			theUser("U1", text("u1", "one")), theAssistant("A1", text("a1", "two")),
			theUser("U2", text("u2", "three")), theAssistant("A2", text("a2", "four")),
			theUser("C", &turnwirev1.PromptPart{Id: "c", Kind: &turnwirev1.PromptPart_Compaction{Compaction: compaction}}),
			summarized, theAssistant("A3", text("a3", "five")),
		},
	}
}

func origins(items []*turnwirev1.PromptItem) []string {
	var ids []string
	for _, item := range items {
		ids = append(ids, item.GetMessageId())
	}
	return ids
}

func TestFromTheNewestCompletedCompactionOn(t *testing.T) {
	all := []string{"U1", "A1", "U2", "A2", "C", "S", "A3"}
	for name, each := range map[string]struct {
		summary   string
		tailStart *string
		profile   string
		want      []string
	}{
		"with a tail":                       {"done", proto.String("A2"), "", []string{"C", "S", "A2", "A3"}},
		"without a tail":                    {"done", nil, "default", []string{"C", "S", "A3"}},
		"with a lost tail":                  {"done", proto.String("gone"), "", []string{"C", "S", "A3"}},
		"with a lost tail, opencode":        {"done", proto.String("gone"), "opencode", all},
		"not completed: a blank summary":    {" \u00a0\n", nil, "", all},
		"a blank summary will do, opencode": {" ", proto.String("A2"), "opencode", []string{"C", "S", "A2", "A3"}},
	} {
		t.Run(name, func(t *testing.T) {
			assembly, err := turnwire.Assemble(compacted(each.summary, each.tailStart), "T1", each.profile)
			if err != nil {
				t.Fatal(err)
			}
			if got := origins(assembly.Items); !slices.Equal(got, each.want) {
				t.Errorf("got %v, want %v", got, each.want)
			}
		})
	}
}

func TestAnAnchorThatWasCompactedAway(t *testing.T) {
	editor := must(turnwire.EditPrompt(compacted("done", proto.String("A2")), "T1"))
	refused(t, editor.Remove("U2"), turnwirev1.Reason_REASON_ANCHOR_COMPACTED)
	refused(t, editor.RemovePart("u1"), turnwirev1.Reason_REASON_ANCHOR_COMPACTED)
	if err := editor.Remove("A2"); err != nil {
		t.Error("the tail is there:", err)
	}
}

func TestThePromptOfATurnEndsWithItsLastMessage(t *testing.T) {
	past := dialogue()
	later := theUser("U2", text("u3", "later"))
	later.TurnId = "T2"
	past.Messages = append(past.Messages, theUser("U0"), later)
	past.Turns = append(past.Turns, theTurn("T2"), theTurn("T3"))
	for turn, want := range map[string][]string{
		"T1": {"U1", "A1"}, "T2": {"U1", "A1", "U2"}, "T3": {"U1", "A1", "U2"},
	} {
		if got := origins(must(turnwire.Assemble(past, turn, "")).Items); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", turn, got, want)
		}
	}
	editor := must(turnwire.EditPrompt(past, "T1"))
	refused(t, editor.Remove("U2"), turnwirev1.Reason_REASON_ANCHOR_NOT_IN_PROMPT)
	refused(t, editor.Remove("U0"), turnwirev1.Reason_REASON_ANCHOR_NOT_IN_PROMPT)
}

func TestUnknownTurnAndProfile(t *testing.T) {
	_, err := turnwire.Assemble(dialogue(), "T9", "")
	refused(t, err, turnwirev1.Reason_REASON_TURN_NOT_FOUND)
	_, err = turnwire.Assemble(dialogue(), "T1", "mine")
	refused(t, err, turnwirev1.Reason_REASON_UNKNOWN_PROFILE)
}

func TestFactsOfAStoredAssistant(t *testing.T) {
	items := must(turnwire.Assemble(compacted("done", nil), "T1", "")).Items
	want := &turnwirev1.AssistantFacts{
		Model: model, Finish: proto.String("stop"), Kind: turnwirev1.ResultKind_RESULT_KIND_SUMMARY,
	}
	equal(t, items[1].GetFacts(), want)
	equal(t, items[2].GetFacts(), &turnwirev1.AssistantFacts{Model: model, Kind: turnwirev1.ResultKind_RESULT_KIND_REPLY})
	if items[0].GetFacts() != nil {
		t.Error("a user has facts")
	}
}
