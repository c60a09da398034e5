# Shells of scripts, and what they read.
for s in '#!/bin/bash' '#!/bin/bash -l' '#!/bin/sh' '#!/bin/sh -e' '#!/usr/bin/env bash' '#! /bin/bash' '#!/bin/bash -x'; do
  printf '%s\nshopt -q login_shell 2>/dev/null && echo login || echo plain\nsrun echo found\necho $- | tr -cd eux; echo\n' "$s" > j.sh
  sbatch -W -o o -e /dev/null j.sh > /dev/null; echo "$s: $? $(tr '\n' ' ' < o)"
done
