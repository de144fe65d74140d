#!/usr/bin/env bash
# Usage: breaking.sh [REVISION]
# Fails if the protos of the work tree break users of those at REVISION. By default that is the last tag, what was
# released; before the first tag, the last commit. Without such a base there is nothing to break.
set -euo pipefail

base=${1:-$(git describe --tags --abbrev=0 2>/dev/null || echo HEAD)}
if ! git cat-file -e "$base:buf.yaml" 2>/dev/null; then
  if [ $# -gt 0 ]; then
    echo "breaking: $base has no protos" >&2
    exit 1
  fi
  echo "breaking: no earlier protos to compare with"
  exit 0
fi

rm -rf build/breaking
mkdir -p build/breaking
git archive "$base" buf.yaml proto third_party | tar -x -C build/breaking
buf breaking proto --against build/breaking/proto
echo "breaking: compatible with $base"
