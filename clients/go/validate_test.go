package turnwire_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	turnwire "turnwire.dev/go"
	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

func extension(data string) *turnwirev1.PromptPart {
	return &turnwirev1.PromptPart{Kind: &turnwirev1.PromptPart_Extension{
		Extension: &turnwirev1.ExtensionPart{Type: "x", DataJson: data},
	}}
}

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

func TestViolations(t *testing.T) {
	stored := turnwire.WithPartIDs(turnwire.PartIDsStored)
	long := strings.Repeat("k", 70)
	labels := func(key, value string) proto.Message {
		properties := &turnwirev1.SessionProperties{Created: timestamppb.Now(), Labels: map[string]string{key: value}}
		return properties
	}
	timed := func(seconds int64, nanos int32) proto.Message {
		return &turnwirev1.UserTime{Created: &timestamppb.Timestamp{Seconds: seconds, Nanos: nanos}}
	}
	unknownKind := &turnwirev1.PromptPart{}
	unknownKind.ProtoReflect().SetUnknown([]byte{0xaa, 0x06, 0x00})
	for name, each := range map[string]struct {
		message proto.Message
		options []turnwire.ValidateOption
		want    []string
	}{
		"right":               {model, nil, nil},
		"protovalidate's own": {&turnwirev1.ModelRef{ModelId: "m"}, nil, []string{"provider_id string.min_len"}},
		"a required message":  {&turnwirev1.UserTime{}, nil, []string{"created required"}},
		"a map's key":         {labels("a b", "v"), nil, []string{`labels["a b"] string.pattern`}},
		"a long key is cut":   {labels(long+" ", "v"), nil, []string{`labels["` + long[:64] + `…"] string.pattern`}},
		"a key of separators": {
			labels("\u2028\\u2029\u2029", "v"), nil, []string{"labels[\"\u2028\\\\u2029\u2029\"] string.pattern"},
		},
		"a map's value":      {labels("k", strings.Repeat("v", 1025)), nil, []string{`labels["k"] string.max_bytes`}},
		"no kind":            {&turnwirev1.PromptPart{}, nil, []string{"kind turnwire.unknown"}},
		"a later kind":       {unknownKind, nil, []string{"kind turnwire.unknown"}},
		"a later kind, read": {unknownKind, []turnwire.ValidateOption{turnwire.WithUnknownKept()}, nil},
		"no kind, read": {
			&turnwirev1.PromptPart{}, []turnwire.ValidateOption{turnwire.WithUnknownKept()},
			[]string{"kind turnwire.unknown"},
		},
		"several, in their order": {
			&turnwirev1.SessionProperties{
				Title:  proto.String(strings.Repeat("x", 4097)),
				Labels: map[string]string{"😀": "", "\uffee": "", "a": "", "a\"b": "", "": ""}, ExtraJson: "[",
			},
			nil,
			[]string{
				"title string.max_len", `labels[""] string.min_len`, `labels[""] string.pattern`,
				`labels["a\"b"] string.pattern`, "labels[\"\uffee\"] string.pattern", `labels["😀"] string.pattern`,
				"created required", "extra_json turnwire.json.syntax",
			},
		},
		"items by their index, a oneof by its first member": {
			turnwire.AssistantMessage(append(slices.Repeat([]*turnwirev1.PromptPart{turnwire.Text("")}, 10), extension("["), unknownKind)...),
			[]turnwire.ValidateOption{stored},
			[]string{
				"parts[0].id required", "parts[1].id required", "parts[2].id required", "parts[3].id required",
				"parts[4].id required", "parts[5].id required", "parts[6].id required", "parts[7].id required",
				"parts[8].id required", "parts[9].id required", "parts[10].id required",
				"parts[10].extension.data_json turnwire.json.syntax", "parts[11].id required", "parts[11].kind turnwire.unknown",
			},
		},
		"a later role": {
			&turnwirev1.PromptMessage{Role: 9, Parts: []*turnwirev1.PromptPart{turnwire.Text("")}}, nil,
			[]string{"role turnwire.unknown"},
		},
		"no role": {
			&turnwirev1.PromptMessage{Parts: []*turnwirev1.PromptPart{tool("", "c")}}, nil, []string{"role enum.not_in"},
		},
		"the wrong role": {
			turnwire.UserMessage(turnwire.Text(""), tool("", "c")), nil, []string{"parts[1].tool turnwire.held_by"},
		},
		"the wrong role, told": {
			tool("", "c"), []turnwire.ValidateOption{turnwire.WithRole(user)}, []string{"tool turnwire.held_by"},
		},
		"a call id twice": {
			turnwire.AssistantMessage(tool("", "c"), tool("", "d"), tool("", "c")), nil,
			[]string{"parts[2].tool.call_id turnwire.call_id"},
		},
		"no id in the log": {turnwire.UserMessage(turnwire.Text("")), []turnwire.ValidateOption{stored}, []string{"parts[0].id required"}},
		"an id in a mutation": {
			&turnwirev1.Append{Message: turnwire.UserMessage(text("p", ""))}, []turnwire.ValidateOption{stored},
			[]string{"message.parts[0].id turnwire.stored_only"},
		},
		"before the year 1": {timed(-62135596801, 0), nil, []string{"created turnwire.timestamp"}},
		"nanoseconds":       {timed(0, -1), nil, []string{"created turnwire.timestamp"}},
		"NaN":               {extension("NaN"), nil, []string{"extension.data_json turnwire.json.syntax"}},
		"a byte order mark": {extension("\ufeff{}"), nil, []string{"extension.data_json turnwire.json.syntax"}},
		"two documents":     {extension("{} {}"), nil, []string{"extension.data_json turnwire.json.syntax"}},
		"half a pair":       {extension(` {"a": "\ud83d", "a": 1e999} `), nil, nil},
		"128 levels":        {extension(nested(128)), nil, nil},
		"129 levels":        {extension(nested(129)), nil, []string{"extension.data_json turnwire.json.depth"}},
		"129 levels, open":  {extension(strings.Repeat("[", 129)), nil, []string{"extension.data_json turnwire.json.depth"}},
		"brackets in texts": {extension(`["` + strings.Repeat(`\"[`, 200) + `"]`), nil, nil},
		"a list for an object": {
			&turnwirev1.PromptPart{ExtraJson: " []", Kind: turnwire.Text("").Kind}, nil, []string{"extra_json turnwire.json.shape"},
		},
		"not UTF-8": {turnwire.Text("\xff"), nil, []string{"text.text turnwire.wire_format"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := turnwire.Violations(each.message, each.options...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, violation := range found {
				got = append(got, violation.Path+" "+violation.Rule)
				if violation.Text == "" {
					t.Error("a violation without a text:", violation)
				}
			}
			if !slices.Equal(got, each.want) {
				t.Errorf("got %v, want %v", got, each.want)
			}
		})
	}
}

func TestValidateHasTheReasonsOfTheService(t *testing.T) {
	twice := turnwire.AssistantMessage(tool("", "c"), tool("", "c"))
	for name, each := range map[string]struct {
		message proto.Message
		reason  turnwirev1.Reason
		path    string
	}{
		"a rule":          {&turnwirev1.ModelRef{}, turnwirev1.Reason_REASON_RULE_VIOLATION, "provider_id"},
		"of a later time": {&turnwirev1.PromptPart{}, turnwirev1.Reason_REASON_UNKNOWN_TO_THIS_SERVER, "kind"},
		"an id":           {&turnwirev1.ReplacePart{PartId: "p", Part: text("q", "")}, turnwirev1.Reason_REASON_TRANSIENT_PART_HAS_ID, "part.id"},
		"a call id":       {twice, turnwirev1.Reason_REASON_DUPLICATE_CALL_ID, "parts[1].tool.call_id"},
	} {
		t.Run(name, func(t *testing.T) {
			if found := refused(t, turnwire.Validate(each.message), each.reason); found.Path() != each.path {
				t.Error(found.Path())
			}
		})
	}
	if err := turnwire.Validate(model); err != nil {
		t.Error(err)
	}
	found := refused(t, turnwire.Validate(&turnwirev1.ModelRef{}), turnwirev1.Reason_REASON_RULE_VIOLATION)
	if len(found.Violations) != 2 || found.Metadata["violations"] != "2" {
		t.Error(found.Violations, found.Metadata)
	}
}
