package turnwire_test

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	turnwire "turnwire.dev/go"
	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

func edited(t *testing.T) *turnwire.PromptEditor {
	t.Helper()
	editor, err := turnwire.EditPrompt(dialogue(), "T1")
	if err != nil {
		t.Fatal(err)
	}
	return editor
}

// shown writes a prompt as "user(one two) assistant(…)".
func shown(editor *turnwire.PromptEditor) string {
	var messages []string
	for _, message := range editor.Messages() {
		var parts []string
		for _, part := range message.GetParts() {
			if part.GetTool() != nil {
				parts = append(parts, part.GetTool().GetCallId())
			} else {
				parts = append(parts, part.GetText().GetText())
			}
		}
		role := strings.ToLower(strings.TrimPrefix(message.GetRole().String(), "ROLE_"))
		messages = append(messages, role+"("+strings.Join(parts, " ")+")")
	}
	return strings.Join(messages, " ")
}

const dialogueShown = "user(one two) assistant(three call_1 four)"

func hook(content string) *turnwirev1.PromptMessage {
	return turnwire.UserMessage(turnwire.Text(content))
}

func TestEachEdit(t *testing.T) {
	for name, each := range map[string]struct {
		edit func(*turnwire.PromptEditor) error
		want string
	}{
		"append":  {func(e *turnwire.PromptEditor) error { return e.Append(hook("x")) }, dialogueShown + " user(x)"},
		"prepend": {func(e *turnwire.PromptEditor) error { return e.Prepend(hook("x")) }, "user(x) " + dialogueShown},
		"append to": {
			func(e *turnwire.PromptEditor) error { return e.AppendTo(user, turnwire.Text("x"), turnwire.Text("y")) },
			"user(one two x y) assistant(three call_1 four)",
		},
		"append to a message with a signed part": {
			func(e *turnwire.PromptEditor) error { return e.AppendTo(assistant, turnwire.Text("x")) },
			"user(one two) assistant(three call_1 four x)",
		},
		"insert after": {
			func(e *turnwire.PromptEditor) error { return e.InsertAfter("U1", hook("x")) },
			"user(one two) user(x) assistant(three call_1 four)",
		},
		"insert before": {
			func(e *turnwire.PromptEditor) error { return e.InsertBefore("A1", hook("x")) },
			"user(one two) user(x) assistant(three call_1 four)",
		},
		"remove":      {func(e *turnwire.PromptEditor) error { return e.Remove("A1") }, "user(one two)"},
		"remove part": {func(e *turnwire.PromptEditor) error { return e.RemovePart("a2") }, "user(one two) assistant(three four)"},
		"replace part": {
			func(e *turnwire.PromptEditor) error { return e.ReplacePart("u1", turnwire.Text("x")) },
			"user(x two) assistant(three call_1 four)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			editor := edited(t)
			if err := each.edit(editor); err != nil {
				t.Fatal(err)
			}
			if got := shown(editor); got != each.want {
				t.Errorf("got %s, want %s", got, each.want)
			}
			if len(editor.Mutations()) != 1 {
				t.Errorf("%d mutations", len(editor.Mutations()))
			}
		})
	}
}

func TestOfTwoInsertsTheLaterIsNearer(t *testing.T) {
	editor := edited(t)
	for _, content := range []string{"first", "second"} {
		if err := editor.InsertAfter("U1", hook(content)); err != nil {
			t.Fatal(err)
		}
	}
	if got := shown(editor); got != "user(one two) user(second) user(first) assistant(three call_1 four)" {
		t.Error(got)
	}
	if index := editor.Items()[1].GetMutation().GetIndex(); index != 1 {
		t.Errorf("the nearer was made by mutation %d", index)
	}
}

func TestAppendToFindsWhatAHookPut(t *testing.T) {
	editor := edited(t)
	if err := editor.Append(hook("x")); err != nil {
		t.Fatal(err)
	}
	if err := editor.AppendTo(user, turnwire.Text("y")); err != nil {
		t.Fatal(err)
	}
	if got := shown(editor); got != dialogueShown+" user(x y)" {
		t.Error(got)
	}
}

func TestAMessageThatLosesItsLastPartLeavesThePrompt(t *testing.T) {
	editor := edited(t)
	for _, id := range []string{"u1", "u2"} {
		if err := editor.RemovePart(id); err != nil {
			t.Fatal(err)
		}
	}
	if got := shown(editor); got != "assistant(three call_1 four)" {
		t.Error(got)
	}
}

func TestEachRefusalHasItsReasonAndPathAndChangesNothing(t *testing.T) {
	withID := turnwire.UserMessage(text("p", "x"))
	for name, each := range map[string]struct {
		edit   func(*turnwire.PromptEditor) error
		reason turnwirev1.Reason
		path   string
	}{
		"no such message": {
			func(e *turnwire.PromptEditor) error { return e.InsertAfter("U9", hook("x")) },
			turnwirev1.Reason_REASON_ANCHOR_UNKNOWN, "mutations[0].insert_after.message_id",
		},
		"no such part": {
			func(e *turnwire.PromptEditor) error { return e.RemovePart("u9") },
			turnwirev1.Reason_REASON_ANCHOR_UNKNOWN, "mutations[0].remove_part.part_id",
		},
		"signed, removed": {
			func(e *turnwire.PromptEditor) error { return e.RemovePart("a1") },
			turnwirev1.Reason_REASON_SIGNED_PART, "mutations[0].remove_part.part_id",
		},
		"signed, replaced": {
			func(e *turnwire.PromptEditor) error { return e.ReplacePart("a1", turnwire.Text("x")) },
			turnwirev1.Reason_REASON_SIGNED_PART, "mutations[0].replace_part.part_id",
		},
		"a part with an id": {
			func(e *turnwire.PromptEditor) error { return e.Append(withID) },
			turnwirev1.Reason_REASON_TRANSIENT_PART_HAS_ID, "mutations[0].append.message.parts[0].id",
		},
		"no parts": {
			func(e *turnwire.PromptEditor) error { return e.Append(turnwire.UserMessage()) },
			turnwirev1.Reason_REASON_RULE_VIOLATION, "mutations[0].append.message.parts",
		},
		"a tool call by a user": {
			func(e *turnwire.PromptEditor) error { return e.AppendTo(user, tool("", "c")) },
			turnwirev1.Reason_REASON_RULE_VIOLATION, "mutations[0].append_to.parts[0].tool",
		},
		"a tool call in place of a user's text": {
			func(e *turnwire.PromptEditor) error { return e.ReplacePart("u1", tool("", "c")) },
			turnwirev1.Reason_REASON_RULE_VIOLATION, "mutations[0].replace_part.part.tool",
		},
		"a call id twice": {
			func(e *turnwire.PromptEditor) error {
				return e.AppendTo(assistant, turnwire.Text("x"), tool("", "call_1"))
			},
			turnwirev1.Reason_REASON_DUPLICATE_CALL_ID, "mutations[0].append_to.parts[1].tool.call_id",
		},
		"nothing": {
			func(e *turnwire.PromptEditor) error { return e.Apply(&turnwirev1.Mutation{}) },
			turnwirev1.Reason_REASON_UNKNOWN_TO_THIS_SERVER, "mutations[0].kind",
		},
		"text that is not UTF-8": {
			func(e *turnwire.PromptEditor) error { return e.Append(hook("\xff")) },
			turnwirev1.Reason_REASON_RULE_VIOLATION, "mutations[0].append.message.parts[0].text.text",
		},
	} {
		t.Run(name, func(t *testing.T) {
			editor := edited(t)
			found := refused(t, each.edit(editor), each.reason)
			if found.Path() != each.path {
				t.Errorf("path %s, want %s", found.Path(), each.path)
			}
			if shown(editor) != dialogueShown || len(editor.Mutations()) != 0 {
				t.Error("something has changed")
			}
		})
	}
}

func TestNoMessageOfThatRole(t *testing.T) {
	editor := turnwire.NewPromptEditor(nil, nil)
	found := refused(t, editor.AppendTo(user, turnwire.Text("x")), turnwirev1.Reason_REASON_NO_MESSAGE_OF_ROLE)
	if found.Metadata["role"] != "ROLE_USER" || found.Path() != "mutations[0].append_to" {
		t.Error(found.Metadata)
	}
}

func TestOfSeveralMutationsAllAreAppliedOrNone(t *testing.T) {
	editor := edited(t)
	good := &turnwirev1.Mutation{Kind: &turnwirev1.Mutation_Append{Append: &turnwirev1.Append{Message: hook("x")}}}
	bad := &turnwirev1.Mutation{Kind: &turnwirev1.Mutation_Remove{Remove: &turnwirev1.Remove{MessageId: "U9"}}}
	found := refused(t, editor.Apply(good, bad), turnwirev1.Reason_REASON_ANCHOR_UNKNOWN)
	if found.Path() != "mutations[1].remove.message_id" || shown(editor) != dialogueShown {
		t.Error(found, shown(editor))
	}
	if err := editor.Apply(good); err != nil {
		t.Fatal(err)
	}
	found = refused(t, editor.Apply(good, bad), turnwirev1.Reason_REASON_ANCHOR_UNKNOWN)
	if found.Path() != "mutations[2].remove.message_id" {
		t.Error("paths go on counting: ", found.Path())
	}
}

func TestWhatWasTakenOutIsNoLongerThere(t *testing.T) {
	editor := edited(t)
	if err := editor.Remove("U1"); err != nil {
		t.Fatal(err)
	}
	refused(t, editor.Remove("U1"), turnwirev1.Reason_REASON_ANCHOR_NOT_IN_PROMPT)
	refused(t, editor.RemovePart("u1"), turnwirev1.Reason_REASON_ANCHOR_NOT_IN_PROMPT)
}

func TestNeitherHistoryNorMutationsAreShared(t *testing.T) {
	past := dialogue()
	before := proto.CloneOf(past.Messages[0].(*turnwirev1.User))
	editor := must(turnwire.EditPrompt(past, "T1"))
	message := hook("x")
	if err := editor.Append(message); err != nil {
		t.Fatal(err)
	}
	if err := editor.AppendTo(user, turnwire.Text("y")); err != nil {
		t.Fatal(err)
	}
	if err := editor.RemovePart("u2"); err != nil {
		t.Fatal(err)
	}
	digest := must(editor.Digest())
	message.Parts[0].GetText().Text = "changed"
	editor.Items()[0].GetMessage().GetParts()[0].GetText().Text = "changed"
	editor.Mutations()[0].GetAppend().GetMessage().GetParts()[0].GetText().Text = "changed"
	if !slices.Equal(must(editor.Digest()), digest) {
		t.Error("the prompt has changed")
	}
	equal(t, past.Messages[0], before)
}

func TestThePromptDigestByHand(t *testing.T) {
	// PromptPart.text (field 3) holds TextPart.text (field 1) "hi"; the id does not enter.
	content := sha256.Sum256([]byte("\x1a\x04\x0a\x02hi"))
	want := sha256.Sum256(append([]byte("\x01\x00\x00\x00\x01"), content[:]...))
	for _, part := range []*turnwirev1.PromptPart{turnwire.Text("hi"), text("prt_1", "hi")} {
		items := []*turnwirev1.PromptItem{{Message: turnwire.UserMessage(part)}}
		if got := must(turnwire.PromptDigest(items)); !slices.Equal(got, want[:]) {
			t.Errorf("got %x, want %x", got, want)
		}
	}
	if _, err := turnwire.PromptDigest([]*turnwirev1.PromptItem{{Message: hook("\xff")}}); err == nil {
		t.Error("text that is not UTF-8 has a digest")
	}
}

func TestHooksChain(t *testing.T) {
	first := edited(t)
	if err := first.Append(hook("x")); err != nil {
		t.Fatal(err)
	}
	second := turnwire.NewPromptEditor(turnwire.BasedOn(first.Items(), "prm_1"), nil)
	if err := second.Append(hook("y")); err != nil {
		t.Fatal(err)
	}
	third := turnwire.BasedOn(second.Items(), "prm_2")
	var origins []string
	for _, item := range third {
		origins = append(origins, item.GetMessageId()+item.GetMutation().GetPromptId())
	}
	if !slices.Equal(origins, []string{"U1", "A1", "prm_1", "prm_2"}) {
		t.Error(origins)
	}
}

func TestNothingIsRefusedAndDoesNotPanic(t *testing.T) {
	_, err := turnwire.EditPrompt(nil, "T1")
	refused(t, err, turnwirev1.Reason_REASON_TURN_NOT_FOUND)
	editor := turnwire.NewPromptEditor(nil, nil)
	refused(t, editor.Apply(nil), turnwirev1.Reason_REASON_UNKNOWN_TO_THIS_SERVER)
	if err := editor.Append(nil); turnwire.AsError(err) == nil {
		t.Error(err)
	}
	if err := editor.ReplacePart("p1", nil); turnwire.AsError(err) == nil {
		t.Error(err)
	}
	if err := editor.AppendTo(user, nil); turnwire.AsError(err) == nil {
		t.Error(err)
	}
}
