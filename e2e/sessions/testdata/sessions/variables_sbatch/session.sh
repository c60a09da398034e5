# SBATCH_* of the environment, beaten by the script, beaten by the command line? As recorded.
printf '#!/bin/bash\n#SBATCH -J script -p main\necho "$SLURM_JOB_NAME $SLURM_JOB_PARTITION"\n' > j.sh
SBATCH_PARTITION=long sbatch -W -o o j.sh > /dev/null; cat o
SBATCH_JOB_NAME=env sbatch -W -o o -J line j.sh > /dev/null; cat o
SBATCH_OUTPUT=from_env sbatch -W --wrap='echo out' > /dev/null; cat from_env
SBATCH_TIMELIMIT=7 sbatch -H --parsable --wrap=true > id; squeue -h -j $(cat id) -o %l
SBATCH_TIMELIMIT=7 sbatch -H --parsable -t 9 --wrap=true > id; squeue -h -j $(cat id) -o %l
SBATCH_ARRAY_INX=1-2 sbatch -W -o 'a_%a' --wrap='echo $SLURM_ARRAY_TASK_ID' > /dev/null; cat a_1 a_2
SBATCH_OPEN_MODE=a sbatch -W -o from_env --wrap='echo again' > /dev/null; cat from_env
scancel -u root; settle
