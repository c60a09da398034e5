# Forms of sbatch: --wrap, --parsable, stdin, arguments, options behind lines, odd #SBATCH lines.
sbatch --parsable -o a --wrap 'echo wrap $SLURM_JOB_NAME'; sbatch -Q -o b --wrap 'echo quiet'; sbatch --wrap='echo x' extra 2> /dev/null; echo "rc $?"
printf '#!/bin/sh\n#SBATCH -J odd -o c\n#SBATCH --comment "two words"\n##SBATCH -J no\n# SBATCH -J no\n #SBATCH -J no\n#SBATCH -N 1 # a comment\n\n#SBATCH --time=5\necho "$SLURM_JOB_NAME $# $1"\n#SBATCH -J late\n' > c.sh; sbatch c.sh 'one two'
printf '#!/bin/bash\n#SBATCH --job-name=inner\n#SBATCH --output=d.inner\n#SBATCH -n 2 -N 1\necho "$SLURM_JOB_NAME $SLURM_NTASKS"\n' | sbatch -J outer -o d
printf '#!/bin/bash -e\necho before\nfalse\necho after\n' > e.sh; sbatch -o e e.sh; printf '#!/usr/bin/env python3\nimport os\nprint("python", os.environ["SLURM_JOB_ID"] != "")\n' > f.py; sbatch -o f f.py
printf '#! /bin/bash\n#SBATCH -o g\n#SBATCH --nodes=1 --ntasks=3\n#SBATCH -c2\necho $SLURM_NTASKS $SLURM_CPUS_PER_TASK\n' > g.sh; sbatch -n2 g.sh; SBATCH_JOB_NAME=env sbatch -o h --wrap 'echo $SLURM_JOB_NAME'
sbatch -o i -D / --wrap 'pwd'; sbatch -o $PWD/i2 -D /tmp --wrap 'pwd'; sbatch -N1 -n1 -o j -- c.sh x; settle; for f in a b c d e f g h i2 j; do echo "$f: $(cat $f 2>&1)"; done; squeue -h -t all -o '%i %T %j' | sort
