package turnwire_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	turnwire "turnwire.dev/go"
	"turnwire.dev/go/internal/turnwiretest"
	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// unknown gives a message fields of a later schema: a number, and a text.
func unknown[M proto.Message](message M) M {
	message.ProtoReflect().SetUnknown([]byte("\xa8\x3e\x96\x01\xb2\x3e\x05later"))
	return message
}

// rich are messages with all that languages differ in: 64-bit numbers, unset apart from zero, JSON kept as text, maps,
// oneofs, times to the nanosecond, any Unicode, and fields of a later schema on each level.
func rich() (turn *turnwirev1.Turn, messages []turnwire.Message) {
	now := &timestamppb.Timestamp{Seconds: 1_700_000_000, Nanos: 123_456_789}
	turn = theTurn("T1")
	turn.Created = now
	turn.Request.System = proto.String("")
	turn.Request.Tools = map[string]bool{"read": true, "write": false}
	turn.Request.Format = &turnwirev1.OutputFormat{Kind: &turnwirev1.OutputFormat_JsonSchema{
		JsonSchema: &turnwirev1.JsonSchemaFormat{SchemaJson: `{"b": 1.0, "a":1, "b": 653247040368672768}`},
	}}
	file := &turnwirev1.FilePart{
		Mime: "image/png", Url: "data:image/png;base64,AA==", Filename: proto.String(""),
		Source: &turnwirev1.FileSource{
			Text: &turnwirev1.TextSpan{Value: "@a", Start: 0, End: 2},
			Kind: &turnwirev1.FileSource_Symbol{Symbol: &turnwirev1.SymbolSource{Path: "a.go", Name: "A", Kind: 12}},
		},
	}
	question := text("u1", "caf\u00e9 \U0001F600 \x00 \u2028 e\u0301")
	question.GetText().Synthetic = proto.Bool(false)
	unknown(question.GetText())
	asked := theUser("U1", unknown(question), &turnwirev1.PromptPart{Id: "u2", Kind: &turnwirev1.PromptPart_File{File: file}})
	asked.Time = &turnwirev1.UserTime{Created: now}
	asked.ExtraJson = `{"half": "\ud83d"}`

	call := tool("a1", "call/1")
	call.GetTool().State = turnwirev1.ToolState_TOOL_STATE_COMPLETED
	call.GetTool().InputJson = "{\"n\":1e400 ,\n\"n\":9007199254740993}"
	call.GetTool().Output = proto.String("")
	call.GetTool().Provider = unknown(&turnwirev1.ProviderMetadata{MetadataJson: "{}", Model: model, Signed: true})
	call.GetTool().Attachments = []*turnwirev1.ToolAttachment{{Label: "x", File: proto.CloneOf(file)}}
	again := &turnwirev1.RetryPart{Attempt: 2, Created: now, Failure: &turnwirev1.Failure{Kind: &turnwirev1.Failure_Api{
		Api: &turnwirev1.ApiFailure{
			Retryable: true, StatusCode: proto.Int32(529), ResponseHeaders: map[string]string{"retry-after": "1", "via": ""},
		},
	}}}
	answered := theAssistant("A1", call, &turnwirev1.PromptPart{Id: "a2", Kind: &turnwirev1.PromptPart_Retry{Retry: again}})
	answered.Time = &turnwirev1.AssistantTime{Created: now, Completed: now}
	answered.ParentId = proto.String("U1")
	answered.Usage = &turnwirev1.Usage{Cost: proto.Float64(0), Tokens: &turnwirev1.Tokens{Input: 1 << 62, Total: proto.Int64(0)}}
	answered.Result = unknown(&turnwirev1.Result{Finish: proto.String("stop"), StructuredJson: "null"})
	return turn, []turnwire.Message{unknown(asked), unknown(answered)}
}

func line(message proto.Message) string {
	name := message.ProtoReflect().Descriptor().Name()
	return fmt.Sprintf("%s %x\n", name, must(proto.Marshal(message)))
}

func python(t *testing.T, in string, args ...string) string {
	t.Helper()
	process := turnwiretest.Python(append([]string{"testdata/languages.py"}, args...)...)
	process.Stdin = strings.NewReader(in)
	var problems strings.Builder
	process.Stderr = &problems
	out, err := process.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, problems.String())
	}
	return string(out)
}

func TestWhatGoWritesPythonReads(t *testing.T) {
	client := connected(t)
	turn, messages := rich()
	appended(t, client, t.Name(), turn, messages[0], messages[1])
	lines := strings.Split(strings.TrimSpace(python(t, "", "read", shared.Address, t.Name())), "\n")
	if len(lines) != len(messages) {
		t.Fatal(lines)
	}
	for index, want := range messages {
		got := want.ProtoReflect().New().Interface()
		name, data, _ := strings.Cut(lines[index], " ")
		if name != string(want.ProtoReflect().Descriptor().Name()) {
			t.Error(name)
		}
		if err := proto.Unmarshal(must(hex.DecodeString(data)), got); err != nil {
			t.Fatal(err)
		}
		equal(t, got, want)
	}
}

func TestWhatPythonWritesGoReads(t *testing.T) {
	client := connected(t)
	turn, messages := rich()
	python(t, line(turn)+line(messages[0])+line(messages[1]), "write", shared.Address, t.Name())
	found := history(t, client, &turnwirev1.ReplayRequest{SessionId: t.Name()})
	equal(t, found.Turns[0], turn)
	for index, want := range messages {
		equal(t, found.Messages[index], want)
	}
}

func TestTheCommandLineShowsWhatGoWroteAsGoWritesJSON(t *testing.T) {
	client := connected(t)
	turn, messages := rich()
	appended(t, client, t.Name(), turn, messages[0], messages[1])
	out, err := turnwiretest.Command("replay", t.Name(), "--json", "--server", shared.Address).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range append([]turnwire.Message{}, messages...) {
		want := plain(t, must(protojson.Marshal(message)))
		if !contains(plain(t, out), want) {
			t.Errorf("%s\nis not in\n%s", must(protojson.Marshal(message)), out)
		}
	}
}

func plain(t *testing.T, text []byte) any {
	t.Helper()
	var values []any
	for reader := json.NewDecoder(strings.NewReader(string(text))); reader.More(); {
		var value any
		if err := reader.Decode(&value); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	if len(values) == 1 {
		return values[0]
	}
	return values
}

// contains tells whether a JSON value has another anywhere in it.
func contains(value, wanted any) bool {
	if reflect.DeepEqual(value, wanted) {
		return true
	}
	switch each := value.(type) {
	case []any:
		for _, item := range each {
			if contains(item, wanted) {
				return true
			}
		}
	case map[string]any:
		for _, item := range each {
			if contains(item, wanted) {
				return true
			}
		}
	}
	return false
}
