#!/usr/bin/env bash
# Usage: breaking.sh [REVISION]
# Fails if the protos of the work tree break users of those at REVISION. By default that is the last tag, what was
# released, and then main, what comes next; without a main, the last commit. Until something is released a message may
# move to another file of its package, and what is named here has changed.
set -euo pipefail

# AppendStreamResponse has come to be a list of outcomes.
changed=proto/turnwire/v1/append_requests.proto
rules=(FIELD_NO_DELETE FIELD_SAME_CARDINALITY FIELD_SAME_JSON_NAME FIELD_SAME_NAME FIELD_SAME_ONEOF FIELD_SAME_TYPE
  ONEOF_NO_DELETE)

unreleased=()
exists() { git rev-parse --verify --quiet "$1^{commit}" >/dev/null; }

if [ $# -gt 0 ]; then
  bases=("$1")
else
  bases=()
  if tag=$(git describe --tags --abbrev=0 2>/dev/null); then
    bases+=("$tag")
  else
    allowed="      use: [PACKAGE]\\n      ignore_only:$(printf "\\\\n        %s: [$changed]" "${rules[@]}")"
    unreleased=(--config "$(sed "0,/^    breaking:\$/s||&\\n$allowed|" buf.yaml)")
  fi
  for main in origin/main main HEAD; do
    if exists "$main"; then
      bases+=("$main")
      break
    fi
  done
fi

for base in "${bases[@]}"; do
  if ! git cat-file -e "$base:buf.yaml" 2>/dev/null; then
    if [ $# -gt 0 ]; then
      echo "breaking: $base has no protos" >&2
      exit 1
    fi
    echo "breaking: $base has no protos to compare with"
    continue
  fi
  rm -rf build/breaking
  mkdir -p build/breaking
  git archive "$base" buf.yaml proto third_party | tar -x -C build/breaking
  buf breaking proto "${unreleased[@]}" --against build/breaking/proto
  echo "breaking: compatible with $base"
done
