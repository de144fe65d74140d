package turnwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
)

// The most characters of a map's key that a path shows.
const keyShown = 64

// fieldPath writes a path of protovalidate as all of Turnwire's paths are written: parts[1].tool.input_json, labels["k"].
func fieldPath(path *validate.FieldPath) string {
	var result strings.Builder
	for index, element := range path.GetElements() {
		if index > 0 {
			result.WriteByte('.')
		}
		result.WriteString(element.GetFieldName())
		switch element.WhichSubscript() {
		case validate.FieldPathElement_Index_case:
			fmt.Fprintf(&result, "[%d]", element.GetIndex())
		case validate.FieldPathElement_BoolKey_case:
			fmt.Fprintf(&result, "[%s]", mapKey(element.GetBoolKey()))
		case validate.FieldPathElement_IntKey_case:
			fmt.Fprintf(&result, "[%s]", mapKey(element.GetIntKey()))
		case validate.FieldPathElement_UintKey_case:
			fmt.Fprintf(&result, "[%s]", mapKey(element.GetUintKey()))
		case validate.FieldPathElement_StringKey_case:
			fmt.Fprintf(&result, "[%s]", mapKey(element.GetStringKey()))
		}
	}
	return result.String()
}

// raw undoes what json.Encoder escapes though JSON does not want it; a backslash that stands for itself stays.
var raw = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029", `\ufffd`, "\ufffd")

// mapKey writes a map's key for a path: a text in quotes and cut, anything else as it is.
func mapKey(key any) string {
	text, ok := key.(string)
	if !ok {
		return fmt.Sprint(key)
	}
	if runes := []rune(text); len(runes) > keyShown {
		text = string(runes[:keyShown]) + "…"
	}
	var quoted bytes.Buffer
	writer := json.NewEncoder(&quoted)
	writer.SetEscapeHTML(false)
	if err := writer.Encode(text); err != nil {
		return `""`
	}
	return raw.Replace(strings.TrimSuffix(quoted.String(), "\n"))
}
