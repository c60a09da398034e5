# Sizes of memory, options of scontrol behind its words, and the exit code of a script with several mistakes.
for m in 1500 2000 2048 3072 480000 1048576 102400 1500000; do sbatch -H -o /dev/null --mem=$m --wrap true >/dev/null; sbatch -H -o /dev/null --mem-per-cpu=$m --wrap true >/dev/null; done 2>/dev/null
squeue -h -o '%i %m' | sort; scontrol show job | grep -oE 'MinMemory[A-Z]+=[^ ]*|MinMemoryNode=[^ ]*'
scontrol show job 1001 -d | head -n1; scontrol show job 1001 -o | wc -l; scontrol show -d job 1001 -o | wc -l; scontrol show job --oneliner | wc -l
scontrol show job 1001 -z > /dev/null 2>&1; echo $?
for lines in 'ntasks=XX time=x' 'time=x ntasks=XX' 'nodes=x cpus-per-task=x' 'cpus-per-task=x nosuch=1' 'nosuch=1 ntasks=x'; do
  { echo '#!/bin/sh'; for line in $lines; do echo "#SBATCH --$line"; done; echo true; } > j.sh
  sbatch j.sh > /dev/null 2>&1; echo "$lines: $?"
done
printf '#!/bin/bash\nenv | grep SLURM_JOBID\nenv | grep -c "SLURM_JOB_NODELIST="\n' > j.sh; sbatch -W -o o j.sh > /dev/null; cat o | sed 's/=.*//'
