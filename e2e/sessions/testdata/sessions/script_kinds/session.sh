# What begins a script, and what is none.
printf '#!/usr/bin/env python3\n#SBATCH -n2 -J py\nimport os\nprint(os.environ["SLURM_JOB_NAME"], os.environ["SLURM_NTASKS"])\n' > a.py
printf '#!/usr/bin/perl\n#SBATCH --job-name=pl\nprint "$ENV{SLURM_JOB_NAME}\\n"; exit 4;\n' > b.pl
printf '#!/bin/bash -e\n#SBATCH -J strict\necho before\nfalse\necho never\n' > c.sh
printf '#!/bin/sh\n#SBATCH -J plain\necho $0 | sed "s#.*/##"\n' > d.sh
printf '#!/bin/cat\nSome text\n' > e
printf 'echo no interpreter\n' > f
printf '\n#!/bin/bash\necho late\n' > g
: > h
printf '#!/bin/bash\r\necho dos\r\n' > i
printf '#!/bin/missing\necho x\n' > k
for f in a.py b.pl c.sh d.sh e f g h i k; do rm -f o; timeout 20 sbatch -W -o o $f > /dev/null; echo "$f: $?"; [ -e o ] && grep -v '^slurmstepd' o; done
