#!/usr/bin/env bash
# All figures of results/speed that come from one machine with a GPU. PyTorch compiles for minutes when it autotunes.
#   bash benchmarks/gpu.sh FOLDER
# One that fails does not stop the others. CleanRL's loop and the learning curves have commands of their own.
set -u
out=${1:?usage: bash benchmarks/gpu.sh FOLDER}
here=$(dirname "$0")
mkdir -p "$out"
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT

run() {
    echo "== $*"
    python "$here/$1" "${@:2}" || echo "FAILED: $1"
}

run update.py --torch --plain --out "$out/update.json"
run update.py --only 0 --profile "$profile" --out "$out/update_profiled.json"
run kernels.py "$profile" --out "$out"
run loop.py --dtype bfloat16 --seeds 1 3 --evaluation 125000 --out "$out/loop.json"
run loop.py --dtype bfloat16 --envs 160 --out "$out/loop_160.json"
run timeline.py --out "$out"
run fast_and_plain.py --out "$out/fast_and_plain.json"
