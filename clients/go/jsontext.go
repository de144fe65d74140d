package turnwire

import "encoding/json"

// The deepest nesting of arrays and objects that a JSON text may have.
const maxJSONDepth = 128

// The rules of a field with the option json.
const (
	ruleJSONSyntax = "turnwire.json.syntax"
	ruleJSONDepth  = "turnwire.json.depth"
	ruleJSONShape  = "turnwire.json.shape"
)

// jsonFault tells which rule a JSON text breaks, and what is right; both are empty if it breaks none. An empty text
// means that there is none. What is legal is exactly RFC 8259: neither NaN nor Infinity nor a byte order mark, but
// escapes of lone surrogates, duplicate keys and numbers of any length.
func jsonFault(text string, object bool) (rule, right string) {
	switch {
	case text == "":
		return "", ""
	case jsonDepth(text) > maxJSONDepth:
		return ruleJSONDepth, "must nest at most 128 levels deep"
	case !json.Valid([]byte(text)):
		return ruleJSONSyntax, "must be one JSON document (RFC 8259)"
	case object && !startsObject(text):
		return ruleJSONShape, "must be a JSON object"
	}
	return "", ""
}

// jsonDepth tells how many levels of arrays and objects are open at the deepest place of a text, valid JSON or not.
func jsonDepth(text string) int {
	depth, deepest, inside := 0, 0, false
	for index := 0; index < len(text); index++ {
		switch char := text[index]; {
		case inside:
			if char == '\\' {
				index++
			} else if char == '"' {
				inside = false
			}
		case char == '"':
			inside = true
		case char == '[' || char == '{':
			depth++
			deepest = max(deepest, depth)
		case char == ']' || char == '}':
			depth--
		}
	}
	return deepest
}

func startsObject(text string) bool {
	for index := range len(text) {
		switch text[index] {
		case ' ', '\t', '\n', '\r':
		default:
			return text[index] == '{'
		}
	}
	return false
}
