# Steps that cannot be: exit codes, and that the script goes on.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n2 -c2 -o out
rc() { "$@" > /dev/null 2>&1; echo "rc $?"; }
rc srun -N3 true; rc srun -w n4 -n1 true; rc srun -n99 true; rc srun --nosuch true; rc srun; rc srun /nonexistent; rc srun -n abc true
rc srun -I -n99 true; rc srun -c 99 true; rc srun -D /nonexistent true; rc srun -o /nonexistent/x true;
rc srun -m nosuch true; rc srun --multi-prog /nonexistent; rc srun -x n1,n2 -n1 true; rc srun --mpi=nosuch true; rc srun -t abc true


X
sbatch job.sh; settle; cat out
