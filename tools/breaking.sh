#!/usr/bin/env bash
# Usage: breaking.sh [REVISION]
# Fails if the protos of the work tree break users of those at REVISION. By default that is the last tag, what was
# released, and then main, what comes next; without a main, the last commit. Until something is released a message may
# move to another file of its package.
set -euo pipefail

moves=()
exists() { git rev-parse --verify --quiet "$1^{commit}" >/dev/null; }

if [ $# -gt 0 ]; then
  bases=("$1")
else
  bases=()
  if tag=$(git describe --tags --abbrev=0 2>/dev/null); then
    bases+=("$tag")
  else
    moves=(--config "$(sed 's/^    breaking:$/&\n      use: [PACKAGE]/' buf.yaml)")
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
  buf breaking proto "${moves[@]}" --against build/breaking/proto
  echo "breaking: compatible with $base"
done
