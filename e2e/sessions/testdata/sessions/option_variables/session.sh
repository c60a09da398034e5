# Options that scripts hear of, and variables of the user that srun reads.
cat > j.sh <<'X'
#!/bin/bash
env | grep -E '^SLURM_(EXPORT_ENV|GET_USER_ENV|OPEN_MODE|OVERCOMMIT|THREADS_PER_CORE|HINT|LABELIO|MPI_TYPE|HOSTFILE|UMASK)=' | sort | tr '\n' ' '; echo "${COLOR:-none}"
X
run() { "$@" > /dev/null 2>&1; echo "$?: $(cat o)"; rm -f o; }
export COLOR=blue
run sbatch -W -o o j.sh
run sbatch -W -o o --export=ALL j.sh
run sbatch -W -o o --export=NONE j.sh
run sbatch -W -o o --export=COLOR=red,PATH j.sh
run sbatch -W -o o --export=ALL,COLOR=green j.sh
run sbatch -W -o o --open-mode=truncate j.sh
run sbatch -W -o o --open-mode=append j.sh
run sbatch -W -o o -O j.sh
run sbatch -W -o o --threads-per-core=1 j.sh
SBATCH_EXPORT=NONE run sbatch -W -o o j.sh
SLURM_LABELIO=1 SLURM_MPI_TYPE=none run sbatch -W -o o j.sh
