# Shells that say what they do: nothing but the script's own lines.
for s in '#!/bin/bash -x' '#!/bin/sh -x' '#!/bin/bash -xeu'; do
  printf '%s\nv=1\necho $v\nsrun echo found\nbash -xc true\n' "$s" > j.sh
  sbatch -W -o o j.sh > /dev/null; echo "$s: $?"; cat o
done
