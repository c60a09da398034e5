# --export, and --chdir.
export FROM=session
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N1 -n1 -o out
export A=1 B=2
say='echo "A=$A B=$B C=$C FROM=$FROM HOME=${HOME:+set} PATH=${PATH:+set} JOB=${SLURM_JOB_ID:+set}"'
srun bash -c "$say"; srun --export=ALL bash -c "$say"; srun --export=NONE /bin/bash -c "$say"; srun --export=A /bin/bash -c "$say"; srun --export=A,C=3 /bin/bash -c "$say"
srun --export=ALL,C=3 bash -c "$say"; srun --export=C='x y' /bin/bash -c "$say"; C=5 srun bash -c "$say"; SLURM_EXPORT_ENV=NONE srun /bin/bash -c "$say"; SLURM_EXPORT_ENV=A srun --export=ALL /bin/bash -c "$say"
srun --export=ALL,A=9 bash -c "$say"; srun --export=NIL /bin/bash -c "$say"
mkdir -p sub; srun --chdir=sub pwd; srun -D $PWD/sub pwd; cd sub; srun pwd; srun -D .. pwd; srun --chdir=/nonexistent pwd
X
sbatch job.sh; settle; cat out
