package turnwire

import turnwirev1 "turnwire.dev/go/turnwire/v1"

// Text is a part with a text.
func Text(text string) *turnwirev1.PromptPart {
	return &turnwirev1.PromptPart{Kind: &turnwirev1.PromptPart_Text{Text: &turnwirev1.TextPart{Text: text}}}
}

// SyntheticText is a part with a text that a program and not the role's author wrote.
func SyntheticText(text string) *turnwirev1.PromptPart {
	part := Text(text)
	synthetic := true
	part.GetText().Synthetic = &synthetic
	return part
}

// UserMessage is a user's prompt message.
func UserMessage(parts ...*turnwirev1.PromptPart) *turnwirev1.PromptMessage {
	return &turnwirev1.PromptMessage{Role: turnwirev1.Role_ROLE_USER, Parts: parts}
}

// AssistantMessage is an assistant's prompt message.
func AssistantMessage(parts ...*turnwirev1.PromptPart) *turnwirev1.PromptMessage {
	return &turnwirev1.PromptMessage{Role: turnwirev1.Role_ROLE_ASSISTANT, Parts: parts}
}
