#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The wheels that packages_test.sh made, in environments and without an index: installed, used, removed, and refused beside
# another torch, on an older system and on another architecture.
#   wheels_test.sh SOURCE PACKAGES TORCH
# TORCH is the torch folder that the trainer was built with; empty: there is no wheel of the trainer.
set -euo pipefail
source=$1 packages=$2 torch=${3:-}
version=$(cat "$source/VERSION") uv=$source/build/prerequisites/uv/bin/uv
fail() { echo "FAILED: $*" >&2; exit 1; }
[ -x "$uv" ] && [ -x /usr/bin/python3.11 ] || { echo "left out: needs uv and /usr/bin/python3.11"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export UV_OFFLINE=1 UV_NO_CONFIG=1 UV_CACHE_DIR=$work/cache UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy
env=$work/env python=$work/env/bin/python
"$uv" venv -q --python /usr/bin/python3.11 "$env"
(cd "$env" && find . ! -type d ! -name .lock | sort) > "$work/before"
install() { "$uv" pip install -q --python "$python" --no-deps "$@"; }
wheel=$(echo "$packages/sealift-$version"-*.whl)

echo "== another system: refused by its tag"
for platform in x86_64-manylinux_2_28 aarch64-manylinux_2_40; do
  ! "$uv" pip install --python "$python" --no-deps --dry-run --python-platform $platform "$wheel" 2> "$work/said" ||
    fail "a $platform took the wheel"
  grep -F 'platform' "$work/said" | head -1 || fail "$(cat "$work/said")"
done

echo "== the tools: started from the environment, and uv found beside them"
install "$wheel"
for program in sealift-pack sealift-install sealift-repo sealift-launch; do
  [ "$(env -i PATH=/usr/bin:/bin "$env/bin/$program" --version | head -1)" = "$program $version" ] || fail "$program does not start"
done
grep -qx 'Requires-Dist: uv>=0.13.8' "$env"/lib/python3.11/site-packages/sealift-*.dist-info/METADATA || fail "the wheel does not ask for uv"
printf '#!/bin/sh\necho "this is the uv of the environment" >&2\nexit 3\n' > "$env/bin/uv" && chmod +x "$env/bin/uv"
cat > "$work/job.toml" <<END
name = "first"
version = 1
[target]
arch = "x86_64"
glibc = "2.36"
[python]
version = "3.11"
interpreter = "/usr/bin/python3.11"
requirements = ["numpy"]
END
env -i PATH=/usr/bin:/bin HOME="$work" "$env/bin/sealift-pack" lock "$work/job.toml" > "$work/said" 2>&1 || true
grep -q 'this is the uv of the environment' "$work/said" || fail "uv beside sealift-pack was not found: $(cat "$work/said")"
rm "$env/bin/uv"

if [ -n "$torch" ]; then
  trainer=$(echo "$packages/sealift_trainer-$version"-cp3*.whl)
  site=$env/lib/python3.11/site-packages
  wanted=$(sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$torch/version.py")
  echo "== the trainer: for torch $wanted, and for no other"
  install "$trainer"
  grep -qx "Requires-Dist: torch==$wanted" "$site"/sealift_trainer-*.dist-info/METADATA || fail "the wheel does not ask for torch $wanted"
  refused() { # refused FOUND: in one line that names the right torch, too
    local status=0
    "$env/bin/sealift-train" --version > "$work/said" 2>&1 || status=$?
    cat "$work/said"
    [ "$status" = 1 ] && [ "$(wc -l < "$work/said")" = 1 ] || fail "not one line"
    grep -qF "for torch $wanted, and beside it is $1; next: pip install torch==$wanted" "$work/said" || fail "not the right line"
  }
  refused none
  mkdir "$site/torch-2.10.0.dist-info"
  printf 'Metadata-Version: 2.1\nName: torch\nVersion: 2.10.0+cu130\n' > "$site/torch-2.10.0.dist-info/METADATA"
  refused 2.10.0+cu130
  rm -r "$site/torch-2.10.0.dist-info"
  # As pip would put it there, 2.7 GB: the very folders.
  ln -s "$torch" "$(dirname "$torch")"/torch-*.dist-info "$(dirname "$torch")/nvidia" "$site/" 2> /dev/null || true
  "$env/bin/sealift-train" --version | tee "$work/said"
  grep -qx "sealift-train $version" "$work/said" && grep -q "^LibTorch $wanted" "$work/said" || fail "not the program of this version and torch"
  "$env/bin/sealift-train" run --device cpu --parallel-method fsdp --ranks 2 --threads 1 --steps 1 --layers 1 --width 16 \
    --out "$work/out" > "$work/said" 2>&1 || fail "$(cat "$work/said")"
  "$env/bin/sealift-verify" --version > /dev/null || fail "sealift-verify does not start"
  [ -d "$env/share/sealift/presets" ] || fail "the presets are not where sealift-train looks for them"
  find "$site" -maxdepth 1 -type l -delete
  "$uv" pip uninstall -q --python "$python" sealift-trainer
fi

"$uv" pip uninstall -q --python "$python" sealift
(cd "$env" && find . ! -type d ! -name .lock | sort) > "$work/after"
diff "$work/before" "$work/after" || fail "the removed wheels left files"
echo "installed, used, removed; refused where it must be"
