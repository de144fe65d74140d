package turnwire_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	turnwire "turnwire.dev/go"
	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// entries reads a whole log.
func entries(t *testing.T, client *turnwire.Client, session string) []*turnwirev1.Entry {
	t.Helper()
	var found []*turnwirev1.Entry
	for entry, err := range client.ReplayEntries(t.Context(), &turnwirev1.ReadEntriesRequest{SessionId: session}) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, entry)
	}
	return found
}

// sameAsReplayed fails unless a fold of entries shows, at every revision, what the server replays there.
func sameAsReplayed(t *testing.T, client *turnwire.Client, session string) {
	t.Helper()
	log := entries(t, client, session)
	for revision := int64(1); revision <= int64(len(log)); revision++ {
		folded, err := turnwire.Fold(slices.Values(log), revision)
		if err != nil {
			t.Fatal(err)
		}
		got := folded.History()
		want := history(t, client, &turnwirev1.ReplayRequest{
			SessionId: session, Revision: &revision, IncludeSummaries: true,
		})
		if got.Revision != want.Revision || len(got.Messages) != len(want.Messages) {
			t.Fatalf("at %d: %d messages, want %d", revision, len(got.Messages), len(want.Messages))
		}
		for index := range want.Messages {
			equal(t, got.Messages[index], want.Messages[index])
		}
		for id, summary := range want.Summaries {
			equal(t, got.Summaries[id], summary)
		}
		if len(got.Summaries) != len(want.Summaries) {
			t.Fatalf("at %d: %d summaries, want %d", revision, len(got.Summaries), len(want.Summaries))
		}
	}
}

func delta(part string, offset int, content string) *turnwirev1.PartDelta {
	return &turnwirev1.PartDelta{
		PartId: part, Offset: int64(offset), Target: &turnwirev1.PartDelta_Text{Text: content},
	}
}

func removed(message string) *turnwirev1.Removal {
	return &turnwirev1.Removal{Target: &turnwirev1.Removal_MessageId{MessageId: message}}
}

func removedPart(part string) *turnwirev1.Removal {
	return &turnwirev1.Removal{Target: &turnwirev1.Removal_PartId{PartId: part}}
}

func TestAFoldShowsWhatTheServerReplays(t *testing.T) {
	client := connected(t)
	before := func(put *turnwirev1.UserPut, id string) *turnwirev1.UserPut { put.BeforeId = &id; return put }
	appended(t, client, t.Name(), theTurn("T1"),
		theUser("U1", text("u1", "one"), text("u2", "two")),
		theAssistant("A1", text("a1", "")), delta("a1", 0, "é"), delta("a1", 2, "!"),
		&turnwirev1.PartPut{MessageId: "A1", Part: text("a1", "put")}, delta("a1", 3, " on"),
		&turnwirev1.PartPut{MessageId: "A1", Part: tool("a2", "c"), BeforeId: proto.String("a1")},
		&turnwirev1.PartDelta{PartId: "a2", Target: &turnwirev1.PartDelta_RawInput{RawInput: `{"a":`}},
		&turnwirev1.PartDelta{PartId: "a2", Target: &turnwirev1.PartDelta_Output{Output: "out"}},
		before(&turnwirev1.UserPut{User: theUser("U0", text("u0", "zero"))}, "U1"),
		&turnwirev1.MessageSummary{MessageId: "U1", Body: proto.String("of one")},
		theUser("U1", text("u1", "one again"), text("u3", "three")),
		&turnwirev1.Revert{MessageId: "U1", PartId: proto.String("u3")},
		&turnwirev1.RevertClear{},
		&turnwirev1.Revert{MessageId: "A1"},
		&turnwirev1.PartPut{MessageId: "U1", Part: text("u4", "while it is open")},
		theUser("U2", text("u5", "final now")),
		removedPart("u1"), removed("U0"),
		theUser("U0", text("u6", "at the end")),
	)
	sameAsReplayed(t, client, t.Name())

	folded, err := turnwire.Fold(slices.Values(entries(t, client, t.Name())), 0)
	if err != nil {
		t.Fatal(err)
	}
	editor := must(turnwire.EditPrompt(folded.History(), "T1"))
	for _, gone := range []string{"A1"} {
		refused(t, editor.Remove(gone), turnwirev1.Reason_REASON_ANCHOR_REMOVED)
	}
	for _, gone := range []string{"a1", "u1", "u0"} {
		refused(t, editor.RemovePart(gone), turnwirev1.Reason_REASON_ANCHOR_REMOVED)
	}
	refused(t, editor.Remove("U9"), turnwirev1.Reason_REASON_ANCHOR_UNKNOWN)
}

// Random logs: whatever of them the server admits is folded as it replays it.
func TestAnyLogIsFoldedAsTheServerReplaysIt(t *testing.T) {
	client := connected(t)
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 0))
		session := fmt.Sprint(t.Name(), seed)
		appended(t, client, session, theTurn("T1"))
		admitted := 0
		for step := 0; admitted < 40; step++ {
			payload := drawn(random, step)
			_, err := client.Append(t.Context(), &turnwirev1.AppendRequest{SessionId: session, Entries: inputs(payload)})
			switch turnwire.AsError(err) {
			case nil:
				admitted++
			default:
				if turnwire.ReasonOf(err) == turnwirev1.Reason_REASON_UNSPECIFIED {
					t.Fatal(err)
				}
			}
		}
		sameAsReplayed(t, client, session)
	}
}

func drawn(random *rand.Rand, step int) proto.Message {
	message := fmt.Sprint("M", random.IntN(6))
	part := fmt.Sprintf("%s.%d", message, random.IntN(3))
	other := fmt.Sprint("M", random.IntN(6))
	switch random.IntN(12) {
	case 0, 1, 2:
		put := &turnwirev1.UserPut{User: theUser(message, text(part, fmt.Sprint("put ", step)))}
		if random.IntN(3) == 0 {
			put.BeforeId = &other
		}
		return put
	case 3, 4:
		return &turnwirev1.PartPut{MessageId: message, Part: text(part, "")}
	case 5, 6, 7:
		return delta(part, random.IntN(3)*2, "ab")
	case 8:
		return &turnwirev1.Revert{MessageId: message}
	case 9:
		return &turnwirev1.Revert{MessageId: message, PartId: &part}
	case 10:
		return &turnwirev1.RevertClear{}
	default:
		if random.IntN(2) == 0 {
			return removed(message)
		}
		return removedPart(part)
	}
}

func TestAnEntryOfALaterSchemaFailsTheFoldUnlessItMayBeSkipped(t *testing.T) {
	first := &turnwirev1.Entry{Revision: 1, Payload: &turnwirev1.Entry_Turn{Turn: theTurn("T1")}}
	later := &turnwirev1.Entry{Revision: 2}
	later.ProtoReflect().SetUnknown([]byte{0xaa, 0x0c, 0x00}) // field 197, empty
	_, err := turnwire.Fold(slices.Values([]*turnwirev1.Entry{first, later}), 0)
	found := refused(t, err, turnwirev1.Reason_REASON_UNKNOWN_PAYLOAD)
	if found.Metadata["revision"] != "2" {
		t.Error(found.Metadata)
	}
	if _, err := turnwire.Fold(slices.Values([]*turnwirev1.Entry{first, later}), 1); err != nil {
		t.Error("what is behind the revision is not looked at:", err)
	}
	later.Ignorable = true
	folded, err := turnwire.Fold(slices.Values([]*turnwirev1.Entry{first, later}), 0)
	if err != nil || folded.Revision() != 2 {
		t.Error(err)
	}
}

func TestWhatIsNoLogIsRefused(t *testing.T) {
	for _, payload := range []*turnwirev1.Entry{
		{Revision: 1, Payload: &turnwirev1.Entry_Delta{Delta: delta("p", 0, "x")}},
		{Revision: 1, Payload: &turnwirev1.Entry_Part{Part: &turnwirev1.PartPut{MessageId: "M", Part: text("p", "")}}},
		{Revision: 1, Payload: &turnwirev1.Entry_Removal{Removal: removed("M")}},
		{Revision: 1, Payload: &turnwirev1.Entry_Removal{Removal: removedPart("p")}},
		{Revision: 1, Payload: &turnwirev1.Entry_Summary{Summary: &turnwirev1.MessageSummary{MessageId: "M"}}},
	} {
		if _, err := turnwire.Fold(slices.Values([]*turnwirev1.Entry{payload}), 0); err == nil {
			t.Errorf("taken: %v", payload)
		}
	}
}

func TestTheFoldKnowsPropertiesPromptsAndTheOpenRevert(t *testing.T) {
	client := connected(t)
	appended(t, client, t.Name(), theTurn("T1"), theUser("U1", text("u1", "one")))
	prompt, err := client.ComputePrompt(t.Context(), &turnwirev1.MutatePromptRequest{SessionId: t.Name(), TurnId: "T1"})
	if err != nil {
		t.Fatal(err)
	}
	appended(t, client, t.Name(), &turnwirev1.Revert{MessageId: "U1"})
	folded, err := turnwire.Fold(slices.Values(entries(t, client, t.Name())), 0)
	if err != nil {
		t.Fatal(err)
	}
	session, err := client.GetSession(t.Context(), &turnwirev1.GetSessionRequest{SessionId: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, folded.Properties(), session.GetSession().GetProperties())
	equal(t, folded.OpenRevert(), session.GetSession().GetRevert())
	record := prompt.End.GetRecord()
	equal(t, folded.Prompts()[record.GetId()], record)
}
