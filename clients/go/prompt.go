package turnwire

import (
	"context"
	"iter"
	"strings"

	"google.golang.org/grpc"

	turnwirev1 "turnwire.dev/go/turnwire/v1"
)

// Prompt is a prompt as the service computed it.
type Prompt struct {
	// Items with their origins, in order.
	Items []*turnwirev1.PromptItem
	// End has what the prompt was computed from, and the end of the log afterwards.
	End *turnwirev1.PromptEnd
}

// ComputePrompt has the service compute the prompt of a turn, with mutations, and record it unless it is a dry run.
// [PromptEditor.Mutations] are such mutations.
func (c *Client) ComputePrompt(
	ctx context.Context, request *turnwirev1.MutatePromptRequest, options ...grpc.CallOption,
) (*Prompt, error) {
	return wholePrompt(responses(ctx, c.MutatePrompt, request, options))
}

// ReadPrompt has the service compute the prompt of a record again; End.DigestHolds says whether it is the same.
func (c *Client) ReadPrompt(
	ctx context.Context, request *turnwirev1.GetPromptRequest, options ...grpc.CallOption,
) (*Prompt, error) {
	return wholePrompt(responses(ctx, c.GetPrompt, request, options))
}

// Rendering is a prompt as the body of a provider's own request.
type Rendering struct {
	// Body is compact JSON, to be sent as it is.
	Body string
	// Changes name what is sent otherwise than it is stored.
	Changes []*turnwirev1.RenderChange
	// End has the SHA-256 of the body, and by which profile and model it was made.
	End *turnwirev1.RenderEnd
}

// Render has the service render a prompt for a provider.
func (c *Client) Render(
	ctx context.Context, request *turnwirev1.RenderPromptRequest, options ...grpc.CallOption,
) (*Rendering, error) {
	var body strings.Builder
	rendering := &Rendering{}
	for response, err := range responses(ctx, c.RenderPrompt, request, options) {
		if err != nil {
			return nil, err
		}
		body.WriteString(response.GetBody())
		rendering.Changes = append(rendering.Changes, response.GetChanges()...)
		if response.GetEnd() != nil {
			rendering.End = response.GetEnd()
		}
	}
	rendering.Body = body.String()
	return rendering, nil
}

// promptPiece is a response of MutatePrompt or GetPrompt.
type promptPiece interface {
	GetChunk() *turnwirev1.PromptChunk
	GetEnd() *turnwirev1.PromptEnd
}

func wholePrompt[R promptPiece](responses iter.Seq2[R, error]) (*Prompt, error) {
	prompt := &Prompt{}
	for response, err := range responses {
		if err != nil {
			return nil, err
		}
		items := response.GetChunk().GetItems()
		if response.GetChunk().GetContinues() && len(prompt.Items) > 0 && len(items) > 0 {
			last := prompt.Items[len(prompt.Items)-1].GetMessage()
			last.Parts = append(last.Parts, items[0].GetMessage().GetParts()...)
			items = items[1:]
		}
		prompt.Items = append(prompt.Items, items...)
		if response.GetEnd() != nil {
			prompt.End = response.GetEnd()
		}
	}
	return prompt, nil
}
