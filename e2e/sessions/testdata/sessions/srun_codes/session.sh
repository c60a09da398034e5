# The exit code of srun in a script when an option, a value or a file is wrong.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n4 -o out
rc() { timeout 20 "$@" > /dev/null 2>&1; echo "$* : rc $?"; }
rc srun -n 0 true; rc srun -n -1 true; rc srun -n; rc srun -N abc true; rc srun -N 1x true; rc srun -N 2-1 true; rc srun -c 0 true; rc srun -c abc true; rc srun --ntasks-per-node=abc true; rc srun --ntasks-per-node=0 true
rc srun -r abc true; rc srun -r 9 -n1 -N1 true; rc srun -W abc true; rc srun -K=abc true; rc srun -t 1:2:3:4:5 true; rc srun -t 0 true; rc srun --open-mode=x true; rc srun -m plane=0 true; rc srun -m plane=abc true; rc srun -m plane true; rc srun -m cyclic:nosuch true
rc srun -w nosuch -n1 -N1 true; rc srun -w 'n[1' -n1 -N1 true; rc srun --mem=abc true; rc srun --mem-per-cpu=abc true; rc srun -i /nonexistent true; rc srun --export true; rc srun --help; rc srun --usage; rc srun -V; rc srun --version; rc srun --mpi=list
rc srun --jobid=999 true; rc srun --jobid=abc true
X
sbatch job.sh; settle; cat out
