# Variables of steps.
cat > j.sh <<'X'
#!/bin/bash
export A=script B=script
show='echo "A ${A:-none} B ${B:-none} C ${C:-none} HOME ${HOME:+home} PATH ${PATH:+path}"'
srun bash -c "$show"
srun --export=ALL bash -c "$show"
srun --export=ALL,C=new bash -c "$show"
srun --export=ALL,A=new bash -c "$show"
srun --export=NONE /bin/bash -c "$show"
srun --export=A /bin/bash -c "$show"
srun --export=A,C=x /bin/bash -c "$show"
srun --export=C='a b' /bin/bash -c "$show"
C=inline srun bash -c "$show"
SLURM_EXPORT_ENV=NONE srun /bin/bash -c "$show"
SLURM_EXPORT_ENV=A srun /bin/bash -c "$show"
env -u A srun bash -c "$show"
srun env A=direct bash -c "$show"
srun --export=NIL /bin/bash -c "$show"
X
sbatch -W -o o j.sh; cat o
