#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The arrow check must find each kind of wrong include, and nothing in a tree that has none.
set -euo pipefail
check=$(realpath "$(dirname "$0")/arrows.py")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/include/sealift/{bundle,train} "$tree"/{packager,installer,samples}
printf '#include "sealift/bundle/a.hpp"\n#include "sealift/bundle/b.hpp"\n' > "$tree/include/sealift/bundle.hpp"
printf '#include "sealift/train/t.hpp"\n' > "$tree/include/sealift/train.hpp"
touch "$tree"/include/sealift/{bundle/a,train/t,safetensors}.hpp "$tree/installer/i.hpp"
echo '#include "sealift/bundle/a.hpp"' > "$tree/include/sealift/bundle/b.hpp"
echo '#include "sealift/bundle/b.hpp"' > "$tree/packager/p.cpp"
echo '#include "sealift/safetensors.hpp"' | tee -a "$tree/include/sealift/train/t.hpp" >> "$tree/include/sealift/bundle/a.hpp"
python3 "$check" "$tree"

finds() {  # finds FILE INCLUDE MESSAGE
  cp "$tree/$1" "$tree/saved"
  echo "#include $2" >> "$tree/$1"
  if output=$(python3 "$check" "$tree"); then echo "not found: $1 including $2"; exit 1; fi
  grep -qF "$3" <<< "$output" || { echo "wrong message: $output"; exit 1; }
  mv "$tree/saved" "$tree/$1"
}
finds packager/p.cpp '"installer/i.hpp"' 'packager must not include installer/i.hpp'
finds packager/p.cpp '"sealift/train/t.hpp"' 'packager must not include'
finds packager/p.cpp '<isa-l/igzip_lib.h>' 'whose door is include/sealift/bundle/archive/zip.hpp'
finds packager/p.cpp '<zlib.h>' 'whose door is'
finds include/sealift/bundle/a.hpp '"sealift/bundle/b.hpp"' 'stands later'
finds include/sealift/train/t.hpp '"sealift/bundle/a.hpp"' 'train must not include'
finds include/sealift/safetensors.hpp '"sealift/bundle/a.hpp"' 'a leaf must not include'
finds include/sealift/safetensors.hpp '<zlib.h>' 'whose door is'
finds include/sealift/bundle/a.hpp '"../../../installer/i.hpp"' 'bundle must not include installer'
touch "$tree/include/sealift/bundle/forgotten.hpp"
if output=$(python3 "$check" "$tree"); then echo "not found: a header that no umbrella lists"; exit 1; fi
grep -q 'forgotten.hpp: is not listed' <<< "$output"
echo "every kind of wrong arrow is found"
