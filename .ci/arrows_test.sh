#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The arrow check must find each kind of wrong include, and nothing in a tree that has none.
set -euo pipefail
check=$(realpath "$(dirname "$0")/arrows.py")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/include/sealift/{bundle/core,bundle/trust,train/comm,train/flat} "$tree"/bundle/{core,trust} \
  "$tree"/{packager/host,packager/job,installer/disk,samples} \
  "$tree"/{trainer/{settings,loop,models,verbs},verify/{verdict,machine},launch}
printf '#include "sealift/bundle/core/a.hpp"\n#include "sealift/bundle/trust/b.hpp"\n' > "$tree/include/sealift/bundle.hpp"
printf '#include "sealift/train/comm/t.hpp"\n#include "sealift/train/flat/u.hpp"\n#include "sealift/train/comm/v.hpp"\n' \
  > "$tree/include/sealift/train.hpp"
touch "$tree"/include/sealift/{bundle/core/a,train/comm/t,train/comm/v,train/flat/u,safetensors}.hpp \
  "$tree"/bundle/core/json.hpp "$tree"/packager/{host/h,job/j,job/k}.hpp "$tree/packager/job/k.cpp" "$tree/installer/disk/i.hpp"
echo '#include "sealift/bundle/core/a.hpp"' > "$tree/include/sealift/bundle/trust/b.hpp"
printf '#include "sealift/bundle/core/a.hpp"\n#include "bundle/core/json.hpp"\n' > "$tree/bundle/core/a.cpp"
echo '#include "sealift/bundle/trust/b.hpp"' > "$tree/packager/main.cpp"
printf '#include "packager/host/h.hpp"\n#include "packager/job/k.hpp"\n' > "$tree/packager/job/j.cpp"
echo '#include "sealift/safetensors.hpp"' | tee -a "$tree/include/sealift/train/comm/t.hpp" >> "$tree/include/sealift/bundle/core/a.hpp"
echo '#include "sealift/train/comm/t.hpp"' > "$tree/include/sealift/train/flat/u.hpp"
echo '#include <sealift/train/comm/v_inl.hpp>' > "$tree/include/sealift/train/comm/v.hpp"
echo '#include <sealift/train/comm/v.hpp>' > "$tree/include/sealift/train/comm/v_inl.hpp"
touch "$tree"/trainer/{settings/s,loop/l,models/m,verbs/v,failure,own_bundle}.hpp \
  "$tree"/verify/{verdict/v,machine/m}.hpp "$tree"/launch/{place.hpp,ranks.hpp,main.cpp} "$tree/packager/CMakeLists.txt" \
  "$tree/packager/job/made.inc.in" "$tree/samples/sample.cpp"
printf '#include "%s"\n' sealift/train/comm/t.hpp bundle/core/json.hpp sealift/bundle/core/a.hpp trainer/settings/s.hpp \
  > "$tree/trainer/loop/l.hpp"
printf '#include "%s"\n' trainer/models/m.hpp verify/verdict/v.hpp > "$tree/verify/machine/m.hpp"
echo '#include "packager/job/made.inc"' > "$tree/packager/job/k.hpp"
echo '#include "trainer/failure.hpp"' > "$tree/trainer/own_bundle.hpp"
python3 "$check" "$tree"

finds() {  # finds FILE INCLUDE MESSAGE
  cp "$tree/$1" "$tree/saved"
  echo "#include $2" >> "$tree/$1"
  if output=$(python3 "$check" "$tree"); then echo "not found: $1 including $2"; exit 1; fi
  grep -qF -- "$3" <<< "$output" || { echo "wrong message: $output"; exit 1; }
  mv "$tree/saved" "$tree/$1"
}
finds packager/main.cpp '"installer/disk/i.hpp"' 'packager must not include installer/disk/i.hpp'
finds packager/main.cpp '"sealift/train/comm/t.hpp"' 'packager must not include'
finds packager/main.cpp '<isa-l/igzip_lib.h>' 'whose door is bundle/archive/'
finds packager/main.cpp '<zlib.h>' 'whose door is'
finds packager/host/h.hpp '"packager/job/j.hpp"' 'stands on a higher floor'
finds packager/job/k.cpp '"packager/job/j.hpp"' 'a circle of files: packager/job/j -> packager/job/k -> packager/job/j'
finds bundle/core/a.cpp '"sealift/bundle/trust/b.hpp"' 'stands on a higher floor'
finds include/sealift/bundle/trust/b.hpp '"bundle/core/json.hpp"' 'a public header must not include bundle/core/json.hpp'
finds include/sealift/bundle/core/a.hpp '<openssl/evp.h>' 'whose door is'
finds include/sealift/bundle/core/a.hpp '"sealift/bundle/trust/b.hpp"' 'stands later'
finds include/sealift/train/comm/v.hpp '"sealift/train/flat/u.hpp"' 'a circle of rooms in train: comm -> flat -> comm'
finds include/sealift/train/comm/v_inl.hpp '"sealift/train/flat/u.hpp"' 'a circle of rooms in train: comm -> flat -> comm'
finds include/sealift/train/comm/t.hpp '<sealift/train/comm/v_inl.hpp>' 'stands later in the umbrella'
finds include/sealift/train/comm/t.hpp '"sealift/bundle/core/a.hpp"' 'train must not include'
finds include/sealift/safetensors.hpp '"sealift/bundle/core/a.hpp"' 'a leaf must not include'
finds include/sealift/safetensors.hpp '<zlib.h>' 'whose door is'
finds include/sealift/bundle/core/a.hpp '"sealift/train/comm/t.hpp"' 'bundle must not include include/sealift/train'
finds packager/main.cpp '"packager/job/missing.hpp"' 'packager/main.cpp: includes packager/job/missing.hpp, which leads to no file'
finds packager/main.cpp '<sealift/missing.hpp>' 'which leads to no file'
finds trainer/loop/l.hpp '"l.hpp"' 'includes l.hpp, which leads to no file'
finds include/sealift/bundle/core/a.hpp '"../../../../installer/disk/i.hpp"' 'which leads to no file'
finds trainer/settings/s.hpp '"trainer/loop/l.hpp"' 'trainer/loop/l.hpp, which stands on a higher floor'
finds verify/verdict/v.hpp '"verify/machine/m.hpp"' 'verify/machine/m.hpp, which stands on a higher floor'
finds launch/place.hpp '"launch/ranks.hpp"' 'launch/ranks.hpp, which stands on a higher floor'
finds trainer/models/m.hpp '"trainer/verbs/v.hpp"' 'trainer/verbs/v.hpp, which stands on a higher floor'
finds trainer/loop/l.hpp '"verify/verdict/v.hpp"' 'trainer must not include verify/verdict/v.hpp'
finds verify/machine/m.hpp '"trainer/verbs/v.hpp"' 'verify must not include trainer/verbs/v.hpp'
finds launch/main.cpp '"trainer/models/m.hpp"' 'launch must not include trainer/models/m.hpp'
finds trainer/loop/l.hpp '"sealift/bundle/trust/b.hpp"' 'trainer must not include include/sealift/bundle/trust/b.hpp'
finds samples/sample.cpp '"trainer/loop/l.hpp"' 'samples must not include trainer/loop/l.hpp'
finds packager/main.cpp '"trainer/models/m.hpp"' 'packager must not include trainer/models/m.hpp'
finds trainer/failure.hpp '"trainer/own_bundle.hpp"' 'a circle of rooms in trainer: failure -> own_bundle -> failure'
finds trainer/failure.hpp '"trainer/own_bundle.hpp"' 'a circle of files: trainer/failure -> trainer/own_bundle -> trainer/failure'
echo 'add_executable(x ../installer/disk/i.cpp)' > "$tree/packager/CMakeLists.txt"
if output=$(python3 "$check" "$tree"); then echo "not found: a source of another part"; exit 1; fi
grep -q 'packager/CMakeLists.txt: compiles ../installer/disk/i.cpp of another part' <<< "$output"
rm "$tree/packager/CMakeLists.txt"
echo 'int twice(int value) { return bundle::detail::half(value); }' > "$tree/packager/host/inner.cpp"
if output=$(python3 "$check" "$tree"); then echo "not found: bundle::detail in a tool"; exit 1; fi
grep -q 'packager/host/inner.cpp: uses bundle::detail' <<< "$output"
rm "$tree/packager/host/inner.cpp"
for code in 'bool gpu(const at::Tensor& t) { return t.is_cuda(); }' 'auto device = at::kCUDA;' 'auto stream = c10::cuda::getCurrentCUDAStream();'; do
  printf '// is_cuda() is said here\n%s\n' "$code" > "$tree/include/sealift/train/comm/maker.hpp"
  if output=$(python3 "$check" "$tree"); then echo "not found: a maker in the core: $code"; exit 1; fi
  [ "$(grep -c 'comm/maker.hpp: names' <<< "$output")" = 1 ] || { echo "not named: $code: $output"; exit 1; }
done
rm "$tree/include/sealift/train/comm/maker.hpp"
mkdir "$tree/packager/attic"
touch "$tree/packager/attic/x.cpp" "$tree/include/sealift/bundle/core/forgotten.hpp" "$tree/include/sealift/train/comm/t_inl.hpp"
if output=$(python3 "$check" "$tree"); then echo "not found: a header that no umbrella lists"; exit 1; fi
grep -q 'forgotten.hpp: is not listed' <<< "$output"
grep -q 't_inl.hpp: its header does not include it' <<< "$output"
grep -q 'packager/attic/x.cpp: stands in a room that FLOORS does not name' <<< "$output"
echo "every kind of wrong arrow is found"
