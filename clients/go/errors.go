package turnwire

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// ErrorDomain is the domain of every google.rpc.ErrorInfo of Turnwire.
const ErrorDomain = "turnwire"

const reasonPrefix = "REASON_"

// Violation is one broken rule of the schema.
type Violation struct {
	// Path of the field from the message that was checked on, for example "entries[0].user.user.turn_id".
	Path string
	// Rule is the id of the rule: protovalidate's own, such as "string.min_len", or one of Turnwire's, "turnwire.…".
	Rule string
	// Text says what is right, without content of the message.
	Text string
}

// Error is any refusal of Turnwire, of a server or of the functions of this package. It never holds message content.
//
// A failure on the way to a server, where no reason was sent, is an Error too, with Reason unspecified: Code tells.
// Use [errors.As] to look at one, or [ReasonOf] to branch:
//
//	switch turnwire.ReasonOf(err) {
//	case turnwirev1.Reason_REASON_REVISION_CONFLICT:
//	case turnwirev1.Reason_REASON_SESSION_DELETED:
//	}
type Error struct {
	// Reason is why. Unspecified: none was sent, or one that this version does not know; ReasonName has its name then.
	Reason turnwirev1.Reason
	// ReasonName is the reason as it is sent, without prefix: "REVISION_CONFLICT". Empty: none was sent.
	ReasonName string
	// Code is the gRPC status code.
	Code codes.Code
	// Text is for people.
	Text string
	// Metadata says what it is about: "path" is the field of the request, the rest are ids and numbers.
	Metadata map[string]string
	// Violations are the broken rules, of REASON_RULE_VIOLATION and REASON_UNKNOWN_TO_THIS_SERVER. A server may list
	// fewer than Metadata["violations"] counts.
	Violations []Violation
	// Detail is the message that goes with some reasons: *turnwirev1.RevisionConflict, *turnwirev1.OffsetMismatch or
	// *turnwirev1.SizeLimit. Nil: none.
	Detail proto.Message

	cause error
}

// Error returns the reason, the path and the text.
func (e *Error) Error() string {
	parts := []string{"turnwire"}
	if e.ReasonName != "" {
		parts = append(parts, e.ReasonName)
	} else {
		parts = append(parts, e.Code.String())
	}
	if path := e.Path(); path != "" {
		parts = append(parts, path)
	}
	return strings.Join(append(parts, e.Text), ": ")
}

// Path is the field of the request that the error is about; it may be empty.
func (e *Error) Path() string { return e.Metadata["path"] }

// Revisions returns the revision that the caller expected and the one that is there, of a REVISION_CONFLICT or a
// REVISION_OUT_OF_RANGE; ok is false for any other error.
func (e *Error) Revisions() (expected, actual int64, ok bool) {
	if conflict, is := e.Detail.(*turnwirev1.RevisionConflict); is {
		return conflict.GetExpected(), conflict.GetActual(), true
	}
	return 0, 0, false
}

// Is makes errors.Is(err, &turnwire.Error{Reason: …}) true for an error of that reason.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Reason != turnwirev1.Reason_REASON_UNSPECIFIED && other.Reason == e.Reason
}

// Unwrap returns what made the call fail where it was not Turnwire: the error of a context that has ended.
func (e *Error) Unwrap() error { return e.cause }

// GRPCStatus is the status that the error is sent as, so that [status.FromError] and [status.Code] know it.
func (e *Error) GRPCStatus() *status.Status {
	result := status.New(e.Code, e.Text)
	if e.ReasonName == "" {
		return result
	}
	info := &errdetails.ErrorInfo{Reason: e.ReasonName, Domain: ErrorDomain, Metadata: e.Metadata}
	details := []protoadapt.MessageV1{protoadapt.MessageV1Of(info)}
	if len(e.Violations) > 0 {
		request := &errdetails.BadRequest{}
		for _, each := range e.Violations {
			request.FieldViolations = append(request.FieldViolations, &errdetails.BadRequest_FieldViolation{
				Field: each.Path, Reason: each.Rule, Description: each.Text,
			})
		}
		details = append(details, protoadapt.MessageV1Of(request))
	}
	if e.Detail != nil {
		details = append(details, protoadapt.MessageV1Of(e.Detail))
	}
	if full, err := result.WithDetails(details...); err == nil {
		return full
	}
	return result
}

// ReasonOf returns the reason of an error; unspecified: it is none of Turnwire's, or has none.
func ReasonOf(err error) turnwirev1.Reason {
	if found := AsError(err); found != nil {
		return found.Reason
	}
	return turnwirev1.Reason_REASON_UNSPECIFIED
}

// refusal makes the error of a reason; metadata is given as keys and values by turns.
func refusal(reason turnwirev1.Reason, text string, metadata ...string) *Error {
	result := &Error{
		Reason: reason, ReasonName: reasonName(reason), Code: reasonCode(reason), Text: text,
		Metadata: make(map[string]string, len(metadata)/2),
	}
	for pair := range slices.Chunk(metadata, 2) {
		result.Metadata[pair[0]] = pair[1]
	}
	return result
}

// violated makes the error for broken rules, of which there is at least one.
func violated(reason turnwirev1.Reason, found []Violation) *Error {
	first := found[0]
	text := first.Text
	if len(found) > 1 {
		text = fmt.Sprintf("%s (and %d more)", text, len(found)-1)
	}
	result := refusal(reason, text, "path", first.Path, "rule", first.Rule, "violations", fmt.Sprint(len(found)))
	result.Violations = found
	return result
}

// at puts a prefix before the paths of an error.
func (e *Error) at(prefix string) *Error {
	result := *e
	result.Metadata = maps.Clone(e.Metadata)
	result.Metadata["path"] = joinPath(prefix, e.Path())
	result.Violations = slices.Clone(e.Violations)
	for index := range result.Violations {
		result.Violations[index].Path = joinPath(prefix, result.Violations[index].Path)
	}
	return &result
}

func joinPath(prefix, path string) string {
	if prefix == "" || path == "" {
		return prefix + path
	}
	return prefix + "." + path
}

func reasonName(reason turnwirev1.Reason) string {
	return strings.TrimPrefix(reason.String(), reasonPrefix)
}

// reasonOption reads an option of a reason off the schema: its status code, its detail message.
func reasonOption(reason turnwirev1.Reason, extension protoreflect.ExtensionType) string {
	value := reason.Descriptor().Values().ByNumber(reason.Number())
	if value == nil {
		return ""
	}
	text, _ := proto.GetExtension(value.Options(), extension).(string)
	return text
}

func reasonCode(reason turnwirev1.Reason) codes.Code {
	var code codes.Code
	if err := code.UnmarshalJSON([]byte(`"` + reasonOption(reason, turnwirev1.E_Status) + `"`)); err != nil {
		return codes.Unknown
	}
	return code
}
