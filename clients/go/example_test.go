package turnwire_test

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	turnwire "turnwire.dev/go"
	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

func ExamplePromptEditor() {
	history := &turnwire.History{
		Turns: []*turnwirev1.Turn{{Id: "trn_1"}},
		Messages: []turnwire.Message{
			&turnwirev1.User{Id: "msg_1", TurnId: "trn_1", Parts: []*turnwirev1.PromptPart{turnwire.Text("Hello")}},
		},
	}
	editor, err := turnwire.EditPrompt(history, "trn_1")
	if err != nil {
		panic(err)
	}
	if err := editor.Append(turnwire.UserMessage(turnwire.SyntheticText("Answer in one sentence."))); err != nil {
		panic(err)
	}
	for _, message := range editor.Messages() {
		fmt.Println(message.GetRole(), message.GetParts()[0].GetText().GetText())
	}
	fmt.Println(turnwire.ReasonOf(editor.Remove("msg_2")))
	// Output:
	// ROLE_USER Hello
	// ROLE_USER Answer in one sentence.
	// REASON_ANCHOR_UNKNOWN
}

func ExampleClient() {
	ctx := context.Background()
	client, err := turnwire.Dial("127.0.0.1:7411")
	if err != nil {
		panic(err)
	}
	defer client.Close()
	_, err = client.Append(ctx, &turnwirev1.AppendRequest{
		SessionId:        "ses_1",
		ExpectedRevision: proto.Int64(7),
		Entries: []*turnwirev1.EntryInput{
			{Payload: &turnwirev1.EntryInput_Revert{Revert: &turnwirev1.Revert{MessageId: "msg_1"}}},
		},
	})
	switch turnwire.ReasonOf(err) {
	case turnwirev1.Reason_REASON_REVISION_CONFLICT:
		expected, actual, _ := turnwire.AsError(err).Revisions()
		fmt.Println("decided by", expected, "but the head is", actual)
	case turnwirev1.Reason_REASON_RULE_VIOLATION:
		for _, each := range turnwire.AsError(err).Violations {
			fmt.Println(each.Path, each.Rule, each.Text)
		}
	}
}
