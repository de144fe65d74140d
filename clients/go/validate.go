package turnwire

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// PartIDs says whether the parts in a message have ids.
type PartIDs int

const (
	// PartIDsAny lets parts have ids or none.
	PartIDsAny PartIDs = iota
	// PartIDsStored wants an id in each, as in a log.
	PartIDsStored
	// PartIDsTransient wants none, as in what a hook writes. What is inside a mutation has none in any case.
	PartIDsTransient
)

// ValidateOption says what a message does not tell itself.
type ValidateOption func(*surroundings)

// WithPartIDs says whether the parts in the message have ids; else they may.
func WithPartIDs(ids PartIDs) ValidateOption { return func(c *surroundings) { c.ids = ids } }

// WithRole is the role of the message that holds the part that is checked (a PromptPart, a PartPut, MoreParts). Without
// it, and for a number that is no role, nothing is said about who may hold such a part.
func WithRole(role turnwirev1.Role) ValidateOption { return func(c *surroundings) { c.role = role } }

// WithUnknownKept lets pass what a later schema has written, for what is read. What is merely unset is still told.
func WithUnknownKept() ValidateOption { return func(c *surroundings) { c.keepUnknown = true } }

// Validate fails if a message breaks a rule of the schema. The rules apply once a server has filled in ids and times: an
// empty id of a message that is to be appended breaks one. The reasons are those of the service:
// UNKNOWN_TO_THIS_SERVER if something is unset or of a later schema, else TRANSIENT_PART_HAS_ID, else RULE_VIOLATION with
// all violations; DUPLICATE_CALL_ID if nothing is wrong but that.
func Validate(message proto.Message, options ...ValidateOption) error {
	found, err := Violations(message, options...)
	if err != nil || len(found) == 0 {
		return err
	}
	return refuseFor(found)
}

// Violations returns every rule of the schema that a message breaks, in their order. It fails for a message whose rules protovalidate
// cannot compile, which is none of the schema's.
func Violations(message proto.Message, options ...ValidateOption) ([]Violation, error) {
	standard, err := standardViolations(message)
	if err != nil {
		return nil, err
	}
	check := &ownCheck{}
	within := surroundings{}
	for _, option := range options {
		option(&within)
	}
	check.message(message.ProtoReflect(), "", within)
	found := append(standard, check.found...)
	inOrder(message.ProtoReflect().Descriptor(), found)
	return found, nil
}

// refuseFor makes the error for violations as the service does.
func refuseFor(found []Violation) *Error {
	first := func(rule string) int {
		return slices.IndexFunc(found, func(each Violation) bool { return each.Rule == rule })
	}
	if at := first(ruleUnknown); at >= 0 {
		result := refusal(turnwirev1.Reason_REASON_UNKNOWN_TO_THIS_SERVER, found[at].Text, "path", found[at].Path)
		result.Violations = found
		return result
	}
	if at := first(ruleStoredOnly); at >= 0 {
		return refusal(turnwirev1.Reason_REASON_TRANSIENT_PART_HAS_ID, found[at].Text, "path", found[at].Path)
	}
	other := func(each Violation) bool { return each.Rule != ruleCallID }
	if !slices.ContainsFunc(found, other) {
		return refusal(turnwirev1.Reason_REASON_DUPLICATE_CALL_ID, found[0].Text, "path", found[0].Path)
	}
	return violated(turnwirev1.Reason_REASON_RULE_VIOLATION, found)
}

var validator = sync.OnceValues(func() (protovalidate.Validator, error) { return protovalidate.New() })

// standardViolations are those of protovalidate's rules, less the two that Turnwire has a rule of its own for.
func standardViolations(message proto.Message) ([]Violation, error) {
	checker, err := validator()
	if err != nil {
		return nil, fmt.Errorf("turnwire: the rules of the schema: %w", err)
	}
	err = checker.Validate(message)
	if err == nil {
		return nil, nil
	}
	var failed *protovalidate.ValidationError
	if !errors.As(err, &failed) {
		return nil, fmt.Errorf("turnwire: the rules of the schema: %w", err)
	}
	var found []Violation
	for _, each := range failed.Violations {
		rule := each.Proto.GetRuleId()
		if rule == "enum.defined_only" || rule == "required" && ofOneof(each.Proto) {
			continue
		}
		path := fieldPath(each.Proto.GetField())
		found = append(found, Violation{Path: path, Rule: rule, Text: each.Proto.GetMessage()})
	}
	return found, nil
}

// ofOneof tells whether a violation is about a oneof, which has a name but no number.
func ofOneof(violation *validate.Violation) bool {
	elements := violation.GetField().GetElements()
	return len(elements) > 0 && elements[len(elements)-1].GetFieldNumber() == 0
}
