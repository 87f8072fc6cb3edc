#!/usr/bin/env bash
# Runs the benchmarks of results/speed on a machine with a GPU. PyTorch's autotuning takes minutes.
#   bash benchmarks/gpu.sh FOLDER
# Failed benchmarks do not stop the other benchmarks, and are listed at the end. CleanRL's loop and the learning curves
# are not included; they have their own commands.
set -u
[ $# -eq 1 ] || { echo "usage: bash benchmarks/gpu.sh FOLDER" >&2; exit 2; }
out=$1
here=$(dirname "$0")
python -c 'import jax' 2>/dev/null || { echo "gpu.sh: this python has no jax; activate the virtual environment" >&2; exit 2; }
python -c 'import jax, sys; jax.default_backend() == "gpu" or sys.exit("JAX finds no GPU here")' || exit 2
torch="--torch --autotune"
python -c 'import torch' 2>/dev/null || { echo "torch is not installed; skipping the PyTorch benchmarks"; torch=; }
mkdir -p "$out"
failed=()
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT

run() {
    echo "== $*"
    python "$here/$1" "${@:2}" || failed+=("$1")
}

[ -z "$torch" ] || run torch_check.py --device cuda
run update.py $torch --plain --out "$out/update.json"
run update.py --updates 10 --only 0 1 --out "$out/update_10.json"
run update.py --only 0 --profile "$profile" --out "$out/update_profiled.json"
run kernels.py "$profile" --device "$(python -c 'import jax; print(jax.devices()[0].device_kind)')" --out "$out"
run loop.py --dtype bfloat16 --seeds 1 3 --envs 80 160 --steps 100000 --evaluation 125000 --out "$out/loop.json"
run loop_in_turns.py --dtype bfloat16 --out "$out/loop_in_turns_1.json"
run loop_in_turns.py --dtype bfloat16 --seeds 3 --steps 9600 --ways 80/2 80/4 160/4 --out "$out/loop_in_turns_3.json"
run timeline.py --envs 160 --out "$out"
run fast_and_plain.py --out "$out/fast_and_plain.json"
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
