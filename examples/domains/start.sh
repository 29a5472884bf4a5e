#!/bin/bash
# Starts three domains on this machine, each in a folder below DIR, and connects fiu with the two others:
#     examples/domains/start.sh DIR
# It returns when they are connected. `kill $(cat DIR/pids)` ends them.
set -eu
dir=$1
mkdir -p "$dir"
: > "$dir/pids"
for name in fiu ibm bsc; do
    mendflow serve --domain $name --data-dir "$dir/$name" --port 0 --jobs 2 > "$dir/$name.log" 2>&1 &
    echo $! >> "$dir/pids"
done
for name in fiu ibm bsc; do
    until grep -q serves "$dir/$name.log"; do sleep 0.1; done
done
url=$(sed -n 's/^mendflow serves \([^ ]*\) .*/\1/p' "$dir/fiu.log")
for name in ibm bsc; do
    mendflow domains invite $name --data-dir "$dir/fiu" 2> /dev/null |
        mendflow domains connect fiu "$url" --data-dir "$dir/$name"
done
