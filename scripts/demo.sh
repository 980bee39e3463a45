#!/bin/sh
# A Graph-mode file becomes a PyNative file that trains: convert, lint, make-data, train.
set -eu
cd "$(dirname "$0")/.."
bin=.venv/bin
out=output/demo
mkdir -p "$out"

step() {
    if [ -n "$1" ]; then printf '\n== %s\n' "$1"; fi
    shift
    printf '$ %s\n' "$*"
    "$@"
}

step "1/5 A Graph-mode file with every section of a real one" head -n 46 examples/deepseek_v3_small/graph.yaml
echo "… ($(wc -l <examples/deepseek_v3_small/graph.yaml) lines)"
step "2/5 Convert it: every key is accounted for" \
    $bin/msmigrate convert examples/deepseek_v3_small/graph.yaml -o $out/pynative.yaml --report -
step "3/5 Check the result" $bin/msmigrate lint $out/pynative.yaml
step "4/5 Make a Megatron data set of the text that every Python carries" \
    $bin/python examples/deepseek_v3_small/write_topics.py $out/pydoc_topics.jsonl
step "" $bin/msrt make-data $out/pydoc_topics.jsonl -o $out/pydoc_topics --append-eod --force
step "5/5 Train it, and look at the loss" $bin/msrt train $out/pynative.yaml --output $out/run
step "" $bin/msrt plot $out/run
