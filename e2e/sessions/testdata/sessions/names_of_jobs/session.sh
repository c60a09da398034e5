# Names.
show='echo "[$SLURM_JOB_NAME]"'
for n in plain 'two words' a/b a.b:c 'x%j' "$(printf 'long%.0s' {1..40})" -dash 'ü'; do sbatch -W -o o -J "$n" --wrap="$show" > /dev/null; echo $?; cat o; done
SBATCH_JOB_NAME=env sbatch -W -o o --wrap="$show" > /dev/null; cat o
SLURM_JOB_NAME=other sbatch -W -o o --wrap="$show" > /dev/null; cat o
printf '#!/bin/bash\necho "[$SLURM_JOB_NAME]"\nsrun -J step bash -c "echo \\$SLURM_JOB_NAME"\nsrun bash -c "echo \\$SLURM_JOB_NAME"\n' > a.b.sh
sbatch -W -o o a.b.sh > /dev/null; cat o
