package main

import (
	"strings"
	"testing"

	"turnwire.dev/go/internal/turnwiretest"
)

func TestTheExampleRunsAgainstARealServer(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), turnwiretest.Start(t).Address, &out); err != nil {
		t.Fatal(err)
	}
	want := `session A talk from Go
user: What does the README say?
assistant: It says that Turnwire stores sessions.
refused at once: REASON_ANCHOR_UNKNOWN
prompt of 3 messages, computed alike here and there: true
1 session
2 turn
3 user
4 assistant
5 delta
6 delta
7 delta
8 assistant
9 prompt
caught up at revision 9
REVISION_CONFLICT: expected 1, actual 9
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}
